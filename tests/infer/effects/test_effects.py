# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects and verdicts: by hand on small cases, and by properties on any."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost, RunCounts
from kdelta.infer.effects.effects import (
    Effects,
    OperationEffect,
    Verdict,
    Word,
    check_sums,
    compare_runs,
)
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.functions import FunctionChange, FunctionEffect
from kdelta.spec.errors import LabError
from tests.synthetic import Function, interrupts, other, own, region, run, user

KEYS: list[Function] = [
    own("vfs_read"),
    own("vfs_read.cold"),
    own("fget.isra.0"),
    own("fget.part.1.isra.3"),
    own("ext4_read", "[ext4]"),
    own("ext4_read"),
    user("main"),
    user("__vdso_time", "[vdso]"),
    interrupts("tick"),
    other("kswapd"),
]

functions = st.dictionaries(
    st.sampled_from(KEYS),
    st.builds(
        Cost,
        st.integers(0, 10**6),
        st.integers(0, 99),
        st.integers(0, 99),
        st.integers(0, 99),
        st.integers(0, 99),
        st.dictionaries(st.sampled_from(["lock", "wrmsr"]), st.integers(1, 9)),
    ),
)
regions = st.builds(
    region,
    st.sampled_from(["getppid", "open+close", "fork"]),
    functions,
    st.integers(1, 40),
    st.integers(1, 10**9),
)
runs = st.builds(lambda found: run(*found), st.lists(regions, max_size=3))
sides = st.lists(runs, max_size=3)


def value(low: int, high: int | None = None, n: int = 3, mean: Fraction | None = None) -> Estimate:
    top = low if high is None else high
    return Estimate(
        Fraction(low + top, 2) if mean is None else mean, Fraction(low), Fraction(top), n
    )


def only(effects: Effects) -> OperationEffect:
    assert len(effects.operations) == 1
    return effects.operations[0]


def function(operation: OperationEffect, name: str) -> FunctionEffect:
    found = [one for one in operation.functions if one.name == name]
    assert len(found) == 1
    return found[0]


def same_within(insns: int) -> Verdict:
    return Verdict(Word.SAME, Fraction(insns))


def three(*costs: dict[Function, int | Cost], iterations: int = 100) -> list[RunCounts]:
    return [run(region("op", cost, iterations)) for cost in (costs * 3)[:3]]


def test_one_added_instruction_is_one() -> None:
    operation = only(compare_runs(three({own("f"): 33700}), three({own("f"): 33800})))
    assert operation.verdict.word is Word.SLOWER
    assert operation.costs is not None
    assert operation.costs.insns.effect == value(1)
    assert operation.costs.insns.effect.exact
    assert operation.costs.insns.percent == Fraction(100, 337)


def test_faster() -> None:
    operation = only(compare_runs(three({own("f"): 33800}), three({own("f"): 33700})))
    assert operation.verdict.word is Word.FASTER
    assert operation.base == value(338)
    assert operation.other == value(337)


def test_the_same_is_within_zero() -> None:
    operation = only(compare_runs(three({own("f"): 33800}), three({own("f"): 33800})))
    assert operation.verdict == same_within(0)


def test_a_spread_over_zero_is_same_only_within_the_margin() -> None:
    base = three({own("f"): 1000}, {own("f"): 1100}, {own("f"): 1200})
    others = three({own("f"): 1100}, {own("f"): 1200}, {own("f"): 1300})
    operation = only(compare_runs(base, others))
    assert operation.base == Estimate(Fraction(11), Fraction(10), Fraction(12), 3, Fraction(1))
    assert operation.costs is not None
    assert operation.costs.insns.effect == Estimate(Fraction(1), Fraction(-3), Fraction(5), 3)
    assert not operation.costs.insns.effect.exact
    reason = "-27.3 to +45.5%; 8 runs a side would probably decide"
    unresolved = Verdict(Word.UNRESOLVED, reason=reason, runs_needed=8)
    assert operation.verdict == unresolved
    (wide,) = compare_runs(base, others, margin=Fraction(5, 11)).operations
    assert wide.verdict == same_within(5)
    (narrow,) = compare_runs(base, others, margin=Fraction(49, 110)).operations
    assert narrow.verdict == unresolved
    (no_margin,) = compare_runs(base, base, margin=Fraction(0)).operations
    assert no_margin.verdict.word is Word.UNRESOLVED


def test_a_spread_that_does_not_reach_zero() -> None:
    base = three({own("f"): 1000}, {own("f"): 1100}, {own("f"): 1100})
    others = three({own("f"): 1300}, {own("f"): 1300}, {own("f"): 1400})
    assert only(compare_runs(base, others)).verdict.word is Word.SLOWER


def test_one_run_a_side_resolves_nothing() -> None:
    operation = only(compare_runs(three({own("f"): 100})[:1], three({own("f"): 900})))
    assert operation.verdict.word is Word.UNRESOLVED
    assert "one run" in operation.verdict.reason
    assert operation.costs is not None
    assert not operation.costs.insns.effect.exact
    assert operation.costs.insns.effect.n == 1


def test_an_operation_of_one_side_is_not_comparable() -> None:
    both = region("getppid", {own("f"): 100})
    more = region("io_uring", {own("g"): 500}, iterations=10)
    effects = compare_runs([run(both)] * 3, [run(both, more)] * 3)
    assert [one.name for one in effects.operations] == ["getppid", "io_uring"]
    missing = effects.operations[1]
    assert (missing.verdict.word, missing.verdict.reason) == (Word.NOT_COMPARABLE, "only in other")
    assert (missing.base, missing.other) == (None, value(50))
    swapped = compare_runs([run(both, more)] * 3, [run(both)] * 3).operations[1]
    assert (swapped.verdict.reason, swapped.base) == ("only in base", value(50))


def test_an_operation_that_failed_in_some_runs_says_so() -> None:
    one = region("op", {own("f"): 100})
    operation = only(compare_runs([run(one), run(one), run()], [run(one)] * 3))
    assert operation.notes == ("succeeded in 2 of 3 runs of base",)
    assert operation.costs is not None
    assert operation.costs.insns.base.n == 2


def test_no_runs_at_all() -> None:
    assert compare_runs([], []) == Effects((), (), ())
    operation = only(compare_runs([], three({own("f"): 100})))
    assert operation.verdict.word is Word.NOT_COMPARABLE


def test_different_numbers_of_iterations_are_compared_by_mean_and_said() -> None:
    operation = only(compare_runs(three({own("f"): 1000}), three({own("f"): 500}, iterations=50)))
    assert operation.verdict == same_within(0)
    assert operation.notes == ("iterations differ: 100 in base, 50 in other",)


def test_kernel_user_and_kinds_apart() -> None:
    base = three({own("f"): Cost(1000, 100, 300, 200, 800, {"lock": 200}), user("main"): 500})
    others = three(
        {own("f"): Cost(1100, 0, 300, 100, 0, {"wrmsr": 100}), user("__vdso_time", "[vdso]"): 700}
    )
    costs = only(compare_runs(base, others)).costs
    assert costs is not None
    assert costs.kernel_insns.effect == value(1)
    assert costs.user_insns.effect == value(2)
    assert costs.insns.effect == value(3)
    assert costs.string_bytes.effect == value(-8)
    assert costs.string_iterations.effect == value(-1)
    assert costs.loads.effect == value(0)
    assert costs.stores.effect == value(-1)
    assert costs.specials["lock"].effect == value(-2)
    assert costs.specials["wrmsr"].effect == value(1)


def test_functions_added_removed_changed_and_same() -> None:
    base = three({own("gone"): 500, own("less"): 300, own("same"): 100})
    others = three({own("new"): 900, own("less"): 200, own("same"): 100})
    operation = only(compare_runs(base, others))
    assert [(one.name, one.change) for one in operation.functions] == [
        ("new", FunctionChange.ADDED),
        ("gone", FunctionChange.REMOVED),
        ("less", FunctionChange.CHANGED),
        ("same", FunctionChange.SAME),
    ]
    assert [one.cost.effect.value for one in operation.functions] == [9, -5, -1, 0]


def test_a_compilers_suffix_makes_no_function_new() -> None:
    base = three({own("fget.isra.0"): 500, own("fget.isra.0.cold"): 100, own("fget"): 50})
    others = three({own("fget.constprop.1.part.0"): 600})
    found = function(only(compare_runs(base, others)), "fget")
    assert found.change is FunctionChange.CHANGED
    assert found.cost.effect.value == Fraction(-1, 2)


def test_code_that_went_from_a_module_into_the_image_is_one_function() -> None:
    base = three(
        {own("ext4_read", "[ext4]"): 500, own("init", "[a]"): 100, own("init", "[b]"): 100}
    )
    others = three({own("ext4_read"): 400, own("init"): 100})
    operation = only(compare_runs(base, others))
    moved = function(operation, "ext4_read")
    assert (moved.origin, moved.moved_from) == ("kernel", "[ext4]")
    assert moved.change is FunctionChange.CHANGED
    # Two modules have an init each: which of them is the image's is unknown.
    assert sorted(one.change for one in operation.functions if one.name == "init") == [
        FunctionChange.ADDED,
        FunctionChange.REMOVED,
        FunctionChange.REMOVED,
    ]


def test_interrupts_and_other_tasks_have_rows_of_their_own() -> None:
    def side(tick: int) -> list[RunCounts]:
        cost: dict[Function, int | Cost] = {
            own("f"): 1,
            interrupts("tick"): tick,
            other("kswapd"): 5,
        }
        return [run(region("op", cost, 100, clock_ticks=10**8))] * 3

    effects = compare_runs(side(4000), side(6000))
    assert [row.context for row in effects.background] == ["interrupts", "other"]
    ticks, tasks = effects.background
    assert ticks.rate.base == value(40_000)
    assert ticks.rate.effect == value(20_000)
    assert ticks.verdict.word is Word.SLOWER
    assert [(one.name, one.cost.effect.value) for one in ticks.functions] == [
        ("tick", Fraction(20_000))
    ]
    assert tasks.verdict == same_within(0)
    costs = only(effects).costs
    assert costs is not None
    assert costs.insns.effect == value(0)
    assert costs.interrupts.effect == value(20)
    assert costs.background.effect.exact


def test_the_median_stands_besides_the_mean() -> None:
    steady = region("op", {own("f"): 10_000}, iterations=100)
    refill = region("op", {own("f"): 10_099}, iterations=1)
    costs = only(compare_runs([run(steady)] * 3, [run(steady, refill)] * 3)).costs
    assert costs is not None
    assert costs.median_insns.effect == value(0)
    assert costs.insns.effect.value > 0


def test_warnings_once_each() -> None:
    noisy = run(region("op", {}), warnings=("never quiet",))
    effects = compare_runs([noisy, noisy], [noisy])
    assert effects.warnings == ("base: never quiet (2 runs)", "other: never quiet")


def test_what_does_not_add_up_is_an_error() -> None:
    effects = compare_runs(three({own("f"): 100}), three({own("f"): 200}))
    operation = only(effects)
    broken = OperationEffect(
        operation.name, operation.verdict, operation.base, operation.other, operation.costs, ()
    )
    with pytest.raises(LabError, match="op, base: the functions add up to 0"):
        check_sums(Effects((broken,), ()))


@given(sides, sides)
def test_functions_and_sides_add_up(base: list[RunCounts], others: list[RunCounts]) -> None:
    effects = compare_runs(base, others)
    for operation in effects.operations:
        costs = operation.costs
        if costs is None:
            assert operation.verdict.word is Word.NOT_COMPARABLE
            continue
        total = sum(one.cost.effect.value for one in operation.functions)
        assert total == costs.insns.effect.value
        assert costs.kernel_insns.effect.value + costs.user_insns.effect.value == total
    for row in effects.background:
        total = sum(one.cost.effect.value for one in row.functions)
        assert total == row.rate.effect.value


@given(sides, sides)
def test_swapping_the_sides_negates(base: list[RunCounts], others: list[RunCounts]) -> None:
    opposite = {
        Word.FASTER: Word.SLOWER,
        Word.SLOWER: Word.FASTER,
        Word.SAME: Word.SAME,
        Word.UNRESOLVED: Word.UNRESOLVED,
        Word.NOT_COMPARABLE: Word.NOT_COMPARABLE,
        Word.MIXED: Word.MIXED,
        Word.NOT_STEADY: Word.NOT_STEADY,
    }
    forth = {one.name: one for one in compare_runs(base, others).operations}
    back = {one.name: one for one in compare_runs(others, base).operations}
    assert forth.keys() == back.keys()
    for name, operation in forth.items():
        mirrored = back[name]
        assert mirrored.verdict.word is opposite[operation.verdict.word]
        assert mirrored.verdict.within == operation.verdict.within
        if operation.costs is None or mirrored.costs is None:
            assert operation.costs is mirrored.costs
            continue
        assert mirrored.costs.insns.effect == -operation.costs.insns.effect
        assert mirrored.costs.median_insns.effect == -operation.costs.median_insns.effect
        effects = sorted(one.cost.effect.value for one in operation.functions)
        assert effects == sorted(-one.cost.effect.value for one in mirrored.functions)


@given(runs, st.integers(2, 4))
def test_a_kernel_and_itself_are_the_same_exactly(one: RunCounts, n: int) -> None:
    effects = compare_runs([one] * n, [one] * n)
    for operation in effects.operations:
        # Passes of one name that differ make a region that is not steady.
        if operation.verdict.word is not Word.NOT_STEADY:
            assert operation.verdict == same_within(0)
        assert operation.costs is not None
        assert operation.costs.insns.effect.exact
        assert all(cost.effect.exact for cost in operation.costs.specials.values())
        assert {found.change for found in operation.functions} <= {FunctionChange.SAME}
    for row in effects.background:
        assert row.verdict == same_within(0)


@given(sides, sides)
def test_intervals_hold_their_values(base: list[RunCounts], others: list[RunCounts]) -> None:
    for operation in compare_runs(base, others).operations:
        if operation.costs is None:
            continue
        for one in (operation.costs.insns, operation.costs.median_insns):
            assert one.base.low <= one.base.value <= one.base.high
            assert one.effect.low <= one.effect.value <= one.effect.high
            # No pair of runs differs by more than the interval says.
            assert one.effect.low <= one.other.low - one.base.high
            assert one.other.high - one.base.low <= one.effect.high
