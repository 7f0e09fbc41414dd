# SPDX-License-Identifier: GPL-2.0-or-later
"""More runs of the operations of which a few leave a verdict to chance, and of those alone."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.chance import ENOUGH, by_chance, left_open, of_relinked, with_operations
from kdelta.infer.effects.effects import Effects, OperationEffect, compare
from kdelta.kernels.model import Kernel
from kdelta.store.store import Store
from kdelta.studies.lab.lab import Done, Lab, Work
from kdelta.studies.lab.requests import LabRequest, Progress

LEFT_OPEN = "what chance may have made, and cannot be derived from it"
"""The reason of a verdict that more runs did not decide, or could not be had for."""


class CountedKernel(msgspec.Struct, frozen=True, eq=False):
    """A kernel, and what those of its runs counted that went well."""

    kernel: Kernel
    counts: tuple[RunCounts, ...]


class OperationRuns(msgspec.Struct, frozen=True):
    """The runs of both kernels in which an operation was run alone."""

    operation: str
    base: tuple[Done, ...]
    other: tuple[Done, ...]


class JudgedEffects(msgspec.Struct, frozen=True):
    """The effects, without a verdict that chance may have made, and the runs that it took."""

    effects: Effects
    more: tuple[OperationRuns, ...] = ()


class Judge:
    """Judges the paths of pairs of kernels; runs of one kernel serve all its pairs.

    operations: which can be run alone. work: what a kernel is to do for one of them.
    """

    def __init__(
        self,
        request: LabRequest,
        store: Store,
        progress: Progress,
        operations: Collection[str],
        work: Callable[[Kernel, str], Work],
    ) -> None:
        plain = msgspec.structs.replace(
            request,
            perturbations=max(ENOUGH, request.perturbations),
            trace=False,
            data_lines=False,
            simulate=None,
        )
        self._lab = Lab(plain, store, progress)
        self._runs = plain.perturbations
        self._progress = progress
        self._operations = operations
        self._work = work
        self._made: dict[tuple[str, str], tuple[Done, ...]] = {}

    async def judge(
        self, base: CountedKernel, other: CountedKernel, relinked: Collection[str] = ()
    ) -> JudgedEffects:
        """The effects of two kernels that have runs. A verdict that these may have made by chance
        is that of more runs of the operation alone: all under one condition, and chosen before
        they were made. relinked: regions whose code is the same, only relinked.
        """
        effects = of_relinked(compare(base.counts, other.counts), relinked)
        doubtful = by_chance(effects, base.counts, other.counts)
        more = [
            await self._more(name, base.kernel, other.kernel)
            for name in doubtful
            if name in self._operations
        ]
        sides = [
            (*base.counts, *(counts for one in more for counts in _counts(one.base))),
            (*other.counts, *(counts for one in more for counts in _counts(one.other))),
        ]
        told = [found for one in more for found in _told(one)]
        effects = with_operations(effects, told, sides[0], sides[1])
        left = set(doubtful) - {one.name for one in told}
        return JudgedEffects(left_open(effects, left, LEFT_OPEN), tuple(more))

    async def _more(self, operation: str, base: Kernel, other: Kernel) -> OperationRuns:
        kernels = {one.identity: one for one in (base, other)}
        missing = [kernel for key, kernel in kernels.items() if (key, operation) not in self._made]
        if missing:
            self._progress.say(
                f"{operation}: runs may differ so by chance; {self._runs} of it alone"
            )
            works = [self._work(kernel, operation) for kernel in missing]
            for kernel, done in zip(missing, await self._lab.runs(missing, works), strict=True):
                self._made[kernel.identity, operation] = tuple(done)
        sides = [self._made[kernel.identity, operation] for kernel in (base, other)]
        return OperationRuns(operation, sides[0], sides[1])


def _counts(done: Sequence[Done]) -> list[RunCounts]:
    return [one.counts for one in done if one.counts is not None]


def _told(more: OperationRuns) -> list[OperationEffect]:
    """The operation's effect, if these runs have it."""
    base, other = _counts(more.base), _counts(more.other)
    effects = compare(base, other)
    doubtful = by_chance(effects, base, other)
    return [
        one
        for one in effects.operations
        if one.name == more.operation and one.costs is not None and one.name not in doubtful
    ]
