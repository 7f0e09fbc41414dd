# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps in model cycles between kernels whose traces the store has: real, or placement only."""

import functools
import itertools
from collections.abc import Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.lost_paths import GuestFacts
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.effects import Effects
from kdelta.kernels.kbuild.built import built_kernels
from kdelta.kernels.model import Kernel, booted_identity
from kdelta.kernels.obtain import booted_as
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.lab.lab import SYMBOLS, TRACES, Lab, RunResult
from kdelta.measures.cycles.comparable import comparable
from kdelta.measures.cycles.effects import Traced, cycles_between
from kdelta.measures.cycles.placement import PlacedKernel, placed_run
from kdelta.measures.cycles.words import cycle_reason
from kdelta.spec.errors import KdeltaError
from kdelta.spec.kernel import parameters_of
from kdelta.store.store import Store
from kdelta.studies.compare.study import RunSide
from kdelta.studies.log.lineage import Lineage, parsed_spec
from kdelta.studies.log.model import CycleStep


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


class Placing(msgspec.Struct, frozen=True):
    """On which CPU, by how many layouts, with which margin, and of which regions."""

    cpu: CPU
    layouts: int
    margin: float
    regions: tuple[str, ...]


def cycle_steps(
    placing: Placing,
    sides: Sequence[tuple[Lineage, Sequence[RunResult]]],
    paths: Sequence[tuple[Effects, tuple[GuestFacts, GuestFacts]]],
    *,
    kernels: CachedKernels,
    lab: Lab,
) -> tuple[list[dict[str, CycleStep]], tuple[str, ...]]:
    """By region, the step from each kernel to the next, and notes on those of which nothing is
    known. paths: of each step, the effects on the path, and what both guests say of themselves.
    """
    traced, notes = [], []
    for one, done in sides:
        found, why = _traced(one, done, placing, kernels, lab.store)
        traced.append(found)
        if why:
            notes.append(f"model cycles of {one.release} ({one.spec}) are not known: {why}")
    steps = []
    for (base, other), (path, guests) in zip(itertools.pairwise(traced), paths, strict=True):
        cycles = cycles_between(
            base,
            other,
            placing.cpu,
            layouts=placing.layouts,
            margin=placing.margin,
            progress=lab.progress,
        )
        _, cycles = comparable(path, cycles, placing.cpu, guests)
        steps.append({one.region: _step(one) for one in (cycles.effects if cycles else ())})
    return steps, tuple(notes)


def _traced(
    one: Lineage, done: Sequence[RunResult], placing: Placing, kernels: CachedKernels, store: Store
) -> tuple[Traced, str]:
    """A kernel's runs with its code as placed, or why that is not known."""
    runs = tuple(done)
    kernel = kernels.find(one)
    if kernel is None:
        return Traced(runs), "the kernel is no longer in the cache"
    recorded = next((d for d in done if {TRACES, SYMBOLS} <= d.run.attachments.keys()), None)
    if recorded is None:
        return Traced(runs), "none of its runs was traced"
    try:
        with interruptible():
            placed = placed_run(kernel, recorded, store)
    except KdeltaError as error:
        return Traced(runs), error.message
    return Traced(runs, _only(placed, placing.regions)), ""


def _only(placed: PlacedKernel, regions: Sequence[str]) -> PlacedKernel:
    """The same with the traces of these regions."""
    kept = [at for at, trace in enumerate(placed.traces) if trace.region in regions]
    return msgspec.structs.replace(
        placed,
        traces=tuple(placed.traces[at] for at in kept),
        places=tuple(placed.places[at] for at in kept),
    )


def _step(effect: PlacementEffect) -> CycleStep:
    verdict = effect.verdict
    reason = cycle_reason(verdict) if verdict.reason else ""
    return CycleStep(verdict.word, effect.relative, effect.as_linked.relative, reason)
