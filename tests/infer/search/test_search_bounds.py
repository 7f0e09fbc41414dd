# SPDX-License-Identifier: GPL-2.0-or-later
"""The search on any world: what it says is true, and how many builds it takes."""

import random
from collections.abc import Mapping
from statistics import mean

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.infer.effects.estimate import Adds
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search_model import Candidate, FlipSet, How, Limits, Step
from tests.infer.simulated import REGIONS, Found, World, named, searched, steps_of, world_of

pytestmark = pytest.mark.long

KNOWN = {How.ALONE, How.DIFFERENCE, How.CLEARED, How.INFERRED}

sizes = st.integers(-50_000, 50_000).map(lambda size: size or 7_777)
seeds = st.integers(0, 2**32)
priors = st.sampled_from([0.05, 0.3, 0.5, 0.9])


def random_needs(count: int, seed: int, share: float) -> dict[str, tuple[str, ...]]:
    random_ = random.Random(seed)
    names = named(count)
    return {
        name: tuple(below for below in names[:place] if random_.random() < share)
        for place, name in enumerate(names)
    }


@st.composite
def additive_worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(1, 14))
    return world_of(
        count,
        draw(st.integers(0, count)),
        draw(seeds),
        prior=draw(priors),
        needs=random_needs(count, draw(seeds), draw(st.sampled_from([0.0, 0.1, 0.4]))),
    )


@st.composite
def worlds_with_pairs(draw: st.DrawFn) -> World:
    """Additive ones with a pair that masks, absorbs, or does anything else."""
    world = draw(additive_worlds())
    if len(world.units) < 2:
        return world
    two = draw(
        st.sets(st.sampled_from([unit.name for unit in world.units]), min_size=2, max_size=2)
    )
    one = world.terms.get(frozenset(sorted(two)[:1]), {"r0": 500})
    kind = draw(st.sampled_from(["only together", "taken away", "any"]))
    terms = dict(world.terms)
    if kind == "only together":
        terms.pop(frozenset(sorted(two)[:1]), None)
        terms[frozenset(two)] = one
    elif kind == "taken away":
        terms[frozenset(sorted(two)[:1])] = one
        terms[frozenset(two)] = {region: -size for region, size in one.items()}
    else:
        terms[frozenset(two)] = draw(st.dictionaries(st.sampled_from(REGIONS), sizes, min_size=1))
    return msgspec.structs.replace(world, terms=terms)


@st.composite
def failing_worlds(draw: st.DrawFn) -> World:
    world = draw(additive_worlds())
    names = st.sets(st.sampled_from([unit.name for unit in world.units]), min_size=1, max_size=2)
    rules = draw(st.lists(st.tuples(names, names), max_size=3))
    return msgspec.structs.replace(
        world, failing=tuple((frozenset(bad), frozenset(cure)) for bad, cure in rules)
    )


def check_what_is_reported(world: World, found: Found) -> None:
    """Each figure is the truth about the two kernels it comes from, each sum is complete."""
    needs = Needs(world.units)
    for flips in found.asked:
        assert needs.is_closed(flips)
    assert found.answer.builds == len(found.asked)
    assert {unit.name for unit in found.answer.units} == set(needs.names)
    for unit in found.answer.units:
        assert bool(unit.effects) is (unit.how in KNOWN)
        if unit.how is How.ALONE:
            assert values(unit.effects) == world.alone(unit.name)
    for region, row in found.answer.sums.items():
        everything = frozenset(needs.names)
        assert row.whole.value == world.cost(everything, region) - world.cost(frozenset(), region)
        assert row.whole.value == row.explained.value + row.remainder.value
        parts = [unit.effects for unit in found.answer.units]
        parts += [group.effects for group in found.answer.groups]
        parts += [pair.effects for pair in found.answer.interactions]
        assert sum(part[region].value for part in parts if part) == row.explained.value


def values(effects: Mapping[str, object]) -> dict[str, int]:
    return {region: int(getattr(one, "value", 0)) for region, one in effects.items()}


def cancel_exactly(world: World, group: FlipSet) -> bool:
    """Whether an effect and the interaction that takes it away are both in a group."""
    return any(len(key) > 1 and key <= group for key in world.terms)


@given(additive_worlds())
def test_additive_effects_are_found(world: World) -> None:
    found = searched(world)
    check_what_is_reported(world, found)
    for unit in found.answer.units:
        assert values(unit.effects) == world.alone(unit.name), unit
    assert found.answer.interactions == ()
    assert all(row.remainder.value == 0 for row in found.answer.sums.values())
    count = len(world.units)
    halved = Step.HALVING in steps_of(found)
    assert found.builds <= count + (2 if halved else 1)
    if not halved and not any(unit.needs for unit in world.units):
        assert found.builds <= count


@given(worlds_with_pairs())
@pytest.mark.slow
def test_pairs_do_not_make_it_log_what_is_not_true(world: World) -> None:
    found = searched(world, Limits(interaction_builds=40))
    check_what_is_reported(world, found)
    evidence = found.search._plan.account.evidence
    notes = " ".join(found.answer.notes)
    for unit in found.answer.units:
        if unit.how is How.CLEARED and values(unit.effects) != world.alone(unit.name):
            assert cancel_exactly(world, evidence[unit.name].group) or "was not checked" in notes
    for row in found.answer.sums.values():
        assert row.adds is not Adds.LEFT_OVER or "left over" in notes


@given(failing_worlds())
def test_failures_are_searched_around(world: World) -> None:
    found = searched(world)
    check_what_is_reported(world, found)
    for unit in found.answer.units:
        if unit.how in KNOWN:
            assert values(unit.effects) == world.alone(unit.name), unit
        else:
            assert "boot-failed: panic" in unit.text
    assert all(row.remainder.value == 0 for row in found.answer.sums.values())
    if not world.failing:
        assert not found.answer.groups


@settings(max_examples=60, deadline=None)
@given(failing_worlds(), st.integers(0, 12))
@pytest.mark.slow
def test_no_more_builds_than_allowed(world: World, limit: int) -> None:
    found = searched(world, Limits(max_builds=limit))
    check_what_is_reported(world, found)
    assert len(found.asked) <= limit


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), seeds, priors)
@pytest.mark.slow
def test_spread_is_not_taken_for_an_effect_nor_an_interaction(
    count: int, seed: int, prior: float
) -> None:
    """Effects are a hundred and more, spreads twenty: what matters and what does not is told, and
    in nearly all worlds nothing else is seen.
    """
    world = world_of(count, count // 2, seed, prior=prior, spread=20)
    found = searched(world)
    for unit in found.answer.units:
        large = {region for region, size in world.alone(unit.name).items() if abs(size) > 60}
        seen = {r for r, one in unit.effects.items() if not one.low <= 0 <= one.high}
        assert large <= seen


@pytest.mark.slow
def test_spread_hardly_ever_costs_builds() -> None:
    still = [searched(world_of(14, 7, seed, prior=0.5)).builds for seed in range(12)]
    noisy = [searched(world_of(14, 7, seed, prior=0.5, spread=20)) for seed in range(12)]
    assert sum(found.builds for found in noisy) <= sum(still) + 3
    assert (
        sum(row.adds is not Adds.LEFT_OVER for found in noisy for row in found.answer.sums.values())
        >= 71
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "matter", "prior", "average", "most"),
    [
        (9, 3, 0.1, 9, 11),
        (12, 1, 0.1, 5, 7),
        (16, 3, 0.1, 11, 14),
        (40, 3, 0.1, 16, 20),
        (40, 3, 0.5, 16, 20),
        (100, 3, 0.05, 19, 24),
        (100, 1, 0.05, 10, 12),
    ],
)
def test_where_few_matter_few_are_built(
    count: int, matter: int, prior: float, average: int, most: int
) -> None:
    builds = [searched(world_of(count, matter, seed, prior=prior)).builds for seed in range(8)]
    assert mean(builds) <= average
    assert max(builds) <= most


@pytest.mark.parametrize("pruned_to", [3, 5, 7])
def test_a_hundred_units_take_a_tenth_once_most_are_ruled_out(pruned_to: int) -> None:
    """The proof is among the builds."""
    for seed in range(5):
        world = world_of(100, 3, seed, prior=0.5)
        matter = {name for key in world.terms for name in key}
        kept = matter | set(named(pruned_to))
        kept = matter | set(sorted(kept - matter)[: pruned_to - 3])
        units = tuple(
            msgspec.structs.replace(unit, pruned=unit.name not in kept) for unit in world.units
        )
        found = searched(msgspec.structs.replace(world, units=units))
        assert found.answer.builds <= 10
        assert found.answer.proof.held
        found_ = {u.name for u in found.answer.units if any(values(u.effects).values())}
        assert found_ == matter


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0.05, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("count", [5, 12, 16, 24, 40])
def test_a_wrong_prior_costs_two_builds_at_most(count: int, prior: float) -> None:
    """All units matter, and few were expected to."""
    for seed in range(3):
        found = searched(world_of(count, count, seed, prior=prior))
        assert found.builds <= count + 2
        assert {unit.how for unit in found.answer.units} <= {How.ALONE, How.DIFFERENCE}


@pytest.mark.slow
def test_a_suspect_is_found_with_fewer_builds() -> None:
    """A unit whose whole effect another takes away gives itself away by what is left over."""
    built = []
    for seed in range(10):
        world = world_of(14, 7, seed, prior=0.9)
        random_ = random.Random(seed)
        one = random_.choice(sorted(next(iter(key)) for key in world.terms))
        other = random_.choice([unit.name for unit in world.units if unit.name != one])
        taken = {region: -size for region, size in world.terms[frozenset({one})].items()}
        terms = {**world.terms, frozenset({one, other}): taken}
        found = searched(msgspec.structs.replace(world, terms=terms))
        (pair,) = found.answer.interactions
        assert set(pair.units) == {one, other}
        built.append(steps_of(found).count(Step.INTERACTION))
    assert mean(built) <= 6  # halves alone would take 8 for one of 91 pairs


def test_the_same_observations_give_the_same_search() -> None:
    world = world_of(12, 3, seed=2, prior=0.1)
    one, other = searched(world), searched(world)
    assert one.search == other.search
    assert one.asked == other.asked


def test_units_in_any_number_need_each_other() -> None:
    """A chain of needs has one row only."""
    names = named(8)
    units = tuple(Candidate(name, tuple(names[:place]), 0.9) for place, name in enumerate(names))
    world = world_of(8, 4, seed=1)
    found = searched(msgspec.structs.replace(world, units=units))
    assert found.builds <= 7
    assert {unit.how for unit in found.answer.units} <= {How.ALONE, How.CLEARED}
