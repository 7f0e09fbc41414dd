# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of what functions gained and lost from one run to another."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.counts.model import CONTEXTS
from kdelta.infer.effects.clock_bound import clock_bound_text, times_more
from kdelta.infer.effects.functions import must_add_up
from kdelta.infer.profiles.diff import DiffLine, HintOutcome, both_ends, total_line
from kdelta.infer.profiles.matching import MatchKind
from kdelta.infer.profiles.profile import Part, RegionProfile, Sort, by_part
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Case,
    Cell,
    Chip,
    Column,
    Document,
    Items,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
    Verbatim,
)
from kdelta.report.lines import function_name
from kdelta.report.names import side_names
from kdelta.report.stored import Stored
from kdelta.studies.diff.model import DiffReport, origins_without_lines
from kdelta.studies.profile.parts import CODE, WORK, left_out_text
from kdelta.studies.profile.views_text import (
    changed_calls_lines,
    changed_lines,
    no_lines,
    side_by_side_lines,
)

_NAMED = 3

COUNTS = {
    Sort.INSNS: "instructions",
    Sort.LOADS: "loads",
    Sort.STORES: "stores",
    Sort.STRING: "bytes of string operations",
    Sort.SPECIAL: "special instructions",
}


def diff_document(stored: Stored, report: DiffReport, functions: int = 0) -> Document:
    """Return the document of two runs. functions: how many are named, those that changed most; 0
    is all.
    """
    sides = (("A", common.run_side(report.a)), ("B", common.run_side(report.b)))
    *_, (total, _) = function_rows(report, 0)
    counted = COUNTS[report.by] + (", one pass of each region" if report.each else "")
    views = f"{COUNTS[Sort.INSNS]}, whole regions" if report.views.any else counted
    said = f"{figures.difference(total.added)} {counted} ({figures.percent(total.percent)})"
    names = side_names([side for _, side in sides])
    # One run of each says nothing of the spread, so that no case is slower.
    case = Case("total", Outcome.UNKNOWN, f"{said}; of two runs, whose spread is not known")
    notes = [f"regions that only one has: {', '.join(report.left_out)}"] * bool(report.left_out)
    return Document(
        title=f"{report.b.run.workload}: {said} from {names.names[0]} to {names.names[1]}",
        heading=f"{names.against()}: {report.b.run.workload}, one run of each",
        made=common.made_of(stored),
        answers=(_answer(report),),
        facts=(
            *((who, common.kernel_fact(side)) for who, side in sides),
            ("workload", report.b.run.workload),
            (
                "regions",
                words.listed([f"{one.name} x{one.iterations}" for one in report.b_regions]),
            ),
            ("counted", views),
        ),
        sections=tuple(_sections(report, functions)),
        environment=common.environment(stored, report.b.run.machine, sides),
        suites=(Suite("functions", (case,)),),
        notes=(*report.notes, *notes),
        warnings=report.warnings,
    )


def _answer(report: DiffReport) -> Answer:
    *rows, (total, _) = function_rows(report, 0)
    more, less = (sum(sign * line.added > 0 for line, _ in rows) for sign in (1, -1))
    clock = _clock_text(report)
    what = clock or "exact of these two runs; kdelta compare measures their spread"
    text = (
        f"{figures.difference(total.added)} {COUNTS[report.by]} "
        f"({figures.percent(total.percent)}), {what}."
    )
    if most := sorted(rows, key=lambda row: -abs(row[0].added))[:_NAMED]:
        named = [f"{name} ({figures.difference(line.added)})" for line, name in most]
        text += f" Most: {words.listed(named)}."
    chips = (Chip("do more", more, "slower"), Chip("do less", less, "faster"))
    tone = "slower" if total.added > 0 else "faster" if total.added < 0 else "same"
    tone = "unresolved" if clock else tone
    return Answer((text,), tuple(chip for chip in chips if chip.count), tone=tone)


def _clock_text(report: DiffReport) -> str:
    """What is to be known of totals of a program that a clock ended; empty if none did."""
    regions = (*report.a_regions, *report.b_regions)
    if len(regions) != 2 or any(one.iterations != 1 for one in regions):
        return ""
    a, b = (_insns_by_function(one) for one in regions)
    factor = times_more(a, b, {line.name for one in regions for line in one.lines})
    wholes = (sum(found.values(), Fraction(0)) for found in (a, b))
    return clock_bound_text(factor, *wholes) if factor else ""


def _insns_by_function(region: RegionProfile) -> dict[tuple[str, str], Fraction]:
    """Instructions of the measured tasks' own work, by (origin, name)."""
    return {
        (line.origin, line.name): Fraction(line.cost.insns)
        for line in region.lines
        if line.context == "own"
    }


def _sections(report: DiffReport, functions: int) -> Iterator[Section]:
    if report.views.any:
        lines = [line.rstrip() for line in view_lines(report, functions)]
        shown = Verbatim("\n".join(lines).strip("\n"), wide=True)
        yield Section("views", "Calls, lines and instructions", (shown,))
    else:
        said = Prose(" ".join(unmatched(report)))
        yield Section("functions", "Functions", (_table(report, functions), said))
        if hints := tuple(hint_texts(report)):
            yield Section("hints", "Perhaps, by their callers", (Items(hints),))
    left_out = left_out_text(report.selection)
    blocks = (_parts(report), *((Prose(left_out),) if left_out else ()))
    yield Section("whose", "Whose work, and whose code", blocks)


def _parts(report: DiffReport) -> Table:
    """What was added by whose code and whose work; what is not looked at is in it, too."""
    a, b = by_part(report.a_regions), by_part(report.b_regions)
    columns = (
        Column("code", "name"),
        *(Column(WORK[one], "number", sums=True) for one in CONTEXTS),
    )
    added = {key: b[key] - a[key] for key in b}
    rows = tuple(
        (Cell(CODE[part]), *(cells.signed(added[part, one]) for one in CONTEXTS)) for part in Part
    )
    totals = (sum(added[part, one] for part in Part) for one in CONTEXTS)
    foot = (Cell("total"), *map(cells.signed, totals))
    return Table("parts-table", "Instructions added, in whole regions", columns, rows, foot)


def _table(report: DiffReport, functions: int) -> Table:
    """The functions that changed, in figures that add up as printed."""
    *rows, (total, _) = function_rows(report, functions)
    passes = 0 if report.each else passes_of(report)
    whole = figures.scaled(total.added)
    printed = figures.shared("diff", [line.added for line, _ in rows], total.added, whole)
    columns = (
        Column("function", "name"),
        Column("diff", "number", f"{COUNTS[report.by]}, B less A", sums=True),
        Column("%", "number", "of the function's own in A"),
        Column("A", "number"),
        Column("B", "number"),
        *((Column("an iteration", "number", "diff", sums=True),) if passes else ()),
    )
    each = _each([line.added for line, _ in rows], total.added, passes)
    return Table(
        "functions-table",
        "What each function gained and lost",
        columns,
        tuple(
            (*_row(line, name, diff), *one)
            for (line, name), diff, one in zip(rows, printed, each, strict=False)
        ),
        (*_row(total, "total", whole), *each[-1]),
        filtered=True,
    )


def _each(added: Sequence[Fraction], total: Fraction, passes: int) -> list[tuple[Cell, ...]]:
    """What was added an iteration, and the total of it last; nothing where it is not known."""
    if not passes:
        return [()] * (len(added) + 1)
    values = [one / passes for one in (*added, total)]
    unit = figures.unit_of(*map(abs, values))
    whole = figures.scaled(values[-1], unit)
    printed = [*(figures.rounded_to_total(values[:-1], whole, unit) if added else []), whole]
    return [(cells.difference(*one),) for one in zip(printed, values, strict=True)]


def _row(line: DiffLine, name: str, diff: int) -> tuple[Cell, ...]:
    # B is rounded, and A follows: so the row adds up as printed.
    other = figures.scaled(line.b)
    return (
        Cell(name),
        cells.difference(diff, line.added),
        cells.percent(line.percent),
        cells.rounded(other - diff),
        cells.rounded(other),
    )


def function_rows(report: DiffReport, limit: int) -> list[tuple[DiffLine, str]]:
    """The rows of that listing with their names, most added first: `limit` functions, or all if
    that is zero, the others in a row or two, and the total last. LabError if they do not add up.
    """
    changed = [line for line in report.lines if line.added]
    shown = both_ends([line.added for line in changed], limit)
    rows = [(line, _name(line)) for i, line in enumerate(changed) if i in shown]
    rest = [line for i, line in enumerate(changed) if i not in shown]
    more = [line for line in rest if line.added > 0]
    less = [line for line in rest if line.added < 0]
    at = sum(line.added > 0 for line, _ in rows)
    rows[at:at] = [
        (total_line(group), f"other functions, {word} ({len(group)})")
        for group, word in ((more, "more"), (less, "less"))
        if group
    ]
    total = total_line(report.lines)
    must_add_up("the lines", [line.added for line, _ in rows], total.added)
    return [*rows, (total, "total")]


def passes_of(report: DiffReport) -> int:
    """Of how many iterations the whole counts are, if they are of one region; else 0."""
    a, b = report.a_regions, report.b_regions
    if len(a) != 1 or len(b) != 1 or a[0].iterations != b[0].iterations:
        return 0
    return a[0].iterations if a[0].iterations > 1 else 0


def _name(line: DiffLine) -> str:
    match = line.match
    name = function_name(match.name, match.origin, match.moved_from)
    return f"{name} (inlined)" if match.how is MatchKind.INLINED else name


def unmatched(report: DiffReport) -> Iterator[str]:
    """How many functions did the same, and which are on one side only."""
    same = [line for line in report.lines if not line.added]
    yield f"{_functions(same)} did as much in both, {_most(same)} {COUNTS[report.by]}."
    for how, where, other in ((MatchKind.ONLY_A, "A", "B"), (MatchKind.ONLY_B, "B", "A")):
        if lines := [line for line in report.lines if line.match.how is how]:
            yield (
                f"{_functions(lines)} only in {where} with {_most(lines)}: new or gone, not "
                f"called, or inlined or renamed in {other}."
            )


def _functions(lines: Sequence[DiffLine]) -> str:
    return "1 function" if len(lines) == 1 else f"{len(lines)} functions"


def _most(lines: Sequence[DiffLine]) -> str:
    """What these did, on the side that did more."""
    total = total_line(lines)
    return figures.number(max(total.a, total.b))


def hint_texts(report: DiffReport) -> Iterator[str]:
    """What may have become of functions that one side alone executed, by their callers."""
    for hint in report.views.hints:
        name = function_name(hint.key[1], hint.key[0])
        others = ", ".join(function_name(key[1], key[0]) for key in hint.others)
        yield {
            HintOutcome.RENAMED: f"{name} is called {others} in B",
            HintOutcome.INLINED: f"{name} was inlined into {others}",
            HintOutcome.OUTLINED: f"{name} is no more inlined into {others}",
        }[hint.outcome]


def view_lines(report: DiffReport, limit: int) -> list[str]:
    """What was asked for in place of functions: calls, source lines, both sides of a function."""
    views = report.views
    lines = [] if views.changes is None else changed_calls_lines(views.changes, views.part)
    if views.lines is not None:
        lines += changed_lines(views.lines, limit)
        lines += no_lines(origins_without_lines(views.unlined))
    for one in views.annotated:
        lines += side_by_side_lines(one.name, one.pairs, one.names)
    return lines
