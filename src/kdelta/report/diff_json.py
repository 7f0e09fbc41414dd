# SPDX-License-Identifier: GPL-2.0-or-later
"""The difference of two profiles as JSON: document kdelta.diff/1."""

from typing import Literal

import msgspec

from kdelta.infer.diff import DiffLine, total_line
from kdelta.infer.matching import Key
from kdelta.infer.profile import RegionProfile, by_part, part_of
from kdelta.report.diff_model import DiffReport
from kdelta.report.estimate_json import Number, json_number
from kdelta.report.json import JsonRun, document_text, json_run


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


class JsonDiff(msgspec.Struct, frozen=True):
    """The whole of `kdelta diff`. by: what the figures count; each: in one pass of each region.
    contexts, parts: what of the regions the lines are made of. `total` is the sum of the lines.
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
    notes: list[str]
    warnings: list[str]


def diff_json(report: DiffReport, version: str) -> str:
    """The whole report; `version` is kdelta's."""
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


def _symbols(keys: tuple[Key, ...]) -> list[JsonSymbol]:
    return [JsonSymbol(origin, name) for origin, name in keys]
