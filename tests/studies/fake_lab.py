# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab without guests, which tests pass to studies."""

import copy
from collections.abc import Sequence
from typing import Self, cast

import msgspec

from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.plan import RunPlan
from kdelta.lab.progress import Progress, Silent
from kdelta.lab.request import USUAL_LAB, LabRequest
from kdelta.lab.wanted import RunResult
from kdelta.store.store import Store


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

    def asked(self, request: LabRequest) -> Self:
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
