# SPDX-License-Identifier: GPL-2.0-or-later
"""A git repository of a kernel's source with planted commits, written without a work tree."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kdelta.host.files import make_folder
from kdelta.kernels.sources.git import run_git

WHO = "A Planter <planter@example.org>"

Edit = tuple[str, str, str]
"""A file, a text in it, and what stands in its place; no text: at its end."""


def unused(file: str, name: str) -> Edit:
    """Return an edit that adds a function that nothing calls."""
    text = f"\nint planted_{name}(int value);\nint planted_{name}(int value)\n"
    return file, "", text + "{\n\treturn value / 3 + 1;\n}\n"


def comment(file: str, line: str) -> Edit:
    """Return an edit that puts a comment before a line."""
    return file, line, f"/* As it was when this was planted. */\n{line}"


class Repository:
    """A git repository that is written without a work tree: a kernel has 90,000 files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._when = 1_700_000_000

    def git(self, *words: str, stdin: bytes = b"") -> str:
        """Run git there and return what it printed."""
        name, mail = WHO.removesuffix(">").split(" <")
        people = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", mail), ("DATE", f"{self._when} +0000"))
        }
        env = {**os.environ, **people, "GIT_DIR": str(self.folder)}
        result = run_git(words, env=env, stdin=stdin)
        if not result.ok:
            sys.exit(f"git {' '.join(words)}: {result.complaint()}")
        return result.stdout.decode("utf-8", "surrogateescape")

    def create(self, store: Path, tree: str) -> str:
        """Make the repository with one commit of a tree that another one has."""
        make_folder(self.folder)
        run_git(["init", "-q", "--bare", "-b", "main", str(self.folder)])
        alternates = self.folder / "objects/info/alternates"
        alternates.write_text(f"{store / 'objects'}\n")
        return self.commit(tree, "Linux 6.12, as the distribution has it", [])

    def commit(self, tree: str, subject: str, parents: Sequence[str]) -> str:
        """Make a commit of a tree and return its hash."""
        self._when += 60
        words = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", tree, "-m", subject, *words).strip()

    def edited(self, tree: str, edits: Iterable[Edit]) -> str:
        """Return the tree with these edits."""
        self.git("read-tree", tree)
        for file, old, new in edits:
            entry = self.git("ls-files", "-s", "--", file).split()
            text = self.git("cat-file", "blob", entry[1])
            if old not in text:
                sys.exit(f"{file} has no {old!r}")
            text = text.replace(old, new, 1) if old else text + new
            content = text.encode("utf-8", "surrogateescape")
            made = self.git("hash-object", "-w", "--stdin", stdin=content).strip()
            self.git("update-index", "--cacheinfo", f"{entry[0]},{made},{file}")
        return self.git("write-tree").strip()
