# SPDX-License-Identifier: GPL-2.0-or-later
"""A search from several starts: which is gone on with, and how much it may judge."""

import numpy as np
import pytest

from kdelta.replay.anneal import anneal
from kdelta.replay.search import Best, CaseJudge, Start, WeightedRegion, search
from kdelta.replay.units import Units, units_of
from tests.replay.kernels import cpu_of, lines, placed, region

CPU = cpu_of(8, 1)
NAMES = [f"f{index}" for index in range(12)]
CALLS = [NAMES[7 * at % 12] for at in range(24)] + [NAMES[5 * at % 12] for at in range(9)]


def made() -> tuple[Units, list[WeightedRegion]]:
    rows = lines(**{name: 1 + at % 3 for at, name in enumerate(NAMES)})
    trace = region(rows, CALLS, times=3)
    return units_of(placed(rows, trace)), [WeightedRegion(trace)]


def found(
    starts: list[Start], cases: list[WeightedRegion], evaluations: int
) -> tuple[Best, list[int]]:
    told: list[int] = []

    def watch(judged: int, _: float) -> None:
        told.append(judged)

    best = search(
        starts,
        cases,
        CPU,
        {"l1i": CPU.l1i},
        seed=4,
        evaluations=evaluations,
        watch=watch,
    )
    return best, told


def test_a_single_start_is_annealed_at_once() -> None:
    units, cases = made()
    order = np.arange(12)
    best, told = found([Start(units, order)], cases, 80)
    judge = CaseJudge(cases, units, CPU, {"l1i": CPU.l1i})
    plain = anneal(judge.judge, order, units.bytes, seed=4, evaluations=80)
    assert best.order.tolist() == plain.order.tolist()
    assert (best.evaluations, told[-1]) == (80, 80)


def test_the_cheaper_start_is_gone_on_with() -> None:
    units, cases = made()
    judge = CaseJudge(cases, units, CPU, {"l1i": CPU.l1i})
    orders = [np.random.default_rng(seed).permutation(12) for seed in range(40)]
    by_cost = np.argsort(judge.judge(orders).costs)
    good, bad = orders[by_cost[0]], orders[by_cost[-1]]
    best = [
        found([Start(units, order) for order in pair], cases, 8)[0]
        for pair in ((good, bad), (bad, good))
    ]
    assert best[0].order.tolist() == best[1].order.tolist()
    assert judge.judge([best[0].order]).costs[0] <= judge.judge([good]).costs[0]
    first = anneal(judge.judge, good, units.bytes, seed=4, evaluations=2)
    then = anneal(judge.judge, first.order, units.bytes, seed=4, evaluations=4)
    assert best[0].order.tolist() == then.order.tolist()


@pytest.mark.parametrize("evaluations", [8, 33, 80])
def test_no_more_orders_are_judged_than_asked_for(evaluations: int) -> None:
    units, cases = made()
    starts = [Start(units, np.arange(12)), Start(units, np.arange(12)[::-1].copy())]
    best, told = found(starts, cases, evaluations)
    assert best.evaluations == told[-1] <= evaluations
    assert told == sorted(told)
    again, _ = found(starts, cases, evaluations)
    assert best.order.tolist() == again.order.tolist()


def test_watch_is_told_the_best_cost() -> None:
    units, cases = made()
    told: list[float] = []

    def watch(_: int, cost: float) -> None:
        told.append(cost)

    starts = [Start(units, np.arange(12)), Start(units, np.arange(12)[::-1].copy())]
    best = search(
        starts,
        cases,
        CPU,
        {"l1i": CPU.l1i},
        seed=4,
        evaluations=80,
        watch=watch,
    )
    judge = CaseJudge(cases, units, CPU, {"l1i": CPU.l1i})
    assert told == sorted(told, reverse=True)
    assert told[-1] == judge.judge([best.order]).costs[0]
