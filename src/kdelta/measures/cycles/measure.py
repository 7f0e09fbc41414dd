# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles as a measure: what studies ask of it, answered by replaying traced runs."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.ensembles import mean_cycles
from kdelta.infer.cycles.placement_model import CycleVerdict, PlacementEffect
from kdelta.infer.cycles.prices import prices_of
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.gains import PathGain, Reach, gain_reason, turns
from kdelta.infer.effects.packets import PhaseCost
from kdelta.lab.lab import SYMBOLS, TRACES, Lab, RunResult
from kdelta.lab.progress import Progress
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.comparable import comparable_cycles
from kdelta.measures.cycles.effects import SEED, Cycles, Traced, cycles_between
from kdelta.measures.cycles.phases import phase_costs
from kdelta.measures.cycles.placement import (
    PlacedKernel,
    costs,
    drawn,
    placed_run,
    run_symbols,
)
from kdelta.measures.model import Judgement, Measure, MeasureRequest, RunPair, RunSide
from kdelta.measures.path.comparable import guest_of
from kdelta.report.measured import MODEL_CYCLES, Effect, of_placement
from kdelta.spec.errors import KdeltaError

_HELD = 2
"""A kernel's traces are large: of each workload those of two kernels are held at a time."""


def of_request(asked: MeasureRequest) -> "ModelCycles | None":
    """Return the measure, where a CPU was named."""
    return ModelCycles(asked, asked.cpu) if asked.cpu is not None else None


def cycles_of(judged: Iterable[Judgement]) -> Cycles | None:
    """Return what this measure found, of what all measures did."""
    return next((one.detail for one in judged if isinstance(one.detail, Cycles)), None)


class ModelCycles(Measure):
    """Model cycles on one CPU, over random layouts of each kernel."""

    name = MODEL_CYCLES
    unit = MODEL_CYCLES
    margin = Fraction(1, 100)

    def __init__(self, asked: MeasureRequest, cpu: CPU) -> None:
        self._asked = asked
        self._cpu = cpu
        self._placed: dict[str, OrderedDict[str, PlacedKernel]] = {}

    @property
    def where(self) -> str:
        return f" on {self._cpu.name}"

    def recording(self, asked: LabRequest) -> LabRequest:
        return msgspec.structs.replace(asked, trace=True)

    def expect(self, progress: Progress, pairs: int) -> None:
        progress.expect("replay", pairs)

    def lacks(self, lab: Lab, side: RunSide) -> str:
        if side.kernel is None:
            return "the kernel is no longer in the cache"
        if _recorded(side) is None:
            return "none of its runs was traced"
        try:
            self._traced(lab, side, None)
        except KdeltaError as error:
            return error.message
        return ""

    def judge(self, lab: Lab, pair: RunPair) -> Judgement | None:
        base, other = (self._traced(lab, side, pair.regions) for side in (pair.base, pair.other))
        cycles = cycles_between(
            base,
            other,
            self._cpu,
            layouts=self._asked.layouts,
            margin=self._asked.margin,
            data=self._asked.data,
            progress=lab.progress,
        )
        if cycles is None:
            return None
        guests = guest_of(base.done, lab.store), guest_of(other.done, lab.store)
        cycles = comparable_cycles(cycles, pair.path, self._cpu, guests)
        phases = {"base": self._phases(lab, base), "other": self._phases(lab, other)}
        return self.judgement(msgspec.structs.replace(cycles, phases=phases))

    def doubted(self, found: Judgement, gains: Sequence[PathGain]) -> Judgement:
        cycles = found.detail
        if not isinstance(cycles, Cycles):
            return found
        known = {one.region: one for one in gains}
        judged = tuple(_beyond(one, known.get(one.region), self._cpu) for one in cycles.effects)
        return self.judgement(msgspec.structs.replace(cycles, effects=judged))

    def figures(self, lab: Lab, side: RunSide) -> dict[str, Estimate]:
        """Return the means over layouts, placement left out, of regions whose run was traced."""
        placed = self._traced(lab, side, None).placed
        if placed is None:
            return {}
        step = f"replay {placed.kernel.release} on {self._cpu.name}"
        lab.progress.begin(step)
        with interruptible():
            layouts = drawn(placed, self._asked.layouts, SEED)
            found = costs(placed, self._cpu, layouts, runs=side.counts)
        lab.progress.end(step, f"{self._asked.layouts} layouts")
        prices = prices_of(self._cpu)
        return {
            name: mean_cycles(cost, prices) for name, cost in found.items() if cost.ensemble.misses
        }

    def _traced(self, lab: Lab, side: RunSide, regions: Sequence[str] | None) -> Traced:
        """Return a kernel's runs of one workload, with its code as placed."""
        done = _recorded(side)
        if side.kernel is None or done is None:
            return Traced(side.done)
        held = self._placed.setdefault(done.run.workload, OrderedDict())
        if done.run.id not in held:
            with interruptible():
                held[done.run.id] = placed_run(side.kernel, done, lab.store)
        held.move_to_end(done.run.id)
        while len(held) > _HELD:
            held.popitem(last=False)
        placed = held[done.run.id]
        return Traced(side.done, placed if regions is None else _only(placed, regions))

    def _phases(self, lab: Lab, traced: Traced) -> dict[str, tuple[PhaseCost, ...]]:
        """Return what each phase of the workload costs."""
        placed, works = traced.placed, [one for one in self._asked.works if one.phases]
        work = next((one for one in works if placed and one.name == placed.run.workload), None)
        if placed is None or work is None:
            return {}
        symbols = run_symbols(placed.kernel, lab.store, placed.run)
        return phase_costs(placed, work.phases, symbols, self._cpu)

    def judgement(self, cycles: Cycles) -> Judgement:
        """Return model cycles as all measures show what they found."""
        effects = [of_placement(one, self._cpu.name) for one in cycles.effects]
        cut = [(one.name, one.verdict) for one in cycles.cut if one.verdict]
        effects += [Effect(name, verdict.word, reason=verdict.reason) for name, verdict in cut]
        return Judgement(self.found(effects, cycles.notes), cycles)


def _recorded(side: RunSide) -> RunResult | None:
    """Return the run that was traced and went well."""
    return next(
        (
            one
            for one in side.done
            if one.counts and {TRACES, SYMBOLS} <= one.run.attachments.keys()
        ),
        None,
    )


def _only(placed: PlacedKernel, regions: Sequence[str]) -> PlacedKernel:
    """Return the same with the traces of these regions."""
    kept = [at for at, trace in enumerate(placed.traces) if trace.region in regions]
    return msgspec.structs.replace(
        placed,
        traces=tuple(placed.traces[at] for at in kept),
        places=tuple(placed.places[at] for at in kept),
    )


def _beyond(effect: PlacementEffect, gain: PathGain | None, cpu: CPU) -> PlacementEffect:
    """Return the effect, unresolved if the gain could turn it round."""
    if gain is None:
        return effect
    rate = cpu.cycles_per_insn
    reach = Reach(rate * gain.effect.low, rate * gain.effect.high)
    if not turns(effect.verdict.word, effect.cycles.low, effect.cycles.high, reach):
        return effect
    verdict = CycleVerdict(Word.UNRESOLVED, reason=gain_reason(gain, cpu.name))
    return msgspec.structs.replace(effect, verdict=verdict)
