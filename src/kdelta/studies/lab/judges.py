# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts judged again: by more runs of what a few leave to chance, and from other states."""

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, is_kernel, merged_regions
from kdelta.infer.effects.chance import ENOUGH, by_chance, left_open, of_relinked, with_operations
from kdelta.infer.effects.effects import FIRM, Effects, OperationEffect, Verdict, Word, compare
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
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


LEAST = Fraction(1, 1000)
"""The part of the base that an effect of the other sign must be, to take back a verdict."""

_REFILLS = frozenset({"___slab_alloc", "__slab_alloc", "new_slab", "rmqueue_bulk"})
"""mm/slub.c and mm/page_alloc.c: what takes over where a list of free objects is empty."""


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


class MachineState(msgspec.Struct, frozen=True):
    """Another state: what it changes of a machine, what it is called, and the word where a verdict
    depends on it.
    """

    name: str
    word: Word
    change: Mapping[str, int]


STATES = (
    MachineState("after a standard load", Word.DEPENDS_ON_STATE, {"loaded": True}),
    MachineState(
        "at a quarter of the instructions a second", Word.DEPENDS_ON_SPEED, {"icount_shift": 2}
    ),
)


class OtherStates:
    """Runs of operations from other states, for one request."""

    def __init__(
        self,
        request: LabRequest,
        store: Store,
        progress: Progress,
        work: Callable[[Kernel, tuple[str, ...]], Work],
    ) -> None:
        """work: what a kernel is to do for these operations."""
        plain = msgspec.structs.replace(
            request, perturbations=1, trace=False, data_lines=False, simulate=None
        )
        machines = [msgspec.structs.replace(plain.machine, **state.change) for state in STATES]
        self._labs = [
            Lab(msgspec.structs.replace(plain, machine=machine), store, progress)
            for machine in machines
        ]
        self._work = work

    async def judge(
        self, effects: Effects, kernels: tuple[Kernel, Kernel], counts: Sequence[RunCounts]
    ) -> Effects:
        """The effects; a verdict whose sign is another one from another state depends on that.

        counts: of both kernels' runs, whose functions say what depends on a state.
        """
        wanted = tuple(
            one.name
            for one in effects.operations
            if one.verdict.word in FIRM and depends_on_state(one.name, kernels[0].arch, counts)
        )
        if not wanted:
            return effects
        found = {one.name: one for one in effects.operations}
        works = [self._work(kernel, wanted) for kernel in kernels]
        for state, lab in zip(STATES, self._labs, strict=True):
            sides = [_regions(done) for done in await lab.runs(kernels, works)]
            for name in wanted:
                if all(name in side for side in sides):
                    base, other = (side[name].mean_own_insns() for side in sides)
                    found[name] = in_state(found[name], base, other, state)
        return msgspec.structs.replace(effects, operations=tuple(found.values()))


def _regions(done: Sequence[Done]) -> Mapping[str, RegionCounts]:
    """Of the one run that there is of a kernel; none if it did not go well."""
    counts = next((one.counts for one in done if one.counts), None)
    return merged_regions(counts) if counts else {}


def depends_on_state(operation: str, arch: str, counts: Sequence[RunCounts]) -> bool:
    """Whether its path has a task switch, a fork or a refill of a slab."""
    symbols = arch_machine(arch).symbols
    names = _REFILLS.union(symbols.get("switch", ()), symbols.get("forked", ()))
    return any(
        row.context == "own" and is_kernel(row.origin) and row.name in names
        for run in counts
        for region in [merged_regions(run).get(operation)]
        if region
        for row in region.functions
    )


def in_state(
    usual: OperationEffect, base: Fraction, other: Fraction, state: MachineState
) -> OperationEffect:
    """The operation's effect, with the state's word if the sign is another one there.

    base, other: instructions an iteration there.
    """
    if usual.verdict.word not in FIRM or usual.costs is None:
        return usual
    here, effect = usual.costs.insns, other - base
    if here.effect.value * effect >= 0 or abs(effect) < LEAST * base:
        return usual
    there = 100 * effect / base if base else None
    reason = f"{_percent(here.percent)} from the snapshot, {_percent(there)} {state.name}"
    return msgspec.structs.replace(usual, verdict=Verdict(state.word, reason=reason))


def _percent(value: Fraction | None) -> str:
    return "new" if value is None else f"{float(value):+.3g} %"
