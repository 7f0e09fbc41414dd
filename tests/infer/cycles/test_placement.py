# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on model cycles: each word by hand, what holds for any ensembles, how often they err."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kdelta.cpus.model import MissPrice, Price
from kdelta.infer.cycles.ensembles import Ensemble, Interval, RegionCost
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import (
    CodeChange,
    ComparedRegion,
    CycleVerdict,
    PlacementEffect,
)
from kdelta.infer.cycles.prices import Prices
from kdelta.infer.effects.effects import Word
from tests.infer.drawn import INSNS, NARROW, WIDE, amount, cost, effect, priced, realistic

ONE_PRICE = priced(1, l1i=(10, 10))

OPPOSITE = {Word.FASTER: Word.SLOWER, Word.SLOWER: Word.FASTER}


def steady(insns: int, l1i: float, n: int = 8) -> RegionCost:
    return cost(insns, {"l1i": [l1i] * n})


# Each word, by hand.


def test_exact_paths_need_no_statistics() -> None:
    base = cost(1000, {})
    assert effect(base, cost(1011, {})).verdict == CycleVerdict(Word.SLOWER)
    assert effect(base, cost(989, {})).verdict == CycleVerdict(Word.FASTER)
    slightly = effect(base, cost(1009, {}))
    assert slightly.verdict == CycleVerdict(Word.SAME, within=0.01)
    assert slightly.cycles == Interval(4.5, 4.5)
    assert slightly.relative.low == pytest.approx(0.009)
    assert slightly.relative.high == pytest.approx(0.009)


def test_the_effect_is_the_difference_of_the_means_not_of_what_was_shipped() -> None:
    base = cost(1000, {"l1i": [10, 12, 14, 16]}, {"l1i": 16})
    other = cost(1100, {"l1i": [20, 22, 24, 26]}, {"l1i": 20})
    found = effect(base, other, ONE_PRICE)
    assert found.verdict.word is Word.SLOWER
    assert found.cycles == Interval(200, 200)
    assert found.misses["l1i"].effect.value == 10
    assert found.misses["l1i"].base.mean == 13
    assert found.exposed.base.mean == 1130
    assert found.exposed.other.as_linked == 1300
    assert found.as_linked.cycles == Interval(140, 140)
    assert found.as_linked.placement == Interval(-60, -60)


def test_where_the_shipped_layouts_stand() -> None:
    base = cost(1000, {"l1i": [1, 2, 3, 4, 5, 6, 7, 8]}, {"l1i": 3})
    found = effect(base, cost(1000, {"l1i": [1, 2, 3, 4, 5, 6, 7, 8]}, {"l1i": 9}), ONE_PRICE)
    draws = found.misses["l1i"]
    assert (draws.base.percentile, draws.other.percentile) == (31.25, 100)
    assert (draws.base.least, draws.base.median, draws.base.most) == (1, 4.5, 8)
    assert found.exposed.base.percentile == 31.25
    without = effect(cost(1000, {}), cost(1000, {}))
    assert without.exposed.base.percentile is None
    assert without.exposed.base.mean == 500


def test_the_same_code_in_two_layouts_is_placement_only() -> None:
    base = cost(1000, {"l1i": [0, 10, 20, 30]}, {"l1i": 0})
    other = cost(1000, {"l1i": [0, 10, 20, 30]}, {"l1i": 30})
    for code in (CodeChange.RELINKED, CodeChange.SAME):
        found = effect(base, other, ONE_PRICE, code=code)
        assert found.verdict == CycleVerdict(Word.PLACEMENT_ONLY)
        assert found.as_linked.placement == Interval(300, 300)
    # If it is unknown whether the code is the same, the ensembles must show it: these are too wide.
    apart = cost(1000, {"l1i": [0, 10, 20, 30]}, {"l1i": 30}, first_draw=100)
    assert effect(base, apart, ONE_PRICE).verdict.word is Word.UNRESOLVED


def test_the_same_code_without_a_difference_beyond_the_margin_is_the_same() -> None:
    base = cost(1000, {"l1i": [0, 10, 20, 30]}, {"l1i": 10})
    slightly = cost(1000, {"l1i": [0, 10, 20, 30]}, {"l1i": 10.5})
    assert effect(base, slightly, ONE_PRICE, code=CodeChange.SAME).verdict == CycleVerdict(
        Word.SAME, within=0.01
    )
    assert effect(base, base, ONE_PRICE, code=CodeChange.SAME).verdict == CycleVerdict(
        Word.SAME, within=0.0
    )


def test_an_equal_path_with_equal_ensembles_is_placement_only_too() -> None:
    base = realistic(1, layouts=2000, times=0.2)
    shipped = {kind: 3 * count for kind, count in base.shipped.items()}
    other = msgspec.structs.replace(base, shipped=shipped)
    assert effect(base, other).verdict == CycleVerdict(Word.PLACEMENT_ONLY)
    # Only one more instruction, and the change is not nothing: it is the same within the margin.
    more = msgspec.structs.replace(other, executed={"insns": amount(INSNS + 1)})
    assert effect(base, more).verdict == CycleVerdict(Word.SAME, within=0.01)


def test_relinked_code_is_never_slower_whatever_its_path_and_its_alignment_do() -> None:
    base = realistic(1)
    searched = msgspec.structs.replace(base, executed={"insns": amount(INSNS + 500)})
    assert effect(base, searched, code=CodeChange.RELINKED).verdict == CycleVerdict(
        Word.PLACEMENT_ONLY, reason="addresses move the path too"
    )
    aligned = realistic(2, times=1.5)
    aligned = msgspec.structs.replace(aligned, shipped=base.shipped)
    found = effect(base, aligned, code=CodeChange.RELINKED)
    assert found.verdict.word is Word.PLACEMENT_ONLY
    assert "alignment" in found.verdict.reason


def test_the_same_executed_code_on_another_path_may_be_slower() -> None:
    other = msgspec.structs.replace(realistic(1), executed={"insns": amount(INSNS + 500)})
    assert effect(realistic(1), other, code=CodeChange.SAME).verdict.word is Word.SLOWER


def test_too_few_layouts_log_how_many_would_do() -> None:
    base = realistic(1, first_draw=0)
    other = realistic(2, INSNS + 40, times=1.01, first_draw=1000)
    found = effect(base, other)
    assert found.verdict.word is Word.UNRESOLVED
    assert "layouts differ" in found.verdict.reason
    layouts = found.verdict.layouts
    assert layouts is not None
    assert layouts > 128
    settled = [
        effect(
            realistic(10 * seed, layouts=layouts),
            realistic(10 * seed + 1, INSNS + 40, layouts=layouts, times=1.01, first_draw=10**6),
        ).verdict.word
        is Word.SAME
        for seed in range(1, 11)
    ]
    assert sum(settled) >= 5


def test_the_interval_is_students() -> None:
    base = cost(0, {"l1i": [10, 10, 20, 20]})
    other = cost(0, {"l1i": [11, 12, 23, 24]})
    t = 3.182446  # 97.5 %, three degrees of freedom, from a table
    paired = effect(base, other).misses["l1i"].effect
    assert paired.value == 2.5
    # Differences of 1, 2, 3 and 4 have the variance 5/3.
    assert paired.high - 2.5 == pytest.approx(t * math.sqrt(5 / 3 / 4), rel=1e-6)
    assert 2.5 - paired.low == pytest.approx(paired.high - 2.5)
    apart = effect(base, cost(0, {"l1i": [11, 12, 23, 24]}, first_draw=9)).misses["l1i"].effect
    welch = math.sqrt((100 / 3) / 4 + (145 / 3) / 4)
    assert apart.high - 2.5 == pytest.approx(t * welch, rel=1e-6)


def test_half_as_far_from_the_margin_takes_four_times_the_layouts() -> None:
    rows = [5.0, 15.0] * 32  # 10 cycles each: 1100 on the mean, and 50.4 deviation
    base = cost(1000, {"l1i": rows})
    needed = []
    for cycles in (4, 2):
        # So many below the margin of 11 cycles.
        found = effect(base, cost(1000 + 11 - cycles, {"l1i": rows}, first_draw=99), ONE_PRICE)
        needed.append(found.verdict.layouts or 0)
    error = math.sqrt((1 + 1.01**2) * (100 * 25 * 64 / 63) / 64)
    reach = 1.998341 + 0.841621  # 97.5 % of t with 63 degrees, and 80 % of a normal
    assert needed == [math.ceil(64 * (reach * error / cycles) ** 2) for cycles in (4, 2)]


def test_an_effect_as_large_as_the_margin_is_settled_by_no_number() -> None:
    base = cost(1000, {"l1i": [9, 11] * 8})
    other = cost(1011, {"l1i": [9, 11] * 8}, first_draw=100)  # 1100 cycles, and 1111
    found = effect(base, other, ONE_PRICE)
    assert found.verdict == CycleVerdict(
        Word.UNRESOLVED, reason="the effect is as large as the margin"
    )


def test_a_verdict_that_depends_on_what_is_executed_says_so() -> None:
    special = Prices(
        {"insns": Price(1, 1), "wrmsr": Price(0, 300)}, {"l1i": MissPrice(0, 1, False)}
    )
    without, with_one = cost(1000, {"l1i": [0.0] * 8}), cost(1005, {"l1i": [0.0] * 8})
    with_one = msgspec.structs.replace(with_one, executed={**with_one.executed, "wrmsr": amount(1)})
    found = effect(without, with_one, special)
    reason = "it depends on what special instructions and string operations cost"
    assert found.verdict == CycleVerdict(Word.UNRESOLVED, reason=reason)


def test_a_verdict_that_depends_on_prices_is_unresolved() -> None:
    wide = priced(1, l1i=(0, 10))
    found = effect(steady(1000, 10), steady(1000, 15), wide)
    assert found.verdict == CycleVerdict(Word.UNRESOLVED, reason="it depends on what a miss costs")
    assert found.hidden.effect.value == 0
    assert found.exposed.effect.value == 50
    assert found.cycles == Interval(0, 50)


def test_prices_that_were_never_measured_carry_no_verdict_alone() -> None:
    guessed = priced(1, l1i=(10, 10), calibrated=False)
    base, more_misses = steady(1000, 10), steady(1000, 15)
    assert effect(base, more_misses, ONE_PRICE).verdict.word is Word.SLOWER
    found = effect(base, more_misses, guessed)
    assert found.verdict.word is Word.UNRESOLVED
    assert found.verdict.reason.endswith("this CPU's file has no measured cost of l1i")
    assert found.without_measured_cost == ("l1i",)
    assert found.cycles == Interval(0, 50)
    # Where the path says the same, they may confirm it.
    assert effect(base, steady(1100, 15), guessed).verdict.word is Word.SLOWER
    assert effect(base, steady(1001, 10), guessed).verdict.word is Word.SAME


def test_only_prices_that_were_never_measured_may_be_zero() -> None:
    prices = Prices(
        {"insns": Price(1, 1)},
        {"l1i": MissPrice(10, 10, calibrated=True), "itlb": MissPrice(10, 10, calibrated=False)},
    )
    base = cost(1000, {"l1i": [10] * 8, "itlb": [10] * 8})
    more_lines = cost(1000, {"l1i": [15] * 8, "itlb": [10] * 8})
    more_pages = cost(1000, {"l1i": [10] * 8, "itlb": [15] * 8})
    assert effect(base, more_lines, prices).verdict.word is Word.SLOWER
    found = effect(base, more_pages, prices)
    assert found.verdict.word is Word.UNRESOLVED
    assert found.without_measured_cost == ("itlb",)


def test_misses_of_two_kinds_are_not_taken_to_cancel() -> None:
    prices = priced(1, l1i=(1, 10), itlb=(1, 10))
    base = cost(1000, {"l1i": [20.0] * 8, "itlb": [10.0] * 8})
    other = cost(1000, {"l1i": [10.0] * 8, "itlb": [20.0] * 8})
    found = effect(base, other, prices)
    assert found.hidden.effect.value == found.exposed.effect.value == 0
    assert found.cycles == Interval(-90, 90)
    assert found.verdict.word is Word.UNRESOLVED


def test_the_paths_spread_is_part_of_the_interval() -> None:
    found = effect(cost(amount(1000, 4), {}), cost(amount(1010, 6), {}), ONE_PRICE)
    assert found.cycles == Interval(0, 20)
    assert found.verdict == CycleVerdict(
        Word.UNRESOLVED, reason="it depends on the path's spread over perturbed runs"
    )


def test_one_run_or_one_layout_has_no_spread() -> None:
    one_run = cost(amount(1000, n=1), {})
    assert effect(one_run, cost(2000, {})).verdict == CycleVerdict(
        Word.UNRESOLVED, reason="one run on a side has no spread: --perturb makes more"
    )
    found = effect(steady(1000, 10, n=1), steady(2000, 10), ONE_PRICE)
    assert found.verdict == CycleVerdict(
        Word.UNRESOLVED, layouts=2, reason="one layout has no spread"
    )
    assert found.cycles == Interval(-math.inf, math.inf)
    assert effect(
        steady(1, 1, n=1), steady(1, 1, n=1), code=CodeChange.RELINKED
    ).verdict == CycleVerdict(Word.SAME, within=0.0)


def test_layouts_of_the_same_draws_are_compared_one_by_one_in_whatever_order() -> None:
    base, other = realistic(1), realistic(2, like=1, alike=0.99)
    apart = msgspec.structs.replace(
        other, ensemble=Ensemble(tuple(range(500, 628)), other.ensemble.misses)
    )
    back = msgspec.structs.replace(
        other,
        ensemble=Ensemble(
            other.ensemble.draws[::-1],
            {kind: row[::-1] for kind, row in other.ensemble.misses.items()},
        ),
    )
    paired, unpaired = effect(base, other), effect(base, apart)
    assert (paired.paired, unpaired.paired) == (True, False)
    assert paired == effect(base, back)
    width = [found.cycles.high - found.cycles.low for found in (paired, unpaired)]
    assert width[0] < width[1] / 3


def test_misses_without_a_price_are_shown_and_cost_nothing() -> None:
    found = effect(steady(1000, 10), steady(1000, 90), priced(1))
    assert found.misses["l1i"].effect.value == 80
    assert found.cycles == Interval(0, 0)


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="margin of 0"):
        effect(steady(1, 1), steady(1, 1), margin=0)
    with pytest.raises(ValueError, match="not the same kinds"):
        effect(steady(1, 1), cost(1, {}))
    with pytest.raises(ValueError, match="drawn twice"):
        Ensemble((1, 1), {"l1i": np.zeros(2)})
    with pytest.raises(ValueError, match="misses for 3 layouts"):
        Ensemble((1, 2, 3), {"l1i": np.zeros(2)})
    with pytest.raises(ValueError, match="the layout as linked has misses"):
        RegionCost({}, Ensemble((1, 2), {"l1i": np.zeros(2)}), {"l2": 1.0})


# What holds for any ensembles.

counts = st.lists(st.floats(0, 1000), min_size=8, max_size=20)
ends = st.lists(st.floats(0, 20), min_size=2, max_size=2).map(sorted)
misses = st.builds(
    lambda both, calibrated: MissPrice(both[0], both[1], calibrated), ends, st.booleans()
)
prices = st.builds(
    Prices,
    st.fixed_dictionaries({"insns": st.builds(lambda both: Price(both[0], both[1]), ends)}),
    st.fixed_dictionaries({"l1i": misses, "itlb": misses}),
)
paths = st.builds(amount, st.integers(0, 10**5), st.integers(0, 50))
margins = st.floats(0.001, 0.5)


@st.composite
def costs(draw: st.DrawFn) -> RegionCost:
    l1i = draw(counts)
    itlb = draw(st.lists(st.floats(0, 100), min_size=len(l1i), max_size=len(l1i)))
    shipped = {"l1i": draw(st.floats(0, 1000)), "itlb": draw(st.floats(0, 100))}
    return cost(draw(paths), {"l1i": l1i, "itlb": itlb}, shipped, draw(st.sampled_from([0, 1000])))


def two_sided(word: Word) -> Word:
    """What a word says of both directions."""
    return Word.UNRESOLVED if word is Word.NOT_SLOWER else word


def mirrored(interval: Interval) -> Interval:
    return Interval(-interval.high, -interval.low)


@given(costs(), costs(), prices, margins, st.sampled_from(CodeChange))
def test_swapping_the_kernels_negates(
    base: RegionCost, other: RegionCost, prices: Prices, margin: float, code: CodeChange
) -> None:
    forth = effect(base, other, prices, margin, code)
    back = effect(other, base, prices, margin, code)
    words = [two_sided(one.verdict.word) for one in (forth, back)]
    assert words[1] is OPPOSITE.get(words[0], words[0])
    assert (back.verdict.within, back.verdict.layouts) == (
        forth.verdict.within,
        forth.verdict.layouts,
    )
    assert back.cycles == mirrored(forth.cycles)
    assert back.as_linked.cycles == mirrored(forth.as_linked.cycles)
    assert back.as_linked.placement.low == pytest.approx(-forth.as_linked.placement.high, abs=1e-6)
    for kind, one in forth.misses.items():
        assert back.misses[kind].effect.low == -one.effect.high
        assert (back.misses[kind].base, back.misses[kind].other) == (one.other, one.base)


@given(costs(), prices, margins, st.sampled_from(CodeChange), st.booleans())
def test_identical_ensembles_are_never_slower_or_faster(
    one: RegionCost, prices: Prices, margin: float, code: CodeChange, paired: bool
) -> None:
    again = one
    if not paired:
        draws = tuple(10**6 + draw for draw in one.ensemble.draws)
        again = msgspec.structs.replace(one, ensemble=Ensemble(draws, one.ensemble.misses))
    found = effect(one, again, prices, margin, code)
    assert found.verdict.word in {Word.SAME, Word.NOT_SLOWER, Word.UNRESOLVED}
    assert found.cycles.low <= 0 <= found.cycles.high
    if code is CodeChange.RELINKED:
        assert found.verdict.word is Word.SAME


@given(costs(), costs(), prices, margins)
def test_relinked_code_is_placement_only_or_the_same(
    base: RegionCost, other: RegionCost, prices: Prices, margin: float
) -> None:
    words = {Word.SAME, Word.PLACEMENT_ONLY}
    assert effect(base, other, prices, margin, CodeChange.RELINKED).verdict.word in words


@given(costs(), prices, st.floats(0.001, 0.2))
def test_more_work_than_the_margin_is_slower_for_any_draws(
    base: RegionCost, prices: Prices, margin: float
) -> None:
    rate = prices.executed["insns"]
    assume(rate.low > 0.01)
    highest = sum(
        prices.misses[kind].exposed * max(row) for kind, row in base.ensemble.misses.items()
    )
    path = base.executed["insns"]
    most = float(path.high) * rate.high + highest
    more = math.ceil(3 * margin * most / rate.low + 4 * (path.high - path.low)) + 1
    slower = msgspec.structs.replace(
        base, executed={"insns": amount(int(path.value) + more, int(path.high - path.low))}
    )
    found = effect(base, slower, prices, margin)
    assert found.verdict == CycleVerdict(Word.SLOWER)
    assert effect(slower, base, prices, margin).verdict == CycleVerdict(Word.FASTER)


@given(costs(), costs(), prices, st.lists(margins, min_size=2, max_size=6))
def test_a_wider_margin_leads_from_a_difference_to_the_same_and_never_back(
    base: RegionCost, other: RegionCost, prices: Prices, margins: list[float]
) -> None:
    # What misses cost must be known to be more than nothing: see `least_ratio`.
    base = msgspec.structs.replace(base, executed={"insns": amount(10**5)})
    other = msgspec.structs.replace(other, executed={"insns": amount(10**5 + 200)})
    assume(prices.executed["insns"].low > 1)
    words = [effect(base, other, prices, margin).verdict.word for margin in sorted(margins)]
    order = [Word.SLOWER, Word.FASTER, Word.UNRESOLVED, Word.SAME]
    ranks = [max(1, order.index(word)) for word in words]
    assert ranks == sorted(ranks)
    assert not {Word.SLOWER, Word.FASTER} <= set(words)


def test_the_word_is_what_the_interval_says() -> None:
    margin = 0.01
    chance = np.random.default_rng(5)
    regions = [
        ComparedRegion(
            f"op{number}",
            realistic(2 * number, first_draw=0, layouts=40),
            realistic(
                2 * number + 1,
                INSNS + int(chance.integers(-300, 300)),
                layouts=40,
                first_draw=1000 * (number % 2),
                times=chance.uniform(0.8, 1.25),
            ),
        )
        for number in range(60)
    ]
    found = placement_effects(regions, NARROW, margin)
    words = [one.verdict.word for one in found]
    assert set(words) == {Word.FASTER, Word.SLOWER, Word.UNRESOLVED} or Word.SAME in words
    for one in found:
        assert one.verdict.word is word_of(one.relative, margin)
    # Many at once are held to more than each alone.
    assert len({one.confidence for one in found}) == 1
    assert 0.95 < found[0].confidence < 1
    alone = [placement_effects([region], NARROW, margin)[0] for region in regions]
    assert {one.confidence for one in alone} == {0.95}
    settled = [one.verdict.word is not Word.UNRESOLVED for one in alone]
    assert sum(settled) > sum(word is not Word.UNRESOLVED for word in words)


def test_only_what_draws_decide_counts_among_the_many() -> None:
    undecided = ComparedRegion("op", realistic(1), realistic(2, first_draw=1000, times=1.05))
    exact = ComparedRegion("exact", cost(1000, {}), cost(2000, {}))
    relinked = ComparedRegion("relinked", realistic(3), realistic(4), CodeChange.RELINKED)
    found = placement_effects([exact, undecided, relinked, undecided], NARROW)
    assert [one.verdict.word for one in found[:2]] == [Word.SLOWER, Word.UNRESOLVED]
    assert {one.confidence for one in found} == {0.975}
    assert placement_effects([exact, relinked], NARROW)[0].confidence == 0.95


def word_of(relative: Interval, margin: float) -> Word:
    if relative.low > margin:
        return Word.SLOWER
    if 1 + relative.high < 1 / (1 + margin):
        return Word.FASTER
    if 1 + relative.low >= 1 / (1 + margin) and relative.high <= margin:
        return Word.SAME
    return Word.UNRESOLVED


def test_an_effect_can_be_written_and_read() -> None:
    found = effect(realistic(1), realistic(2), WIDE)
    assert msgspec.json.decode(msgspec.json.encode(found), type=PlacementEffect) == found
