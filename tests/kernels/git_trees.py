# SPDX-License-Identifier: GPL-2.0-or-later
"""Small source trees and repositories, and what was written where."""

import hashlib
import os
import subprocess
from pathlib import Path

from kdelta.kernels.sources.git import GitStore
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import Source, checked_out, source_of
from kdelta.spec.kernel import BuiltSpec, parse_kernel_spec

MAKEFILE = "# a kernel\nVERSION = 6\nPATCHLEVEL = 12\nall:\n\techo\n"
FORK = "".join(f"int line_{number};\n" for number in range(1, 41))
TREE = {
    "Makefile": MAKEFILE,
    "Kconfig": "config A\n",
    "Kbuild": "obj-y += kernel/\n",
    ".gitignore": "*.o\n.*\n!.gitignore\n/vmlinux\n/include/generated/\n",
    "kernel/.gitignore": "/made.h\n",
    "kernel/Makefile": "obj-y += fork.o\n",
    "kernel/fork.c": FORK,
    "scripts/run.sh": "#!/bin/sh\n",
}
SOURCES = sorted(TREE)


def write_tree(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A folder with a small kernel tree, or these files."""
    for name, content in (TREE if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    if files is None:
        (folder / "scripts/run.sh").chmod(0o755)
        (folder / "scripts/link").symlink_to("run.sh")
    return folder


def git(folder: Path, *words: str) -> str:
    """Runs the user's git in a folder; what it printed."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    argv = ["git", "-c", "init.defaultBranch=main", "-c", "gc.auto=0", *words]
    return subprocess.run(
        argv, cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout


def commit(folder: Path, message: str, **files: str) -> str:
    """Commits all there is, with these files changed; makes the repository if there is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    write_tree(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """All that is below a folder: kind and mode, time of change, and content."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        stat = path.lstat()
        content = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found


def quiet(_line: str) -> None:
    """Progress that is dropped."""


def source(text: str) -> Source:
    """The source of a spec whose patches apply."""
    found = outcome(text)
    assert isinstance(found, Source), found
    return found


def failure(text: str) -> PatchFailure:
    """Why a spec's patches do not apply."""
    found = outcome(text)
    assert isinstance(found, PatchFailure), found
    return found


def outcome(text: str) -> Source | PatchFailure:
    """What becomes of a spec."""
    spec = parse_kernel_spec(text)
    assert not isinstance(spec, BuiltSpec)
    return source_of(spec, quiet)


def files(found: Source) -> dict[str, str]:
    """The files of a source's tree, and their content; a link's is where it leads."""
    store = GitStore(found.folder)
    names = store.git("ls-tree", "-r", "--name-only", found.tree).text.splitlines()
    return {n: (store.blob(f"{found.tree}:{n}") or b"").decode("latin-1") for n in names}


def checkout(found: Source) -> Path:
    """The source's files, checked out."""
    return checked_out(found, quiet)
