# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects planted in functions, and read from kernels that have many units flipped."""

import random
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.infer.effects.estimate import Adds, Estimate, estimate
from kdelta.infer.search.coded import code_sets
from kdelta.infer.search.decode import Term, decode_differences
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search import begin
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    Failed,
    FlipSet,
    How,
    Limits,
    Measured,
    SearchAnswer,
    Step,
)
from kdelta.spec.run import RunStatus

Planted = Mapping[str, Mapping[Term, int]]
"""function -> what units (alone, or a pair together) add to its cost."""

NAMES = tuple(f"u{i}" for i in range(16))
ALONE = tuple(frozenset({name}) for name in NAMES)
BASE = 1000
CODED = Limits(coded_from=6)


def only(*names: str) -> Term:
    return frozenset(names)


def kernel(planted: Planted, flips: FlipSet, spread: int = 0) -> dict[str, dict[str, Estimate]]:
    chance = random.Random(f"{sorted(flips)}")

    def runs(effects: Mapping[Term, int]) -> Estimate:
        cost = BASE + sum(value for term, value in effects.items() if term <= flips)
        return estimate([Fraction(cost + chance.randint(0, spread)) for _ in range(3)])

    return {"r": {name: runs(effects) for name, effects in planted.items()}}


def coded(planted: Planted, spread: int = 0) -> dict[FlipSet, dict[str, dict[str, Estimate]]]:
    needs = Needs([Candidate(name) for name in NAMES])
    sets = (NOTHING, frozenset(NAMES), *code_sets(needs, ALONE))
    return {flips: kernel(planted, flips, spread) for flips in sets}


def found(planted: Planted, spread: int = 0) -> dict[Term, Fraction]:
    effects = decode_differences(NAMES, coded(planted, spread)).effects()
    return {term: regions["r"] for term, regions in effects.items()}


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.sampled_from(NAMES), st.integers(-900, 900).filter(bool)))
@pytest.mark.slow
def test_each_in_a_function_of_its_own(effects: dict[str, int]) -> None:
    planted = {f"f{name}": {only(name): value} for name, value in effects.items()}
    assert found(planted) == {only(name): value for name, value in effects.items()}


def test_two_in_one_function() -> None:
    assert found({"f": {only("u3"): 7, only("u9"): -40}}) == {only("u3"): 7, only("u9"): -40}


def test_what_too_many_do_in_one_function_is_left_open_and_given_to_none() -> None:
    planted = {
        "f": {only("u1"): 3, only("u5"): 10, only("u7"): 31, only("u12"): 100},
        "g": {only("u1"): 4},
    }
    decoding = decode_differences(NAMES, coded(planted))
    assert decoding.open == {"r": {"f": 144}}
    assert decoding.effects() == {only("u1"): {"r": 4}}


def test_what_two_do_only_together() -> None:
    sets = code_sets(Needs([Candidate(name) for name in NAMES]), ALONE)
    one, two = next(
        (one, two)
        for one in NAMES
        for two in NAMES
        if {(True, False), (False, True), (True, True)}
        <= {(one in flips, two in flips) for flips in sets}
    )
    both = only(one, two)
    planted = {"f": {only(one): 5}, "g": {only(two): 9}, "h": {both: 50}}
    # Some other unit may be in just the kernels that have both: one with both alone tells.
    kernels = coded(planted)
    kernels[both] = kernel(planted, both)
    effects = decode_differences(NAMES, kernels).effects()
    assert effects[both] == {"r": 50}
    assert set(effects) == {only(one), only(two), both}


def test_a_spread_is_nobodys_doing() -> None:
    planted: Planted = {f"f{i}": {} for i in range(30)}
    kernels = coded(planted, spread=2)
    decoding = decode_differences(NAMES, kernels)
    assert sum(abs(value) for row in decoding.effects().values() for value in row.values()) < 30


def test_an_effect_above_the_spread() -> None:
    effects = found({"f": {only("u6"): 500}}, spread=4)
    assert set(effects) == {only("u6")}
    assert abs(effects[only("u6")] - 500) <= 4


def test_functions_that_come_and_go() -> None:
    kernels = coded({"f": {only("u6"): 500}})
    for flips, parts in kernels.items():
        if "u6" in flips:
            parts["r"]["new"] = Estimate(Fraction(30), Fraction(30), Fraction(30), 3)
            del parts["r"]["f"]
    assert decode_differences(NAMES, kernels).effects() == {only("u6"): {"r": 30 - BASE}}


def measured(planted: Planted, flips: FlipSet) -> Measured:
    parts = kernel(planted, flips)
    total = sum((one.value for one in parts["r"].values()), Fraction(0))
    return Measured({"r": Estimate(total, total, total, 3)}, parts)


def searched(planted: Planted, limits: Limits | None = None) -> tuple[SearchAnswer, list[Step]]:
    units = [Candidate(name, prior=0.5) for name in NAMES]
    ends = measured(planted, NOTHING), measured(planted, frozenset(NAMES))
    search = begin(units, *ends, limits or CODED)
    steps = []
    while builds := search.next_builds():
        steps.append(builds[0].step)
        search = search.observe(builds[0].flips, measured(planted, builds[0].flips))
    return search.answer(), steps


EIGHT: Planted = {f"f{i}": {only(f"u{2 * i}"): 10 * i - 45} for i in range(8)}


def test_half_of_sixteen_units_matter_and_four_kernels_tell() -> None:
    answer, steps = searched(EIGHT)
    assert steps == [Step.CODED] * 4
    assert answer.builds == 4
    for unit in answer.units:
        number = int(unit.name[1:])
        even = number % 2 == 0
        assert unit.how is (How.DECODED if even else How.CLEARED)
        assert unit.effects["r"].value == (5 * number - 45 if even else 0)
    assert answer.sums["r"].adds is Adds.ADDS_UP
    assert answer.sums["r"].remainder.value == 0


@pytest.mark.slow
def test_what_the_code_leaves_open_is_settled_one_by_one() -> None:
    crowd = {only(f"u{i}"): 2 ** (i + 3) for i in range(4)}
    planted: Planted = {**EIGHT, "crowd": crowd}
    answer, steps = searched(planted)
    assert steps[:4] == [Step.CODED] * 4
    assert set(steps[4:]) == {Step.SETTLE}
    assert len(steps) <= 10
    effects = {one.name: one.effects["r"].value for one in answer.units}
    alone = {one.name for one in answer.units if one.how is How.ALONE}
    for name in alone:
        assert effects[name] == sum(row.get(only(name), 0) for row in planted.values())


def searched_with(priors: Mapping[str, float], planted: Planted) -> tuple[SearchAnswer, list[Step]]:
    units = [Candidate(name, prior=priors[name]) for name in NAMES]
    search = begin(units, measured(planted, NOTHING), measured(planted, frozenset(NAMES)), CODED)
    steps = []
    while builds := search.next_builds():
        steps.append(builds[0].step)
        search = search.observe(builds[0].flips, measured(planted, builds[0].flips))
    return search.answer(), steps


FEW_LIKELY = {name: 0.9 if name in {"u0", "u1", "u2"} else 0.02 for name in NAMES}


def test_units_that_hardly_matter_are_cleared_together() -> None:
    planted: Planted = {"f": {only("u0"): 10}, "g": {only("u2"): -20}, "h": {only("u1"): 3}}
    answer, steps = searched_with(FEW_LIKELY, planted)
    assert steps == [Step.CODED] * 2
    effects = {one.name: one.effects["r"].value for one in answer.units}
    assert {name: value for name, value in effects.items() if value} == {
        "u0": 10,
        "u1": 3,
        "u2": -20,
    }
    assert answer.groups == ()


def test_one_of_those_that_hardly_matter_does_and_is_found() -> None:
    planted: Planted = {"f": {only("u0"): 10}, "g": {only("u9"): -20}}
    answer, steps = searched_with(FEW_LIKELY, planted)
    assert steps[:2] == [Step.CODED] * 2
    assert len(steps) <= 6
    effects = {one.name: one.effects["r"].value for one in answer.units if one.effects}
    assert {name: value for name, value in effects.items() if value} == {"u0": 10, "u9": -20}
    assert answer.sums["r"].remainder.value == 0


def test_what_is_too_little_to_be_looked_for_stays_together() -> None:
    planted: Planted = {"f": {only("u0"): 10}, "g": {only("u9"): 1}}
    answer, steps = searched_with(FEW_LIKELY, planted)
    assert steps == [Step.CODED] * 2
    (group,) = answer.groups
    assert "u9" in group.units
    assert group.effects["r"].value == 1
    assert answer.sums["r"].remainder.value == 0


def test_a_kernel_of_the_code_that_fails_is_searched_around() -> None:
    units = [Candidate(name, prior=0.5) for name in NAMES]
    search = begin(units, measured(EIGHT, NOTHING), measured(EIGHT, frozenset(NAMES)), CODED)
    first = search.next_builds()[0]
    assert first.step is Step.CODED
    search = search.observe(first.flips, Failed(RunStatus.BOOT_FAILED, "panic"))
    steps = {build.step for build in search.next_builds()}
    assert steps
    assert Step.CODED not in steps


@pytest.mark.parametrize("count", [0, 1])
def test_builds_are_not_more_than_allowed(count: int) -> None:
    answer, steps = searched(EIGHT, Limits(max_builds=count, coded_from=6))
    assert len(steps) == count
    assert any("the search ended" in note for note in answer.notes)


def test_without_functions_nothing_is_coded() -> None:
    units = [Candidate(name, prior=0.5) for name in NAMES]
    a, b = (Measured(measured(EIGHT, flips).paths) for flips in (NOTHING, frozenset(NAMES)))
    assert Step.CODED not in {build.step for build in begin(units, a, b, CODED).next_builds()}


def test_few_units_are_not_searched_by_code() -> None:
    units = [Candidate(name, prior=0.5) for name in NAMES]
    ends = measured(EIGHT, NOTHING), measured(EIGHT, frozenset(NAMES))
    assert Step.CODED in {build.step for build in begin(units, *ends, CODED).next_builds()}
    assert Step.CODED not in {build.step for build in begin(units, *ends).next_builds()}
