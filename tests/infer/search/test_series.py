# SPDX-License-Identifier: GPL-2.0-or-later
"""What each patch of a made-up series does: planted effects are found, with few kernels."""

import math
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kdelta.infer.effects.estimate import Adds, Estimate
from kdelta.infer.search.search_model import (
    Candidate,
    Limits,
    Measured,
    PatchOutcome,
    SeriesAnswer,
    Step,
    View,
)
from kdelta.infer.search.series import SeriesSearch, begin_series
from tests.infer.planted import BASE, World, by_region, summed

ORDER = (View.ORDER,)
EVERY = (View.ORDER, View.LEFT_OUT, View.ALONE)


def begun(
    world: World,
    views: tuple[View, ...] = ORDER,
    *,
    patches: list[Candidate] | None = None,
    limits: Limits | None = None,
) -> SeriesSearch:
    ends = world.outcome(frozenset()), world.outcome(frozenset(world.names))
    assert isinstance(ends[0], Measured)
    assert isinstance(ends[1], Measured)
    return begin_series(patches or world.patches(), ends[0], ends[1], views, limits)


def finished(search: SeriesSearch, world: World) -> tuple[SeriesAnswer, list[Step]]:
    steps = []
    while builds := search.next_builds():
        chosen = builds[0].flips
        assert world.applies(chosen), builds[0]
        assert all(one.flips != chosen for one in search.observed), builds[0]
        steps.append(builds[0].step)
        search = search.observe(chosen, world.outcome(chosen))
    return search.answer(), steps


def found(answer: SeriesAnswer) -> dict[str, dict[str, int]]:
    return {one.name: by_region(one.effects) for one in answer.patches if by_region(one.effects)}


def test_few_that_matter_take_few_kernels() -> None:
    world = World(64, {"p20": {"open/do_open": 30}, "p41": {"read/do_read": -7}})
    answer, steps = finished(begun(world), world)
    assert found(answer) == {"p20": {"open": 30}, "p41": {"read": -7}}
    assert len(steps) == answer.builds <= 2 * math.log2(64)
    assert set(steps) == {Step.ORDER}
    assert all(not one.remainder.value for one in answer.sums.values())
    fates = {one.name: one.outcome for one in answer.patches}
    assert fates["p20"] is PatchOutcome.MEASURED
    assert fates["p00"] is PatchOutcome.CLEARED
    assert "cancel in every function" in answer.notes[0]


def test_what_is_within_the_spread_is_not_accounted_for() -> None:
    """Stretches without effect leave what the runs' spread leaves."""
    world = World(8, {"p05": {"open/do_open": 50}})

    def outcome(patches: frozenset[str]) -> Measured:
        found = world.outcome(patches)
        assert isinstance(found, Measured)
        moved = Fraction(len(patches))
        paths = {
            name: Estimate(one.value + moved, one.value - 10, one.value + 10, 3)
            for name, one in found.paths.items()
        }
        return Measured(paths)

    ends = outcome(frozenset()), outcome(frozenset(world.names))
    search = begin_series(world.patches(), *ends)
    while builds := search.next_builds():
        search = search.observe(builds[0].flips, outcome(builds[0].flips))
    answer = search.answer()
    measured = {one.name: one for one in answer.patches if one.outcome is PatchOutcome.MEASURED}
    assert by_region(measured["p05"].effects)["open"] == 51
    row = answer.sums["open"]
    assert int(row.whole.value) == 58
    assert row.explained.value == sum(one.effects["open"].value for one in measured.values())
    assert row.remainder.value == row.whole.value - row.explained.value > 0
    assert row.adds is Adds.CANNOT_TELL, "an interval of 80 is no narrow one of 150"


def test_patches_that_cancel_in_a_region_are_seen_by_their_functions() -> None:
    world = World(16, {"p03": {"open/do_open": 5}, "p12": {"open/lookup": -5}})
    answer, _ = finished(begun(world), world)
    assert found(answer) == {"p03": {"open": 5}, "p12": {"open": -5}}


def test_a_series_without_effect_needs_no_kernel() -> None:
    world = World(30)
    answer, steps = finished(begun(world), world)
    assert not steps
    assert not found(answer)
    assert {one.outcome for one in answer.patches} == {PatchOutcome.CLEARED}


def test_one_patch_and_none() -> None:
    one = World(1, {"p00": {"open/do_open": 1}})
    answer, steps = finished(begun(one), one)
    assert (found(answer), steps) == ({"p00": {"open": 1}}, [])
    empty, _ = finished(begin_series([], *[one.outcome(frozenset())] * 2), one)  # type: ignore[arg-type]
    assert empty.patches == ()


def test_the_proof_settles_what_was_ruled_out() -> None:
    world = World(40, {"p05": {"open/do_open": 3}, "p30": {"open/lookup": 4}})
    pruned = set(world.names) - {"p05", "p09", "p30"}
    answer, steps = finished(begun(world, patches=world.patches(pruned)), world)
    assert found(answer) == {"p05": {"open": 3}, "p30": {"open": 4}}
    assert steps[0] is Step.PROOF
    assert len(steps) <= 3
    assert answer.proof.held is True
    assert answer.proof.text.startswith("with the 3 patches that were kept the path is that of")
    fates = [one.outcome for one in answer.patches]
    assert fates.count(PatchOutcome.RULED_OUT) == 37


def test_ruling_out_that_was_wrong_is_reported_and_searched() -> None:
    world = World(20, {"p05": {"open/do_open": 3}, "p11": {"read/do_read": 4}})
    pruned = set(world.names) - {"p05"}
    answer, _ = finished(begun(world, patches=world.patches(pruned)), world)
    assert found(answer) == {"p05": {"open": 3}, "p11": {"read": 4}}
    assert answer.proof.held is False
    assert set(answer.proof.differing) == {"read"}


def test_a_proof_takes_along_what_the_kept_need_to_apply() -> None:
    world = World(10, {"p08": {"open/do_open": 3}}, needs={"p08": ("p02",)})
    answer, _ = finished(begun(world, patches=world.patches(set(world.names) - {"p08"})), world)
    assert answer.proof.held is True
    assert "the 1 patches that were kept and 1 that they need to apply" in answer.proof.text
    both = World(2, {"p01": {"open/do_open": 3}}, needs={"p01": ("p00",)})
    answer, steps = finished(begun(both, patches=both.patches({"p00"})), both)
    assert answer.proof.held is None
    assert "do not apply without the 1 others" in answer.proof.text
    assert not steps


def test_a_proof_that_fails_to_build_is_reported() -> None:
    world = World(6, {"p03": {"open/do_open": 3}}, builds={"p03": ("p01",)})
    answer, _ = finished(begun(world, patches=world.patches(set(world.names) - {"p03"})), world)
    assert answer.proof.held is None
    assert "fails: build-failed: p03 without p01" in answer.proof.text
    assert found(answer) == {"p03": {"open": 3}}


def test_points_that_do_not_build_make_a_group_with_the_reason() -> None:
    world = World(
        16,
        {"p05": {"open/do_open": 10}, "p06": {"open/lookup": 20}, "p12": {"read/do_read": 1}},
        builds={"p05": ("p07",)},
    )
    answer, _ = finished(begun(world), world)
    (group,) = answer.groups
    assert {"p05", "p06"} <= set(group.patches) <= {"p05", "p06", "p07"}
    assert by_region(group.effects) == {"open": 30}
    assert "build-failed: p05 without p07" in group.reason
    assert found(answer) == {"p12": {"read": 1}}
    assert answer.patches[6].outcome is PatchOutcome.TOGETHER
    assert all(not one.remainder.value for one in answer.sums.values())


def test_a_long_stretch_that_fails_is_not_tried_everywhere() -> None:
    world = World(64, {"p20": {"open/do_open": 10}}, boots={"p02": ("p60",)})
    answer, steps = finished(begun(world), world)
    assert len(steps) < 16
    (group,) = answer.groups
    assert "p20" in group.patches
    assert "boot-failed" in group.reason
    assert "and so do 3 trees before it" in group.reason


def test_all_views_agree_where_nothing_interacts() -> None:
    effects = {f"p{n:02}": {"open/do_open": n} for n in (3, 9, 17)}
    world = World(20, effects)
    answer, steps = finished(begun(world, EVERY), world)
    assert not answer.interactions
    for one in answer.patches:
        if one.name in effects:
            assert one.left_out is not None
            assert one.alone is not None
            wanted = {"open": int(one.name[1:])}
            assert by_region(one.effects) == wanted
            assert by_region(one.left_out.effects) == by_region(one.alone.effects) == wanted
            assert one.left_out.others == one.alone.others == ()
        else:
            assert one.left_out is one.alone is None
    assert steps.count(Step.LEFT_OUT) == steps.count(Step.WITHOUT_OTHERS) == 3


def test_what_goes_and_comes_with_a_patch() -> None:
    world = World(
        8,
        {"p02": {"open/do_open": 10}, "p05": {"open/lookup": 3}, "p06": {"read/do_read": 1}},
        needs={"p05": ("p02",)},
    )
    answer, _ = finished(begun(world, EVERY), world)
    left_out, alone = answer.patches[2].left_out, answer.patches[5].alone
    assert left_out is not None
    assert by_region(left_out.effects) == {"open": 13}
    assert (left_out.others, left_out.text) == (("p05",), "p05 does not apply without it")
    assert alone is not None
    assert by_region(alone.effects) == {"open": 3}, "on top of what it needs"
    assert (alone.others, alone.text) == (("p02",), "it does not apply without p02")
    assert not answer.interactions


def test_a_need_that_only_a_build_shows_is_found_by_the_text() -> None:
    world = World(
        12,
        {"p02": {"open/do_open": 10}, "p07": {"open/lookup": 3}},
        builds={"p07": ("p02",)},
    )
    suspects = {"p07": ("p05", "p02"), "p09": ("p02",), "p06": ("p02",)}
    answer, _ = finished(begun(world, EVERY, patches=world.patches((), suspects)), world)
    left_out, alone = answer.patches[2].left_out, answer.patches[7].alone
    assert left_out is not None
    assert by_region(left_out.effects) == {"open": 13}
    assert set(left_out.others) == {"p06", "p07"}
    assert left_out.text == "without it build-failed: p07 without p02"
    assert alone is not None
    assert by_region(alone.effects) == {"open": 3}
    assert set(alone.others) == {"p02", "p05"}
    assert {(one.patch, one.needs) for one in answer.needs} >= {("p07", ("p02",))}


def test_a_patch_that_cannot_be_left_out_says_why() -> None:
    world = World(
        12, {"p02": {"open/do_open": 10}, "p07": {"open/lookup": 3}}, boots={"p07": ("p02",)}
    )
    answer, _ = finished(begun(world, (View.ORDER, View.LEFT_OUT)), world)
    left_out = answer.patches[2].left_out
    assert left_out is not None
    assert (left_out.effects, left_out.text) == ({}, "without it boot-failed: p07 without p02")


def test_two_that_interact_are_named_and_measured() -> None:
    world = World(
        16,
        {"p03": {"open/do_open": 10}, "p07": {"read/do_read": 2}, "p12": {"open/lookup": 3}},
        {("p03", "p12"): {"open/do_open": -4}},
    )
    answer, steps = finished(begun(world, EVERY), world)
    (pair,) = answer.interactions
    assert pair.units == ("p03", "p12")
    assert by_region(pair.effects) == {"open": -4}
    assert pair.text.startswith("these two alone")
    assert steps.count(Step.PAIR) == 1
    assert found(answer)["p12"] == {"open": -1}, "in order, the later one has it"


def test_an_interaction_seen_from_one_side_only() -> None:
    world = World(
        8,
        {"p03": {"open/do_open": 10}, "p06": {"open/lookup": 3}},
        {("p03", "p06"): {"open/do_open": -4}},
    )
    answer, _ = finished(begun(world, (View.ORDER, View.LEFT_OUT)), world)
    (one,) = answer.interactions
    assert one.units == ("p03",)
    assert by_region(one.effects) == {"open": -4}
    assert one.text.startswith("with later patches")


def test_the_budget_is_kept_and_what_is_open_is_reported() -> None:
    world = World(32, {f"p{n:02}": {"open/do_open": 1 + n} for n in range(32)})
    answer, steps = finished(begun(world, limits=Limits(max_builds=5)), world)
    assert len(steps) == 5
    assert answer.notes[-1] == "the search ended after 5 builds, as it was asked to"
    assert all(not one.remainder.value for one in answer.sums.values())
    assert sum(sum(by_region(one.effects).values()) for one in answer.groups) + sum(
        sum(part.values()) for part in found(answer).values()
    ) == sum(range(1, 33))


def test_sets_that_are_known_not_to_apply_cost_nothing() -> None:
    world = World(8, {"p02": {"open/do_open": 10}, "p05": {"open/lookup": 3}})
    search = begun(world, limits=Limits(max_builds=1))
    first = search.next_builds()[0]
    search = search.observe(first.flips, world.outcome(first.flips), built=False)
    assert search.next_builds()
    assert search.answer().builds == 0


def test_needs_that_are_no_earlier_patch() -> None:
    ends = World(0).outcome(frozenset())
    assert isinstance(ends, Measured)
    for bad in ([Candidate("a", ("b",)), Candidate("b")], [Candidate("a")] * 2):
        with pytest.raises(ValueError, match="a: a name"):
            begin_series(bad, ends, ends)
    with pytest.raises(ValueError, match="no patches of the series"):
        begin_series([Candidate("a")], ends, ends).observe(frozenset("b"), ends)


FUNCTIONS = st.sampled_from(sorted(BASE))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    n = draw(st.integers(1, 24))
    names = [f"p{number:02}" for number in range(n)]
    culprits = draw(st.lists(st.sampled_from(names), max_size=5, unique=True))
    effects = {
        name: {draw(FUNCTIONS): draw(st.integers(-60, 60).filter(bool))} for name in culprits
    }
    needs: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names[1:], start=1):
        if draw(st.integers(0, 4)) == 0:
            needs[name] = (draw(st.sampled_from(names[:place])),)
    return World(n, effects, needs=needs)


@given(worlds())
def test_in_order_everything_adds_up_to_what_was_planted(world: World) -> None:
    answer, steps = finished(begun(world), world)
    for one in answer.patches:
        planted = summed([world.effects.get(one.name, {})])
        if one.outcome is PatchOutcome.MEASURED:
            assert by_region(one.effects) == planted
    event(f"{len(world.effects)} of {world.n} in {len(steps)} kernels")
    assert all(not one.remainder.value for one in answer.sums.values())
    # Those that cancel in a function of one stretch are not seen; nothing else is missed.
    cleared = [one.name for one in answer.patches if one.outcome is PatchOutcome.CLEARED]
    missed: dict[str, int] = {}
    for name in cleared:
        for function, value in world.effects.get(name, {}).items():
            missed[function] = missed.get(function, 0) + value
    assert not any(missed.values())
    assert len(steps) <= len(world.effects) * (math.log2(world.n) + 1)
