# SPDX-License-Identifier: GPL-2.0-or-later
"""A quilt series file, or a folder of patches: which files they are, in order."""

from pathlib import Path

from kdelta.spec.errors import UserError

SERIES = "series"
_ENDINGS = (".patch", ".diff")
# What quilt writes after a patch's name; all of them mean that paths lose their first part.
_STRIP_ONE = {"-p1", "-pab", "--strip=1"}
_SHOWN = 5


def series_files(series: Path) -> list[Path]:
    """The files that a series names, in order. UserError for one that is missing, for options
    that mean something else than -p1, and for a series without patches.
    """
    try:
        data = series.read_bytes()
    except OSError as error:
        raise UserError(f"the series {series} cannot be read: {error.strerror}") from error
    text = data.decode("utf-8", "replace")
    if any(not (c.isprintable() or c.isspace()) for c in text):
        raise UserError(
            f"{series} is no list of patches: it holds bytes that are no text",
            "a quilt series file has a patch's path in each line",
        )
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = _words(line)
        if words:
            _check_options(series, number, words)
            found.append(series.parent / words[0])
    if not found:
        raise UserError(f"the series {series} names no patches", "a line of it is a patch's path")
    missing = [str(path.relative_to(series.parent)) for path in found if not path.is_file()]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        count = "a patch" if len(missing) == 1 else f"{len(missing)} patches"
        raise UserError(
            f"{count} of {series} {'is' if len(missing) == 1 else 'are'} missing: "
            f"{', '.join(missing[:_SHOWN])}{more}",
            f"they are looked for below {series.parent}",
        )
    return found


def _words(line: str) -> list[str]:
    """The words of a line, without a comment, which begins at a # that begins a word."""
    words = line.split()
    for place, word in enumerate(words):
        if word.startswith("#"):
            return words[:place]
    return words


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


def folder_files(folder: Path) -> list[Path]:
    """The patches of a folder: as its series file says, or else all, by name."""
    if (folder / SERIES).is_file():
        return series_files(folder / SERIES)
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS)
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror}") from error
    if not found:
        raise UserError(
            f"{folder} has neither a series file nor patches",
            f"patches end in {' or '.join(_ENDINGS)}",
        )
    return found
