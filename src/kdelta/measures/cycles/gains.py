# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts that paths of the CPU could turn round which QEMU cannot offer: these are not firm."""

from collections.abc import Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.cpus.representative import differences
from kdelta.infer.cycles.placement_model import CycleVerdict, PlacementEffect
from kdelta.infer.effects.effects import Effects, Word
from kdelta.infer.effects.gains import PathGain, Reach, path_gains, reason, turns, with_gains
from kdelta.lab.lab import RunResult
from kdelta.lab.reports import default_like
from kdelta.measures.cycles.comparable import guest_of
from kdelta.measures.cycles.effects import Cycles
from kdelta.store.store import Store

Sides = tuple[Sequence[RunResult], Sequence[RunResult]]


def like_of(cpu: CPU | None, runs: Sequence[RunResult]) -> CPU | None:
    """Return the CPU that is named; else the default one, if the runs' machine is like it."""
    if cpu is not None or not runs:
        return cpu
    return default_like(str(runs[0].run.machine.get("cpu", "")))


def gained(
    effects: Effects, cycles: Cycles | None, cpu: CPU | None, sides: Sides, store: Store
) -> tuple[Effects, Cycles | None, tuple[PathGain, ...]]:
    """Return the effects and model cycles without verdicts that paths of the CPU could turn round,
    and what these could add to each operation.

    cpu: as for `like_of`. sides: the runs of the base and of the other.
    """
    like = like_of(cpu, sides[0])
    firsts = [next((one.counts for one in runs if one.counts), None) for runs in sides]
    base, other = firsts
    if like is None or base is None or other is None:
        return effects, cycles, ()
    guests = [guest_of(runs, store) for runs in sides]
    mine, theirs = (differences(like, one.cpuinfo, one.vulnerabilities) for one in guests)
    gains = path_gains(effects, (mine, theirs), (base, other))
    if cycles is not None:
        known = {one.region: one for one in gains}
        judged = tuple(_judged(one, known.get(one.region), like) for one in cycles.effects)
        cycles = msgspec.structs.replace(cycles, effects=judged)
    return with_gains(effects, gains, like.name), cycles, gains


def _judged(effect: PlacementEffect, gain: PathGain | None, cpu: CPU) -> PlacementEffect:
    if gain is None:
        return effect
    rate = cpu.cycles_per_insn
    reach = Reach(rate * gain.effect.low, rate * gain.effect.high)
    if not turns(effect.verdict.word, effect.cycles.low, effect.cycles.high, reach):
        return effect
    verdict = CycleVerdict(Word.UNRESOLVED, reason=reason(gain, cpu.name))
    return msgspec.structs.replace(effect, verdict=verdict)
