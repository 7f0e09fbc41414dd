# SPDX-License-Identifier: GPL-2.0-or-later
"""quilt's series: the files of patches that a series file, or a folder, names in order."""

import itertools
from pathlib import Path

from kdelta.host.files import user_errors
from kdelta.spec.errors import UserError

SERIES = "series"
"""How quilt calls the file."""

_ENDINGS = (".patch", ".diff")
_PACKED = (".gz", ".xz", ".zst", ".bz2")
# What quilt writes after a patch's name; all of them mean that paths lose their first part.
_STRIP_ONE = {"-p1", "-pab", "--strip=1"}
_SHOWN = 5


def is_series(path: Path, text: str) -> bool:
    """Whether a file lists patches: half of its lines, or more, begin with the name of a file."""
    names = [words[0] for line in text.splitlines() if (words := _words(line))]
    found = sum(_is_file(path.parent / name) for name in names)
    return found > 0 and 2 * found >= len(names)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long
        return False


def series_files(series: Path, text: str) -> list[Path]:
    """The files that a series names, in order. UserError for one that is missing, for options
    that mean something else than -p1, and for a series without patches.
    """
    if any(not (c.isprintable() or c.isspace()) for c in text):
        raise UserError(
            f"{series} is no list of patches: it holds bytes that are no text",
            "a quilt series file has a patch's path in each line",
        )
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if words := _words(line):
            _check_options(series, number, words)
            found.append(series.parent / words[0])
    if not found:
        raise UserError(f"the series {series} names no patches", "a line of it is a patch's path")
    missing = [str(path.relative_to(series.parent)) for path in found if not _is_file(path)]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        count, verb = ("a patch", "is") if len(missing) == 1 else (f"{len(missing)} patches", "are")
        raise UserError(
            f"{count} of {series} {verb} missing: {', '.join(missing[:_SHOWN])}{more}",
            f"they are looked for below {series.parent}",
        )
    return found


def _words(line: str) -> list[str]:
    # A comment begins at a # that begins a word.
    return list(itertools.takewhile(lambda word: word[0] != "#", line.split()))


def _check_options(series: Path, number: int, words: list[str]) -> None:
    name, *options = words
    if name[0] in "+-":
        raise UserError(
            f"{series}, line {number}: {name} is a guard, and guards are not understood",
            "write the patches that are meant into a series file of their own",
        )
    joined = "-p1" if options == ["-p", "1"] else " ".join(options)
    if joined and joined not in _STRIP_ONE:
        raise UserError(
            f"{series}, line {number}: {name} is to be applied with {' '.join(options)}, "
            "and only -p1 is understood",
            f"quilt push {name} && quilt refresh -p1",
        )


def folder_patches(folder: Path) -> list[Path]:
    """The patches of a folder without a series file: all of them, by name."""
    with user_errors(folder):
        found = sorted(path for path in folder.iterdir() if bare_name(path).endswith(_ENDINGS))
    if not found:
        raise UserError(
            f"{folder} is a folder with neither a series file nor patches",
            f"name a file in it; patches end in {' or '.join(_ENDINGS)}",
        )
    return found


def short_name(path: Path) -> str:
    """A file's name without its ending, and without that of a packed file before."""
    return Path(bare_name(path)).stem


def bare_name(path: Path) -> str:
    """A file's name without the ending of a packed file."""
    return path.stem if path.suffix in _PACKED else path.name
