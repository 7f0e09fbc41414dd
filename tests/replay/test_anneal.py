# SPDX-License-Identifier: GPL-2.0-or-later
"""The search, with judges that know the answer."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.counts.arrays import I64
from kdelta.replay.anneal import OrderCosts, anneal


class Sorted:
    """The further each unit is from its place, the more an order costs; it is to blame for it."""

    def __init__(self, best: I64) -> None:
        self.place = np.argsort(best)
        self.judged: list[list[int]] = []

    def __call__(self, orders: Sequence[I64]) -> OrderCosts:
        self.judged += [order.tolist() for order in orders]
        blame = np.stack([np.abs(np.argsort(order) - self.place) for order in orders])
        return OrderCosts(blame.sum(axis=1).astype(np.float64), blame.astype(np.float64))


def test_it_finds_what_is_to_be_found() -> None:
    best = np.random.default_rng(3).permutation(12)
    judge = Sorted(best)
    found = anneal(judge, np.arange(12), np.ones(12, dtype=np.int64), seed=1, evaluations=5000)
    assert found.order.tolist() == best.tolist()
    assert found.cost == 0
    assert len(judge.judged) == found.evaluations < 5000


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 200), st.integers(0, 5))
def test_an_order_stays_an_order_and_never_gets_worse(n: int, evaluations: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    judge = Sorted(rng.permutation(n))
    start, sizes = rng.permutation(n), rng.integers(1, 5, n)
    found = anneal(judge, start, sizes, seed=seed, evaluations=evaluations)
    assert all(sorted(order) == list(range(n)) for order in judge.judged)
    assert judge.judged[0] == start.tolist()
    assert found.evaluations == len(judge.judged) <= evaluations
    costs = Sorted(np.argsort(judge.place))([np.array(order) for order in judge.judged]).costs
    assert found.cost == Sorted(np.argsort(judge.place))([found.order]).costs[0] == min(costs)


def test_the_seed_decides_and_nothing_else() -> None:
    best = np.random.default_rng(3).permutation(40)
    runs = [Sorted(best) for _ in range(3)]
    for judge, seed in zip(runs, (7, 7, 8), strict=True):
        anneal(judge, np.arange(40), np.ones(40, dtype=np.int64), seed=seed, evaluations=100)
    assert runs[0].judged == runs[1].judged != runs[2].judged


def test_the_best_is_kept_when_the_search_goes_on_to_worse() -> None:
    judged: list[list[int]] = []

    def judge(orders: Sequence[I64]) -> OrderCosts:
        costs = [1000.0 if not judged else 999.0 if len(judged) < 17 else 999.001] * len(orders)
        judged.extend(order.tolist() for order in orders)
        return OrderCosts(np.array(costs), np.zeros((len(orders), 9)))

    told: list[tuple[int, float]] = []

    def watch(judged: int, cost: float) -> None:
        told.append((judged, cost))

    sizes = np.ones(9, dtype=np.int64)
    found = anneal(judge, np.arange(9), sizes, seed=1, evaluations=40, watch=watch)
    assert told == [(17, 999), (33, 999), (40, 999)]
    assert (found.cost, found.order.tolist()) == (999, judged[1])


@pytest.mark.parametrize("blamed", [0, 39])
def test_who_is_to_blame_is_moved(blamed: int) -> None:
    moved: list[bool] = []

    def judge(orders: Sequence[I64]) -> OrderCosts:
        # Nothing is ever better than the start, so that all neighbours are its own.
        blame = np.zeros((len(orders), 40))
        blame[:, blamed] = 1
        moved.extend(order[20] != start[20] for order in orders)
        return OrderCosts(
            np.array([1.0 if np.array_equal(o, start) else 99.0 for o in orders]), blame
        )

    start = np.arange(40)
    start[[20, blamed]] = start[[blamed, 20]]
    anneal(judge, start, np.arange(40), seed=1, evaluations=400)
    assert sum(moved) > 200
