# SPDX-License-Identifier: GPL-2.0-or-later
"""The git program, in one place: kdelta's own stores of source trees, and the user's repositories,
which are only read.

A store takes no object from a user's repository by reference: git renews the times of files there
when it meets an object that it already has, and the user's clean-up would leave holes in the store.
"""

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import echo_command, find_program
from kdelta.host.files import is_full, is_odd, new_folder, os_failure, read_regular, remove
from kdelta.kernels.sources.git_config import isolated_environment, reading_environment
from kdelta.spec.errors import KdeltaError, LabError, UserError

# What the user has set for git must change neither what a tree holds nor how long it takes.
_SETTINGS = {
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.bare": "true",
    # On a 6.12 tree 1 takes as long as 0, and a quarter of the space.
    "core.compression": "1",
    "core.excludesFile": "/dev/null",
    "core.fileMode": "true",
    "core.hooksPath": "/dev/null",
    "core.precomposeUnicode": "false",
    "core.preloadIndex": "true",
    "core.quotePath": "false",
    "core.symlinks": "true",
    "checkout.workers": "0",
    "gc.auto": "0",
    "index.version": "4",
    "maintenance.auto": "false",
    "pack.threads": "0",
}
# The kernel's own .gitattributes say nothing that changes a file; others' could.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-subst\n"

_LEFTOVERS = (
    *("objects/tmp_*", "objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/??/tmp_obj_*"),
    *("import-index.lock", "patch-index*", "fast_import_crash_*", "refs/**/*.lock"),
)
_READ_FILES = (
    *("HEAD", "config", "index", "packed-refs", "shallow", "commondir"),
    *("info/grafts", "info/exclude", "info/attributes", "objects/info/alternates"),
)
"""Files of a repository that git reads."""
_NOT_OWN = "detected dubious ownership"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class GitResult(msgspec.Struct, frozen=True):
    """How git ended; what it printed is bytes, since names of files need not be UTF-8."""

    returncode: int
    stdout: bytes
    stderr: str

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    @property
    def text(self) -> str:
        """What it printed, as one stripped text."""
        return self.stdout.decode("utf-8", "replace").strip()

    def or_raise(self, error: type[KdeltaError], failed: str, hint: str = "") -> "GitResult":
        """Itself if it is ok, else that error with what git complained of."""
        if not self.ok:
            raise error(f"{failed}: {self.complaint()}", hint)
        return self

    def complaint(self) -> str:
        """The first error that it named."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("error: ", "fatal: "))]
        first = (errors or lines or [f"it ended with {self.returncode} and said nothing"])[0]
        return first.removeprefix("error: ").removeprefix("fatal: ")


class GitStore:
    """kdelta's own objects of one source: `folder`/git. Nothing else writes there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git_dir = folder / "git"

    def create(self) -> None:
        """Makes the store if it is not there; the caller holds a lock for the folder."""
        if self.git_dir.is_dir():
            # None of what an interrupted git left is ever taken for whole, but it may be gigabytes,
            # and a lock would stand in the way.
            for path in (path for pattern in _LEFTOVERS for path in self.git_dir.glob(pattern)):
                remove(path)
            return
        with new_folder(self.git_dir) as partial:
            made = run_git(["init", "-q", "--bare", "--template=", partial])
            made.or_raise(LabError, "git could not make a store")
            with (partial / "config").open("a") as file:
                file.writelines(_config_line(name, value) for name, value in _SETTINGS.items())
            (partial / "info").mkdir(exist_ok=True)
            (partial / "info" / "attributes").write_text(_ATTRIBUTES)

    def index(self, name: str) -> Path:
        return self.git_dir / f"{name}-index"

    def environment(self, index: str | None = None, work: Path | None = None) -> dict[str, str]:
        return {
            **isolated_environment(),
            "GIT_DIR": str(self.git_dir),
            **({"GIT_INDEX_FILE": str(self.index(index))} if index is not None else {}),
            **({"GIT_WORK_TREE": str(work)} if work is not None else {}),
        }

    def attempt(
        self,
        *words: str | Path,
        index: str | None = None,
        work: Path | None = None,
        stdin: bytes = b"",
    ) -> GitResult:
        """Runs git on the store; its failure is in the result. LabError for a full disk."""
        result = run_git(words, env=self.environment(index, work), cwd=work, stdin=stdin)
        check_space(result, self.folder)
        return result

    def git(
        self,
        *words: str | Path,
        index: str | None = None,
        work: Path | None = None,
        stdin: bytes = b"",
    ) -> GitResult:
        """Runs git on the store; LabError when it fails."""
        result = self.attempt(*words, index=index, work=work, stdin=stdin)
        if result.ok:
            return result
        raise self.broken(result)

    def check_out(self, tree: str, index: str, work: Path) -> None:
        """Makes a folder hold the files of a tree and no others. Files that have their content
        already keep their times.
        """
        file = self.index(index)
        remove(file.with_name(f"{file.name}.lock"))
        # Where times are other than git remembers, in a copied cache, it must look at the content.
        self.attempt("update-index", "-q", "--refresh", index=index, work=work)
        words = ("read-tree", "--reset", "-u", tree)
        if not self.attempt(*words, index=index, work=work).ok:
            # The index may be damaged; without it all files are written again.
            remove(file)
            self.git(*words, index=index, work=work)
        # What an interrupted change of trees left behind would be found by make.
        self.git("clean", "-ffdxq", index=index, work=work)

    def broken(self, result: GitResult) -> LabError:
        """The error for a store on which git failed."""
        return LabError(
            f"git failed on kdelta's copy of a source tree: {result.complaint()}",
            f"if that stays so, remove {self.folder}; it is made again",
        )

    def has(self, name: str) -> bool:
        return self.attempt("cat-file", "-e", name).ok

    def blob(self, name: str) -> bytes | None:
        """The content of a file, by hash or as TREE:PATH; None if there is none."""
        result = self.attempt("cat-file", "blob", name)
        return result.stdout if result.ok else None


def source_damage(folder: Path) -> str | None:
    """Return what git finds wrong with the objects of a source in the cache, or with its files that
    are written out; None if nothing is.
    """
    store = GitStore(folder)
    if not store.git_dir.is_dir():
        return None
    checked = store.attempt("fsck", "--full", "--no-dangling", "--no-progress")
    if not checked.ok:
        return checked.complaint()
    if not store.index("src").is_file() or not (folder / "src").is_dir():
        return None
    written = store.attempt("write-tree", index="src")
    if not written.ok:
        return written.complaint()
    try:
        # A new index knows nothing of the files' times, so their content is compared.
        store.git("read-tree", written.text, index="check")
        store.attempt("update-index", "-q", "--refresh", index="check", work=folder / "src")
        changed = store.git("diff-files", "--name-only", index="check", work=folder / "src").text
    finally:
        remove(store.index("check"))
    return f"src/{changed.splitlines()[0]} is not what was written" if changed else None


def read_repository(folder: Path, *words: str, stdin: bytes = b"") -> GitResult:
    """Run a git command that only reads, in a user's repository; no program that this names is run.
    UserError for a repository of another user, unless git's settings allow it, and for one that
    has pipes or devices in place of the files in _READ_FILES.
    """
    for git_dir in _git_dirs(folder):
        if odd := [one for one in _READ_FILES if _is_waited_for(git_dir / one)]:
            raise UserError(
                f"cannot read the repository {folder}: {git_dir / odd[0]} is no file",
                "git would wait for it; move it away, or clone the repository again",
            )
    result = run_git(words, env=reading_environment(folder), cwd=folder, stdin=stdin)
    if _NOT_OWN in result.stderr:
        raise UserError(
            f"cannot read the repository {folder}: it belongs to another user",
            f"if you trust them: git config --global --add safe.directory {folder}",
        )
    return result


def _git_dirs(folder: Path) -> Iterator[Path]:
    """Yield the folder in which git looks for the repository of a folder, and of a worktree the one
    that it has in common with others, as far as they are there.
    """
    whole = Path(os.path.realpath(folder))  # as git has it
    for one in (whole, *whole.parents):
        git_dir = one / ".git"
        if git_dir.is_file() and (named := _named_in(git_dir)):
            git_dir = one / named.removeprefix("gitdir:").strip()
        if not git_dir.is_dir():
            git_dir = one
            if not all((one / name).exists() for name in ("HEAD", "objects", "refs")):
                continue
        yield git_dir
        if common := _named_in(git_dir / "commondir"):
            yield git_dir / common
        return


def _is_waited_for(path: Path) -> bool:
    return is_odd(path) and not path.is_dir() and os.path.realpath(path) != os.devnull


def _named_in(path: Path) -> str:
    """What the one line of a file of git says; empty where it is none."""
    with contextlib.suppress(OSError):
        text = read_regular(path).decode("utf-8", "surrogateescape").strip()
        return "" if "\0" in text else text
    return ""


def must_be_repository(folder: Path, hint: str = "", *words: str) -> GitResult:
    """What git rev-parse answers to these words, by default where the repository is; UserError with
    that hint for a folder that is in none.
    """
    found = read_repository(folder, "rev-parse", *(words or ["--absolute-git-dir"]))
    return found.or_raise(UserError, f"{folder} is no git repository", hint)


def object_named(folder: Path, name: str) -> str:
    """The hash of what git calls so in a user's repository; empty if there is no such thing."""
    return read_repository(folder, "rev-parse", "--verify", "--quiet", name).text


def batch_contents(printed: bytes) -> Iterator[bytes | None]:
    """The contents of files as git cat-file --batch prints them; None for what is no file."""
    at = 0
    while at < len(printed):
        end = printed.index(b"\n", at)
        head, at = printed[at:end].rsplit(b" ", 2), end + 1
        if not head[-1].isdigit():
            yield None
            continue
        size = int(head[-1])
        yield printed[at : at + size] if head[1] == b"blob" else None
        at += size + 1


def copy_objects(folder: Path, wanted: Sequence[str], store: GitStore) -> GitResult:
    """Copies objects from a user's repository, and all that they need, into the store.

    `wanted` are hashes; those with ^ before them are in the store. They come as one pack, which is
    whole or not there. What either git said stands in the result.
    """
    git = find_program("git")
    # No search for deltas: those that are there are taken as they are.
    plain = ("-q", "--revs", "--stdout", "--window=0", "--delta-base-offset")
    send = [git, "-c", "core.compression=1", "pack-objects", *plain]
    take = [git, "index-pack", "--stdin"]
    echo_command([*send, "|", *take], folder)
    with (
        subprocess.Popen(
            send,
            cwd=folder,
            env=reading_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as sender,
        subprocess.Popen(
            take,
            env=store.environment(),
            stdin=sender.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as taker,
    ):
        assert sender.stdin is not None
        assert sender.stdout is not None
        assert sender.stderr is not None
        sender.stdout.close()
        sender.stdin.write("".join(f"{name}\n" for name in wanted).encode())
        sender.stdin.close()
        said = taker.communicate()[1]
        errors = sender.stderr.read()
    both = (errors + said).decode("utf-8", "replace")
    result = GitResult(sender.returncode or taker.returncode, b"", both)
    check_space(result, store.folder)
    return result


def run_git(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> GitResult:
    """Runs git to its end in exactly this environment, or one without the user's settings."""
    argv = [find_program("git"), *map(str, words)]
    echo_command(["git", *argv[1:]], cwd)
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=env or isolated_environment(),
            input=stdin,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise LabError(f"git could not be started: {error.strerror}") from error
    return GitResult(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def check_space(result: GitResult, path: Path) -> None:
    """LabError, with what to do, when git failed for want of space."""
    for number in _FULL:
        full = number == errno.ENOSPC and is_full(path)
        if not result.ok and (full or os.strerror(number) in result.stderr):
            raise os_failure(OSError(number, os.strerror(number)), "copying a source tree to", path)


def _config_line(name: str, value: str) -> str:
    section, _, variable = name.partition(".")
    return f"[{section}]\n\t{variable} = {value}\n"
