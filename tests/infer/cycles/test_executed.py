# SPDX-License-Identifier: GPL-2.0-or-later
"""What regions execute an iteration, over runs."""

from kdelta.counts.model import Cost
from kdelta.infer.cycles.cycles import executed_estimates
from tests.synthetic import interrupts, other, own, region, run


def test_own_work_alone_an_iteration() -> None:
    one = run(
        region("loop", {own("f"): Cost(40, string_bytes=80), interrupts("t"): 7, other("k"): 9}, 10)
    )
    found = executed_estimates([one])["loop"]
    assert {name: amount.value for name, amount in found.items()} == {
        "insns": 4,
        "string_bytes": 8,
    }


def test_what_one_run_alone_does_is_zero_in_the_others() -> None:
    one = run(region("loop", {own("f"): Cost(40)}, 10))
    more = run(region("loop", {own("f"): Cost(60, specials={"lock": 5})}, 10))
    found = executed_estimates([one, more])["loop"]
    assert [found["insns"].low, found["insns"].value, found["insns"].high] == [4, 5, 6]
    assert [float(found["lock"].low), float(found["lock"].high)] == [0, 0.5]


def test_a_region_that_some_runs_lack_is_that_of_the_others() -> None:
    one = run(region("loop", {own("f"): 40}, 10), region("rare", {own("g"): 10}, 10))
    both = executed_estimates([one, run(region("loop", {own("f"): 40}, 10))])
    assert list(both) == ["loop", "rare"]
    assert (both["loop"]["insns"].n, both["rare"]["insns"].n) == (2, 1)
