# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of one kernel, as an estimate over its layouts."""

from fractions import Fraction

import numpy as np
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.infer.cycles.ensembles import Ensemble, RegionCost, mean_cycles
from kdelta.infer.cycles.prices import prices_of
from kdelta.infer.effects.estimate import Estimate, effect_between

PRICES = prices_of(load_cpu("generic-x86-64"))
MIDDLE = sum((PRICES.misses["l1i"].hidden, PRICES.misses["l1i"].exposed)) / 2
INSNS = (PRICES.executed["insns"].low + PRICES.executed["insns"].high) / 2


def cost(insns: int, misses: "np.typing.ArrayLike", spread: int = 0) -> RegionCost:
    draws = np.asarray(misses, dtype=np.float64)
    path = Estimate(Fraction(insns), Fraction(insns - spread), Fraction(insns + spread), 3)
    return RegionCost(
        executed={"insns": path},
        ensemble=Ensemble(tuple(range(len(draws))), {"l1i": draws}),
        shipped={"l1i": 0.0},
    )


def test_the_middle_of_the_prices() -> None:
    found = mean_cycles(cost(1000, [10.0, 10.0, 10.0]), PRICES)
    assert float(found.value) == pytest.approx(1000 * INSNS + 10 * MIDDLE)
    assert found.low == found.value == found.high


def test_equal_kernels_do_not_part_and_others_do() -> None:
    random = np.random.default_rng(1)
    ends = [mean_cycles(cost(1000, random.normal(50, 9, 64)), PRICES) for _ in range(200)]
    pairs = [effect_between(*pair) for pair in zip(ends[::2], ends[1::2], strict=True)]
    assert all(one.low <= 0 <= one.high for one in pairs)
    slower = mean_cycles(cost(1300, random.normal(50, 9, 64)), PRICES)
    assert effect_between(ends[0], slower).low > 0


def test_the_spread_of_the_path_counts() -> None:
    exact, rough = (mean_cycles(cost(1000, [10.0, 10.0], reach), PRICES) for reach in (0, 30))
    assert rough.half_width - exact.half_width == pytest.approx(30 * INSNS)


def test_one_layout_is_no_spread() -> None:
    with pytest.raises(ValueError, match="1 layouts"):
        mean_cycles(cost(1000, [10.0]), PRICES)
