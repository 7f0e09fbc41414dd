# SPDX-License-Identifier: GPL-2.0-or-later
"""The example's comparison with model cycles, every verdict among them."""

import functools
from collections.abc import Iterable

import msgspec
import numpy as np

from kdelta.cpus import load_cpu
from kdelta.infer.cycles.ensembles import Ensemble, RegionCost
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import (
    CodeChange,
    ComparedRegion,
    PlacementEffect,
)
from kdelta.infer.cycles.prices import prices_of
from kdelta.infer.effects.costs import Costs
from kdelta.infer.effects.effects import Effects, Word
from kdelta.infer.effects.estimate import Estimate
from kdelta.lab.reports import reported_cpu
from kdelta.measures.cycles.cut import CutRegion, cut_note, cut_reason
from kdelta.report.measured import (
    MODEL_CYCLES,
    Effect,
    MeasuredEffects,
    of_placement,
)
from kdelta.report.model import Mismatch
from kdelta.studies.compare.model import CompareReport
from tests.report.example import report

LAYOUTS = 16
MISSES: dict[str, tuple[tuple[float, float], tuple[float, float], CodeChange]] = {
    "getppid": ((0, 0), (0, 0), CodeChange.DIFFERENT),
    "open-close": ((40, 4), (30, 4), CodeChange.DIFFERENT),
    "clock_gettime-vdso": ((0, 0), (0, 0), CodeChange.DIFFERENT),
    "mmap-touch-4m": ((1.5e6, 1e4), (1.9e6, 1e4), CodeChange.DIFFERENT),
    "page-fault": ((12, 6), (14, 6), CodeChange.DIFFERENT),
    "uname": ((5, 2), (5, 2), CodeChange.RELINKED),
    "a-name-that-is-longer-than-its-column": ((0, 0), (0.5, 0.1), CodeChange.DIFFERENT),
}
"""Region -> mean and reach of misses of lines under each kernel, and what is known of its code."""


PARTS = {"l1i": 1.0, "itlb": 0.0, "l2": 0.25, "l2_code": 0.0625, "l2_data": 0.1875}
"""What is missed of a kind where a line of code is missed in the first level."""


CUT = CutRegion("read-zero-64k", 1.3)


def _ensemble(mean: float, reach: float, kinds: tuple[str, ...], seed: int) -> RegionCost:
    """A cost without anything executed; the layout as linked is worse than most."""
    draws = np.random.default_rng(seed).uniform(mean - reach, mean + reach, LAYOUTS)
    return RegionCost(
        executed={},
        ensemble=Ensemble(tuple(range(LAYOUTS)), {kind: PARTS[kind] * draws for kind in kinds}),
        shipped={kind: PARTS[kind] * (mean + 0.9 * reach) for kind in kinds},
    )


def cycle_effects(
    effects: Effects, cpu_name: str = "zen3", *, data: bool = False
) -> tuple[PlacementEffect, ...]:
    """The effects on model cycles, from the path's and from misses that are drawn here."""
    kinds = tuple(PARTS) if data else ("l1i", "itlb")
    prices = prices_of(load_cpu(cpu_name))
    regions = []
    for number, one in enumerate(effects.operations):
        if one.costs is None or one.name not in MISSES:
            continue
        base, other, code = MISSES[one.name]
        sides = [
            msgspec.structs.replace(_ensemble(*misses, kinds, seed), executed=executed)
            for misses, executed, seed in zip(
                (base, other), _executed(one.costs), (number, 100 + number), strict=True
            )
        ]
        if code is CodeChange.RELINKED:
            low = {**sides[1].shipped, "l1i": other[0] - 0.9 * other[1]}
            sides[1] = msgspec.structs.replace(sides[1], shipped=low)
        regions.append(ComparedRegion(one.name, sides[0], sides[1], code))
    return placement_effects(regions, prices)


def _executed(costs: Costs) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """What the base and the other kernel execute an iteration, by the names of the prices."""
    amounts = {"insns": costs.insns, "string_bytes": costs.string_bytes, **costs.specials}
    return (
        {name: quantity.base for name, quantity in amounts.items()},
        {name: quantity.other for name, quantity in amounts.items()},
    )


@functools.cache
def with_cycles(cpu_name: str = "zen3", *, data: bool = False) -> CompareReport:
    """The example's report on a CPU."""
    plain = report()
    cpu = load_cpu(cpu_name)
    found = MeasuredEffects(
        MODEL_CYCLES,
        MODEL_CYCLES,
        (Effect(CUT.name, Word.UNRESOLVED, reason=cut_reason(CUT.gib)),),
        f" on {cpu_name}",
        (cut_note(CUT),),
    )
    mismatches = (
        Mismatch(
            "strings moved by the byte",
            "strings moved by the byte: by eight bytes (no fsrm); QEMU 7.2's TCG has no fsrm",
            ("base", "other"),
            ("open-close", "page-fault"),
        ),
        Mismatch(
            "retpolines", "retpolines: others (spectre_v2: IBRS)", ("other",), ("open-close",)
        ),
        Mismatch(
            "task state by XSAVES",
            "task state by XSAVES: by XSAVEOPT (no xsaves)",
            ("base",),
            (),
        ),
    )
    other = msgspec.structs.replace(plain.others[0], measured=(found,), mismatches=mismatches)
    plain = msgspec.structs.replace(plain, others=(other,), cpu=reported_cpu(cpu))
    return with_effects(plain, cycle_effects(other.effects, cpu_name, data=data))


def cycles_of(report: CompareReport) -> MeasuredEffects:
    """The model cycles of a report with one other kernel."""
    (found,) = (one for one in report.others[0].measured if one.measure == MODEL_CYCLES)
    return found


def with_effects(report: CompareReport, effects: Iterable[PlacementEffect]) -> CompareReport:
    """The report with these in place of its effects on model cycles."""
    cycles = cycles_of(report)
    placed = [of_placement(one, cycles.where.removeprefix(" on ")) for one in effects]
    cut = (one for one in cycles.effects if not one.placement)
    found = msgspec.structs.replace(cycles, effects=(*placed, *cut))
    (other,) = report.others
    others = (msgspec.structs.replace(other, measured=(found, *other.measured[1:])),)
    return msgspec.structs.replace(report, others=others)
