# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs without guests, which tests pass to studies; in one, kernels cost what their name says."""

import asyncio
import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, cast

import msgspec
import pytest

from kdelta.cpus import CPU
from kdelta.guests.job import Job
from kdelta.infer.effects.effects import OperationEffect, Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.lab.progress import Progress, Silent
from kdelta.lab.request import USUAL_LAB, LabRequest
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.workloads.catalog import Workload
from tests.report.example import stored
from tests.synthetic import Function, interrupts, own, region, run


class MadeRuns(msgspec.Struct, frozen=True):
    """Runs of one kernel that a study asked for, and how they were to be made."""

    kernel: Kernel
    work: RunPlan
    request: LabRequest
    indexes: Sequence[int]
    parts: bool = False


class FakeLab(Lab):
    """A lab whose runs are computed: a subclass says by `run` what comes of one.

    It shares with the labs that are asked of it what it notes: `made`, and by `settled_for` the
    specs of the kernels that were to be on one machine.
    """

    def __init__(
        self,
        store: Store | None = None,
        request: LabRequest = USUAL_LAB,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(cast("Store", store), progress or Silent(), request)
        self.made: list[MadeRuns] = []
        self.settled_for: list[list[str]] = []

    def with_request(self, request: LabRequest) -> Self:
        """Return a lab that differs by its request alone."""
        return self._with(self.store, self.progress, request)

    def in_store(self, store: Store) -> Self:
        """Return a lab that differs by its store alone."""
        return self._with(store, self.progress, self.request)

    def _with(self, store: Store, progress: Progress, request: LabRequest) -> Self:
        other = copy.copy(self)
        Lab.__init__(other, store, progress, request)
        return other

    def run(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        """Return what comes of a run."""
        raise NotImplementedError

    async def settled(self, kernels: Sequence[Kernel], works: Sequence[RunPlan] = ()) -> Self:
        """Return the same lab: all machines can do what is asked."""
        assert not works or len(works) == len(kernels)
        self.settled_for.append([kernel.spec for kernel in kernels])
        return self

    async def runs(
        self,
        kernels: Sequence[Kernel],
        works: Sequence[RunPlan],
        indexes: Sequence[int] | None = None,
        *,
        parts: bool = False,
    ) -> list[list[RunResult]]:
        """Note what is asked for, and compute it."""
        if indexes is None:
            indexes = range(self.request.perturbations)
        pairs = list(zip(kernels, works, strict=True))
        self.made += [MadeRuns(*pair, self.request, indexes, parts) for pair in pairs]
        return [[self.run(*pair, index) for index in indexes] for pair in pairs]

    async def one(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        """Note and compute one run."""
        ((done,),) = await self.runs([kernel], [work], [index])
        return done


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


class CostsByName(FakeLab):
    """Kernels by name: what their signal-handler costs, and by how much chdir is longer."""

    image = ""
    """The image of all kernels; empty: each has its own."""

    release = ""
    """The release of all kernels; empty: each has its own."""

    def __init__(self, costs: dict[str, tuple[Cost, int]]) -> None:
        super().__init__()
        self._costs = costs

    @property
    def ran(self) -> list[tuple[str, tuple[str, ...], Sequence[int]]]:
        """Return of all runs the kernel, the operations and the perturbations."""
        assert all(one.parts for one in self.made)
        return [(one.kernel.spec, _names(one.work), one.indexes) for one in self.made]

    def kernel(self, spec: str) -> Kernel:
        """Return the kernel of that name."""
        return kernel(spec, self.image, self.release)

    async def settled(self, kernels: Sequence[Kernel], works: Sequence[RunPlan] = ()) -> Self:
        """Return a lab whose machines have another memory than was asked for."""
        await super().settled(kernels, works)
        machine = msgspec.structs.replace(self.request.machine, memory_mib=SETTLED_MIB)
        return self.with_request(msgspec.structs.replace(self.request, machine=machine))

    def run(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        """Return what the kernel's costs come to."""
        cost, more = self._costs[kernel.spec]
        timer = cost(index)
        if timer is None:
            return RunResult(stored(index, RunStatus.TIMED_OUT, "600 s"), None)
        costs: dict[str, dict[Function, int]] = {
            "getppid": {own("f"): 33_700},
            "chdir": {own("f"): 938_500 + 100 * more},
            "signal-handler": {own("f"): 781_758 + timer, interrupts("tick"): TIMER + index},
        }
        rows = [region(name, costs[name]) for name in OPERATIONS if name in _names(work)]
        return RunResult(stored(index, RunStatus.OK), run(*rows), stored=True)


def _names(work: RunPlan) -> tuple[str, ...]:
    return tuple(work.job.argv) or OPERATIONS


async def recorded(
    kernels: Sequence[Kernel], works: Sequence[RunPlan], lab: Lab
) -> list[list[RunResult]]:
    """Stand in for `recorded_runs`: nothing is traced."""
    assert lab.request.machine.cpu
    plain = lab.with_request(msgspec.structs.replace(lab.request, trace=False))
    return await plain.runs(kernels, works, parts=True)


def without_guests(patch: pytest.MonkeyPatch) -> None:
    """Replace what studies do besides for kernels and programs that are not there."""
    patch.setattr("kdelta.studies.compare.study.check_kernels", lambda *_: None)
    patch.setattr("kdelta.studies.compare.study.recorded_runs", recorded)
    patch.setattr("kdelta.lab.work.workload_work", work)


def kernel(spec: str, image: str = "", release: str = "") -> Kernel:
    """Return the kernel of that name: of a release of its own, if none is given."""
    release = release or f"6.12.{int(identity(spec)[:4], 16)}"
    return Kernel(identity(spec), spec, image or f"/{spec}/vmlinuz", "x86_64", release)


def work(workload: Workload, operations: tuple[str, ...], *_: object, **__: object) -> RunPlan:
    return RunPlan(workload.name, "b" * 64, Job(argv=operations), {})


def compared(
    lab: FakeLab, folder: Path, *names: str, cpus: tuple[CPU, ...] = (), perturbations: int = 3
) -> tuple[Comparison, ...]:
    request = CompareRequest(
        base=names[0],
        others=names[1:],
        cpus=cpus,
        lab=LabRequest(perturbations=perturbations),
    )
    with Store.open(folder / "store") as store:
        return asyncio.run(run_compare(request, lab.in_store(store)))


def words(found: Comparison) -> dict[str, Word]:
    assert found.effects
    return {one.name: one.verdict.word for one in found.effects.operations}


def operation(found: Comparison, name: str) -> OperationEffect:
    assert found.effects
    return next(one for one in found.effects.operations if one.name == name)
