# SPDX-License-Identifier: GPL-2.0-or-later
"""How the JSON of what several kinds of reports have differs from its types."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import Bounds, Draws, PlacementEffect
from kdelta.infer.effects.effects import Verdict
from kdelta.infer.effects.estimate import MEAN, Estimate, Quantity
from kdelta.report.cut import CutRegion
from kdelta.report.json import Shape
from kdelta.report.model import KernelRuns, Mismatch, ReportedCPU, ReportedRun
from kdelta.store.model import Run, Study


@runtime_checkable
class _HasUnlike(Protocol):
    @property
    def unlike(self) -> Sequence[Mismatch]: ...


class HasEffects(Protocol):
    """Something that has effects by region."""

    @property
    def effects(self) -> Mapping[str, Estimate]: ...


def by_region(one: HasEffects) -> dict[str, Estimate]:
    """Return its effects without their mean."""
    return without_mean(one.effects)


def without_mean(effects: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the effects of regions, without the mean over them."""
    return {name: effect for name, effect in effects.items() if name != MEAN}


BY_REGION = Shape(adds={"effects": by_region})
"""Effects by region are written without their mean, which has an entry of its own."""


def _unlike(effect: PlacementEffect, report: _HasUnlike) -> tuple[int, ...]:
    """Indexes of what its path depends on that was not as on the CPU."""
    return tuple(index for index, one in enumerate(report.unlike) if effect.region in one.regions)


def _cut_word(one: CutRegion) -> str:
    """Its verdict, where it has no trace and so there is no effect; else empty."""
    return one.verdict.word.value if one.verdict else ""


def _cut_reason(one: CutRegion) -> str:
    return one.verdict.reason if one.verdict else ""


SHAPES: dict[type, Shape] = {
    Bounds: Shape(unbounded=("low", "high")),
    CutRegion: Shape(
        adds={"word": _cut_word, "reason": _cut_reason}, omits=("verdict",), later=("gib",)
    ),
    Draws: Shape(omits=("draws",)),
    Estimate: Shape(adds={"exact": "exact"}, omits=("variance",)),
    Interval: Shape(unbounded=("low", "high")),
    PlacementEffect: Shape(
        adds={"unlike": _unlike}, sparse=("lru", "data", "data_cycles", "unpriced")
    ),
    Quantity: Shape(adds={"effect": "effect", "percent": "percent"}),
    ReportedCPU: Shape(omits=("kinds", "clock_mhz")),
    ReportedRun: Shape(flat=("run",)),
    Run: Shape(
        adds={"status": "word"},
        omits=("key", "alive", "counts_blob", "console_blob", "attachments"),
        sparse=("command",),
    ),
    Verdict: Shape(later=("runs_needed",), sparse=("runs_needed",)),
    Study: Shape(later=("operations", "answer")),
    KernelRuns: Shape(later=("controllers", "notes")),
    Mismatch: Shape(later=("kernels",)),
}
"""What reports of several kinds have."""
