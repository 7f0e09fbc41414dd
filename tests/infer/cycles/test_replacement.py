# SPDX-License-Identifier: GPL-2.0-or-later
"""Layouts under two replacement policies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.cycles.ensembles import Ensemble, Floats, RegionCost
from kdelta.infer.cycles.sensitivity import rank_correlation, replaced

few = st.integers(0, 4)


def cost(draws: Floats, shipped: float) -> RegionCost:
    numbers = tuple(range(len(draws)))
    return RegionCost(
        {}, Ensemble(numbers, {"l1i": draws, "itlb": draws}), {"l1i": shipped, "itlb": 1}
    )


def naive_correlation(pairs: list[tuple[int, int]]) -> float | None:
    """By the ranks, each the mean of its places in all orders of equal values."""
    ranks = []
    for side in (0, 1):
        values = [pair[side] for pair in pairs]
        ranks.append(
            [sum(other < one for other in values) + (values.count(one) + 1) / 2 for one in values]
        )
    means = [sum(rank) / len(rank) for rank in ranks]
    apart = [[one - mean for one in rank] for rank, mean in zip(ranks, means, strict=True)]
    squares = [sum(one * one for one in side) for side in apart]
    if not all(squares):
        return None
    product = sum(a * b for a, b in zip(*apart, strict=True))
    return float(product / (squares[0] * squares[1]) ** 0.5)


@given(st.lists(st.tuples(few, few), min_size=1, max_size=12))
def test_the_correlation_is_that_of_ranks(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    expected = naive_correlation(pairs)
    found = rank_correlation(one, other)
    assert found == (None if expected is None else pytest.approx(expected))
    assert rank_correlation(np.zeros(0), np.zeros(0)) is None


def test_what_depends_on_the_policy() -> None:
    """The same order of layouts under both, however many misses; and the very opposite one."""
    draws = np.array([5.0, 1.0, 3.0, 9.0])
    own, lru = cost(draws * draws, 4.0), cost(draws, 4.0)
    found = replaced(own, lru, {"l1i": "random", "btb": "random"})
    assert list(found) == ["l1i"]
    one = found["l1i"]
    assert (one.policy, one.correlation, one.hangs) == ("random", 1.0, False)
    assert (one.own.most, one.lru.most, one.own.as_linked) == (81, 9, 4)
    assert (one.own.percentile, one.lru.percentile) == (25, 50)
    assert replaced(own, cost(-draws, 0.0), {"l1i": "random"})["l1i"].hangs
    with pytest.raises(ValueError, match="not asked about the same layouts"):
        replaced(own, cost(draws[:3], 4.0), {"l1i": "random"})
