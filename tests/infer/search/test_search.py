# SPDX-License-Identifier: GPL-2.0-or-later
"""The search over sets of units, on kernels whose truth is made up."""

from collections.abc import Mapping
from fractions import Fraction

import msgspec
import pytest

from kdelta.infer.effects.estimate import Adds, effect_between
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search import begin
from kdelta.infer.search.search_model import Candidate, Failed, FlipSet, How, Limits, Measured, Step
from kdelta.spec.run import RunStatus
from tests.infer.simulated import REGIONS, Found, World, named, searched, steps_of, world_of

A: FlipSet = frozenset()


def flips(*names: str) -> FlipSet:
    return frozenset(names)


def hand(
    terms: Mapping[str, int],
    needs: Mapping[str, tuple[str, ...]] | None = None,
    failing: tuple[tuple[FlipSet, FlipSet], ...] = (),
    prior: float = 0.9,
) -> World:
    """Units by their letters: {"X": 5, "XY": -2}: X costs 5, and with Y 2 less."""
    names = sorted({letter for key in terms for letter in key})
    units = tuple(Candidate(name, (needs or {}).get(name, ()), prior) for name in names)
    return World(units, {frozenset(k): {"r0": v} for k, v in terms.items()}, failing=failing)


def effects(found: Found, region: str = "r0") -> dict[str, int]:
    return {unit.name: int(unit.effects[region].value) for unit in found.answer.units}


def hows(found: Found) -> dict[str, How]:
    return {unit.name: unit.how for unit in found.answer.units}


def test_one_at_a_time_is_each_unit_alone_from_a_and_the_sum_checks_it() -> None:
    found = searched(hand({"X": 500, "Y": -200, "Z": 0}))
    assert sorted(found.asked, key=sorted) == [flips("X"), flips("Y"), flips("Z")]
    assert effects(found) == {"X": 500, "Y": -200, "Z": 0}
    assert set(hows(found).values()) == {How.ALONE}
    row = found.answer.sums["r0"]
    assert row.whole.value == row.explained.value == 300
    assert row.remainder.value == 0
    assert row.adds is Adds.ADDS_UP
    assert row.remainder.exact
    assert found.answer.builds == 3
    assert found.answer.notes == ()


def test_a_single_unit_is_decided_by_a_and_b_alone() -> None:
    found = searched(hand({"X": 500}))
    assert found.asked == ()
    assert effects(found) == {"X": 500}
    assert hows(found) == {"X": How.ALONE}


def test_nothing_to_search() -> None:
    world = World((), {})
    search = begin((), world.measured(A), world.measured(A))
    assert not search.next_builds()
    assert search.answer().units == ()
    assert search.answer().sums["r0"].whole.value == 0


def test_where_the_whole_changes_nothing_all_are_cleared_unbuilt() -> None:
    found = searched(world_of(20, 0, seed=1))
    assert found.asked == ()
    assert set(hows(found).values()) == {How.CLEARED}
    assert "cancel exactly" in found.answer.notes[0]


def test_what_was_cleared_costs_zero_within_the_interval_of_its_group() -> None:
    found = searched(world_of(6, 0, seed=2, spread=20))
    for unit in found.answer.units:
        assert {one.value for one in unit.effects.values()} == {0}
        assert all(one.low < 0 < one.high for one in unit.effects.values())
    assert any(row.whole.value for row in found.answer.sums.values())
    assert all(row.adds is not Adds.LEFT_OVER for row in found.answer.sums.values())


def test_a_unit_is_built_on_top_of_what_it_needs() -> None:
    found = searched(hand({"X": 500, "Y": 200, "Z": 50}, needs={"Y": ("X",)}))
    assert flips("X", "Y") in found.asked
    assert flips("Y") not in found.asked
    unit = found.answer.units[1]
    assert (unit.how, unit.text) == (How.ALONE, "alone from A, after X")
    assert effects(found) == {"X": 500, "Y": 200, "Z": 50}


def test_what_needs_many_is_taken_out_of_the_whole() -> None:
    """Flipping Z after X and Y in A would take two builds, as X and Y are flipped alone."""
    world = hand({"W": 40, "X": 500, "Y": 200, "Z": 50}, needs={"Z": ("X", "Y")})
    found = searched(world)
    assert flips("W", "X", "Y") in found.asked
    assert steps_of(found) == [Step.ALONE] * 4 + [Step.CHECK]
    assert found.asked[-1] == flips("X", "Y", "Z")
    assert effects(found) == {"W": 40, "X": 500, "Y": 200, "Z": 50}


def test_the_check_finds_what_only_seems_to_be_a_units_own_effect() -> None:
    """Z, seen in everything but itself, costs what it only does with W."""
    world = hand({"W": 40, "X": 500, "Y": 200, "WZ": 900}, needs={"Z": ("X", "Y")})
    found = searched(world)
    assert effects(found)["Z"] == 0
    (pair,) = found.answer.interactions
    assert set(pair.units) == {"W", "Z"}
    assert pair.effects["r0"].value == 900
    assert found.answer.sums["r0"].adds is Adds.ADDS_UP


@pytest.mark.parametrize(
    ("terms", "alone"),
    [
        ({"XY": 700}, {"X": 0, "Y": 0}),
        ({"X": 700, "XY": -700}, {"X": 700, "Y": 0}),
        ({"X": 700, "Y": 700, "XY": -700}, {"X": 700, "Y": 700}),
        ({"X": 700, "Y": -700, "XY": 90}, {"X": 700, "Y": -700}),
    ],
    ids=["only together", "taken away", "either suffices", "cancelling"],
)
def test_a_pair_that_interacts_is_named(terms: Mapping[str, int], alone: dict[str, int]) -> None:
    others = {"P": 10, "Q": 230, "R": 0, "S": 5000, "T": 0, "X": 0, "Y": 0}
    found = searched(hand({**others, **terms}))
    assert {name: effects(found)[name] for name in alone} == alone
    (pair,) = found.answer.interactions
    assert set(pair.units) == {"X", "Y"}
    assert pair.effects["r0"].value == terms["XY"]
    assert flips("X", "Y") in found.asked
    assert found.answer.sums["r0"].adds is Adds.ADDS_UP


def test_three_that_interact_only_together_are_named_together() -> None:
    found = searched(hand({"U": 60, "V": 0, "W": 800, "X": 0, "Y": 5, "Z": 90, "VXZ": 4000}))
    (group,) = found.answer.interactions
    assert group.units == ("V", "X", "Z")
    assert group.effects["r0"].value == 4000


def test_a_remainder_that_hardly_matters_is_reported_and_not_searched() -> None:
    terms = {"W": 300, "X": 500, "Y": 200, "Z": 5, "XY": 9}
    found = searched(hand(terms))
    assert found.answer.interactions == ()
    assert found.answer.sums["r0"].remainder.value == 9
    assert found.answer.sums["r0"].adds is Adds.LEFT_OVER
    assert any("left over in r0" in note for note in found.answer.notes)
    found = searched(hand(terms), Limits(relevance=Fraction(0)))
    assert [set(pair.units) for pair in found.answer.interactions] == [{"X", "Y"}]


def test_the_budget_for_interactions_is_kept_and_said() -> None:
    world = world_of(14, 7, seed=3, pairs=3, prior=0.9)
    found = searched(world, Limits(interaction_builds=2))
    assert steps_of(found).count(Step.INTERACTION) == 2
    assert any("after 2 builds no more" in note for note in found.answer.notes)
    assert any(row.adds is Adds.LEFT_OVER for row in found.answer.sums.values())


def test_no_more_builds_than_allowed_and_the_rest_is_unresolved_as_a_group() -> None:
    found = searched(world_of(14, 14, seed=3, prior=0.9), Limits(max_builds=5))
    assert len(found.asked) == found.answer.builds == 5
    open_units = [unit for unit in found.answer.units if unit.how is How.UNRESOLVED]
    assert len(open_units) == 9
    assert open_units[0].text == "no builds are left (5 made)"
    assert open_units[0].effects == {}
    (group,) = found.answer.groups
    assert set(group.units) == {unit.name for unit in open_units}
    assert all(row.remainder.value == 0 for row in found.answer.sums.values())


def test_few_builds_go_to_the_units_that_are_likeliest_to_matter() -> None:
    world = hand({"X": 1, "Y": 2, "Z": 3})
    units = tuple(
        Candidate(name, (), prior) for name, prior in (("X", 0.3), ("Y", 0.99), ("Z", 0.5))
    )
    found = searched(msgspec.structs.replace(world, units=units), Limits(max_builds=1))
    assert found.asked == (flips("Y"),)


def test_the_proof_settles_what_was_ruled_out() -> None:
    world = world_of(20, 3, seed=4, pruned=set(named(20)) - {"U003", "U007", "U009"})
    found = searched(world)
    assert found.asked[0] == flips("U003", "U007", "U009")
    assert found.answer.proof.held
    assert found.answer.proof.text.endswith("A has B's path exactly")
    assert hows(found)["U000"] is How.RULED_OUT
    assert found.answer.builds == 4


def test_a_unit_that_a_kept_one_needs_is_kept() -> None:
    world = world_of(4, 4, seed=1, pruned=["U001"], needs={"U002": ("U001",)})
    found = searched(world)
    assert found.answer.proof.held is None
    assert found.answer.proof.text == "nothing was ruled out"
    assert How.RULED_OUT not in hows(found).values()


def test_if_the_proof_does_not_hold_what_was_ruled_out_is_searched() -> None:
    world = world_of(20, 3, seed=3, prior=0.2, pruned=named(20)[8:])
    found = searched(world)
    assert found.asked[0] == frozenset(named(20)[:8])
    assert found.answer.proof.held is False
    assert "ruling out was wrong" in found.answer.proof.text
    assert set(found.answer.proof.differing) <= set(REGIONS)
    assert {unit.name for unit in found.answer.units if any_effect(unit.effects)} == {
        name for key in world.terms for name in key
    }


def any_effect(found: Mapping[str, object]) -> bool:
    return any(getattr(one, "value", 0) for one in found.values())


def test_a_proof_that_does_not_boot_is_no_proof_and_the_search_goes_on() -> None:
    world = world_of(20, 3, seed=3, prior=0.2, pruned=named(20)[8:])
    cure = frozenset(named(20)[8:])
    broken = msgspec.structs.replace(world, failing=((frozenset(named(20)[:8]), cure),))
    found = searched(broken)
    assert found.answer.proof.held is None
    assert found.answer.proof.text.startswith("no proof: ")
    assert "boot-failed: panic" in found.answer.proof.text
    assert all(unit.how is not How.UNRESOLVED for unit in found.answer.units)


def test_a_unit_that_fails_alone_is_taken_out_of_the_whole() -> None:
    found = searched(hand({"X": 500, "Y": 200, "Z": 50}, failing=((flips("X"), flips("Y")),)))
    assert effects(found) == {"X": 500, "Y": 200, "Z": 50}
    assert hows(found)["X"] is How.DIFFERENCE
    assert flips("Y", "Z") in found.asked


def test_a_unit_of_which_no_pair_of_kernels_runs_is_unresolved_with_the_reason() -> None:
    """X needs Y to boot and Y needs X: neither is possible without the other."""
    failing = ((flips("X"), flips("Y")), (flips("Y"), flips("X")))
    found = searched(hand({"W": 70, "X": 500, "Y": 200, "Z": 50}, failing=failing))
    assert hows(found)["X"] is hows(found)["Y"] is How.UNRESOLVED
    assert found.answer.units[1].text == "X flipped: boot-failed: panic"
    (group,) = found.answer.groups
    assert group.units == ("X", "Y")
    assert group.effects["r0"].value == 700
    assert found.answer.sums["r0"].remainder.value == 0


def test_halving_goes_around_kernels_that_fail() -> None:
    world = world_of(24, 2, seed=5, prior=0.05)
    middle = searched(world).asked[0]
    first = world.units[0].name
    broken = msgspec.structs.replace(world, failing=((middle, frozenset(named(24)) - middle),))
    found = searched(broken)
    assert found.asked[0] == middle
    assert first in middle
    assert all(unit.how is not How.UNRESOLVED for unit in found.answer.units)
    assert found.builds <= searched(world).builds + 2


def test_flips_that_the_tree_grants_only_with_more_are_data() -> None:
    world = hand({"X": 500, "Y": 200, "Z": 50})
    search = begin(world.units, world.measured(A), world.measured(flips("X", "Y", "Z")))
    search = search.observe(flips("X"), world.measured(flips("X", "Y")), flips("X", "Y"))
    assert search.observed[-2].outcome == Failed(RunStatus.CONFIG_REFUSED, "granted only with Y")
    while builds := search.next_builds():
        assert builds[0].flips != flips("X")
        search = search.observe(builds[0].flips, world.run(builds[0].flips))
    assert {u.name: u.effects["r0"].value for u in search.answer().units} == {
        "X": 500,
        "Y": 200,
        "Z": 50,
    }


def test_a_region_that_one_kernel_lacks_is_a_difference_and_has_no_figure() -> None:
    world = hand({"X": 0, "Y": 0, "Z": 0})
    paths = dict(world.measured(A).paths)
    without = Measured({name: one for name, one in paths.items() if name != "r0"})
    search = begin(world.units, Measured(paths), without)
    assert search.next_builds()
    for build in search.next_builds():
        gone = "Y" in build.flips
        search = search.observe(build.flips, without if gone else Measured(paths))
    assert not search.next_builds()
    answer = search.answer()
    assert "r0" not in answer.sums
    assert {u.name for u in answer.units if "r0" not in u.effects} == {"Y"}


def test_kernels_that_were_there_already_are_used() -> None:
    world = hand({"X": 500, "Y": 200, "Z": 50})
    search = begin(world.units, world.measured(A), world.measured(flips("X", "Y", "Z")))
    search = search.observe(flips("X", "Y"), world.measured(flips("X", "Y")))
    asked = {build.flips for build in search.next_builds()}
    assert flips("X", "Y") not in asked
    assert asked <= {flips("X"), flips("Y")}


def test_neighbours_are_built_one_after_the_other() -> None:
    """Objects that units reach: X and Z nearly the same ones, Y others."""
    world = hand({"X": 500, "Y": 200, "Z": 50})
    reached = {"X": {1, 2, 3}, "Y": {7, 8, 9, 10}, "Z": {2, 3}}

    def distance(one: FlipSet, other: FlipSet) -> float:
        return len(set().union(*(reached[name] for name in one ^ other)))

    search = begin(world.units, world.measured(A), world.measured(flips("X", "Y", "Z")))
    assert [set(build.flips) for build in search.next_builds(distance)] == [{"Z"}, {"X"}, {"Y"}]


def test_each_build_says_why() -> None:
    world = hand({"X": 500, "Y": 200, "Z": 50}, needs={"Y": ("X",)})
    search = begin(world.units, world.measured(A), world.measured(flips("X", "Y", "Z")))
    assert [build.reason for build in search.next_builds()] == [
        "X alone, from A",
        "Y on top of what it needs (X)",
        "Z alone, from A",
    ]
    assert search.answer().strategy.startswith("one at a time: about ")
    sparse = world_of(24, 2, seed=5, prior=0.05)
    search = begin(sparse.units, sparse.measured(A), sparse.measured(frozenset(named(24))))
    assert search.next_builds()[0].reason == (
        "U000, U001, U002 and 9 more (12 of a group of 24): if nothing changes they are all cleared"
    )
    assert search.answer().strategy.startswith("by halves: about ")


def test_what_is_asked_for_can_be_built() -> None:
    world = hand({"X": 500, "Y": 200}, needs={"Y": ("X",)})
    search = begin(world.units, world.measured(A), world.measured(flips("X", "Y")))
    with pytest.raises(ValueError, match="no set of flips"):
        search.observe(flips("Y"), world.measured(A))


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"X": ("Q",)}, "X needs Q, which is no unit"),
        ({"X": ("Y",), "Y": ("X",)}, "X needs itself"),
    ],
)
def test_needs_that_cannot_be(needs: Mapping[str, tuple[str, ...]], message: str) -> None:
    units = [Candidate(name, needs.get(name, ())) for name in ("X", "Y")]
    with pytest.raises(ValueError, match=message):
        Needs(units)


def test_two_kernels_give_the_effect_between_them() -> None:
    world = world_of(3, 3, seed=1, prior=0.9, spread=40)
    found = searched(world)
    paths = {one.flips: one.outcome for one in found.search.observed}
    a, x = paths[A], paths[flips("U000")]
    assert isinstance(a, Measured)
    assert isinstance(x, Measured)
    for region, effect in found.answer.units[0].effects.items():
        between = effect_between(a.paths[region], x.paths[region])
        assert effect.value == between.value
        assert effect.low <= between.low <= between.high <= effect.high
