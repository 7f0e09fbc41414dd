# SPDX-License-Identifier: GPL-2.0-or-later
"""The outline of what functions gained and lost between two runs."""

from kdelta.report import figures
from kdelta.report.diff_model import DiffReport
from kdelta.report.diff_text import COUNTS, function_rows
from kdelta.report.outline import Case, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.stored import Stored
from kdelta.spec.identity import short
from kdelta.store.model import Run

_NAMED = 3
_FUNCTIONS = 40


def diff_outline(stored: Stored) -> Outline:
    """The outline of a difference. One run of each says nothing of the spread, so that no case is
    slower: kdelta compare tells.
    """
    report = stored.one(DiffReport)
    *rows, (total, _) = function_rows(report, stored.shown.get("functions", _FUNCTIONS))
    whole = figures.scaled(total.added)
    printed = figures.rounded_to_total([line.added for line, _ in rows], whole)
    sides = (("A", report.a.run), ("B", report.b.run))
    counted = COUNTS[report.by] + (", one pass of each region" if report.each else "")
    most = sorted((row for row in rows if row[0].match.name), key=lambda row: -abs(row[0].added))
    named = ", ".join(f"{name} {figures.brief(line.added, 1)}" for line, name in most[:_NAMED])
    said = f"{parts.signed(whole, total.added)} {counted} ({figures.percent(total.percent)})"
    verdict = f"{said}; of two runs, whose spread kdelta compare tells"
    return Outline(
        subject=f"{report.b.run.workload}: {said} from {_name(sides[0])} to {_name(sides[1])}",
        short=(f"{said}{'; most: ' + named if named else ''}.",),
        suites=(Suite("functions", (Case("total", Outcome.UNKNOWN, verdict),)),),
        tables=(
            Table(
                f"functions, {counted}",
                ("function", "diff", "% of its own"),
                tuple(
                    (name, parts.signed(shown, line.added), figures.percent(line.percent))
                    for (line, name), shown in zip(rows, printed, strict=True)
                ),
                total=("total", parts.signed(whole, total.added), figures.percent(total.percent)),
            ),
        ),
        facts=(
            *((who, _run(run)) for who, run in sides),
            ("workload", report.b.run.workload),
            ("regions", ", ".join(region.name for region in report.b_regions)),
            *parts.lab_facts(report.b.run.machine),
        ),
        notes=(
            *report.notes,
            *([f"regions that only one has: {', '.join(report.left_out)}"] * bool(report.left_out)),
        ),
        warnings=report.warnings,
    )


def _name(side: tuple[str, Run]) -> str:
    return side[1].kernel_release or side[1].kernel_spec


def _run(run: Run) -> str:
    kernel = f"{run.kernel_spec} ({run.kernel_release}, identity {short(run.kernel_identity)})"
    return f"{kernel}, run {run.id}, perturbation {run.perturbation}"
