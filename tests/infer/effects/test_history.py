# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps from kernel to kernel: real, placement, or open; and all operations together."""

import math

import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.chance import ENOUGH
from kdelta.infer.effects.effects import Effects, Word, compare_runs
from kdelta.infer.effects.history import LEFT_OPEN, overall_change, step_effects
from tests.infer.timed_runs import TIMER, steady
from tests.synthetic import own, region, run


def costs(**operations: int) -> list[RunCounts]:
    """Three runs that agree."""
    regions = [
        region(name.replace("_", "-"), {own("f"): cost}) for name, cost in operations.items()
    ]
    return [run(*regions)] * 3


def words(effects: Effects) -> dict[str, Word]:
    return {one.name: one.verdict.word for one in effects.operations}


def test_a_step_that_nothing_moves_is_real() -> None:
    found = step_effects(costs(a=1000, b=500, c=70), costs(a=1100, b=400, c=70))
    assert words(found) == {"a": Word.SLOWER, "b": Word.FASTER, "c": Word.SAME}


def test_the_same_code_is_placement_only() -> None:
    found = step_effects(costs(a=1000, b=500), costs(a=1100, b=400), relinked=("a",))
    assert words(found) == {"a": Word.PLACEMENT_ONLY, "b": Word.FASTER}


BASE = [steady(1000)] * 3
CHANCE = [steady(1000, 953 + by, TIMER) for by in range(3)]


def test_what_chance_may_have_made_is_open() -> None:
    assert compare_runs(BASE, CHANCE).operations[0].verdict.word is Word.SLOWER
    (found,) = step_effects(BASE, CHANCE).operations
    assert (found.verdict.word, found.verdict.reason) == (Word.UNRESOLVED, LEFT_OPEN)


def test_runs_of_it_alone_decide() -> None:
    """They are asked for nothing else, and only where they are needed."""
    asked = []

    def alone(operation: str) -> tuple[list[RunCounts], list[RunCounts]]:
        asked.append(operation)
        return [steady(1000)] * ENOUGH, [steady(1001)] * ENOUGH

    (found,) = step_effects(BASE, CHANCE, alone).operations
    assert found.verdict.word is Word.SLOWER
    assert found.costs is not None
    assert found.costs.insns.effect.value == 1
    assert asked == ["op"]
    step_effects(BASE, [steady(1200)] * 3, alone)
    assert asked == ["op"]


@pytest.mark.parametrize("runs", [0, 2])
def test_too_few_runs_alone_decide_nothing(runs: int) -> None:
    sides = [steady(1000)] * runs, [steady(1000, 953 + by, TIMER) for by in range(runs)]
    (found,) = step_effects(BASE, CHANCE, lambda _: sides).operations
    assert found.verdict.word is Word.UNRESOLVED


def test_all_operations_together() -> None:
    effects = compare_runs(costs(a=1000, b=500), costs(a=2000, b=500))
    found = overall_change(effects)
    assert found is not None
    assert found.value == pytest.approx(math.sqrt(2))
    assert found.exact


def test_operations_weigh_the_same_however_long_they_are() -> None:
    one = overall_change(compare_runs(costs(a=1000000, b=10), costs(a=1000000, b=20)))
    other = overall_change(compare_runs(costs(a=1000000, b=10), costs(a=2000000, b=10)))
    assert one is not None
    assert other is not None
    assert one.value == pytest.approx(other.value)


def test_the_ends_are_those_of_the_intervals() -> None:
    base = [run(region("a", {own("f"): 1000 + by})) for by in (0, 10, 20)]
    other = [run(region("a", {own("f"): 1100 + by})) for by in (0, 10, 20)]
    effects = compare_runs(base, other)
    found = overall_change(effects)
    costs = effects.operations[0].costs
    assert found is not None
    assert costs is not None
    base_value = costs.insns.base.value
    assert found.low == pytest.approx(float(1 + costs.insns.effect.low / base_value))
    assert found.high == pytest.approx(float(1 + costs.insns.effect.high / base_value))
    assert not found.exact


def test_nothing_moved_is_exactly_one() -> None:
    many = {f"op{number}": 1000 + 37 * number for number in range(40)}
    found = overall_change(compare_runs(costs(**many), costs(**many)))
    assert found is not None
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_what_costs_nothing_is_left_out() -> None:
    found = overall_change(compare_runs(costs(a=0, b=500), costs(a=5, b=1000)))
    assert found is not None
    assert found.value == pytest.approx(2)
    assert overall_change(compare_runs(costs(a=0), costs(a=5))) is None
    assert overall_change(compare_runs(costs(a=1), costs(b=1))) is None


def test_an_interval_that_reaches_below_nothing() -> None:
    base = [run(region("a", {own("f"): by})) for by in (100, 5000, 90000)]
    found = overall_change(compare_runs(base, base[::-1]))
    assert found is not None
    assert found.low == 0.0
