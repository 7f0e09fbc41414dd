# SPDX-License-Identifier: GPL-2.0-or-later
"""What a front end does has prices, and calibrated ones decide verdicts."""

from fractions import Fraction

import numpy as np
import pytest

from kdelta.counts.model import Cost
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.host import calibrated
from kdelta.cpus.model import CPU, Calibration, MissKind, Price
from kdelta.infer.cycles.cycles import model_cycles
from kdelta.infer.cycles.ensembles import Ensemble, Interval, RegionCost, box
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import CodeChange, ComparedRegion, PlacementEffect
from kdelta.infer.cycles.prices import INSNS, priced_kinds, prices_of
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate

LAYOUTS = 32
FOUND = Calibration("2026-11-22", "A core", 12, 30, (0.8, 0.9), "kdelta")


def timed(**cycles: tuple[float, float]) -> CPU:
    """A core with these prices measured; an underscore stands for a hyphen."""
    misses: dict[MissKind, Price] = {}
    for kind, ends in cycles.items():
        misses[kind.replace("_", "-")] = Price(*ends)  # type: ignore[index]
    return calibrated(
        load_cpu("zen4"), name="t", title="t", calibration=FOUND, misses=misses, how="by hand"
    )


def cost(insns: float, seed: int, **misses: float) -> RegionCost:
    """So many instructions and misses an iteration, a little different in each layout."""
    jitter = np.random.default_rng(seed).uniform(-1, 1, LAYOUTS)
    rows = {kind.replace("_", "-"): mean + jitter for kind, mean in misses.items()}
    whole = Fraction(insns)
    return RegionCost(
        executed={INSNS: Estimate(whole, whole, whole, 2)},
        ensemble=Ensemble(tuple(range(LAYOUTS)), rows),
        shipped={kind: float(row[0]) for kind, row in rows.items()},
    )


def effect(cpu: CPU, base: RegionCost, other: RegionCost) -> PlacementEffect:
    """Of one region whose code differs."""
    region = ComparedRegion("r", base, other, CodeChange.DIFFERENT)
    return placement_effects([region], prices_of(cpu))[0]


def test_what_is_left_of_a_latency_stands_for_the_miss() -> None:
    prices = prices_of(timed(l1i_exposed=(0.5, 1)))
    assert priced_kinds(prices, ("l1i", "itlb", "l1i-exposed")) == ("itlb", "l1i-exposed")
    assert priced_kinds(prices, ("l1i", "itlb")) == ("l1i", "itlb")  # no front end was replayed
    assert box(prices, ("l1i", "l1i-exposed")).kinds == ("l1i-exposed",)
    plain = prices_of(load_cpu("zen4"))
    assert priced_kinds(plain, ("l1i", "l1i-exposed")) == ("l1i",)


def test_a_missing_line_is_not_paid_twice() -> None:
    cpu = timed(l1i_exposed=(0.5, 1))
    both = model_cycles(Cost(insns=100), {"l1i": 40, "l1i-exposed": 10}, cpu)
    assert both == Interval(50 + 5, 50 + 10)
    assert model_cycles(Cost(insns=100), {"l1i": 40}, cpu) == Interval(50, 50 + 14 * 40)


def test_calibrated_prices_decide() -> None:
    base = cost(1000, 1, l1i=50, conditional=20, l1i_exposed=10)
    other = cost(1000, 2, l1i=50, conditional=40, l1i_exposed=10)
    guessed = effect(load_cpu("zen4"), base, other)
    assert guessed.verdict.word is Word.UNRESOLVED
    assert "never calibrated for this CPU: l1i, conditional" in guessed.verdict.reason
    known = effect(timed(conditional=(15, 18), l1i_exposed=(0.5, 1)), base, other)
    assert known.verdict.word is Word.SLOWER
    assert known.guessed == ()
    assert 250 < known.cycles.low < 300
    assert 360 < known.cycles.high < 410
    assert set(known.misses) == {"l1i", "conditional", "l1i-exposed"}


def test_a_price_that_was_measured_as_nothing_hides_misses() -> None:
    base = cost(1000, 1, l1i=50, l1i_exposed=2)
    other = cost(1000, 2, l1i=150, l1i_exposed=2)
    assert effect(load_cpu("zen4"), base, other).verdict.word is Word.UNRESOLVED
    assert effect(timed(l1i_exposed=(0, 0.2)), base, other).verdict.word is Word.SAME


@pytest.mark.parametrize("kind", ["conditional", "btb-first", "l1i-exposed"])
def test_swapping_the_kernels_answers_the_other_way_round(kind: str) -> None:
    cpu = timed(conditional=(15, 18), btb_first=(1, 2), l1i_exposed=(0.5, 1))
    sides = [cost(1000, seed, **{kind: mean}) for seed, mean in ((1, 20), (2, 400))]
    assert effect(cpu, *sides).verdict.word is Word.SLOWER
    assert effect(cpu, *reversed(sides)).verdict.word is Word.FASTER
