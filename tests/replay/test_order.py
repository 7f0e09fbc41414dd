# SPDX-License-Identifier: GPL-2.0-or-later
"""Orders of planted kernels, of which the best is known, and what holds for any."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.counts.arrays import U64
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU, Cache, MissKind
from kdelta.replay import search as search_module
from kdelta.replay.functions import Placement
from kdelta.replay.layouts import as_linked, ordered
from kdelta.replay.order import ANNEALED, C3_LARGE, HOT_APART, SHIPPED, PlaceResult, place_in_order
from kdelta.replay.search import CaseJudge, WeightedRegion
from kdelta.replay.units import units_of
from kdelta.spec.errors import UserError
from tests.replay.kernels import Call, cpu_of, lines, placed, region
from tests.replay.made_kernel import Row, text_rows
from tests.replay.traces import INTERRUPTS, OWN, naive_branches, naive_lines

pytestmark = pytest.mark.long


def placed_by(
    rows: list[Row],
    cases: list[tuple[Trace, float]],
    cpu: CPU,
    *,
    seed: int = 1,
    evaluations: int = 600,
) -> PlaceResult:
    placement = placed(rows, *(trace for trace, _ in cases))
    given = [WeightedRegion(trace, weight) for trace, weight in cases]
    return place_in_order(placement, given, cpu, seed=seed, evaluations=evaluations, layouts=8)


def own_misses(
    trace: Trace, placement: Placement, layout: U64, cache: Cache, index: int = 0
) -> int:
    return naive_lines(trace, placement.placed[index], layout, cache, warm=True).total[OWN]


def test_two_functions_that_collide_are_broken_down() -> None:
    rows = lines(alpha=1, cold=3, beta=1)
    trace = region(rows, ["alpha", "beta"], times=50)
    result = placed_by(rows, [(trace, 1)], cpu_of(4, 1))
    assert result.order == ("alpha", "beta")
    (row,) = result.regions
    assert row.methods[SHIPPED]["l1i"] == 100
    assert row.methods[result.method]["l1i"] == 0
    assert result.method == HOT_APART  # the simplest of those that are as good
    assert result.payers() == ()
    assert (row.region, row.iterations, row.insns) == ("made", 50, 100)
    # 100 misses of 14 cycles over 100 instructions of half a cycle.
    price = cpu_of(4, 1).misses["l1i"].exposed
    assert result.costs[SHIPPED] == pytest.approx(100 * price / (100 * 0.5))


def orders_of(rows: list[Row], trace: Trace, cache: Cache, names: str) -> dict[str, int]:
    placement = placed(rows, trace)
    return {
        "".join(order): own_misses(trace, placement, ordered(placement, order)[0], cache)
        for order in itertools.permutations(names)
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.slow
def test_the_search_finds_the_best_order_of_all(seed: int) -> None:
    rows = lines(a=2, b=3, c=1, d=2, e=2)
    calls = ["a", "e"] * 5 + ["b", "d"] * 4 + ["c", "b", "a"] * 3 + ["e", "d", "c"] * 2
    trace = region(rows, calls, times=3)
    every = orders_of(rows, trace, Cache(8, 1, 64), "abcde")
    result = placed_by(rows, [(trace, 1)], cpu_of(8, 1), seed=seed)
    found = result.regions[0].methods
    best = min(every.values())
    rules = [found[method]["l1i"] for method in found if method not in (SHIPPED, ANNEALED)]
    assert found[result.method]["l1i"] == best < min(rules)
    assert result.method == ANNEALED
    assert every["".join(result.order)] == best


PAIRS = ("ab", "ac", "bc")


@pytest.mark.parametrize("light", PAIRS)
def test_the_region_of_the_least_weight_pays_and_that_is_shown(light: str) -> None:
    """Three functions of two lines in four: the first and the last of any order collide."""
    rows = lines(a=2, cold=2, b=2, colder=2, c=2)
    traces = [region(rows, list(pair), times=30, name=pair) for pair in PAIRS]
    cpu = cpu_of(4, 1)
    cases = [(trace, 1.0 if trace.region == light else 5.0) for trace in traces]
    result = placed_by(rows, cases, cpu)
    misses = {row.region: row.methods[result.method]["l1i"] for row in result.regions}
    assert misses == {pair: 120 if pair == light else 0 for pair in PAIRS}
    assert {result.order[0], result.order[-1]} == set(light)
    # As linked they collide all, so that none pays; against an order that suits the light one
    # alone, that one does.
    alone = placed_by(rows, [(t, 1.0 if t.region == light else 0.0) for t in traces], cpu)
    shown = {row.region: row.methods[alone.method]["l1i"] for row in alone.regions}
    assert shown[light] == 0
    assert result.payers() == ()


def test_who_pays_against_the_shipped_layout_is_named() -> None:
    rows = lines(a=2, b=2, c=2)
    # As linked a and c collide, which the first region does not mind.
    traces = [region(rows, ["a", "b"], times=30, name="light"),
              region(rows, ["a", "c"], times=30, name="heavy"),
              region(rows, ["b", "c"], times=30, name="too")]  # fmt: skip
    cases = list(zip(traces, (1.0, 9.0, 9.0), strict=True))
    result = placed_by(rows, cases, cpu_of(4, 1))
    assert result.payers() == (("light", "l1i"),)
    assert result.costs[result.method] < result.costs[SHIPPED]
    weights = (1 / 19, 9 / 19, 9 / 19)
    price = cpu_of(4, 1).misses["l1i"].exposed
    for method, cost in result.costs.items():
        shares = [
            weight * price * row.methods[method]["l1i"] / (0.5 * row.insns)
            for weight, row in zip(weights, result.regions, strict=True)
        ]
        assert cost == pytest.approx(sum(shares))


def test_the_shipped_layout_stays_if_nothing_is_better() -> None:
    """Only what stays collides with the one function that moves, and only if it moves."""
    rows = lines(cold=1, alpha=1)
    trace = region(rows, ["alpha", "do_syscall_64"], times=20)
    # .text is two lines, so do_syscall_64 is in set 0 and alpha, as linked, in set 1.
    result = placed_by(rows, [(trace, 1)], cpu_of(2, 1))
    assert (result.method, result.order) == (SHIPPED, ())
    assert result.regions[0].methods[SHIPPED]["l1i"] == 0
    assert result.regions[0].methods[ANNEALED]["l1i"] == 40


def test_pages_count_too() -> None:
    """As linked, b is a page from a; with c before or behind them, they share one."""
    rows = text_rows({"a": 2048, "c": 4096, "b": 2048}, alignment=64)
    trace = region(rows, [*["a", "b"] * 20, "c"], times=10)
    result = placed_by(rows, [(trace, 1)], cpu_of(1024, 1, Cache(1, 1, 4096)))
    assert result.searched == ("l1i", "itlb")
    misses = {method: kinds["itlb"] for method, kinds in result.regions[0].methods.items()}
    assert misses[SHIPPED] == misses[HOT_APART] == 420
    assert misses[result.method] == 20
    assert C3_LARGE not in result.costs


def test_the_pages_of_random_layouts_are_those_of_the_order_as_linked() -> None:
    """a and b lie next to each other, so no link of them that keeps files together parts them by
    more than a border; a random order would have them pages apart.
    """
    rows = text_rows({"a": 64, "b": 64} | {f"c{n}": 4096 for n in range(64)}, alignment=64)
    trace = region(rows, ["a", "b"] * 20, times=10)
    result = placed_by(rows, [(trace, 1)], cpu_of(1024, 1, Cache(1, 1, 4096)))
    ensemble = result.regions[0].ensemble["itlb"]
    assert (ensemble.median, ensemble.least) == (0, 0)


def test_what_no_order_changes_is_not_searched() -> None:
    rows = lines(a=2, cold=9, b=2)
    trace = region(rows, ["a", "b"], times=10)
    result = placed_by(rows, [(trace, 1)], cpu_of(4, 1, btb=Cache(4, 1, 1)))
    assert (result.searched, result.judged) == (("l1i",), ("l1i", "itlb", "btb"))
    assert C3_LARGE in result.costs


def test_what_is_printed_is_what_a_plain_cache_has() -> None:
    rows = lines(a=1, b=1, c=1, d=1, e=1)
    calls: list[Call] = ["a", "b", "c", ("d", INTERRUPTS), ("a", INTERRUPTS), "e", "do_syscall_64"]
    trace = region(rows, calls, times=4)
    btb = Cache(2, 1, 1)
    cpu = cpu_of(4, 1, btb=btb)
    placement = placed(rows, trace)
    result = place_in_order(placement, [WeightedRegion(trace)], cpu, evaluations=20, layouts=3)
    (row,) = result.regions
    assert result.judged == ("l1i", "itlb", "btb")
    layouts = {SHIPPED: as_linked(placement), result.method: ordered(placement, result.order)[0]}
    for method, layout in layouts.items():
        taken = naive_branches(trace, placement.placed[0], layout, btb, warm=True).total[OWN]
        assert row.methods[method] == {
            "l1i": own_misses(trace, placement, layout, cpu.l1i),
            "itlb": own_misses(trace, placement, layout, cpu.itlb),
            "btb": taken,
        }
    anywhere = own_misses(trace, placement, layouts[result.method], Cache(1, 4, 64))
    assert anywhere != row.methods[result.method]["l1i"]
    assert row.associative == {
        "l1i": anywhere,
        "itlb": own_misses(trace, placement, layouts[result.method], cpu.itlb),
    }


def test_the_search_is_told_the_costs_that_are_shown() -> None:
    rows = lines(a=2, b=1, c=2, d=1)
    traces = [
        region(rows, ["a", "b", "a", ("b", INTERRUPTS), "c", ("d", INTERRUPTS)], times=9),
        region(rows, ["d", "do_syscall_64", "a", "b"], times=4),
    ]
    placement = placed(rows, *traces)
    units = units_of(placement)
    cpu = cpu_of(4, 1, btb=Cache(2, 1, 1))
    cases = [
        WeightedRegion(trace, weight) for trace, weight in zip(traces, (2.0, 3.0), strict=True)
    ]
    kinds: dict[MissKind, Cache] = {"l1i": cpu.l1i, "btb": Cache(2, 1, 1)}
    judge = CaseJudge(cases, units, cpu, kinds)
    orders = [np.random.default_rng(seed).permutation(4) for seed in range(6)]
    judged = judge.judge(orders)
    assert len(set(judged.costs)) > 1
    assert judged.costs == pytest.approx(judge.costs(judge.misses(units.layouts(orders))))


def test_units_are_to_blame_for_what_they_miss_and_what_stays_for_nothing() -> None:
    rows = lines(a=2, b=1, c=2, d=1)
    trace = region(rows, ["a", ("b", INTERRUPTS), "d", "do_syscall_64", "c"], times=9)
    placement = placed(rows, trace)
    units = units_of(placement)
    cpu = cpu_of(2, 1)
    order = np.array([2, 0, 3, 1])
    judged = CaseJudge([WeightedRegion(trace)], units, cpu, {"l1i": cpu.l1i}).judge([order])
    layout = ordered(placement, units.order(order.tolist()))[0]
    found = naive_lines(trace, placement.placed[0], layout, cpu.l1i, warm=True)
    misses = [found.by_function[placement.indexes[name][0]] for name in "abcd"]
    assert sum(misses) < sum(found.by_function)
    price = judged.costs[0] / found.total[OWN]
    assert judged.blame[0] == pytest.approx(price * np.array(misses))


def test_the_seed_is_that_of_the_ensemble_and_of_the_search() -> None:
    rows = lines(**{f"f{index}": 1 + index % 3 for index in range(24)})
    calls = [f"f{7 * index % 24}" for index in range(48)] + [f"f{5 * index}" for index in range(5)]
    trace = region(rows, calls, times=3)
    found = [placed_by(rows, [(trace, 1)], cpu_of(8, 2), seed=s, evaluations=40) for s in (1, 2)]
    assert found[0].ensemble != found[1].ensemble
    assert found[0].order != found[1].order


def test_a_search_begins_with_the_best_rule_of_thumb() -> None:
    rows = lines(a=2, b=3, c=1, d=2, e=2)
    calls = ["a", "e"] * 5 + ["b", "d"] * 4 + ["c", "b", "a"] * 3 + ["e", "d", "c"] * 2
    result = placed_by(rows, [(region(rows, calls, times=3), 1)], cpu_of(8, 1), evaluations=1)
    rules = {method: cost for method, cost in result.costs.items() if method != SHIPPED}
    assert len(set(rules.values())) > 1
    assert rules[ANNEALED] == min(rules.values())
    assert result.evaluations == 1


@st.composite
def called(draw: st.DrawFn) -> tuple[list[Row], list[str]]:
    sizes = draw(st.lists(st.integers(20, 400), min_size=1, max_size=7))
    names = [f"f{index}" for index in range(len(sizes))]
    rows = text_rows(dict(zip(names, sizes, strict=True)))
    calls = draw(st.lists(st.sampled_from([*names, "do_syscall_64"]), max_size=14))
    return rows, [draw(st.sampled_from(names)), *calls]


@settings(max_examples=40, deadline=None)
@given(called(), st.integers(0, 5), st.sampled_from([(1, 2), (4, 1), (2, 2)]))
def test_any_order_is_one_of_what_was_executed_and_is_never_worse(
    made: tuple[list[Row], list[str]], seed: int, geometry: tuple[int, int]
) -> None:
    rows, calls = made
    trace = region(rows, calls, times=3)
    cpu = cpu_of(*geometry)
    result = placed_by(rows, [(trace, 1)], cpu, seed=seed, evaluations=60)
    executed = {name for name in calls if name != "do_syscall_64"}
    if result.method == SHIPPED:
        assert result.order == ()
    else:
        assert sorted(result.order) == sorted(executed)
    assert result.costs[result.method] == min(result.costs.values())
    placement = placed(rows, trace)
    found = result.regions[0]
    layout = ordered(placement, result.order)[0]
    assert found.methods[result.method]["l1i"] == own_misses(trace, placement, layout, cpu.l1i)
    assert result == placed_by(rows, [(trace, 1)], cpu, seed=seed, evaluations=60)


def test_a_long_trace_is_searched_by_parts_and_judged_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = lines(a=2, cold=2, b=2, c=1)
    trace = region(rows, ["a", "b"] * 20 + ["c"], times=50)
    monkeypatch.setattr(search_module, "_MOST_EXECUTED", 256)
    monkeypatch.setattr(search_module, "_WINDOW", 32)
    short = search_module.sampled_case(WeightedRegion(trace, 2.0))
    assert len(short.trace.sequence) == len(short.trace.contexts) == 256
    assert short.weight == 2
    last = msgspec.structs.replace(trace, sequence=np.arange(len(trace.sequence), dtype=np.uint32))
    kept = search_module.sampled_case(WeightedRegion(last)).trace.sequence
    assert (kept[0], kept[-1]) == (0, len(trace.sequence) - 1)
    assert (kept[1:] > kept[:-1]).all()
    result = placed_by(rows, [(trace, 1)], cpu_of(4, 1))
    assert result.regions[0].insns == trace.executed_insns(OWN)
    every = orders_of(rows, trace, Cache(4, 1, 64), "abc")
    assert result.regions[0].methods[result.method]["l1i"] == min(every.values())


def test_nothing_to_move_is_reported() -> None:
    rows = lines(alpha=1)
    with pytest.raises(UserError, match="nothing that was executed can be moved"):
        placed_by(rows, [(region(rows, ["do_syscall_64"]), 1)], cpu_of(4, 1))


@pytest.mark.parametrize("weights", [(0.0, 0.0), (-1.0, 2.0)])
def test_weights_that_weigh_nothing_are_refused(weights: tuple[float, float]) -> None:
    rows = lines(alpha=1)
    trace = region(rows, ["alpha"])
    with pytest.raises(UserError, match="no region counts"):
        placed_by(rows, [(trace, weight) for weight in weights], cpu_of(4, 1))


def test_cases_and_placement_must_fit() -> None:
    rows = lines(alpha=1)
    trace = region(rows, ["alpha"])
    with pytest.raises(ValueError, match="2 cases, and a placement of 1"):
        place_in_order(
            placed(rows, trace), [WeightedRegion(trace), WeightedRegion(trace)], cpu_of(4, 1)
        )
