# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles: the formula, by example and by its properties."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost
from kdelta.cpus import CPU, list_cpus, load_cpu
from kdelta.cpus.model import MissKind, MissPrice, Price
from kdelta.infer.cycles import cycles
from kdelta.infer.cycles.cycles import executed_amounts, model_cycles
from kdelta.infer.cycles.ensembles import Interval
from kdelta.spec.errors import LabError

CORE = msgspec.structs.replace(
    load_cpu("zen2"),
    cycles_per_insn=0.5,
    string_bytes_per_cycle=Price(8, 32),
    specials={"wrmsr": Price(50, 100), "lock": Price(4, 20)},
    misses={"l1i": MissPrice(2, 12, False), "itlb": MissPrice(0, 8, False)},
)

COUNTS = st.integers(min_value=-(10**9), max_value=10**9)
MISSES: st.SearchStrategy[dict[MissKind, float]] = st.fixed_dictionaries(
    {}, optional={"l1i": COUNTS.map(float), "itlb": COUNTS.map(float)}
)
COSTS = st.builds(
    Cost,
    insns=COUNTS,
    string_iterations=COUNTS,
    loads=COUNTS,
    stores=COUNTS,
    string_bytes=COUNTS,
    specials=st.dictionaries(st.sampled_from(["wrmsr", "lock", "hlt"]), COUNTS),
)


def close(interval: Interval) -> object:
    """Equal to it but for rounding."""
    return pytest.approx((interval.low, interval.high), rel=1e-9, abs=1e-3)


def ends(interval: Interval) -> tuple[float, float]:
    """Both ends."""
    return interval.low, interval.high


def test_a_special_instruction_costs_by_its_register_where_that_decides_else_as_its_others() -> (
    None
):
    specials = {"wrmsr PRED_CMD (IBPB)": 1, "wrmsr SPEC_CTRL": 1, "wrmsr 0x1": 1}
    cost = Cost(specials=specials)
    assert model_cycles(cost, {}, CORE) == Interval(150, 300)
    prices = {**CORE.specials, "wrmsr PRED_CMD (IBPB)": Price(1000, 9000)}
    core = msgspec.structs.replace(CORE, specials=prices)
    assert model_cycles(cost, {}, core) == Interval(1100, 9200)


def test_the_formula() -> None:
    cost = Cost(insns=1000, string_bytes=640, specials={"wrmsr": 2, "lock": 10})
    found = model_cycles(cost, {"l1i": 20, "itlb": 3}, CORE)
    assert found == Interval(500 + 20 + 140 + 40, 500 + 80 + 400 + 264)
    assert model_cycles(Cost(insns=1000), {}, CORE) == Interval(500, 500)
    assert model_cycles(Cost(string_bytes=640), {}, CORE) == Interval(20, 80)
    assert model_cycles(Cost(specials={"wrmsr": 2}), {}, CORE) == Interval(100, 200)
    assert model_cycles(Cost(specials={"lock": 10}), {}, CORE) == Interval(40, 200)
    assert model_cycles(Cost(), {"l1i": 20}, CORE) == Interval(40, 240)
    assert model_cycles(Cost(), {"itlb": 3}, CORE) == Interval(0, 24)


def test_nothing_costs_nothing() -> None:
    assert model_cycles(Cost(), {}, CORE) == Interval(0, 0)


def test_iterations_loads_and_stores_are_in_no_price() -> None:
    plain = Cost(insns=10, string_bytes=64)
    busy = Cost(insns=10, string_iterations=64, loads=7, stores=9, string_bytes=64)
    assert model_cycles(busy, {}, CORE) == model_cycles(plain, {}, CORE)
    assert executed_amounts(busy) == {"insns": 10, "string_bytes": 64}


def test_what_has_no_price_costs_nothing() -> None:
    found = model_cycles(Cost(insns=4, specials={"hlt": 1, "lock": 1}), {}, CORE)
    assert found == Interval(6, 22)


def test_a_miss_that_the_cpu_has_no_price_for() -> None:
    with pytest.raises(ValueError, match="zen2 has no price for a miss of btb"):
        model_cycles(Cost(), {"btb": 1}, CORE)


def test_a_difference_is_priced_as_one() -> None:
    """One more of each, one less of each: the price is one number, wherever it lies."""
    more = model_cycles(Cost(insns=2), {"l1i": 1}, CORE)
    less = model_cycles(Cost(insns=-2), {"l1i": -1}, CORE)
    assert more == Interval(3, 13)
    assert less == Interval(-13, -3)
    assert model_cycles(Cost(insns=10), {"l1i": -5}, CORE) == Interval(5 - 60, 5 - 10)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (Interval(539, 740), r"add up to 540\.0, not 539 \(their low ends"),
        (Interval(540, 741), r"add up to 740\.0, not 741 \(their high ends"),
    ],
)
def test_a_total_that_is_not_its_parts(
    wrong: Interval, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles, "_total", lambda *_: wrong)
    with pytest.raises(LabError, match=text):
        model_cycles(Cost(insns=1000), {"l1i": 20}, CORE)


@given(COSTS, MISSES)
def test_parts_add_up_and_are_in_order(cost: Cost, misses: dict[MissKind, float]) -> None:
    found = model_cycles(cost, misses, CORE)
    assert found.low <= found.high
    parts = [model_cycles(Cost(insns=cost.insns), {}, CORE)]
    parts += [model_cycles(Cost(string_bytes=cost.string_bytes), {}, CORE)]
    parts += [model_cycles(Cost(specials={k: n}), {}, CORE) for k, n in cost.specials.items()]
    parts += [model_cycles(Cost(), {kind: n}, CORE) for kind, n in misses.items()]
    total = Interval(sum(part.low for part in parts), sum(part.high for part in parts))
    assert ends(found) == close(total)


@given(COSTS, MISSES)
def test_swapping_the_kernels_turns_the_sign(cost: Cost, misses: dict[MissKind, float]) -> None:
    turned = Cost(
        insns=-cost.insns,
        string_bytes=-cost.string_bytes,
        specials={kind: -count for kind, count in cost.specials.items()},
    )
    found = model_cycles(cost, misses, CORE)
    other = model_cycles(turned, {kind: -count for kind, count in misses.items()}, CORE)
    assert (-other.high, -other.low) == close(found)


@given(COSTS, COSTS, MISSES)
def test_a_sum_is_within_the_sum_of_intervals(
    one: Cost, two: Cost, misses: dict[MissKind, float]
) -> None:
    both = model_cycles(one + two, misses, CORE)
    first, second = model_cycles(one, misses, CORE), model_cycles(two, {}, CORE)
    slack = 1e-6 * (1 + abs(first.low) + abs(first.high) + abs(second.low) + abs(second.high))
    assert both.low >= first.low + second.low - slack
    assert both.high <= first.high + second.high + slack


@pytest.mark.parametrize("cpu", list_cpus().values(), ids=lambda cpu: cpu.name)
def test_every_shipped_cpu_prices_what_it_can_miss(cpu: CPU) -> None:
    misses = dict.fromkeys(cpu.misses, 1.0)
    assert set(cpu.misses) >= {"l1i", "itlb", "l2"}
    assert ("btb" in cpu.misses) == (cpu.btb is not None)
    assert model_cycles(Cost(insns=1), misses, cpu).high > model_cycles(Cost(insns=1), {}, cpu).high
