# SPDX-License-Identifier: GPL-2.0-or-later
"""The difference of two profiles as text: what was added or removed, most added first."""

from collections.abc import Sequence
from fractions import Fraction

from kdelta.counts.model import CONTEXTS
from kdelta.infer.diff import DiffLine, both_ends, must_add_up, total_line
from kdelta.infer.hints import Fate
from kdelta.infer.matching import How
from kdelta.infer.profile import Part, RegionProfile, Sort, by_part
from kdelta.report import figures
from kdelta.report.calls_text import changed_calls_lines
from kdelta.report.diff_model import DiffReport, without_lines
from kdelta.report.layout import (
    WIDTH,
    finished,
    function_name,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.model import ReportedRun
from kdelta.report.profile_parts import CODE, INSNS, WORK, left_out_text, region_lines
from kdelta.report.source_text import changed_lines, no_lines, side_by_side_lines
from kdelta.spec.identity import short

_ADDED = 12
_PERCENT = 8
_EACH = 12
_PART = 16
_HINTS = 12
COUNTS = {
    Sort.INSNS: "instructions",
    Sort.LOADS: "loads",
    Sort.STORES: "stores",
    Sort.STRING: "bytes of string operations",
    Sort.SPECIAL: "special instructions",
}


def diff_text(report: DiffReport, functions: int = 40) -> str:
    """The whole report; `functions` is how many are named, those that changed most, and 0 is all.
    LabError if it does not add up.
    """
    lines = _side("A", report.a) + _side("B", report.b)
    lines += machine_lines(report.a.run.machine)
    lines += region_lines(report.a_regions, report.left_out)
    lines += labelled("counted", _counted(report))
    lines += ["", *_parts(report)]
    lines += _views(report, functions) if report.views.any else _functions_of(report, functions)
    lines += [line for note in report.notes for line in wrapped(note, "", "")]
    lines += warning_lines(report.warnings)
    return finished(lines)


def _functions_of(report: DiffReport, limit: int) -> list[str]:
    return ["", *function_lines(report, limit), "", *_unmatched(report), *_hints(report)]


def _views(report: DiffReport, limit: int) -> list[str]:
    views = report.views
    lines = [] if views.changes is None else changed_calls_lines(views.changes, views.part)
    if views.lines is not None:
        lines += changed_lines(views.lines, limit)
        lines += no_lines(without_lines(views.unlined))
    for one in views.annotated:
        lines += side_by_side_lines(one.name, one.pairs, one.names)
    return lines


def _hints(report: DiffReport) -> list[str]:
    """What may have become of functions that one side alone executed."""
    if not report.views.hints:
        return []
    lines = ["", "perhaps, by their callers"]
    for hint in report.views.hints[:_HINTS]:
        name = function_name(hint.key[1], hint.key[0])
        others = ", ".join(function_name(key[1], key[0]) for key in hint.others)
        texts = {
            Fate.RENAMED: f"{name} is called {others} in B",
            Fate.INLINED: f"{name} was inlined into {others}",
            Fate.OUTLINED: f"{name} is no more inlined into {others}",
        }
        lines += wrapped(texts[hint.fate], "  ", "    ")
    more = len(report.views.hints) - _HINTS
    return [*lines, f"  and {more} more (--json)"] if more > 0 else lines


def _side(who: str, reported: ReportedRun) -> list[str]:
    run = reported.run
    lines = labelled(who, run.kernel_spec)
    what = f"release {run.kernel_release}, identity {short(run.kernel_identity)}"
    return lines + labelled(
        "", f"{what}, run {run.id}, {run.workload}, perturbation {run.perturbation}"
    )


def _counted(report: DiffReport) -> str:
    # Calls, lines and instructions are counted in whole regions, whatever functions are.
    by, is_each = (Sort.INSNS, False) if report.views.any else (report.by, report.each)
    what = COUNTS[by]
    each = ", one pass of each region" if is_each else ", whole regions"
    return f"{what}{each}; exact of these two runs, kdelta compare tells their spread"


def _parts(report: DiffReport) -> list[str]:
    """What was added by whose code and whose work; what is not looked at is in it, too."""
    a, b = by_part(report.a_regions), by_part(report.b_regions)
    heads = "".join(f"{WORK[context]:>{INSNS}}" for context in CONTEXTS)
    lines = [f"{'insns added':<{_PART}}{heads}"]
    for part in Part:
        cells = [b[part, context] - a[part, context] for context in CONTEXTS]
        lines.append(f"{CODE[part]:<{_PART}}" + "".join(f"{cell:>{INSNS}}" for cell in cells))
    totals = [sum(b[part, c] - a[part, c] for part in Part) for c in CONTEXTS]
    lines.append(f"{'total':<{_PART}}" + "".join(f"{cell:>{INSNS}}" for cell in totals))
    if said := left_out_text(report.selection):
        lines += wrapped(said, "", "")
    return lines


def function_lines(report: DiffReport, limit: int) -> list[str]:
    """The listing: added or removed, per cent of the function's own, name; the total last."""
    return _listing(report, function_rows(report, limit))


def function_rows(report: DiffReport, limit: int) -> list[tuple[DiffLine, str]]:
    """The rows of that listing with their names, most added first: `limit` functions, or all if
    that is nought, the others in a row or two, and the total last. LabError if they do not add up.
    """
    changed = [line for line in report.lines if line.added]
    shown = both_ends([line.added for line in changed], limit)
    rows = [(line, _name(line)) for i, line in enumerate(changed) if i in shown]
    rest = [line for i, line in enumerate(changed) if i not in shown]
    more = [line for line in rest if line.added > 0]
    less = [line for line in rest if line.added < 0]
    at = sum(line.added > 0 for line, _ in rows)
    between = [
        (total_line(group), f"other functions, {word} ({len(group)})")
        for group, word in ((more, "more"), (less, "less"))
        if group
    ]
    rows[at:at] = between
    total = total_line(report.lines)
    must_add_up("the lines", [line.added for line, _ in rows], total.added)
    return [*rows, (total, "total")]


def _listing(report: DiffReport, rows: Sequence[tuple[DiffLine, str]]) -> list[str]:
    """The rows, of which the last one is the total. Where whole counts are of one region, what they
    are an iteration is beside them.
    """
    passes = _passes(report.a_regions, report.b_regions)
    added = [line.added for line, _ in rows]
    whole = _column(added, _ADDED) if report.each else [f"{int(one):>{_ADDED}}" for one in added]
    per = [""] * len(rows)
    if passes and not report.each:
        per = _column([one / passes for one in added], _EACH)
    width = WIDTH - 1 - _ADDED - _PERCENT - 1 - _EACH
    head = f"{'added':>{_ADDED}}{'%':>{_PERCENT}} {'function':<{width if any(per) else 0}}"
    lines = [head + (f"{'an iteration':>{_EACH}}" if any(per) else "")]
    for (line, name), count, each in zip(rows, whole, per, strict=True):
        percent = f"{float(line.percent):.1f}%"
        lines.append(f"{count}{percent:>{_PERCENT}} {name:<{width if each else 0}}{each}")
        if each and len(name) > width:
            lines[-1:] = [f"{count}{percent:>{_PERCENT}} {name}", f"{each:>{WIDTH - 1}}"]
    return lines


def _column(values: Sequence[Fraction], width: int) -> list[str]:
    """Figures of which the last is the sum of the others, so rounded that they add up as shown."""
    *parts, total = values
    unit = figures.unit_of(*(abs(value) for value in values))
    printed = figures.scaled(total, unit)
    cells = [*(figures.rounded_to_total(parts, printed, unit) if parts else []), printed]
    aligned = any(cell % figures.SCALE for cell in cells)
    return [figures.plain(cell, width, aligned=aligned) for cell in cells]


def _passes(a: Sequence[RegionProfile], b: Sequence[RegionProfile]) -> int:
    """Of how many iterations the figures are, if they are of one region; else 0."""
    if len(a) != 1 or len(b) != 1 or a[0].iterations != b[0].iterations:
        return 0
    return a[0].iterations if a[0].iterations > 1 else 0


def _name(line: DiffLine) -> str:
    match = line.match
    name = function_name(match.name, match.origin, match.moved_from)
    return f"{name} (inlined)" if match.how is How.INLINED else name


def _unmatched(report: DiffReport) -> list[str]:
    """How many functions did the same, and which are on one side only."""
    same = [line for line in report.lines if not line.added]
    said = [f"{_functions(same)} did as much in both, {_most(same)} {COUNTS[report.by]}."]
    gone = [line for line in report.lines if line.match.how is How.ONLY_A]
    come = [line for line in report.lines if line.match.how is How.ONLY_B]
    for lines, where, other in ((gone, "A", "B"), (come, "B", "A")):
        if lines:
            said.append(
                f"{_functions(lines)} only in {where} with {_most(lines)}: new or gone, not "
                f"called, or inlined or renamed in {other}."
            )
    return wrapped(" ".join(said), "", "")


def _functions(lines: Sequence[DiffLine]) -> str:
    return "1 function" if len(lines) == 1 else f"{len(lines)} functions"


def _most(lines: Sequence[DiffLine]) -> str:
    """What these did, on the side that did more."""
    total = total_line(lines)
    return figures.number(max(total.a, total.b))
