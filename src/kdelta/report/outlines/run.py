# SPDX-License-Identifier: GPL-2.0-or-later
"""The outline of one run by itself."""

from fractions import Fraction

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.report import figures
from kdelta.report.model import RunReport
from kdelta.report.outline import Case, Failure, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.stored import Stored
from kdelta.report.text import COUNTED
from kdelta.spec.identity import short


def run_outline(stored: Stored) -> Outline:
    """The outline of a run: each of its regions is a case, and so is the run itself."""
    report = stored.one(RunReport)
    run = report.run.run
    name = f"{run.workload} on {run.kernel_release or run.kernel_spec}"
    regions = list(merged_regions(report.counts).values()) if report.counts else []
    detail = f": {run.detail}" if run.detail else ""
    said = f"Run {run.id} of {name}: {run.word}{detail}."
    outcome = Outcome.OK if report.run.ok else Outcome.FAILED
    failed = Failure(f"run {run.id}: {run.word}{detail}", report.run.console_tail)
    suites = [Suite("run", (Case(run.workload, outcome, f"{run.word}{detail}"),))]
    if regions:
        suites.append(Suite("regions", tuple(_case(region) for region in regions)))
    return Outline(
        subject=f"{name}: {run.word}",
        short=(f"{said} {parts.counted(len(regions), 'region')}.",),
        suites=tuple(suites),
        tables=(_table(regions),) if regions else (),
        failures=() if report.run.ok else (failed,),
        facts=(
            ("run", f"{run.id}, {run.started_text} UTC, perturbation {run.perturbation}"),
            ("kernel", f"{run.kernel_spec} (identity {short(run.kernel_identity)})"),
            *parts.lab_facts(run.machine),
            ("counted", COUNTED),
        ),
        warnings=(*(report.counts.warnings if report.counts else ()), *report.warnings),
    )


def _case(region: RegionCounts) -> Case:
    whole, kernel, user = _parts(region)
    text = f"{whole} instructions an iteration: {kernel} of the kernel, {user} of the user"
    return Case(region.name, Outcome.OK, f"{region.iteration_count} iterations", (text,))


def _parts(region: RegionCounts) -> tuple[str, str, str]:
    """Own instructions an iteration, and the kernel's and the user's part, which add up to it."""
    mean = region.mean_own_insns()
    unit = figures.unit_of(mean)
    whole = figures.scaled(mean, unit)
    each = Fraction(region.cost("own", kernel=True).insns, region.iteration_count)
    kernel = figures.scaled(each, unit)
    return parts.plain(whole), parts.plain(kernel), parts.plain(whole - kernel)


def _table(regions: list[RegionCounts]) -> Table:
    return Table(
        "instructions an iteration",
        ("region", "iterations", "insns", "kernel", "user"),
        tuple((one.name, str(one.iteration_count), *_parts(one)) for one in regions),
    )
