# SPDX-License-Identifier: GPL-2.0-or-later
"""Where two runs part that should have been the same."""

from kdelta.counts.model import Cost, FunctionCost, Iterations, RegionCounts, RunCounts
from kdelta.infer.effects.same import CUT_MOST, partings
from tests.synthetic import own, region, run, user


def test_equal_counts_do_not_part() -> None:
    one = run(region("op", {own("f"): 10, user("main"): 3}))
    two = run(region("op", {user("main"): 3, own("f"): 10}), warnings=("slow host",))
    assert list(partings(one, two)) == []


def test_other_regions() -> None:
    assert list(partings(run(region("a", {})), run())) == ["regions: a and none"]


def test_the_first_iteration_and_each_function_that_differ() -> None:
    def one(iterations: tuple[int, ...], cost: Cost, ticks: int) -> RegionCounts:
        nothing = (0,) * len(iterations)
        rows = Iterations(nothing, iterations, nothing, nothing)
        return RegionCounts("op", rows, (FunctionCost("own", "kernel", "f", cost),), ticks)

    first = one((5, 5, 5), Cost(15, loads=2), 15)
    second = one((5, 6, 7), Cost(18, loads=2, specials={"lock": 1}), 18)
    assert list(partings(run(first), run(second))) == [
        "op: iteration 1: own kernel: 5 and 6 instructions",
        "op: f (kernel, own): insns 15 and 18, specials {} and {'lock': 1}",
        "op: 15 and 18 clock ticks",
    ]
    fewer = one((5, 5), Cost(15, loads=2), 15)
    assert list(partings(run(first), run(fewer))) == ["op: 3 and 2 iterations"]


def test_a_block_that_is_cut_elsewhere_is_no_difference() -> None:
    labels = own("entry_SYSCALL_64"), own("entry_SYSCALL_64_after_hwframe")

    def counted(*insns: int, to_user: int = 0) -> RunCounts:
        costs = dict(zip(labels, insns, strict=True)) | {user("main"): 9 + to_user}
        return run(region("op", costs))

    whole = counted(500, 100)
    assert list(partings(whole, counted(486, 114))) == []
    assert list(partings(whole, counted(486, 100)))  # less altogether
    assert list(partings(whole, counted(486, 100, to_user=14)))  # to another program
    assert list(partings(whole, counted(500 - CUT_MOST - 1, 100 + CUT_MOST + 1)))
