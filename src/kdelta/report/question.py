# SPDX-License-Identifier: GPL-2.0-or-later
"""What a study asked, as a sentence; it stands over its report, and in the list of studies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kdelta.report.ablation_model import AblationReport
from kdelta.report.bisect_model import BisectReport
from kdelta.report.crossing_model import CrossingReport
from kdelta.report.diff_model import DiffReport
from kdelta.report.gate_model import GateReport
from kdelta.report.history_model import HistoryReport
from kdelta.report.layout_model import LayoutReport
from kdelta.report.model import CompareReport, RunReport
from kdelta.report.place_model import PlaceReport
from kdelta.report.series_model import SeriesReport


def question_of(kind: str, reports: Sequence[msgspec.Struct]) -> str:
    """What was asked by the study of that kind that made these reports."""
    return QUESTIONS[kind](reports)


def _compare(reports: Sequence[CompareReport]) -> str:
    return _between(reports, "faster or slower")


def _crossing(reports: Sequence[CrossingReport]) -> str:
    (one,) = reports
    return f"What does crossing into the kernel cost {one.workload} on {one.arms[0].side.spec}?"


def _diff(reports: Sequence[DiffReport]) -> str:
    (one,) = reports
    a, b = one.a.run, one.b.run
    return (
        f"What did each function gain and lose from {a.kernel_spec} (run {a.id}) to "
        f"{b.kernel_spec} (run {b.id}) under {b.workload}?"
    )


def _gate(reports: Sequence[GateReport]) -> str:
    compared = reports[0].compared
    return _between(compared, "slower") if compared else "Is the other kernel slower?"


def _between(reports: Sequence[CompareReport], word: str) -> str:
    first = reports[0]
    others = listed([one.side.spec for one in first.others])
    is_or_are = "Is" if len(first.others) == 1 else "Are"
    cpus = [report.cpu.name for report in reports if report.cpu]
    on = f" on {listed(cpus)}" if cpus else ""
    return f"{is_or_are} {others} {word} than {first.base.spec} under {first.workload}{on}?"


def _history(reports: Sequence[HistoryReport]) -> str:
    (one,) = reports
    what = f"{listed(one.operations)} of {one.workload}" if one.operations else one.workload
    kernels = sum(len(series.kernels) for series in one.series)
    return f"How did {what} move over {kernels} kernels?"


def _layout(reports: Sequence[LayoutReport]) -> str:
    (one,) = reports
    return (
        f"How much does {one.workload} hang on where the functions of {one.kernel.spec} are, "
        f"on {one.cpu.name}?"
    )


def _place(reports: Sequence[PlaceReport]) -> str:
    (one,) = reports
    return (
        f"Which order of functions would serve {one.kernel.spec} better under "
        f"{listed(one.workloads)}, on {one.cpu.name}?"
    )


def _ablate(reports: Sequence[AblationReport]) -> str:
    (one,) = reports
    before, after = one.names
    options = f"{one.options} options" if one.options else "options"
    return (
        f"Which of the {options} that differ between {before} and {after} make {one.tree} faster "
        f"or slower under {listed(one.workloads)}?"
    )


def _bisect(reports: Sequence[BisectReport]) -> str:
    (one,) = reports
    good, bad = one.names
    return (
        f"Which commits of {good}..{bad} make {one.repository} faster or slower under "
        f"{listed(one.workloads)}?"
    )


def _series(reports: Sequence[SeriesReport]) -> str:
    (one,) = reports
    what = f"each of {len(one.rows)} patches" if len(one.rows) != 1 else one.rows[0].name
    return f"What does {what} do on {one.tree} under {listed(one.workloads)}?"


def _run(reports: Sequence[RunReport]) -> str:
    run = reports[0].run.run
    return f"What does {run.workload} execute on {run.kernel_release or run.kernel_spec}?"


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


QUESTIONS: Mapping[str, Callable[[Any], str]] = {
    "ablate": _ablate,
    "bisect": _bisect,
    "compare": _compare,
    "crossing": _crossing,
    "diff": _diff,
    "gate": _gate,
    "history": _history,
    "layout": _layout,
    "place": _place,
    "run": _run,
    "series": _series,
}
"""By kind, from the reports that stored.KINDS says it has."""
