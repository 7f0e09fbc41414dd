# SPDX-License-Identifier: GPL-2.0-or-later
"""What all forms of a difference name alike: its rows, what was matched, what else was asked."""

from collections.abc import Iterator, Sequence

from kdelta.infer.effects.functions import must_add_up
from kdelta.infer.profiles.diff import DiffLine, HintFate, both_ends, total_line
from kdelta.infer.profiles.matching import MatchKind
from kdelta.infer.profiles.profile import Sort
from kdelta.report import figures
from kdelta.report.lines import (
    function_name,
)
from kdelta.studies.diff.model import DiffReport, without_lines
from kdelta.studies.profile.calls_text import changed_calls_lines
from kdelta.studies.profile.source_text import changed_lines, no_lines, side_by_side_lines

COUNTS = {
    Sort.INSNS: "instructions",
    Sort.LOADS: "loads",
    Sort.STORES: "stores",
    Sort.STRING: "bytes of string operations",
    Sort.SPECIAL: "special instructions",
}


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
    between = [
        (total_line(group), f"other functions, {word} ({len(group)})")
        for group, word in ((more, "more"), (less, "less"))
        if group
    ]
    rows[at:at] = between
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
    gone = [line for line in report.lines if line.match.how is MatchKind.ONLY_A]
    come = [line for line in report.lines if line.match.how is MatchKind.ONLY_B]
    for lines, where, other in ((gone, "A", "B"), (come, "B", "A")):
        if lines:
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
        texts = {
            HintFate.RENAMED: f"{name} is called {others} in B",
            HintFate.INLINED: f"{name} was inlined into {others}",
            HintFate.OUTLINED: f"{name} is no more inlined into {others}",
        }
        yield texts[hint.fate]


def view_lines(report: DiffReport, limit: int) -> list[str]:
    """What was asked for in place of functions: calls, source lines, both sides of a function."""
    views = report.views
    lines = [] if views.changes is None else changed_calls_lines(views.changes, views.part)
    if views.lines is not None:
        lines += changed_lines(views.lines, limit)
        lines += no_lines(without_lines(views.unlined))
    for one in views.annotated:
        lines += side_by_side_lines(one.name, one.pairs, one.names)
    return lines
