# SPDX-License-Identifier: GPL-2.0-or-later
"""The history of figures as JSON."""

import math
from typing import Literal

import msgspec

from kdelta.infer.ensembles import Interval
from kdelta.report.cycles_json import JsonCPU, json_cpu
from kdelta.report.estimate_json import JsonEstimate, json_estimate
from kdelta.report.history_model import (
    CycleStep,
    HistoryKernel,
    HistoryPoint,
    HistoryReport,
    HistorySeries,
    HistoryTotal,
    PathStep,
)
from kdelta.report.json import document_text
from kdelta.report.model import Facts


class JsonHistoryKernel(msgspec.Struct, frozen=True):
    """A kernel of a series; `date` in seconds since 1970, of its commit or its first run."""

    name: str
    spec: str
    release: str
    identity: str
    version: str
    date: float
    dated: str
    subject: str
    runs: list[str]


class JsonPathStep(msgspec.Struct, frozen=True):
    """What changed in the path since the kernel before, with its verdict."""

    word: str
    effect: JsonEstimate
    percent: float | None
    reason: str


class JsonEnds(msgspec.Struct, frozen=True):
    """An interval, as a fraction of the kernel before; null where an end is not bounded."""

    low: float | None
    high: float | None


class JsonCycleStep(msgspec.Struct, frozen=True):
    """What changed in model cycles, over random layouts and as shipped, with its verdict."""

    word: str
    relative: JsonEnds
    shipped: JsonEnds
    reason: str


class JsonHistoryPoint(msgspec.Struct, frozen=True):
    """An operation on one kernel: instructions an iteration, and the steps to it."""

    insns: JsonEstimate | None
    path: JsonPathStep | None
    cycles: JsonCycleStep | None


class JsonHistoryTrack(msgspec.Struct, frozen=True):
    """An operation; its points are in the order of the kernels."""

    operation: str
    points: list[JsonHistoryPoint]


class JsonChange(msgspec.Struct, frozen=True):
    """A factor, as the geometric mean over operations, and its interval."""

    value: float
    low: float
    high: float


class JsonHistoryTotal(msgspec.Struct, frozen=True):
    """All operations on one kernel; `level` is 100 on the first one."""

    level: float
    change: JsonChange | None
    words: dict[str, int]


class JsonHistorySeries(msgspec.Struct, frozen=True):
    """Kernels that did the same on the same machine, in order."""

    machine: Facts
    cpu: JsonCPU | None
    ordered: str
    kernels: list[JsonHistoryKernel]
    operations: list[JsonHistoryTrack]
    totals: list[JsonHistoryTotal]
    notes: list[str]


class JsonHistory(msgspec.Struct, frozen=True):
    """The whole of `kdelta log`."""

    schema: Literal["kdelta.log/1"]
    kdelta: str
    workload: str
    asked: list[str]
    series: list[JsonHistorySeries]
    left_out: list[str]
    warnings: list[str]


def history_json(report: HistoryReport, version: str) -> str:
    """The history; `version` is kdelta's."""
    return document_text(
        JsonHistory(
            schema="kdelta.log/1",
            kdelta=version,
            workload=report.workload,
            asked=list(report.operations),
            series=[_series(one) for one in report.series],
            left_out=list(report.left_out),
            warnings=list(report.warnings),
        )
    )


def _series(series: HistorySeries) -> JsonHistorySeries:
    return JsonHistorySeries(
        machine=series.machine,
        cpu=json_cpu(series.cpu) if series.cpu else None,
        ordered=series.ordered,
        kernels=[_kernel(one) for one in series.kernels],
        operations=[
            JsonHistoryTrack(one.operation, [_point(point) for point in one.points])
            for one in series.tracks
        ],
        totals=[_total(one) for one in series.totals],
        notes=list(series.notes),
    )


def _kernel(kernel: HistoryKernel) -> JsonHistoryKernel:
    fields = {name: getattr(kernel, name) for name in kernel.__struct_fields__}
    return JsonHistoryKernel(**{**fields, "runs": list(kernel.runs)})


def _point(point: HistoryPoint) -> JsonHistoryPoint:
    return JsonHistoryPoint(
        insns=json_estimate(point.figure) if point.figure else None,
        path=_path(point.step) if point.step else None,
        cycles=_cycles(point.cycles) if point.cycles else None,
    )


def _path(step: PathStep) -> JsonPathStep:
    percent = None if step.percent is None else float(step.percent)
    return JsonPathStep(step.word.value, json_estimate(step.effect), percent, step.reason)


def _cycles(step: CycleStep) -> JsonCycleStep:
    return JsonCycleStep(step.word.value, _ends(step.relative), _ends(step.shipped), step.reason)


def _ends(interval: Interval) -> JsonEnds:
    low, high = (end if math.isfinite(end) else None for end in (interval.low, interval.high))
    return JsonEnds(low, high)


def _total(total: HistoryTotal) -> JsonHistoryTotal:
    change = total.change
    found = JsonChange(change.value, change.low, change.high) if change else None
    return JsonHistoryTotal(total.level, found, total.words)
