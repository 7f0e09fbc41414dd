# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches go by the rules against chance that `compare` has."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.by_region import is_doubtful, region_effect, region_runs
from kdelta.infer.effects.chance import ENOUGH
from kdelta.infer.effects.estimate import MEAN, ZERO, Estimate, is_seen, mean_percent
from kdelta.infer.effects.paths import function_paths, region_paths
from kdelta.infer.search.additive import ObservedKernels, less, minus
from kdelta.infer.search.bisect import Bisect, begin_bisect
from kdelta.infer.search.search import Search, begin
from kdelta.infer.search.search_model import Candidate, FlipSet, History, JudgedPath, Measured
from kdelta.infer.search.series import SeriesSearch, begin_series
from kdelta.infer.search.stretches import kernel
from tests.infer.steady_runs import TIMER, steady

A: FlipSet = frozenset()


def measured(runs: Sequence[RunCounts]) -> Measured:
    code = {name: path.code for name, path in region_paths(runs).items()}
    return Measured(code, function_paths(runs), region_runs(runs))


PLAIN = [steady(1000)] * 3
TIMED = [steady(1000, 953, TIMER)] * 3
"""A timer ended in one iteration of each run: as chance may have it."""
REAL = [steady(1016)] * 3


def kernels(*sides: Sequence[RunCounts]) -> ObservedKernels:
    names = [A, frozenset({"X"}), frozenset({"Y"}), frozenset({"X", "Y"})]
    return ObservedKernels(zip(names, map(measured, sides), strict=False))


X, Y = frozenset({"X"}), frozenset({"Y"})


def test_a_difference_that_chance_may_have_made_is_none_for_a_search() -> None:
    held = kernels(PLAIN, TIMED)
    assert held.same(A, X)
    effect = held.estimates(minus(X, A))["open"]
    assert effect.value == Fraction(953, 100)
    assert effect.low <= 0 < effect.high
    assert held.doubted == {(A, X)}
    assert held.unjudged([]) == {(A, X)}


def test_a_difference_that_iterations_tell_is_one() -> None:
    held = kernels(PLAIN, REAL)
    assert not held.same(A, X)
    effect = held.estimates(minus(X, A))["open"]
    assert effect.low == effect.high == 16
    assert held.doubted == set()


def test_without_runs_the_ranges_decide_alone() -> None:
    plain = [msgspec.structs.replace(measured(side), runs={}) for side in (PLAIN, TIMED)]
    held = ObservedKernels(zip([A, X], plain, strict=True))
    assert not held.same(A, X)
    assert held.doubted == set()


def test_with_enough_runs_their_means_decide() -> None:
    held = kernels([steady(1000)] * ENOUGH, [steady(1000, 953, TIMER)] * ENOUGH)
    assert not held.same(A, X)
    assert held.doubted == set()
    mixed = [*[steady(1000, 953, TIMER)] * (ENOUGH - 2), *[steady(1000)] * 2]
    assert kernels([steady(1000)] * ENOUGH, mixed).same(A, X)


def test_a_sum_is_as_doubtful_as_its_parts() -> None:
    """What X, which chance may have made, and Y do together from A, less what Y does."""
    held = kernels(PLAIN, TIMED, REAL)
    both = {X: 1, Y: 1, A: -2}
    effect = held.estimates(both)["open"]
    assert effect.value == 16 + Fraction(953, 100)
    assert effect.low == 16
    rest = held.estimates(less(both, minus(Y, A)))["open"]
    assert rest.low <= 0 <= rest.high


def test_lookups_by_address_are_in_no_verdict() -> None:
    looking = [steady(1000, lookups=70_000)] * 3
    assert region_runs(looking)["open"][~0].cost("own").insns == 100_000
    assert kernels(PLAIN, looking).same(A, X)
    assert is_seen(kernels(PLAIN, REAL).estimates(minus(X, A))["open"])


def test_one_run_of_each_tells_nothing() -> None:
    assert is_doubtful(region_runs(PLAIN[:1])["open"], region_runs(REAL[:1])["open"])
    assert not is_doubtful(region_runs(PLAIN)["open"], region_runs(REAL)["open"])


def judged(base: Measured, other: Measured) -> dict[str, JudgedPath]:
    """What compare says of the only region of two kernels, by the runs that there are."""
    runs = base.runs["open"], other.runs["open"]
    effect = region_effect(*runs)
    assert effect is not None
    return {"open": JudgedPath(effect, firm=not is_doubtful(*runs))}


@pytest.mark.parametrize("other", [TIMED, REAL, PLAIN])
def test_every_search_asks_compare_of_what_it_answers_by_once(other: Sequence[RunCounts]) -> None:
    """Few runs may hide a difference as well as make one."""
    ends = measured(PLAIN), measured(other)
    commits = begin_bisect(History({"a": (), "b": ("a",)}, "a", "b"), *ends)
    asked: list[tuple[Search | SeriesSearch | Bisect, FlipSet, FlipSet]] = [
        (begin([Candidate("X")], *ends), A, X),
        (begin_series([Candidate("X")], *ends), A, X),
        (commits, kernel("a"), kernel("b")),
    ]
    for search, one, another in asked:
        assert search.doubted == {(one, another)}
        told = msgspec.structs.replace(ends[1], judged={one: judged(*ends)})
        assert search.observe(another, told).doubted == set()


def test_a_search_has_the_figures_that_compare_has() -> None:
    """More runs of the region than the kernels have, and in either order."""
    more = [measured([run] * ENOUGH) for run in (PLAIN[0], TIMED[0])]
    told = msgspec.structs.replace(measured(TIMED), judged={A: judged(*more)})
    held = ObservedKernels([(A, measured(PLAIN)), (X, told)])
    assert not held.same(A, X)
    assert not held.same(X, A)
    effect = held.estimates(minus(A, X))["open"]
    assert (effect.value, effect.n) == (-Fraction(953, 100), ENOUGH)
    assert held.unjudged([(A, X), (X, A), (A, A)]) == set()
    open_yet = {"open": JudgedPath(told.judged[A]["open"].effect, firm=False)}
    told = msgspec.structs.replace(told, judged={A: open_yet})
    held = ObservedKernels([(A, measured(PLAIN)), (X, told)])
    assert held.same(A, X)
    assert held.estimates(minus(X, A))["open"].low <= 0


def test_figures_that_compare_has_add_up() -> None:
    """What runs say of the whole, and compare of its parts, is not the same."""
    sides = [measured(shaken(more)) for more in (0, 10, 30)]

    def told(one: Measured, base: FlipSet, by: int) -> Measured:
        effect = Estimate(Fraction(by), Fraction(by - 1), Fraction(by + 1), ENOUGH)
        return msgspec.structs.replace(one, judged={base: {"r0": JudgedPath(effect, firm=True)}})

    held = ObservedKernels(
        [(A, sides[0]), (X, told(sides[1], A, 12)), (X | Y, told(sides[2], X, 23))]
    )
    parts = [held.estimates(minus(*ends))["r0"] for ends in ((X, A), (X | Y, X), (X | Y, A))]
    assert [one.value for one in parts] == [12, 23, 35]
    assert all(one.low <= one.value <= one.high for one in parts)
    others = [held.estimates(minus(*ends))["r1"].value for ends in ((X, A), (X | Y, A))]
    assert others == [10, 30], "what compare did not judge stays as runs have it"


def test_a_patch_has_what_its_code_costs_more() -> None:
    ends = measured(PLAIN), measured(TIMED)
    by_code = {"open": JudgedPath(Estimate(ZERO, ZERO, ZERO, 5), firm=False, code={"f": ZERO + 10})}
    told = msgspec.structs.replace(ends[1], judged={A: by_code})
    (patch,) = begin_series([Candidate("X")], *ends).observe(X, told).answer().patches
    assert patch.code == {"open": {"f": 10}}
    assert not is_seen(patch.effects["open"])


def test_a_commit_is_no_culprit_by_chance() -> None:
    history = History({"a": (), "b": ("a",)}, "a", "b")
    for runs, found in ((TIMED, []), (REAL, ["b"])):
        answer = begin_bisect(history, measured(PLAIN), measured(runs)).answer()
        assert [one.commit for one in answer.culprits] == found


def test_more_runs_of_both_settle_what_was_doubtful() -> None:
    history = History({"a": (), "b": ("a",)}, "a", "b")
    search = begin_bisect(history, measured(PLAIN), measured(TIMED))
    assert search.answer().culprits == ()
    for commit, run in (("a", PLAIN[0]), ("b", TIMED[0])):
        search = search.observe(kernel(commit), measured([run] * ENOUGH))
    (culprit,) = search.answer().culprits
    assert culprit.effects["open"].value == Fraction(953, 100)
    assert search.answer().sums["open"].remainder.value == ZERO


def regions_of(*insns: int) -> RunCounts:
    """A run of regions that execute so much in each iteration."""
    one = [steady(many).regions[0] for many in insns]
    return RunCounts(tuple(msgspec.structs.replace(r, name=f"r{at}") for at, r in enumerate(one)))


def test_the_mean_has_the_range_of_the_means_of_runs() -> None:
    """Two regions that vary against each other: each by 4 of 1,000, their mean not at all."""
    base = [regions_of(1000 + by, 1000 - by) for by in (0, 2, 4)]
    other = [regions_of(1100 + by, 1100 - by) for by in (0, 2, 4)]
    held = kernels(base, other)
    found = held.with_mean(minus(X, A))
    assert found["r0"].high - found["r0"].low == 16
    assert found[MEAN].value == mean_of(found, held).value
    assert found[MEAN].high - found[MEAN].low < Fraction(1, 100)
    assert mean_of(found, held).high - mean_of(found, held).low > 1, "ranges add"
    account = held.mean_sum(minus(X, A), minus(X, A))
    assert account is not None
    assert account.whole == found[MEAN]
    assert account.remainder.value == 0


def mean_of(found: dict[str, Estimate], held: ObservedKernels) -> Estimate:
    costs = {name: held.first[name] for name in ("r0", "r1")}
    mean = mean_percent(found, costs)
    assert mean is not None
    return mean


def test_a_region_that_varies_in_one_kernel_is_in_no_mean() -> None:
    base = [regions_of(1000, 500)] * 3
    other = [regions_of(1000, many) for many in (500, 505, 506)]
    found = kernels(base, other).with_mean(minus(X, A))
    assert found[MEAN].value == 0, "only r0 is in it"
    fine = kernels(base, [regions_of(1000, many) for many in (500, 502, 504)])
    assert fine.with_mean(minus(X, A))[MEAN].value == Fraction(1, 5)


def test_a_mean_is_as_doubtful_as_its_regions() -> None:
    timed = [RunCounts((*TIMED[0].regions,))] * 3
    found = kernels(PLAIN, timed).with_mean(minus(X, A))
    assert found[MEAN].value == Fraction(953, 1000)
    assert found[MEAN].low <= 0


def test_without_runs_there_is_no_mean_of_runs() -> None:
    plain = [msgspec.structs.replace(measured(side), runs={}) for side in (PLAIN, REAL)]
    held = ObservedKernels(zip([A, X], plain, strict=True))
    assert MEAN not in held.with_mean(minus(X, A))
    assert held.mean_sum(minus(X, A), {}) is None


def shaken(more: int, by: Sequence[int] = range(8)) -> list[RunCounts]:
    """Runs that each perturbation moves as far in all kernels."""
    return [
        msgspec.structs.replace(
            regions_of(1000 + more + one, 2000 + more + one), perturbation=index
        )
        for index, one in enumerate(by)
    ]


def test_what_a_perturbation_moves_in_all_kernels_cancels_with_runs_enough() -> None:
    """Two parts and the whole: A counts twice in what is left over."""
    sides = [shaken(more) for more in (0, 10, 20, 30)]
    both = {X: 1, Y: 1, A: -2}
    whole = minus(X | Y, A)
    held = kernels(*sides)
    account = held.mean_sum(whole, both)
    assert account is not None
    assert account.remainder.exact
    assert account.remainder.value == 0
    rest = held.estimates(less(whole, both))["r0"]
    assert rest.high - rest.low > 7, "of a region, which are many, ranges of kernels count"
    few = kernels(*(side[: ENOUGH - 1] for side in sides))
    account = few.mean_sum(whole, both)
    assert account is not None
    assert account.remainder.high - account.remainder.low > Fraction(1, 2), "ranges of kernels add"


def test_a_run_that_failed_in_the_middle_shifts_no_pair() -> None:
    sides = [
        [one for one in shaken(more, range(ENOUGH + 2)) if one.perturbation != missing]
        for more, missing in ((0, 2), (10, None), (20, 5), (30, 2))
    ]
    whole, both = minus(X | Y, A), {X: 1, Y: 1, A: -2}
    account = kernels(*sides).mean_sum(whole, both)
    assert account is not None
    assert account.remainder.exact
    assert account.remainder.value == 0
    assert account.remainder.n == ENOUGH


def test_what_perturbations_move_otherwise_in_one_kernel_does_not_cancel() -> None:
    by = (7, 0, 6, 1, 5, 2, 4, 3)
    held = kernels(shaken(0), shaken(10), shaken(20), shaken(30, by))
    account = held.mean_sum(minus(X | Y, A), {X: 1, Y: 1, A: -2})
    assert account is not None
    assert account.remainder.low < -Fraction(1, 4) < Fraction(1, 4) < account.remainder.high
    assert account.remainder.n == ENOUGH


def test_kernels_that_are_alike_are_judged_by_pairs() -> None:
    """Each perturbation moves all of them by more than the patch does."""
    sides = [measured(shaken(more, (0, 7, 3, 5))) for more in (0, 1, 2, 4)]
    apart = ObservedKernels(zip([A, X, Y, X | Y], sides, strict=True))
    alike = ObservedKernels(
        (flips, msgspec.structs.replace(one, version="6.12.117"))
        for flips, one in zip([A, X, Y, X | Y], sides, strict=True)
    )
    assert apart.same(A, X)
    assert not alike.same(A, X)
    found = alike.with_mean(minus(X, A))
    assert found["r0"].exact
    assert found["r0"].value == 1
    assert found[MEAN].exact
    left = alike.estimates(less(minus(X | Y, A), {X: 1, Y: 1, A: -2}))["r0"]
    assert (left.exact, left.low) == (True, Fraction(1)), "together one more than the sum"
    other = msgspec.structs.replace(sides[1], version="6.12.116")
    assert ObservedKernels(
        [(A, msgspec.structs.replace(sides[0], version="6.12.117")), (X, other)]
    ).same(A, X)


def test_a_region_whose_pairs_are_steady_is_in_the_mean() -> None:
    """Each run of both kernels has one of two levels, 10 % apart; pairs have the same."""
    sides = [
        [
            msgspec.structs.replace(regions_of(1000 + 100 * (at % 2), 500 + more), perturbation=at)
            for at in range(4)
        ]
        for more in (0, 2)
    ]
    alike = [msgspec.structs.replace(measured(one), version="6.12.117") for one in sides]
    found = ObservedKernels(zip([A, X], alike, strict=True)).with_mean(minus(X, A))
    assert found[MEAN].exact
    assert found[MEAN].value == Fraction(1, 5), "of two regions, one of which is 0.4 % more"
    apart = ObservedKernels(zip([A, X], map(measured, sides), strict=True))
    assert apart.with_mean(minus(X, A))[MEAN].value == Fraction(2, 5), "r0 is in no mean"


def test_figures_by_pairs_add_up_whatever_perturbation_0_does() -> None:
    sides = [
        [
            msgspec.structs.replace(regions_of(1000 + one, 2000), perturbation=index)
            for index, one in enumerate(by)
        ]
        for by in ((0, 5, 2, 7), (9, 6, 3, 8), (30, 5, 2, 9))
    ]
    held = ObservedKernels(
        (flips, msgspec.structs.replace(measured(one), version="6.12.117"))
        for flips, one in zip([A, X, X | Y], sides, strict=True)
    )
    parts = [held.estimates(minus(*ends))["r0"] for ends in ((X, A), (X | Y, X), (X | Y, A))]
    assert parts[0].value + parts[1].value == parts[2].value
    assert parts[0].low <= 1 <= parts[0].high, "by the pairs that are shaken"
    means = [held.with_mean(minus(*ends))[MEAN] for ends in ((X, A), (X | Y, X), (X | Y, A))]
    assert means[0].value + means[1].value == means[2].value
