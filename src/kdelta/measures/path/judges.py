# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts judged again: by more runs of what a few leave to chance, and from other states."""

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import (
    RegionCounts,
    RunCounts,
    is_kernel,
    merged_regions,
    only_region,
)
from kdelta.infer.effects.by_code import with_code
from kdelta.infer.effects.chance import (
    DifferingCode,
    first_verdicts,
    left_open,
    settled,
    so_far,
    with_reason,
)
from kdelta.infer.effects.deferred import WITH_OTHERS
from kdelta.infer.effects.effects import (
    FIRM,
    MARGIN,
    Effects,
    OperationEffect,
    Verdict,
    Word,
)
from kdelta.infer.effects.estimate import LOOKS, PAIR_LOOKS
from kdelta.kernels.model import Kernel
from kdelta.lab.budget import Budget, RunCost, cost_of_operation
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.machines.arch import arch_machine

MAY_BE_CHANCE = "few runs may differ so by chance"
"""The reason of a verdict for which more runs were not made."""

LEFT_OPEN = f"{MAY_BE_CHANCE}, and more did not decide"
"""The reason of a verdict that more runs did not decide, or that could not be made."""

BUDGET_ENDED = "the budget ended before (--budget)"
"""What is added to that of an operation that was not run further for want of budget."""


class CountedKernel(msgspec.Struct, frozen=True, eq=False):
    """A kernel, and what those of its runs counted that went well."""

    kernel: Kernel
    counts: tuple[RunCounts, ...]


NOT_IN_STATES = f"not run from other states, {BUDGET_ENDED}"
"""The reason of a faster, slower or mixed that may depend on the state: a gate does not take it."""


class SharedCode(msgspec.Struct, frozen=True):
    """What two kernels share.

    relinked  regions whose code is the same, only relinked
    differing returns which functions differ: see `first_verdicts`
    unchanged returns those of which neither executes code, nor refers to data, that differs
    alike     they are of one version, so that their runs are judged by pairs: see `compare_runs`
    """

    relinked: Collection[str] = ()
    differing: Callable[[], DifferingCode] = dict
    unchanged: Callable[[], Collection[str]] = tuple
    alike: bool = False


NOTHING_SHARED = SharedCode()


class OperationRuns(msgspec.Struct, frozen=True):
    """The runs of an operation that were made after those of all operations."""

    operation: str
    base: tuple[RunResult, ...]
    other: tuple[RunResult, ...]


class JudgedEffects(msgspec.Struct, frozen=True):
    """The effects, without a verdict that chance may have made, and the runs that it took."""

    effects: Effects
    more: tuple[OperationRuns, ...] = ()


MOST_RUNS = PAIR_LOOKS[-1]
"""Runs a side of an operation alone, after which it is left open."""


class Judge:
    """Judges the paths of pairs of kernels; runs of one kernel serve all its pairs.

    has         whether an operation can be run without the others
    work        returns the plan of a kernel's run of some operations
    own_starts  no figure depends on what else is run, so the first runs count, too
    margin      see `verdict_on`
    budget      what may be spent on further runs
    """

    def __init__(
        self,
        lab: Lab,
        has: Callable[[str], bool],
        work: Callable[[Kernel, tuple[str, ...]], RunPlan],
        *,
        own_starts: bool = True,
        margin: Fraction = MARGIN,
        budget: Budget | None = None,
    ) -> None:
        self._lab = lab.with_request(
            msgspec.structs.replace(lab.request, trace=False, data_lines=False)
        )
        self._has = has
        self._work = work
        self._own_starts = own_starts
        self._margin = margin
        self._budget = budget or Budget()
        self._made: dict[tuple[str, str], tuple[RunResult, ...]] = {}

    async def judge(
        self,
        base: CountedKernel,
        other: CountedKernel,
        code: SharedCode = NOTHING_SHARED,
        show: Callable[[Effects], None] = lambda _: None,
    ) -> JudgedEffects:
        """Return the effects of two kernels' runs.

        An operation that these leave to chance, or whose interval is too wide, is run further,
        until it has as many runs as one of the looks, as long as that would probably decide it and
        the budget allows it: the widest interval first.
        show: takes the effects so far, before each round of further runs.
        """
        first = first_verdicts(
            base.counts,
            other.counts,
            code.relinked,
            self._margin,
            differing=code.differing,
            unchanged=code.unchanged,
            alike=code.alike,
        )
        effects = settled(first, {}, base.counts, other.counts, LEFT_OPEN)
        more: dict[str, OperationRuns] = {}
        waiting = {name: runs for name, runs in first.runs.items() if self._has(name)}
        too_expensive: list[str] = []
        for look in PAIR_LOOKS if code.alike else LOOKS:
            likely = [name for name, runs in waiting.items() if runs <= MOST_RUNS >= look]
            wanted = self._afforded(likely, effects, (base, other), look)
            too_expensive += [name for name in likely if name not in wanted]
            if not wanted:
                break
            show(so_far(first, effects, wanted))
            more |= await self._more(wanted, base, other, look)
            runs = {name: self._runs_of(more[name], base, other) for name in more}
            effects = settled(first, runs, base.counts, other.counts, LEFT_OPEN)
            needed = {one.name: one.verdict.runs_needed for one in effects.operations}
            waiting = {name: needed[name] for name in wanted if needed[name]}
        never = {one.name for one in effects.operations if one.verdict.reason == LEFT_OPEN}
        effects = left_open(effects, never.intersection(too_expensive), MAY_BE_CHANCE)
        effects = with_reason(effects, too_expensive, BUDGET_ENDED)
        effects = with_code(effects, code.differing) if code.alike else effects
        return JudgedEffects(effects, tuple(one for one in more.values() if one.base or one.other))

    def _afforded(
        self,
        names: Sequence[str],
        effects: Effects,
        sides: tuple[CountedKernel, CountedKernel],
        look: int,
    ) -> list[str]:
        """Return those of these operations that the budget still allows to be run as often as the
        look wants, and take them off it.
        """
        if not self._budget.has_end:
            return list(names)
        widths = {one.name: _relative_width(one) for one in effects.operations}
        runs = max(look, self._lab.request.perturbations)
        kernels = {one.kernel.identity: one for one in sides}
        found = set()
        for name in sorted(names, key=lambda name: -widths[name]):
            cost = RunCost()
            for identity, side in kernels.items():
                there = self._first(side) + len(self._made.get((identity, name), ()))
                cost += cost_of_operation(name, side.counts) * max(0, runs - there)
            if self._budget.affords(cost):
                found.add(name)
        return [name for name in names if name in found]

    async def _more(
        self, names: Sequence[str], base: CountedKernel, other: CountedKernel, look: int
    ) -> dict[str, OperationRuns]:
        """Return the further runs of each of these operations, so that both kernels have as many
        runs as the look. Runs that another pair needed besides are left out.
        """
        runs = max(look, self._lab.request.perturbations)
        kernels = {one.kernel.identity: one for one in (base, other)}
        rounds: dict[int, list[tuple[Kernel, tuple[str, ...]]]] = {}
        for identity, side in kernels.items():
            by_start: dict[int, list[str]] = {}
            for name in names:
                begin = self._first(side) + len(self._made.get((identity, name), ()))
                by_start.setdefault(begin, []).append(name)
            for begin, few in by_start.items():
                if begin < runs:
                    rounds.setdefault(begin, []).append((side.kernel, tuple(few)))
        if rounds:
            listed = ", ".join(names[:_MOST_LISTED]) + (", ..." if names[_MOST_LISTED:] else "")
            self._lab.progress.log(f"{listed}: too few runs to decide; {runs} of each")
        for begin, wanted in rounds.items():
            works = [self._work(kernel, of_kernel) for kernel, of_kernel in wanted]
            kernels_of = [kernel for kernel, _ in wanted]
            found = await self._lab.runs(kernels_of, works, range(begin, runs), parts=True)
            for (kernel, of_kernel), done in zip(wanted, found, strict=True):
                for name in of_kernel:
                    before = self._made.get((kernel.identity, name), ())
                    self._made[kernel.identity, name] = (*before, *done)
        return {
            name: OperationRuns(
                name,
                *(
                    self._made.get((one.kernel.identity, name), ())[: runs - self._first(one)]
                    for one in (base, other)
                ),
            )
            for name in names
        }

    def _first(self, side: CountedKernel) -> int:
        """Return how many of a kernel's first runs count for a single operation: all, or none."""
        every = len(side.counts) == self._lab.request.perturbations
        return len(side.counts) if self._own_starts and every else 0

    def _runs_of(
        self, more: OperationRuns, base: CountedKernel, other: CountedKernel
    ) -> tuple[list[RunCounts], list[RunCounts]]:
        """Return the counts of both kernels' runs by which an operation is judged."""
        ours, theirs = (
            [
                only_region(counts, more.operation)
                for counts in (
                    *side.counts[: self._first(side)],
                    *(one.counts for one in done if one.counts is not None),
                )
            ]
            for side, done in ((base, more.base), (other, more.other))
        )
        return ours, theirs


def _relative_width(one: OperationEffect) -> Fraction:
    """Return how far the interval reaches, as a part of the base."""
    if one.costs is None:
        return Fraction(0)
    insns = one.costs.insns
    return insns.effect.half_width / (abs(insns.base.value) or 1)


_MOST_LISTED = 4
"""Operations that are listed by name."""

LEAST = Fraction(1, 1000)
"""The part of the base that an effect of the other sign must be, to take back a verdict."""

_REFILLS = frozenset({"___slab_alloc", "__slab_alloc", "new_slab", "rmqueue_bulk"})
"""mm/slub.c and mm/page_alloc.c: what takes over where a list of free objects is empty."""


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
    """Runs of operations from other states, as a lab makes them."""

    def __init__(
        self,
        lab: Lab,
        work: Callable[[Kernel, tuple[str, ...]], RunPlan],
        budget: Budget | None = None,
    ) -> None:
        """work: what a kernel is to do for these operations. budget: what may be spent on it."""
        plain = msgspec.structs.replace(lab.request, perturbations=1, trace=False, data_lines=False)
        machines = [msgspec.structs.replace(plain.machine, **state.change) for state in STATES]
        self._labs = [
            lab.with_request(msgspec.structs.replace(plain, machine=machine))
            for machine in machines
        ]
        self._work = work
        self._budget = budget or Budget()

    async def judge(
        self, effects: Effects, kernels: tuple[Kernel, Kernel], counts: Sequence[RunCounts]
    ) -> Effects:
        """The effects; a verdict whose sign is another one from another state depends on that.

        counts: of both kernels' runs, whose functions say what depends on a state.
        """
        wanted = tuple(
            one.name
            for one in effects.operations
            if one.verdict.word in FIRM
            and one.verdict.reason != WITH_OTHERS  # there, what is left is not looked for
            and depends_on_state(one.name, kernels[0].arch, counts)
        )
        times = len(kernels) * len(STATES)
        afforded = tuple(
            name for name in wanted if self._budget.affords(cost_of_operation(name, counts) * times)
        )
        if left_out := [name for name in wanted if name not in afforded]:
            line = f"{NOT_IN_STATES}: {', '.join(left_out)}"
            effects = msgspec.structs.replace(
                _not_in_states(effects, left_out), warnings=(*effects.warnings, line)
            )
        wanted = afforded
        if not wanted:
            return effects
        works = [self._work(kernel, wanted) for kernel in kernels]
        for state, lab in zip(STATES, self._labs, strict=True):
            base, other = await lab.runs(kernels, works, parts=True)
            effects = in_other_state(effects, wanted, (base, other), state)
        return effects


def _not_in_states(effects: Effects, names: Collection[str]) -> Effects:
    """Return the effects with this reason in the verdicts on the operations of these names."""
    found = tuple(
        msgspec.structs.replace(one, verdict=Verdict(one.verdict.word, reason=NOT_IN_STATES))
        if one.name in names
        else one
        for one in effects.operations
    )
    return msgspec.structs.replace(effects, operations=found)


def in_other_state(
    effects: Effects,
    wanted: Collection[str],
    sides: tuple[Sequence[RunResult], Sequence[RunResult]],
    state: MachineState,
) -> Effects:
    """The effects, where operations of these names have the other state's word if their sign is
    another one there. sides: each kernel's run there.
    """
    base, other = map(_regions, sides)
    found = {one.name: one for one in effects.operations}
    for name in wanted:
        if name in base and name in other:
            ends = base[name].mean_own_insns(), other[name].mean_own_insns()
            found[name] = in_state(found[name], *ends, state)
    return msgspec.structs.replace(effects, operations=tuple(found.values()))


def _regions(done: Sequence[RunResult]) -> Mapping[str, RegionCounts]:
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
