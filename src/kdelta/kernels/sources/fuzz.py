# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches with fuzz: what applies only where less of the context is compared, as by patch -F N.

GNU patch itself does it, since git apply has no such count: its -C is how many lines of context
must be left, so that the number would have to be another one for hunks with fewer or more around.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kdelta.host.command import run_program
from kdelta.host.files import lab_errors, make_folder
from kdelta.host.lock import work_folder
from kdelta.kernels.sources.diffs import read_diff, unified_lines
from kdelta.kernels.sources.git import GitStore

USUAL = 2
"""Up to how much patch takes where no -F is given."""

# Without questions, backups, rejects, version control, and what is applied already.
_PATCH = (
    *("patch", "-p1", "--force", "--forward", "--binary", "--get=0"),
    *("--no-backup-if-mismatch", "--reject-file=-", "--quoting-style=literal"),
)
_FILE = re.compile(r"patching (?:file|symbolic link) (.*?)(?: \((?:renamed|copied) from .*\))?")
_HUNK = re.compile(r"Hunk #(\d+) succeeded at \d+ with fuzz (\d+).*")


class FuzzyHunk(msgspec.Struct, frozen=True):
    """A hunk that applied with that fuzz, by its number in its file, from 1."""

    file: str
    number: int
    fuzz: int

    def __str__(self) -> str:
        return f"{self.file}, hunk {self.number}: fuzz {self.fuzz}"


def apply_with_fuzz(
    store: GitStore, diff: bytes, most: int, *, dry: bool = False
) -> tuple[FuzzyHunk, ...] | None:
    """Applies a diff to the store's index "patch", with up to so much fuzz; the hunks that needed
    any. None where it does not apply, and the index stays as it was, as it does with `dry`.
    LabError without the program patch.
    """
    with work_folder() as folder:
        file, files = folder / "diff", make_folder(folder / "files")
        with lab_errors("writing", file):
            # What else a file holds, patch could take for commands of ed, and run them.
            file.write_bytes(unified_lines(diff))
        names = set(read_diff(diff).files)
        words = ("checkout-index", "--quiet", "-z", "--stdin")
        # It fails where the patch makes files, which the index does not have.
        store.attempt(*words, index="patch", work=files, stdin=_lines(names))
        done = run_program([*_PATCH, f"--fuzz={most}", f"--input={file}"], cwd=files)
        if not done.ok:
            return None
        hunks = tuple(_hunks(done.stdout))
        if dry:
            return hunks
        names |= {str(one.relative_to(files)) for one in files.rglob("*") if _is_file(one)}
        enter = ("update-index", "--add", "--remove", "-z", "--stdin")
        entered = store.attempt(*enter, index="patch", work=files, stdin=_lines(names))
        return hunks if entered.ok else None


def _lines(names: set[str]) -> bytes:
    return "".join(f"{name}\0" for name in sorted(names)).encode("utf-8", "surrogateescape")


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _hunks(said: str) -> Iterator[FuzzyHunk]:
    file = ""
    for line in said.splitlines():
        if match := _FILE.fullmatch(line):
            file = match[1]
        elif match := _HUNK.fullmatch(line):
            yield FuzzyHunk(file, int(match[1]), int(match[2]))
