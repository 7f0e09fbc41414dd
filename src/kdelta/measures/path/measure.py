# SPDX-License-Identifier: GPL-2.0-or-later
"""The path as a measure: the one that is always asked for, and whose effects all others are
given.
"""

import itertools
from fractions import Fraction

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import MARGIN, Effects, OperationEffect
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.gains import PathGain
from kdelta.lab.budget import Budget
from kdelta.lab.lab import Lab
from kdelta.lab.work import Work
from kdelta.measures.model import Judgement, Measure, RunPair, RunSide
from kdelta.measures.path.comparable import comparable, guest_of
from kdelta.measures.path.gains import gained
from kdelta.measures.path.judges import CountedKernel, Judge, JudgedEffects, OtherStates
from kdelta.measures.path.shared import shared_code
from kdelta.report.measured import Effect
from kdelta.store.store import Store


class Path(Measure):
    """The instructions that kernels execute for the same work. Runs of one kernel serve all pairs.

    work    what is run, with the files that it needs
    lab     where further runs are made
    cpu     the one that was named, if any
    margin  see `verdict_on`
    budget  what may be spent on further runs
    states  whether verdicts that may depend on the state are looked at from others
    """

    name = "path"
    unit = "instructions"

    def __init__(
        self,
        work: Work,
        lab: Lab,
        *,
        cpu: CPU | None = None,
        margin: Fraction = MARGIN,
        budget: Budget | None = None,
        states: bool = True,
    ) -> None:
        self._cpu = cpu
        self._runs = path_judge(work, lab, margin=margin, budget=budget)
        self._states = other_states(work, lab, budget) if states else None

    async def measure(self, lab: Lab, pair: RunPair) -> Judgement:  # noqa: ARG002  (made)
        """Return the effects, of kernels with runs that went well, and in the detail the runs that
        they took.
        """
        base, other, show = pair.base, pair.other, pair.show
        assert base.kernel is not None
        assert other.kernel is not None
        with interruptible():
            code = shared_code(base, other, ask=self._cpu is not None)
        sides = CountedKernel(base.kernel, base.counts), CountedKernel(other.kernel, other.counts)
        judged = await self._runs.judge(*sides, code, show)
        if self._states is not None:
            show(judged.effects)
            counts = (*base.counts, *other.counts)
            effects = await self._states.judge(judged.effects, (base.kernel, other.kernel), counts)
            judged = msgspec.structs.replace(judged, effects=effects)
        return Judgement(self.found(map(of_path, judged.effects.operations)), judged)

    def passed_on(self, pair: RunPair, found: Judgement) -> RunPair:
        """Return the pair with its path, and with the runs of single operations: their spread
        counts for other measures, too.
        """
        judged = found.detail
        assert isinstance(judged, JudgedEffects)
        ours, theirs = (
            msgspec.structs.replace(side, done=(*side.done, *itertools.chain.from_iterable(more)))
            for side, more in (
                (pair.base, [one.base for one in judged.more]),
                (pair.other, [one.other for one in judged.more]),
            )
        )
        pair = msgspec.structs.replace(pair, base=ours, other=theirs, path=judged.effects)
        return super().passed_on(pair, found)


def of_path(one: OperationEffect) -> Effect:
    """Return an effect on the path as all measures have theirs."""
    insns = one.costs.insns if one.costs else None
    base = insns.base.value if insns else None
    return Effect(
        region=one.name,
        word=one.verdict.word,
        base=_ends(one.base),
        other=_ends(one.other),
        change=Interval(float(insns.effect.low / base), float(insns.effect.high / base))
        if insns and base
        else None,
        reason=one.verdict.reason,
    )


def _ends(figure: Estimate | None) -> Interval | None:
    return Interval(float(figure.low), float(figure.high)) if figure else None


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
