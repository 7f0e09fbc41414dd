# SPDX-License-Identifier: GPL-2.0-or-later
"""The path as a measure: the one that is always asked for, and that all others are given."""

from collections.abc import Callable
from fractions import Fraction

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.effects import MARGIN, Effects
from kdelta.infer.effects.gains import PathGain
from kdelta.lab.budget import Budget
from kdelta.lab.lab import Lab
from kdelta.lab.work import Work
from kdelta.measures.model import RunSide
from kdelta.measures.path.comparable import comparable, guest_of
from kdelta.measures.path.gains import gained
from kdelta.measures.path.judges import CountedKernel, Judge, JudgedEffects, OtherStates
from kdelta.measures.path.shared import shared_code
from kdelta.store.store import Store


class Path:
    """The instructions that kernels execute for the same work. Runs of one kernel serve all pairs.

    margin  see `verdict_on`
    budget  what may be spent on further runs
    states  whether verdicts that may depend on the state are looked at from others
    """

    def __init__(
        self,
        work: Work,
        lab: Lab,
        *,
        margin: Fraction = MARGIN,
        budget: Budget | None = None,
        states: bool = True,
    ) -> None:
        self._runs = path_judge(work, lab, margin=margin, budget=budget)
        self._states = other_states(work, lab, budget) if states else None

    async def judge(
        self, base: RunSide, other: RunSide, cpu: CPU | None, show: Callable[[Effects], None]
    ) -> JudgedEffects | None:
        """Return the effects, and the runs that they took; None where a kernel has no run that went
        well. show: takes the effects so far, before each round of further runs.
        """
        if not (base.kernel and other.kernel and base.counts and other.counts):
            return None
        with interruptible():
            code = shared_code(base, other, ask=cpu is not None)
        sides = CountedKernel(base.kernel, base.counts), CountedKernel(other.kernel, other.counts)
        judged = await self._runs.judge(*sides, code, show)
        if self._states is None:
            return judged
        show(judged.effects)
        counts = (*base.counts, *other.counts)
        effects = await self._states.judge(judged.effects, (base.kernel, other.kernel), counts)
        return msgspec.structs.replace(judged, effects=effects)


def without_open_paths(
    effects: Effects, base: RunSide, other: RunSide, cpu: CPU | None, store: Store
) -> tuple[Effects, tuple[PathGain, ...]]:
    """Return the effects without verdicts that a path decides which a kernel has lost in the guest,
    and firm ones that a path could turn round which QEMU cannot offer; and what such could add.
    """
    guests = guest_of(base.done, store), guest_of(other.done, store)
    return gained(comparable(effects, cpu, guests), cpu, (base.done, other.done), store)


def path_judge(
    work: Work,
    lab: Lab,
    *,
    margin: Fraction = MARGIN,
    budget: Budget | None = None,
) -> Judge:
    """Return who judges the paths of that work's operations by as many runs as it takes."""
    return Judge(
        lab,
        work.has,
        lambda kernel, operations: work.only(operations).plan(kernel, lab.request),
        own_starts=work.own_starts,
        margin=margin,
        budget=budget,
    )


def other_states(work: Work, lab: Lab, budget: Budget | None = None) -> OtherStates | None:
    """Return who looks whether verdicts hold from other states; None for a workload that is one
    run, whose operations make each other's state, and where one run of a kernel has no verdicts.
    """
    if not work.own_starts or lab.request.perturbations < 2:
        return None
    asked = lab.request
    return OtherStates(
        lab,
        lambda kernel, operations: work.only(operations).plan(kernel, asked).without_windows(),
        budget,
    )
