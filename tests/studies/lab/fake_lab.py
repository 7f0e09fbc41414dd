# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab of kernels by name, of which one operation costs more in some runs."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus import CPU
from kdelta.guests.job import Job
from kdelta.infer.effects.effects import OperationEffect, Word
from kdelta.kernels.model import Kernel
from kdelta.spec.identity import identity
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult
from kdelta.studies.lab.progress import Silent
from kdelta.studies.lab.request import LabRequest
from kdelta.studies.tracing.cycles import Traced
from kdelta.workloads.catalog import Workload
from tests.report.example import stored
from tests.synthetic import Function, interrupts, own, region, run

TIMER = 5000
OPERATIONS = ("getppid", "chdir", "signal-handler")

FIRST = 3
"""Runs of all operations, by default here."""

Cost = Callable[[int], int | None]
"""Of signal-handler in the run of that perturbation: more than 781,758 instructions by so many;
None for a run that fails.
"""


def never(_index: int) -> int:
    return 0


def by_chance(index: int) -> int:
    """A timer ended in the first three runs; of the further ones, in every other."""
    return 953 if index < FIRST or index % 2 else 0


def by_half(index: int) -> int:
    return 953 if index >= FIRST and index % 2 else 0


def for_real(index: int) -> int:
    return 2000 + index


def failing(index: int) -> int | None:
    return None if index in {4, 5, 7} else 953


def levels(height: int) -> Cost:
    """Two levels, one of them in every other run."""
    return lambda index: height * (index % 2)


SETTLED_MIB = 640
"""What tells the machine that was settled on from the one that was asked for."""


class FakeLab:
    """Kernels by name: what their signal-handler costs, and by how much chdir is longer."""

    def __init__(self, kernels: dict[str, tuple[Cost, int]]) -> None:
        self._kernels = kernels
        self.made: list[tuple[str, tuple[str, ...], range]] = []
        self.machines: list[MachineOptions] = []
        self.settled: list[list[str]] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        async def runs(
            lab: Lab,
            kernels: list[Kernel],
            works: list[RunPlan],
            indexes: range | None = None,
            *,
            parts: bool,
        ) -> list[list[RunResult]]:
            assert parts
            request: LabRequest = lab.request
            return [
                self._runs(kernel.spec, work.job.argv, request, indexes)
                for kernel, work in zip(kernels, works, strict=True)
            ]

        async def settled(lab: Lab, kernels: list[Kernel], _: list[RunPlan]) -> Lab:
            self.settled.append([kernel.spec for kernel in kernels])
            machine = msgspec.structs.replace(lab.request.machine, memory_mib=SETTLED_MIB)
            return lab.asked(msgspec.structs.replace(lab.request, machine=machine))

        async def traced(
            request: LabRequest, _: Store, __: Silent, kernels: list[Kernel], works: list[RunPlan],
            cpu: CPU,
        ) -> list[Traced]:  # fmt: skip
            assert request.machine.cpu == cpu.qemu.cpu
            return [
                Traced(tuple(self._runs(kernel.spec, work.job.argv, request)))
                for kernel, work in zip(kernels, works, strict=True)
            ]

        patch.setattr(Lab, "kernel", lambda _, spec: kernel(spec))
        patch.setattr("kdelta.studies.compare.study.check_kernels", lambda *_: None)
        patch.setattr(Lab, "runs", runs)
        patch.setattr(Lab, "settled", settled)
        patch.setattr("kdelta.studies.compare.study.traced_runs", traced)
        patch.setattr("kdelta.studies.lab.work.workload_work", work)

    def _runs(
        self, spec: str, names: Sequence[str], request: LabRequest, indexes: range | None = None
    ) -> list[RunResult]:
        names = tuple(names) or OPERATIONS
        indexes = range(request.perturbations) if indexes is None else indexes
        self.made.append((spec, names, indexes))
        self.machines.append(request.machine)
        return [self._run(spec, names, index) for index in indexes]

    def _run(self, spec: str, names: tuple[str, ...], index: int) -> RunResult:
        cost, more = self._kernels[spec]
        timer = cost(index)
        if timer is None:
            return RunResult(stored(index, RunStatus.TIMED_OUT, "600 s"), None)
        costs: dict[str, dict[Function, int]] = {
            "getppid": {own("f"): 33_700},
            "chdir": {own("f"): 938_500 + 100 * more},
            "signal-handler": {own("f"): 781_758 + timer, interrupts("tick"): TIMER + index},
        }
        rows = [region(name, costs[name]) for name in OPERATIONS if name in names]
        return RunResult(stored(index, RunStatus.OK), run(*rows), stored=True)


def kernel(spec: str, image: str = "") -> Kernel:
    return Kernel(identity(spec), spec, image or f"/{spec}/vmlinuz", "x86_64", "6.12.0")


def work(workload: Workload, operations: tuple[str, ...], *_: object, **__: object) -> RunPlan:
    return RunPlan(workload.name, "b" * 64, Job(argv=operations), {})


def compared(
    folder: Path, *names: str, cpus: tuple[CPU, ...] = (), perturbations: int = 3
) -> tuple[Comparison, ...]:
    request = CompareRequest(
        base=names[0],
        others=names[1:],
        cpus=cpus,
        lab=LabRequest(perturbations=perturbations),
    )
    with Store.open(folder / "store") as store:
        return asyncio.run(run_compare(request, store, Silent()))


def words(found: Comparison) -> dict[str, Word]:
    assert found.effects
    return {one.name: one.verdict.word for one in found.effects.operations}


def operation(found: Comparison, name: str) -> OperationEffect:
    assert found.effects
    return next(one for one in found.effects.operations if one.name == name)
