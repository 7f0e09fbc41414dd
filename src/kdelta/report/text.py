# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison as text that can be pasted into a mail."""

from collections.abc import Sequence

from kdelta.infer.placement_model import PlacementEffect
from kdelta.report.comparison import comparison_lines
from kdelta.report.cycles import cpu_line, cpus_lines, cycle_lines
from kdelta.report.layout import (
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
)
from kdelta.report.model import Compared, CompareReport, Side
from kdelta.report.packets import packet_lines
from kdelta.spec.identity import short

COUNTED = (
    "instructions that the measured tasks execute, kernel and user; a string operation "
    "(rep movs) is one; interrupts and other tasks are apart"
)


def compares_text(
    reports: Sequence[CompareReport], operations: int = 5, functions: int = 10
) -> str:
    """The reports for several CPUs, one after the other, and a table of kernels by CPUs."""
    texts = [compare_text(report, operations, functions) for report in reports]
    table = cpus_lines(reports)
    return "\n".join([*texts, finished(table)] if table else texts)


def compare_text(report: CompareReport, operations: int = 5, functions: int = 10) -> str:
    """The whole report; `operations` is how many of those that changed most are explained, and
    `functions` how many functions of each are named. Raises LabError if it does not add up.
    """
    lines = _head(report)
    for number, compared in enumerate(report.others):
        who = "other" if len(report.others) == 1 else f"other {number + 1}"
        lines += ["", *_title(who, compared, alone=len(report.others) == 1)]
        lines += _more(compared)
        lines += comparison_lines(compared.effects, operations, functions, report.bytes_worked_on)
        lines += packet_lines(compared.packets, _by_region(compared), report.cpu, compared.phases)
        if report.cpu and compared.cycles:
            lines += cycle_lines(report.cpu, compared.cycles, compared.effects.operations)
        lines += warning_lines(compared.effects.warnings)
    lines += warning_lines(report.warnings)
    return finished(lines)


def _by_region(compared: Compared) -> dict[str, PlacementEffect]:
    """The effects on model cycles, as far as they are known."""
    effects = compared.cycles.effects if compared.cycles else ()
    return {effect.region: effect for effect in effects}


def _head(report: CompareReport) -> list[str]:
    lines = [f"kdelta compare: workload {report.workload}, instructions an iteration", ""]
    lines += _kernel("base", report.base)
    alone = len(report.others) == 1
    for number, compared in enumerate(report.others):
        lines += _kernel("other" if alone else f"other {number + 1}", compared.side)
    lines += machine_lines(report.machine)
    if report.cpu:
        lines += labelled("priced", cpu_line(report.cpu))
    lines += labelled("runs", _runs(report))
    lines += labelled("counted", COUNTED)
    failed = failed_lines("base", report.base.failed)
    for number, compared in enumerate(report.others):
        who = "other" if alone else f"other {number + 1}"
        failed += failed_lines(who, compared.side.failed)
        failed += _failed_more(who, compared)
    return [*lines, "", "failed runs", *failed] if failed else lines


def _kernel(label: str, side: Side) -> list[str]:
    lines = labelled(label, side.spec)
    if side.failure:
        return lines + labelled("", f"no kernel: {side.failure}")
    return lines + labelled("", f"release {side.release}, identity {short(side.identity)}")


def _runs(report: CompareReport) -> str:
    sides = [report.base, *(compared.side for compared in report.others)]
    counts = [len(side.runs) for side in sides]
    shown = " and ".join(map(str, sorted(set(counts))))
    text = f"{shown} a kernel, perturbed by boot, seed, memory, phase, warm-up"
    stored = sum(run.from_store for side in sides for run in side.runs)
    if stored:
        text += f"; {stored} of {sum(counts)} answered from the store (--again reruns them)"
    return text


def _title(who: str, compared: Compared, *, alone: bool) -> list[str]:
    return [] if alone else [f"{who}: {compared.side.release or compared.side.spec}", ""]


def _more(compared: Compared) -> list[str]:
    """Which operations were run more often, and why."""
    if not compared.more:
        return []
    runs = max(len(runs) for one in compared.more for runs in (one.base, one.other))
    names = ", ".join(one.operation for one in compared.more)
    text = f"{runs} runs by itself, since fewer may differ so by chance: {names}"
    return [*labelled("more", text), ""]


def _failed_more(who: str, compared: Compared) -> list[str]:
    lines = []
    for one in compared.more:
        for word, runs in (("base", one.base), (who, one.other)):
            failed = [run for run in runs if not run.ok]
            lines += failed_lines(f"{word}, {one.operation} by itself", failed)
    return lines
