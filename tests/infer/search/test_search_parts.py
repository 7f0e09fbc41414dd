# SPDX-License-Identifier: GPL-2.0-or-later
"""What the search is made of: sums of kernels, evidence, rows, pairs."""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.additive import Combination, ObservedKernels, added, less, minus
from kdelta.infer.search.evidence import Account, Culprits, Lost, Question, find_evidence, smallest
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.screening import (
    by_what_they_need,
    check_sets,
    middle,
    pairs_for,
    row_of,
    seen_on_top,
)
from kdelta.infer.search.search_model import Candidate, Failed, FlipSet, How, Measured, Outcome
from kdelta.spec.run import RunStatus

FAILED = Failed(RunStatus.BUILD_FAILED, "no memory")


def flips(letters: str) -> FlipSet:
    return frozenset(letters)


def kernel(value: int, spread: int = 0, *regions: str) -> Measured:
    one = Estimate(Fraction(value), Fraction(value - spread), Fraction(value + spread), 3)
    return Measured(dict.fromkeys(regions or ("r",), one))


def kernels(measured: Mapping[str, int], failed: str = "") -> ObservedKernels:
    """What sets of letters cost; `failed` are sets that failed."""
    rows: list[tuple[FlipSet, Outcome]] = [(flips(k), kernel(v)) for k, v in measured.items()]
    return ObservedKernels([*rows, *((flips(letters), FAILED) for letters in failed.split())])


def needs_of(letters: str, **needs: str) -> Needs:
    return Needs([Candidate(name, tuple(needs.get(name, ()))) for name in letters])


def test_a_kernel_on_both_sides_cancels_with_its_spread() -> None:
    found = ObservedKernels(
        [(flips(k), kernel(v, 5)) for k, v in {"": 10, "X": 30, "XY": 90}.items()]
    )
    x, y = minus(flips("X"), flips("")), minus(flips("XY"), flips("X"))
    whole = minus(flips("XY"), flips(""))
    assert added([x, y]) == whole
    assert less(whole, x, y) == {}
    assert found.estimates(whole)["r"] == Estimate(Fraction(80), Fraction(60), Fraction(100), 3)
    assert found.estimates({})["r"].exact


def test_ranges_of_many_kernels_do_not_simply_add_up() -> None:
    names = [flips(letter) for letter in "ABCDEFGH"]
    found = ObservedKernels([(flips(""), kernel(0, 5)), *((name, kernel(7, 5)) for name in names)])
    combination: Combination = dict.fromkeys(names, 1)
    effect = found.estimates(combination)["r"]
    assert effect.value == 56
    assert float(effect.half_width) == pytest.approx(10 * (2 * 8) ** 0.5, abs=1e-5)
    assert float(effect.half_width) < 8 * 10


def test_a_range_that_is_small_by_luck_counts_as_the_usual_one() -> None:
    rows = {"": (100, 5), "X": (100, 5), "Y": (112, 0), "Z": (141, 5)}
    found = ObservedKernels([(flips(k), kernel(*row)) for k, row in rows.items()])
    assert found.same(flips("Y"), flips(""))
    assert not found.same(flips("Z"), flips(""))
    exact = ObservedKernels([(flips(k), kernel(row[0], 0)) for k, row in rows.items()])
    assert not exact.same(flips("Y"), flips(""))


def test_what_is_left_over_is_relevant_by_its_part_of_a() -> None:
    found = kernels({"": 1000, "X": 1001, "Y": 1002})
    x, y = (minus(flips(name), flips("")) for name in "XY")
    assert not found.is_relevant(x, Fraction(1, 1000))
    assert found.is_relevant(y, Fraction(1, 1000))
    assert found.is_relevant(x, Fraction(0))


def test_the_pair_of_kernels_nearest_to_a_decides() -> None:
    found = find_evidence(
        needs_of("WXYZ"),
        kernels({"": 10, "Z": 14, "XZ": 19, "WXZ": 19, "WXYZ": 40, "X": 12}),
        "WXYZ",
    )
    assert {name: one.how for name, one in found.items()} == {
        "W": How.DIFFERENCE,
        "X": How.ALONE,
        "Y": How.DIFFERENCE,
        "Z": How.ALONE,
    }
    assert found["X"].effect == minus(flips("X"), flips(""))


def test_a_group_seen_from_a_goes_before_a_unit_seen_on_top_of_others() -> None:
    """X does something with Y only."""
    found = find_evidence(needs_of("XYZ"), kernels({"": 10, "XZ": 10, "Y": 11, "XY": 50}), "XYZ")
    assert found["X"].how is How.CLEARED
    assert found["Z"].how is How.CLEARED
    assert found["Z"].group == flips("XZ")


def test_a_group_whose_steps_cancel_clears_none() -> None:
    found = find_evidence(needs_of("XYZ"), kernels({"": 10, "X": 30, "XYZ": 10}), "XYZ")
    assert set(found) == {"X"}


def test_two_that_do_something_elsewhere_are_not_cleared_together() -> None:
    """X does 20, and with Y nothing: with Z they must not seem to do nothing, either of them."""
    measured = {"": 10, "Z": 15, "XZ": 35, "XYZ": 15, "XY": 10}
    found = find_evidence(needs_of("XYZ"), kernels(measured), "XYZ")
    assert found["X"].how is How.DIFFERENCE
    assert found["Y"].how is How.DIFFERENCE


def test_what_no_kernels_tell_apart_is_a_group_and_a_single_one_is_inferred() -> None:
    account = Account(
        needs_of("VWXYZ"),
        kernels({"": 10, "V": 11, "VWX": 31, "VWXYZ": 100}),
        "VWXYZ",
        flips("VWXYZ"),
    )
    assert sorted(sorted(group.units) for group in account.groups) == [["W", "X"], ["Y", "Z"]]
    account = Account(
        needs_of("XYZ"), kernels({"": 10, "X": 11, "Z": 19, "XYZ": 50}), "XYZ", flips("XYZ")
    )
    assert account.groups == []
    inferred = account.evidence["Y"]
    assert inferred.how is How.INFERRED
    assert account.kernels.estimates(inferred.effect)["r"].value == 50 - 10 - 1 - 9
    assert account.undecided() == ["Y"]


def test_what_needs_many_is_taken_out_of_the_whole_one_after_the_other() -> None:
    needs = needs_of("WXYZ", Y="WX", Z="WX")
    found = pairs_for(needs, kernels({"": 1, "WXYZ": 9}), flips("WXYZ"), "WXYZ", tries=3)
    assert found == {
        "W": (flips("W"), flips("")),
        "X": (flips("X"), flips("")),
        "Z": (flips("WXYZ"), flips("WXY")),
        "Y": (flips("WXY"), flips("WX")),
    }


def test_a_unit_whose_kernels_fail_is_given_up_after_some_tries() -> None:
    needs = needs_of("WXYZ")
    known = {"": 1, "WXYZ": 9, "W": 2, "Y": 3, "Z": 3}
    whole = flips("WXYZ")
    assert pairs_for(needs, kernels(known, "X"), whole, "X", 3) == {
        "X": (whole, flips("WYZ")),
    }
    assert pairs_for(needs, kernels(known, "X WYZ"), whole, "X", 3) == {
        "X": (flips("WX"), flips("W")),
    }
    assert pairs_for(needs, kernels(known, "X WYZ WX"), whole, "X", 3) == {}
    assert pairs_for(needs, kernels(known, "X WYZ WX"), whole, "X", 4) == {
        "X": (flips("XY"), flips("Y")),
    }


def test_a_row_is_parted_besides_a_kernel_that_failed_a_few_times() -> None:
    priors = dict.fromkeys("STUVWX", 0.1)
    assert middle_of("", priors, 2) == flips("STU")
    assert middle_of("STU", priors, 2) == flips("ST")
    assert middle_of("STU ST", priors, 2) is None
    assert middle_of("STU ST", priors, 3) == flips("STUV")


def test_a_row_is_parted_where_both_halves_are_as_likely() -> None:
    priors = {**dict.fromkeys("STUVW", 0.01), "X": 0.9}
    assert middle_of("", priors, 2) == flips("STUVW")


def middle_of(failed: str, priors: dict[str, float], tries: int) -> FlipSet | None:
    """Where a row of six units is parted after these sets failed."""
    held = kernels({"": 1, "STUVWX": 9}, failed)
    return middle(row_of("STUVWX", held)[0], priors, held.failed, tries)


@pytest.mark.parametrize("count", range(1, 10))
def test_of_any_two_units_a_check_has_the_later_one_without_the_other(count: int) -> None:
    letters = "ABCDEFGHI"[:count]
    sets = check_sets(needs_of(letters), letters)
    assert len(sets) == count.bit_length()
    for place, later in enumerate(letters):
        assert any(later in one for one in sets)
        for earlier in letters[:place]:
            assert any(later in one and earlier not in one for one in sets)


def test_what_was_cleared_on_top_of_what_does_something_is_to_be_checked() -> None:
    needs = needs_of("WXYZ", Y="X")
    known = kernels({"": 1, "W": 1, "WX": 9, "WXYZ": 9})
    evidence = find_evidence(needs, known, "WXYZ")
    culprits, cleared = seen_on_top(known, "WXYZ", evidence)
    assert (culprits, cleared) == (["X"], ["Y", "Z"])
    # Y needs X, which may be what hides Z's effect: they do not share a kernel.
    assert by_what_they_need(needs, known, cleared, evidence) == [flips("XY"), flips("Z")]


def find_smallest(whole: str, parts: list[str], failed: str = "") -> tuple[FlipSet | None, int]:
    """What is found in a set when sets that hold one of `parts` are not explained, and with how
    many kernels.
    """
    known: dict[FlipSet, bool] = {flips(whole): True, flips(""): False}
    known.update((flips(letter), False) for letter in whole)
    broken = [flips(letters) for letters in failed.split()]
    weights = dict.fromkeys(whole, 1.0)
    for built in range(100):
        outcome = smallest(whole, weights, needs_of(whole), known.get, broken)
        if isinstance(outcome, Culprits):
            return outcome.units, built
        if isinstance(outcome, Lost):
            return None, built
        assert isinstance(outcome, Question)
        assert outcome.flips not in broken
        known[outcome.flips] = any(flips(part) <= outcome.flips for part in parts)
    raise AssertionError("no end")


def test_the_smallest_part_is_found() -> None:
    whole = "ABCDEFGHIJKLMNOP"
    for pair in ("AB", "AP", "OP", "CJ"):
        found, built = find_smallest(whole, [pair])
        assert found == flips(pair)
        assert built <= 9
    assert find_smallest(whole, ["BFM"])[0] == flips("BFM")
    assert find_smallest(whole, ["BF", "KM"])[0] in {flips("BF"), flips("KM")}


def test_the_smallest_part_is_lost_when_its_kernels_fail() -> None:
    assert find_smallest("ABCD", ["BC"], failed="ABC AB") == (None, 0)
    assert find_smallest("ABCD", ["BC"], failed="ABC")[0] is None
    assert find_smallest("ABCDEFGH", ["BG"], failed="ABCDE")[0] == flips("BG")
    assert find_smallest("ABCD", ["BC"], failed="BC")[0] is None
