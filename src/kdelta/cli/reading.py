# SPDX-License-Identifier: GPL-2.0-or-later
"""What words of a command line stand for: CPUs, per cents, times, words of a list."""

import difflib
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from kdelta.cli.output import check_folder
from kdelta.spec.errors import UserError
from kdelta.spec.limits import ITEMS_A_GIB
from kdelta.spec.option import OptionKind

_Word = TypeVar("_Word", bound=str)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def one_of(option: str, given: str, known: Sequence[_Word]) -> _Word:
    """Return the word that an option was given; UserError if it is none of those that it takes."""
    for word in known:
        if word == given:
            return word
    near = next(iter(difflib.get_close_matches(given, list[str](known), n=1)), known[0])
    message = f"cannot use {option} {given}: there is no such word"
    raise UserError(message, f"use {', '.join(known)}", (given, near))


def fraction_of(percent: float, *, positive: bool = False) -> Fraction:
    """Return a margin as a fraction, to the last digit as it was written. UserError for one that is
    negative or no number, and for zero where it has to be `positive`.
    """
    if not 0 <= percent < math.inf or (positive and not percent):
        raise UserError(
            f"a margin of {percent:g} %",
            "the margin must be positive: random layouts never compare equal at 0"
            if positive
            else "the margin is 0 or more",
        )
    return Fraction(str(percent)) / 100


def seconds_of(option: str, text: str) -> Fraction:
    """Return the seconds of a text such as 40s or 1.5m; UserError for others."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)", text, re.ASCII)
    if not found:
        raise UserError(f"{option} {text} is no time", f"write it as in {option} 40s, or 5m")
    return Fraction(found[1]) * _SECONDS[found[2]]


def weights_of(words: Iterable[str]) -> dict[str, float]:
    """Return the weights of words like open-close=3; UserError for others."""
    found = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            raise UserError(f"no weight: {word!r}", "write it as --weight OPERATION=3")
        found[name] = value
    return found


def _percent(_: str, given: float, type_: Any) -> object:
    # Of model cycles, whose margins are floats, random layouts never compare equal at 0.
    if type_ is float:
        return float(fraction_of(given, positive=True))
    return fraction_of(given)


def _cpus(option: str, given: Any, type_: Any) -> object:
    if typing.get_origin(type_) is not tuple:
        return _cpu(given) if given else None
    bare = type(None) in typing.get_args(typing.get_args(type_)[0])
    note = f"; {option} without a name stands last" if bare else ""
    found = [_cpu(name, note) if name else None for name in dict.fromkeys(given)]
    return tuple({cpu.name if cpu else "": cpu for cpu in found if cpu or bare}.values())


def _cpu(name: str, note: str = "") -> Any:
    """Return the CPU of that name; UserError, with that note, for one that is unknown."""
    from kdelta.cli.named_cpu import named_cpu  # noqa: PLC0415  (it imports much)

    try:
        return named_cpu(name)
    except UserError as error:
        raise UserError(
            error.message,
            f"{error.hint}; --qemu-cpu takes QEMU's own names, without costs{note}",
            error.instead,
        ) from error


def _words(option: str, given: str, type_: Any) -> object:
    """Return the words of a list with commas, in the order of those that there are; as they stand
    where any may.
    """
    words: Any = typing.get_args(type_)[0]
    known = {} if words is str else {one.value: one for one in words}
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        there = f"there is: {', '.join(known)}" if known else f"write it as {option} NAME,NAME"
        raise UserError(f"{option} names nothing", there)
    if words is str:
        return tuple(names)
    for name in names:
        if name not in known:
            raise UserError(f"no such word of {option}: {name}", f"there is: {', '.join(known)}")
    return tuple(one for one in words if one.value in names)


def _page(option: str, given: str, _: Any) -> Path:
    """A file's path; UserError, before anything runs, if no page can be written there."""
    path = Path(given)
    if path.is_dir():
        hint = f"name a file: {option} {path / 'report.html'}"
        raise UserError(f"{option} {path} is a folder", hint, (given, str(path / "report.html")))
    check_folder(f"{option} {path}", path.parent, "a file in another folder")
    return path


READERS: Mapping[OptionKind, Callable[[str, Any, Any], object]] = {
    OptionKind.CPU: _cpus,
    OptionKind.PERCENT: _percent,
    OptionKind.TIME: lambda option, given, _: seconds_of(option, given),
    OptionKind.TRACE: lambda _, given, __: round(given * ITEMS_A_GIB),
    OptionKind.WEIGHT: lambda _, given, __: weights_of(given),
    OptionKind.LIST: _words,
    OptionKind.PAGE: _page,
}
"""By kind: (option, what was given, the field's type) -> the field's value."""

__all__ = ["READERS", "fraction_of", "one_of", "seconds_of"]
