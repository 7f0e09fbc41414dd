# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps between kernels by measures besides the path, as far as the store's runs say them."""

import functools
from collections.abc import Sequence

import msgspec

from kdelta.infer.effects.effects import Effects
from kdelta.kernels.kbuild.built import built_kernels
from kdelta.kernels.model import Kernel, booted_identity
from kdelta.kernels.obtain import booted_as
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.lab.lab import Lab, RunResult
from kdelta.measures.model import Judgement, Measure, RunPair, RunSide
from kdelta.report.measured import Effect
from kdelta.spec.kernel import parameters_of
from kdelta.studies.log.lineage import Lineage, parsed_spec


class CachedKernels:
    """The cache's kernels by identity, read once."""

    @functools.cached_property
    def _found(self) -> dict[str, Kernel]:
        found = {one.identity: one.kernel() for one in cached_kernels()}
        return found | {one.identity: one.kernel(one.spec) for one in built_kernels()}

    def find(self, one: Lineage) -> Kernel | None:
        """That kernel; None if the cache has it no more."""
        spec = parsed_spec(one.spec)
        if spec is None or not (parameters := parameters_of(spec)):
            return self._found.get(one.identity)
        for identity, kernel in self._found.items():
            if booted_identity(identity, parameters) == one.identity:
                return booted_as(kernel, spec)
        return None

    def side(self, one: Lineage, done: Sequence[RunResult]) -> RunSide:
        """A kernel and its runs, as comparisons have them."""
        return RunSide(one.spec, self.find(one), tuple(done))


def measured_steps(
    measure: Measure,
    sides: Sequence[tuple[Lineage, RunSide]],
    paths: Sequence[Effects],
    regions: tuple[str, ...],
    lab: Lab,
) -> tuple[list[Judgement | None], tuple[str, ...]]:
    """Return the step from each kernel to the next, and notes on kernels of which nothing is known.

    paths: of each step, the effects on the path.
    """
    found: list[Judgement | None] = []
    notes, lacking = [], []
    for at, (one, side) in enumerate(sides):
        why = measure.lacks(lab, side)
        if why:
            notes.append(f"{measure.name} of {one.release} ({one.spec}) are not known: {why}")
        lacking.append(bool(why))
        if at:
            pair = RunPair(sides[at - 1][1], side, paths[at - 1], regions)
            found.append(None if any(lacking[-2:]) else measure.judge(lab, pair))
    return found, tuple(notes)


def steps_of(region: str, judged: Sequence[Judgement]) -> dict[str, Effect]:
    """Return a region's steps by measure, without their details."""
    return {
        one.found.measure: msgspec.structs.replace(effect, detail=msgspec.UNSET)
        for one in judged
        for effect in one.found.effects
        if effect.region == region and effect.base
    }
