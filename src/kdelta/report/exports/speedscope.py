# SPDX-License-Identifier: GPL-2.0-or-later
"""speedscope's own format: one profile for each region and context.

Evented, since that holds a tree in proportion to its nodes: what was executed is laid out along
one axis, calls in their callers, with the most executed first.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from kdelta.counts.profile import Profile
from kdelta.report.exports.forest import Forest, ForestFrame, forest
from kdelta.report.exports.model import Export, Naming, Sums, column_title

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
"""The name by which the format's files tell themselves; nothing is fetched from it."""

_BETWEEN = ", "


class _Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    file: str | None = None
    line: int | None = None


class _Event(msgspec.Struct, frozen=True):
    type: Literal["O", "C"]
    frame: int
    at: int


class _Evented(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["evented"] = "evented"
    name: str
    unit: Literal["none", "bytes"] = "none"
    startValue: int = 0  # noqa: N815 - the format's
    endValue: int  # noqa: N815
    events: list[_Event]


class _Shared(msgspec.Struct, frozen=True):
    frames: list[_Frame]


class _SpeedscopeFile(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = msgspec.field(name="$schema")
    shared: _Shared
    profiles: list[_Evented]
    name: str
    activeProfileIndex: int = 0  # noqa: N815
    exporter: str


def speedscope(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """The file's JSON."""
    trees = forest(profiles, naming)
    # A region without anything has an empty profile, so that it is not missed.
    tops = [top for region in trees.roots for top in trees.children[region] or (region,)]
    document = _SpeedscopeFile(
        schema=SCHEMA,
        shared=_Shared([_frame(frame) for frame in trees.frames]),
        profiles=[_evented(trees, top, naming) for top in tops],
        name=f"{naming.title}: {column_title(naming.column)}",
        exporter=naming.creator,
    )
    return msgspec.json.encode(document) + b"\n"


def _frame(frame: ForestFrame) -> _Frame:
    if frame.place is not None:
        return _Frame(frame.label, *frame.place)
    return _Frame(frame.label, frame.function.origin if frame.function else None)


def _evented(trees: Forest, top: int, naming: Naming) -> _Evented:
    events: list[_Event] = []
    at = 0
    # A node's own comes before its callees: what is not at a callee's place is its own.
    left = [(node, False) for node in reversed(trees.children[top])]
    while left:
        node, done = left.pop()
        frame = trees.frame[node]
        if done:
            events.append(_Event("C", frame, at))
            continue
        events.append(_Event("O", frame, at))
        at += trees.own[node]
        left.append((node, True))
        left += [(child, False) for child in reversed(trees.children[node])]
    names = [trees.label(node) for node in trees.path(top)]
    unit: Literal["none", "bytes"] = "bytes" if naming.column == "string-bytes" else "none"
    return _Evented(name=_BETWEEN.join(names), unit=unit, endValue=at, events=events)


def read_speedscope(data: bytes, naming: Naming) -> Sums:
    """What is on top of the stack at each place, summed over the profiles."""
    document = msgspec.json.decode(data, type=_SpeedscopeFile)
    whole = 0
    for profile in document.profiles:
        depth = 0
        before = profile.startValue
        for event in profile.events:
            whole += event.at - before if depth else 0
            before = event.at
            depth += 1 if event.type == "O" else -1
    return Counter({("", naming.column): whole})


SPEEDSCOPE = Export(
    name="speedscope",
    suffix=".speedscope.json",
    summary="for speedscope: a profile for each region and context",
    make=speedscope,
    read=read_speedscope,
)
