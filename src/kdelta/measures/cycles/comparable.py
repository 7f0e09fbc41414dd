# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on model cycles that a path decides which one kernel has lost in the guest."""

from collections.abc import Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.lost_paths import GuestFacts, OneSided, reason, region_without
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import CycleVerdict, PlacementEffect
from kdelta.infer.cycles.prices import prices_of
from kdelta.infer.effects.effects import Effects, Word
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.path.comparable import notes_on_parts, one_sided_parts


def comparable_cycles(
    cycles: Cycles, path: Effects, cpu: CPU, guests: tuple[GuestFacts, GuestFacts]
) -> Cycles:
    """Return model cycles with "not comparable" where a path decides that one of two kernels has
    lost in the guest: verdicts that are others without it. guests: what both say of themselves.
    """
    parts = one_sided_parts(path, cpu, guests)
    if not parts or not cycles.effects:
        return cycles
    regions = [
        region_without(one, parts[one.name]) if one.name in parts else one for one in cycles.regions
    ]
    without = {
        one.region: one
        for one in placement_effects(regions, prices_of(cpu), cycles.effects[0].margin)
        if one.region in parts
    }
    effects = tuple(
        _judged(one, without[one.region], parts[one.region]) if one.region in without else one
        for one in cycles.effects
    )
    decided = [one.region for one in effects if one.verdict.word is Word.NOT_COMPARABLE]
    notes = (*cycles.notes, *notes_on_parts(parts, decided, "model cycles"))
    return msgspec.structs.replace(cycles, effects=effects, notes=notes)


def _judged(
    effect: PlacementEffect, without: PlacementEffect, parts: Sequence[OneSided]
) -> PlacementEffect:
    before, after = ((one.verdict.word, one.within_bound) for one in (effect, without))
    if before == after:
        return effect
    verdict = CycleVerdict(Word.NOT_COMPARABLE, reason=reason(parts, without.verdict.word))
    return msgspec.structs.replace(effect, verdict=verdict)
