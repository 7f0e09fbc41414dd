# SPDX-License-Identifier: GPL-2.0-or-later
"""The difference of two profiles as JSON: document kdelta.diff/1."""

from typing import Literal

import msgspec

from kdelta.infer.annotate import Pair
from kdelta.infer.calls_diff import CallChange
from kdelta.infer.diff import DiffLine, total_line
from kdelta.infer.matching import Key
from kdelta.infer.profile import RegionProfile, by_part, part_of
from kdelta.infer.source import LineChange
from kdelta.report.diff_model import DiffReport
from kdelta.report.estimate_json import Number, json_number
from kdelta.report.json import JsonRun, document_text, json_run
from kdelta.report.profile_json import JsonInsn, json_insn


class JsonSymbol(msgspec.Struct, frozen=True):
    """A function as its symbol names it."""

    origin: str
    name: str


class JsonDiffLine(msgspec.Struct, frozen=True):
    """One function. a_symbols, b_symbols: what it is made of on either side. percent: of A's; 0
    where A has none. how: "same", "variant", "moved", "only in A" or "only in B".
    """

    name: str
    origin: str
    part: str
    how: str
    a_symbols: list[JsonSymbol]
    b_symbols: list[JsonSymbol]
    a: Number
    b: Number
    added: Number
    percent: Number


class JsonDiffRegion(msgspec.Struct, frozen=True):
    """A region, and its iterations on either side."""

    name: str
    a_iterations: int
    b_iterations: int


class JsonPart(msgspec.Struct, frozen=True):
    """Instructions of whole regions by whose code (kernel, modules, user) and whose work (own,
    interrupts, other) it was, whatever was selected.
    """

    part: str
    context: str
    a: int
    b: int


class JsonCallChange(msgspec.Struct, frozen=True):
    """A path of calls, whose parent is the index of another in the list, or -1. Instructions by
    itself (own) and with all that it called (inclusive), and how often it was called.
    """

    parent: int
    origin: str
    name: str
    a_own: int
    b_own: int
    a_inclusive: int
    b_inclusive: int
    a_calls: int
    b_calls: int


class JsonLineChange(msgspec.Struct, frozen=True):
    """A source line by its number on either side, null where that side has it not. Of what no line
    is known of, `file` is empty and `function` is the symbol.
    """

    origin: str
    file: str
    function: str
    a_line: int | None
    b_line: int | None
    text: str
    a: int
    b: int


class JsonPair(msgspec.Struct, frozen=True):
    """Instructions that stand beside each other; alike: they are one in all but addresses."""

    a: JsonInsn | None
    b: JsonInsn | None
    alike: bool


class JsonSideBySide(msgspec.Struct, frozen=True):
    """A function by instruction."""

    name: str
    pairs: list[JsonPair]


class JsonHint(msgspec.Struct, frozen=True):
    """What may have become of a function that one side alone executed: it is "inlined" or "no more
    inlined" into its callers, the others; or "renamed" to the other. insns: what it did.
    """

    fate: str
    origin: str
    name: str
    insns: Number
    others: list[JsonSymbol]


class JsonDiff(msgspec.Struct, frozen=True):
    """The whole of `kdelta diff`. by: what the figures count; each: in one pass of each region.
    contexts, parts: what of the regions the lines are made of. `total` is the sum of the lines.
    calls, source, annotated, hints: as far as they were asked for, or are known.
    """

    schema: Literal["kdelta.diff/1"]
    kdelta: str
    a: JsonRun
    b: JsonRun
    by: str
    each: bool
    contexts: list[str]
    parts: list[str]
    regions: list[JsonDiffRegion]
    left_out: list[str]
    insns: list[JsonPart]
    lines: list[JsonDiffLine]
    total: JsonDiffLine
    calls: list[JsonCallChange] | None
    source: list[JsonLineChange] | None
    annotated: list[JsonSideBySide]
    hints: list[JsonHint]
    notes: list[str]
    warnings: list[str]


def diff_json(report: DiffReport, version: str) -> str:
    """The whole report; `version` is kdelta's."""
    views = report.views
    pairs = zip(report.a_regions, report.b_regions, strict=True)
    return document_text(
        JsonDiff(
            schema="kdelta.diff/1",
            kdelta=version,
            a=json_run(report.a),
            b=json_run(report.b),
            by=report.by.value,
            each=report.each,
            contexts=list(report.selection.contexts),
            parts=[part.value for part in report.selection.parts],
            regions=[JsonDiffRegion(a.name, a.iterations, b.iterations) for a, b in pairs],
            left_out=list(report.left_out),
            insns=_parts(report.a_regions, report.b_regions),
            lines=[_line(line) for line in report.lines],
            total=_line(total_line(report.lines)),
            calls=None if views.changes is None else [_change(one) for one in views.changes],
            source=None if views.lines is None else [_source(one) for one in views.lines],
            annotated=[
                JsonSideBySide(one.name, [_pair(pair) for pair in one.pairs])
                for one in views.annotated
            ],
            hints=[
                JsonHint(
                    hint.fate.value, *hint.key, json_number(hint.figure), _symbols(hint.others)
                )
                for hint in views.hints
            ],
            notes=list(report.notes),
            warnings=list(report.warnings),
        )
    )


def _parts(a: tuple[RegionProfile, ...], b: tuple[RegionProfile, ...]) -> list[JsonPart]:
    ours, theirs = by_part(a), by_part(b)
    return [
        JsonPart(part.value, context, count, theirs[part, context])
        for (part, context), count in ours.items()
    ]


def _line(line: DiffLine) -> JsonDiffLine:
    match = line.match
    return JsonDiffLine(
        name=match.name,
        origin=match.origin,
        part=part_of(match.origin).value if match.origin else "",
        how=match.how.value,
        a_symbols=_symbols(match.a),
        b_symbols=_symbols(match.b),
        a=json_number(line.a),
        b=json_number(line.b),
        added=json_number(line.added),
        percent=json_number(line.percent),
    )


def _change(one: CallChange) -> JsonCallChange:
    sums = (one.a_own, one.b_own, one.a_inclusive, one.b_inclusive, one.a_calls, one.b_calls)
    return JsonCallChange(one.parent, *one.key, *sums)


def _source(one: LineChange) -> JsonLineChange:
    line = one.b_line or one.a_line
    return JsonLineChange(
        origin=line.origin if line else "",
        file=line.file if line else "",
        function=line.function if line else "",
        a_line=one.a_line.line if one.a_line else None,
        b_line=one.b_line.line if one.b_line else None,
        text=one.text,
        a=one.a,
        b=one.b,
    )


def _pair(pair: Pair) -> JsonPair:
    a, b = (json_insn(one) if one else None for one in (pair.a, pair.b))
    return JsonPair(a, b, pair.alike)


def _symbols(keys: tuple[Key, ...]) -> list[JsonSymbol]:
    return [JsonSymbol(origin, name) for origin, name in keys]
