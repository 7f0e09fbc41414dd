# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff` as a kind of study: its report, question and JSON."""

import msgspec

from kdelta.infer.profiles.calls import CallChange
from kdelta.infer.profiles.diff import DiffLine, Hint, total_line
from kdelta.infer.profiles.matching import Match
from kdelta.infer.profiles.profile import Part, by_part, part_of
from kdelta.infer.profiles.source import LineChange, SourceLine
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.studies.diff.document import document
from kdelta.studies.diff.model import DiffReport, DiffViews, SideBySide
from kdelta.studies.profile.kind import Symbol, name, origin, symbols


class TwoIterations(msgspec.Struct, frozen=True):
    """A region, and its iterations on either side."""

    name: str
    a_iterations: int
    b_iterations: int


class PartChange(msgspec.Struct, frozen=True):
    """Instructions of whole regions by whose code and whose work it was, whatever was selected."""

    part: Part
    context: str
    a: int
    b: int


def _regions_of(report: DiffReport) -> tuple[TwoIterations, ...]:
    pairs = zip(report.a_regions, report.b_regions, strict=True)
    return tuple(TwoIterations(a.name, a.iterations, b.iterations) for a, b in pairs)


def _parts(report: DiffReport) -> tuple[PartChange, ...]:
    ours, theirs = by_part(report.a_regions), by_part(report.b_regions)
    return tuple(PartChange(*key, count, theirs[key]) for key, count in ours.items())


def _total(report: DiffReport) -> DiffLine:
    """The sum of the lines."""
    return total_line(report.lines)


def _a_symbols(match: Match) -> tuple[Symbol, ...]:
    """What it is made of in A."""
    return symbols(match.a)


def _b_symbols(match: Match) -> tuple[Symbol, ...]:
    """What it is made of in B."""
    return symbols(match.b)


def _match_part(match: Match) -> str:
    """Whose code it is; empty for the total."""
    return part_of(match.origin).value if match.origin else ""


def _others(hint: Hint) -> tuple[Symbol, ...]:
    return symbols(hint.others)


def _line_origin(change: LineChange) -> str:
    return _known_line(change).origin


def _line_file(change: LineChange) -> str:
    """Empty where no line is known."""
    return _known_line(change).file


def _line_function(change: LineChange) -> str:
    """Where no line is known, the symbol."""
    return _known_line(change).function


def _known_line(change: LineChange) -> SourceLine:
    return change.b_line or change.a_line or SourceLine("", "", 0, "")


def _a_line(change: LineChange) -> int | None:
    """The number; null where that side has it not."""
    return change.a_line.line if change.a_line else None


def _b_line(change: LineChange) -> int | None:
    """The number; null where that side has it not."""
    return change.b_line.line if change.b_line else None


SHAPES: dict[type, Shape] = {
    CallChange: Shape(adds={"origin": origin, "name": name}, omits=("key",)),
    DiffLine: Shape(adds={"added": "added", "percent": "percent"}, flat=("match",)),
    DiffReport: Shape(
        adds={"regions": _regions_of, "insns": _parts, "total": _total},
        omits=("a_regions", "b_regions"),
        flat=("selection", "views"),
    ),
    DiffViews: Shape(
        adds={"calls": "changes", "source": "lines"},
        omits=("unlined", "part"),
    ),
    Hint: Shape(
        adds={"origin": origin, "name": name, "insns": "figure", "others": _others},
        omits=("key", "added"),
    ),
    LineChange: Shape(
        adds={
            "origin": _line_origin,
            "file": _line_file,
            "function": _line_function,
            "a_line": _a_line,
            "b_line": _b_line,
        }
    ),
    Match: Shape(
        adds={"part": _match_part, "a_symbols": _a_symbols, "b_symbols": _b_symbols},
        omits=("a", "b", "hosts"),
    ),
    SideBySide: Shape(omits=("names",)),
}


def _question(one: DiffReport) -> str:
    a, b = one.a.run, one.b.run
    return (
        f"What did each function gain and lose from {a.kernel_spec} (run {a.id}) to "
        f"{b.kernel_spec} (run {b.id}) under {b.workload}?"
    )


KIND = Kind(
    report=DiffReport,
    json="kdelta.diff/1",
    document=lambda s: document(s, s.one(DiffReport)),
    printed=lambda s: document(s, s.one(DiffReport), s.shown.get("functions", 40)),
    question=_question,
    shapes=SHAPES,
)
