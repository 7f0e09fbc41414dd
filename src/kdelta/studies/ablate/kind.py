# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate` as a kind of study: its report, question and JSON."""

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.estimate import Adds, Estimate
from kdelta.report import words
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.report.shapes import BY_REGION, by_region, without_mean
from kdelta.report.shortened import explained
from kdelta.studies.ablate.document import document
from kdelta.studies.ablate.model import (
    AblatedGroup,
    AblationReport,
    GroupCycles,
    Interaction,
    SwitchShare,
)
from kdelta.studies.search.means import after, before, mean, means, seen
from kdelta.studies.search.model import AblatedRegion, Proof


def _question(one: AblationReport) -> str:
    first, last = one.names
    options = f"{one.options} options" if one.options else "options"
    return (
        f"Which of the {options} that differ between {first} and {last} make {one.tree} faster "
        f"or slower under {words.listed(one.workloads)}?"
    )


def _adds_up(region: AblatedRegion) -> bool:
    """Whether `sums` is "adds up"."""
    return region.adds is Adds.ADDS_UP


def _cycles(one: AblationReport) -> tuple[PlacementEffect, ...]:
    """The effects of A to B on model cycles."""
    return tuple(one.cycles.values())


def _unit_cycles(one: GroupCycles) -> tuple[PlacementEffect, ...]:
    return tuple(one.effects.values())


def _differing(proof: Proof) -> dict[str, Estimate]:
    return without_mean(proof.differing)


_SHAPES: dict[type, Shape] = {
    AblatedRegion: Shape(
        adds={"adds_up": _adds_up, "sums": "adds", "varies": "varies", "steady": "steady"},
        omits=("widest",),
        later=("sums", "varies", "steady"),
    ),
    AblatedGroup: Shape(
        adds={"effects": by_region, "mean": mean, "seen": seen},
        later=("cycles", "mean", "seen"),
    ),
    AblationReport: Shape(
        adds={"before": before, "after": after, "cycles": _cycles, "means": means},
        omits=("ends", "mean"),
        later=("cpu", "cycles", "unlike", "means"),
    ),
    Interaction: BY_REGION,
    Proof: Shape(adds={"differing": _differing}),
    SwitchShare: BY_REGION,
    GroupCycles: Shape(adds={"effects": _unit_cycles}),
}


KIND = Kind(
    report=AblationReport,
    json="kdelta.ablate/1",
    document=document,
    printed=explained(document, "regions", "folds", 8),
    question=_question,
    shapes=_SHAPES,
)
