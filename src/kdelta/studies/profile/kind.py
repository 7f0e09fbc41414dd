# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as a kind of study: its report, its JSON, and what that shares with others."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from kdelta.infer.profiles.annotate import AnnotatedFunction, Insn
from kdelta.infer.profiles.calls import Calls
from kdelta.infer.profiles.matching import Key
from kdelta.infer.profiles.processes import Processes
from kdelta.infer.profiles.profile import FunctionLine, Part, RegionProfile, part_of, ranked
from kdelta.infer.profiles.source import SourceLine
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.studies.profile.document import document
from kdelta.studies.profile.model import ProfileReport, ProfileViews


class Symbol(msgspec.Struct, frozen=True):
    """A function as its symbol names it."""

    origin: str
    name: str


class _HasKey(Protocol):
    @property
    def key(self) -> Key: ...


def origin(one: _HasKey) -> str:
    """Return what a function is part of: the kernel, or a module."""
    return one.key[0]


def name(one: _HasKey) -> str:
    """Return a function's name."""
    return one.key[1]


def symbols(keys: Iterable[Key]) -> tuple[Symbol, ...]:
    """Return functions as they are written."""
    return tuple(Symbol(origin, name) for origin, name in keys)


class Call(msgspec.Struct, frozen=True):
    """A node of a tree of calls, whose parent is the index of another in the list, or -1. What is
    no function has the origin "[task]". own, inclusive: instructions.
    """

    parent: int
    origin: str
    name: str
    own: int
    inclusive: int
    calls: int


class Callers(msgspec.Struct, frozen=True):
    """A function and, below it, those that called it, and theirs."""

    origin: str
    name: str
    tree: tuple[Call, ...]


class LineCost(msgspec.Struct, frozen=True):
    """What a source line costs, and its text."""

    source: SourceLine
    text: str
    insns: int


def _calls(calls: Calls) -> tuple[Call, ...]:
    rows = zip(calls.parent, calls.key, calls.own, calls.inclusive, calls.calls, strict=True)
    return tuple(Call(parent, *key, *figures) for parent, key, *figures in rows)


def _tree(views: ProfileViews) -> tuple[Call, ...] | None:
    """The calls from the top; null unless they were asked for."""
    return None if views.tree is None else _calls(views.tree)


def _callers(views: ProfileViews) -> tuple[Callers, ...]:
    return tuple(Callers(*key, _calls(calls)) for key, calls in views.callers)


def _lines(views: ProfileViews) -> tuple[LineCost, ...] | None:
    """Source lines, those with the most instructions first; null unless they were asked for."""
    if views.lines is None:
        return None
    most = sorted(views.lines.items(), key=lambda item: (-item[1], item[0]))
    return tuple(LineCost(line, views.texts.get(line, ""), count) for line, count in most)


def _functions(region: RegionProfile) -> tuple[FunctionLine, ...]:
    """Those with the most instructions first; all contexts and parts."""
    return tuple(ranked(region.lines))


def _part(line: FunctionLine) -> Part:
    """Whose code it is."""
    return part_of(line.origin)


def _address(insn: Insn) -> str:
    """Hexadecimal."""
    return f"{insn.address:x}"


def _file(insn: Insn) -> str:
    """Of its source line; empty if that is not known."""
    return insn.place[0] if insn.place else ""


def _number(insn: Insn) -> int:
    """Of its source line; 0 if that is not known."""
    return insn.place[1] if insn.place else 0


SHAPES: dict[type, Shape] = {
    AnnotatedFunction: Shape(adds={"origin": origin, "name": name}, omits=("key",)),
    FunctionLine: Shape(adds={"part": _part}),
    Insn: Shape(
        adds={
            "address": _address,
            "bytes": "size",
            "executed": "count",
            "file": _file,
            "line": _number,
        },
        omits=("place",),
    ),
    LineCost: Shape(flat=("source",)),
    Processes: Shape(adds={"name": "region", "insns": "insns", "residency": "residency"}),
    ProfileReport: Shape(omits=("selection",), flat=("views",)),
    ProfileViews: Shape(
        adds={"tree": _tree, "callers": _callers, "lines": _lines},
        omits=("texts", "unlined", "places", "part"),
    ),
    RegionProfile: Shape(adds={"functions": _functions}, omits=("lines",)),
}


KIND = Kind(
    report=ProfileReport,
    json="kdelta.profile/1",
    document=lambda s: document(s, s.one(ProfileReport)),
    shapes=SHAPES,
)
