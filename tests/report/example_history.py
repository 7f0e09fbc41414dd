# SPDX-License-Identifier: GPL-2.0-or-later
"""A history with every kind of step, over kernels of every kind."""

from fractions import Fraction

from kdelta.cpus.catalog import load_cpu
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.history import GeometricChange
from kdelta.lab.reports import reported_cpu
from kdelta.report.measured import MODEL_CYCLES, Effect
from kdelta.studies.log.model import (
    HistoryKernel,
    HistoryPoint,
    HistoryReport,
    HistorySeries,
    HistoryTotal,
    HistoryTrack,
    PathStep,
)
from tests.report.example import MACHINE

STARTED = 1_767_225_600.0


def figure(value: int, reach: int = 0) -> Estimate:
    return Estimate(Fraction(value), Fraction(value - reach), Fraction(value + reach), 3)


def kernel(name: str, spec: str, version: str, number: int, subject: str = "") -> HistoryKernel:
    return HistoryKernel(
        name=name,
        spec=spec,
        release=version,
        identity=f"{number:x}" * 64,
        version=version,
        date=STARTED + 86400 * number,
        dated="commit" if subject else "run",
        runs=(f"{number}c0ffee",),
        subject=subject,
    )


KERNELS = (
    kernel(
        "6.1.0-56-cloud-amd64", "deb:linux-image-6.1.0-56-cloud-amd64=6.1.192-2", "6.1.192-2", 1
    ),
    kernel(
        "123456789abc +speed.config",
        "git:/src/linux@123456789abc +/home/me/speed.config",
        "6.12.0",
        2,
        "fs: open: look at the flags once more",
    ),
    kernel("+speed.config +shuffle:7", "tree:/src/linux +speed.config +shuffle:7", "6.12.0", 3),
    kernel("6.13.0", "tree:/src/linux-6.13", "6.13.0", 4),
)


def _step(word: Word, before: int, after: int, reach: int = 0, reason: str = "") -> PathStep:
    percent = Fraction(100 * (after - before), before) if before else None
    return PathStep(word, figure(after - before, reach), percent, reason)


def _cycles(word: Word, change: Interval, as_linked: Interval) -> dict[str, Effect]:
    return {MODEL_CYCLES: Effect("open-close", word, change=change, as_linked=as_linked)}


TRACKS = (
    HistoryTrack(
        "open-close",
        (
            HistoryPoint(figure(3000)),
            HistoryPoint(
                figure(3300),
                _step(Word.SLOWER, 3000, 3300),
                _cycles(Word.SLOWER, Interval(0.08, 0.11), Interval(0.07, 0.12)),
            ),
            HistoryPoint(
                figure(3302),
                _step(Word.PLACEMENT_ONLY, 3300, 3302, reason="the same code relinked"),
                _cycles(Word.PLACEMENT_ONLY, Interval(-0.01, 0.02), Interval(0.04, 0.05)),
            ),
            HistoryPoint(
                figure(3150, 40), _step(Word.UNRESOLVED, 3302, 3150, 80, "chance may have made it")
            ),
        ),
    ),
    HistoryTrack(
        "getppid",
        (
            HistoryPoint(figure(400)),
            HistoryPoint(figure(300), _step(Word.FASTER, 400, 300)),
            HistoryPoint(figure(300), _step(Word.SAME, 300, 300)),
            HistoryPoint(figure(300), _step(Word.SAME, 300, 300)),
        ),
    ),
    HistoryTrack(
        "new-one",
        (
            HistoryPoint(None),
            HistoryPoint(None),
            HistoryPoint(figure(7)),
            HistoryPoint(figure(7), _step(Word.SAME, 7, 7)),
        ),
    ),
)

TOTALS = (
    HistoryTotal(100.0),
    HistoryTotal(90.8, GeometricChange(0.908, 0.908, 0.908), {"slower": 1, "faster": 1}),
    HistoryTotal(90.8, GeometricChange(1.0, 0.99, 1.02), {"placement only": 1, "same": 1}),
    HistoryTotal(88.7, GeometricChange(0.977, 0.95, 1.0), {"unresolved": 1, "same": 2}),
)


def series(cpu: str = "") -> HistorySeries:
    return HistorySeries(
        machine=MACHINE,
        kernels=KERNELS,
        tracks=TRACKS,
        totals=TOTALS,
        ordered="version, then commit",
        cpu=reported_cpu(load_cpu(cpu)) if cpu else None,
        notes=("2 earlier kernels are left out (-n)",),
    )


def summary() -> HistoryReport:
    return HistoryReport("syscalls", (), (series(),), ("alone on its machine: image:/x",))


def tracked() -> HistoryReport:
    return HistoryReport("syscalls", ("open-close", "getppid", "new-one"), (series("zen3"),))


def several() -> HistoryReport:
    return HistoryReport("syscalls", (), (series(), series("zen3")))
