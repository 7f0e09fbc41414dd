# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores of runs that never took place, and what `kdelta log` makes of them."""

from collections.abc import Mapping

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import FEWEST
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.log.model import HistoryReport, HistorySeries, HistoryTrack
from kdelta.studies.log.request import HistoryRequest
from kdelta.studies.log.study import run_history
from tests.synthetic import own, region, run


def work_identity(form: str) -> str:
    """Of a form of one program: with some of its operations, or all."""
    return "b" * 32 + form * 32


MACHINE: dict[str, str | int | float] = {
    "name": "tcg",
    "qemu": "7.2",
    "cpu": "qemu64",
    "memory_mib": 1024,
    "append": "",
}


def counted(costs: Mapping[str, int], more: Mapping[str, int] | None = None) -> RunCounts:
    """Regions of one function, and of these besides."""
    besides = {own(name): cost for name, cost in (more or {}).items()}
    return run(*(region(name, {own("f"): cost, **besides}) for name, cost in costs.items()))


def ran(
    store: Store,
    spec: str,
    costs: Mapping[str, int],
    *,
    release: str = "6.12.0",
    runs: int = 3,
    first: int = 0,
    form: str = "b",
    machine: Mapping[str, str | int | float] = MACHINE,
    attachments: Mapping[str, bytes] | None = None,
    more: Mapping[str, int] | None = None,
    workload: str = "syscalls",
) -> str:
    """Runs of a kernel that agree; its identity."""
    identity = spec.encode().hex().ljust(64, "0")[-64:]
    for index in range(first, first + runs):
        new = NewRun(
            key=f"{spec} {form} {index} {machine}",
            kernel_identity=identity,
            kernel_spec=spec,
            kernel_release=release,
            machine=dict(machine),
            workload=workload,
            workload_identity=work_identity(form),
            perturbation=index,
        )
        store.finish_run(
            store.start_run(new),
            RunStatus.OK,
            counts=counted(costs, more),
            attachments=attachments,
        )
    return identity


def log(store: Store, **asked: object) -> HistoryReport:
    request = HistoryRequest(workload="syscalls")
    return run_history(msgspec.structs.replace(request, **asked), Lab(store, Silent()))


def only(found: HistoryReport) -> HistorySeries:
    (series,) = found.series
    return series


def track_of(series: HistorySeries, operation: str) -> HistoryTrack | None:
    return next((one for one in series.tracks if one.operation == operation), None)


def words(series: HistorySeries, operation: str) -> list[str]:
    track = track_of(series, operation)
    assert track is not None
    return [point.step.word if point.step else "" for point in track.points]


DEBIAN = "deb:linux-image-{0}-cloud-amd64={1}"


def three(store: Store) -> None:
    """Not in the order of their versions."""
    ran(store, DEBIAN.format("6.12.9", "6.12.9-1"), {"stat": 300, "uname": 90}, release="6.12.9")
    ran(store, DEBIAN.format("6.1.0-9", "6.1.99-1"), {"stat": 200, "uname": 100}, release="6.1.0-9")
    ran(
        store,
        DEBIAN.format("6.1.0-56", "6.1.192-2"),
        {"stat": 200, "uname": 90},
        release="6.1.0-56",
    )


def doubtful_if_few(effects: object, *runs: list[RunCounts], **_: object) -> list[str]:
    """What is faster or slower of few runs is left to chance."""
    if min(map(len, runs)) >= FEWEST:
        return []
    return [
        one.name
        for one in effects.operations  # type: ignore[attr-defined]
        if one.verdict.word in {Word.SLOWER, Word.FASTER}
    ]
