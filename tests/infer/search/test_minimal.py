# SPDX-License-Identifier: GPL-2.0-or-later
"""The smallest set of patches with the effect: planted ones are found, with fewer kernels than by
ddmin, and whatever a series does not apply, build or boot without.
"""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

import pytest

from kdelta.infer.search.minimal import (
    MinimalAnswer,
    MinimalSearch,
    PatchRole,
    SetVerdict,
    Trial,
)
from kdelta.infer.search.search_model import Failed
from kdelta.infer.search.series_plan import failure_clause
from tests.infer.planted import World

PATCHES, PLANTINGS = 100, 200


def judge(
    world: World, culprits: frozenset[str], patches: frozenset[str]
) -> tuple[SetVerdict, str]:
    outcome = world.outcome(patches)
    if isinstance(outcome, Failed):
        return SetVerdict.UNRESOLVED, failure_clause(outcome)
    return (SetVerdict.HAS if culprits <= patches else SetVerdict.LACKS), ""


def begun(world: World, suspects: Mapping[str, tuple[str, ...]] | None = None) -> MinimalSearch:
    everything = Trial(frozenset(world.names), SetVerdict.HAS)
    nothing = Trial(frozenset(), SetVerdict.LACKS)
    patches = world.patches((), suspects)
    return MinimalSearch(tuple(patches), (nothing, everything))


def finished(search: MinimalSearch, world: World, culprits: frozenset[str]) -> MinimalAnswer:
    while builds := search.next_builds():
        chosen = builds[0].flips
        assert world.applies(chosen)
        assert chosen not in {one.patches for one in (*search.known, *search.tested)}
        verdict, reason = judge(world, culprits, chosen)
        search = search.observe(chosen, verdict, reason)
    return search.answer()


def members(answer: MinimalAnswer) -> dict[str, PatchRole]:
    return {one.name: one.role for one in answer.members}


def ddmin(names: Sequence[str], test: Callable[[frozenset[str]], SetVerdict]) -> frozenset[str]:
    """Plain ddmin, as Zeller and Hildebrandt have it (section 3.2, figure 7)."""
    left, parts = list(names), 2
    while len(left) >= 2:
        bounds = [len(left) * part // parts for part in range(parts + 1)]
        subsets = [left[a:b] for a, b in itertools.pairwise(bounds)]
        for subset in subsets:
            if test(frozenset(subset)) is SetVerdict.HAS:
                left, parts = subset, 2
                break
        else:
            for subset in subsets if parts > 2 else []:
                rest = [name for name in left if name not in set(subset)]
                if test(frozenset(rest)) is SetVerdict.HAS:
                    left, parts = rest, max(parts - 1, 2)
                    break
            else:
                if parts >= len(left):
                    break
                parts = min(len(left), 2 * parts)
    return frozenset(left)


def planting(seed: int) -> tuple[World, frozenset[str], dict[str, tuple[str, ...]]]:
    """A series in which every third patch needs earlier ones, half of them to apply, the others to
    build or boot; 1 to 4 culprits; and what the text makes likely, which is true for most.
    """
    rng = random.Random(seed)
    names = World(PATCHES).names
    needs: dict[str, tuple[str, ...]] = {}
    builds: dict[str, tuple[str, ...]] = {}
    boots: dict[str, tuple[str, ...]] = {}
    suspects: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names[1:], start=1):
        guesses = rng.sample(names[:place], min(place, 2)) if rng.random() < 0.5 else []
        if rng.random() < 1 / 3:
            needed = tuple(rng.sample(names[:place], min(place, rng.choice((1, 1, 2)))))
            rng.choice((needs, needs, builds, boots))[name] = needed
            if rng.random() < 0.7:
                guesses.append(needed[0])
        suspects[name] = tuple(guesses)
    world = World(PATCHES, needs=needs, builds=builds, boots=boots)
    return world, frozenset(rng.sample(names, rng.randint(1, 4))), suspects


def wanted(world: World, culprits: frozenset[str]) -> frozenset[str]:
    """The culprits and all that they need."""
    found = set(culprits)
    pending = list(culprits)
    while pending:
        name = pending.pop()
        for table in (world.needs, world.builds, world.boots):
            new = set(table.get(name, ())) - found
            found |= new
            pending += new
    return frozenset(found)


@pytest.mark.slow
def test_planted_sets_are_found_in_every_planting(
    record_property: Callable[[str, object], None],
) -> None:
    ours: list[int] = []
    plain: list[int] = []
    exact = 0
    for seed in range(PLANTINGS):
        world, culprits, suspects = planting(seed)
        answer = finished(begun(world, suspects), world, culprits)
        assert frozenset(members(answer)) == wanted(world, culprits), seed
        assert answer.complete
        assert answer.confirmed
        known: dict[frozenset[str], SetVerdict] = {}

        def test(
            patches: frozenset[str],
            world: World = world,
            culprits: frozenset[str] = culprits,
            known: dict[frozenset[str], SetVerdict] = known,
        ) -> SetVerdict:
            if patches not in known:
                known[patches] = SetVerdict.UNRESOLVED
                if world.applies(patches):
                    known[patches] = judge(world, culprits, patches)[0]
            return known[patches]

        exact += ddmin(world.names, test) == wanted(world, culprits)
        ours.append(answer.tests)
        plain.append(len(known))
    means = sum(ours) / PLANTINGS, sum(plain) / PLANTINGS
    shown = (
        f"{means[0]:.1f} tests in the mean, {max(ours)} at most; ddmin {means[1]:.1f} and "
        f"{max(plain)}, right in {exact} of {PLANTINGS}"
    )
    record_property("tests", shown)
    print(shown)
    assert sum(ours) < sum(plain) / 5


def test_one_culprit_takes_about_the_logarithm() -> None:
    world = World(64)
    culprits = frozenset({"p37"})
    answer = finished(begun(world), world, culprits)
    assert members(answer) == {"p37": PatchRole.CULPRIT}
    assert answer.tests <= 7
    assert answer.members[0].text == "without it the effect is not there"


def test_what_a_culprit_needs_is_reported_with_the_reason() -> None:
    world = World(16, needs={"p09": ("p03",)}, boots={"p09": ("p05",)})
    answer = finished(begun(world), world, frozenset({"p09"}))
    assert members(answer) == {
        "p03": PatchRole.NEEDED,
        "p05": PatchRole.NEEDED,
        "p09": PatchRole.CULPRIT,
    }
    texts = {one.name: one.text for one in answer.members}
    assert texts["p03"] == "p09 does not apply without it"
    assert texts["p05"] == "without it boot-failed: p09 without p05"


def test_what_the_text_makes_likely_is_tried_first() -> None:
    world = World(64, builds={"p50": ("p07",)})
    culprits = frozenset({"p50"})
    blind = finished(begun(world), world, culprits)
    guided = finished(begun(world, {"p50": ("p30", "p07")}), world, culprits)
    assert members(blind) == members(guided) == {"p07": PatchRole.NEEDED, "p50": PatchRole.CULPRIT}
    text = {one.name: one.text for one in guided.members}["p07"]
    assert text == "p50 needs it: without it build-failed: p50 without p07"
    assert guided.tests < blind.tests


def test_a_patch_that_breaks_what_the_next_one_fixes_is_left_out() -> None:
    """Whatever point the halving hits, the pair has no effect and is no part of the answer."""
    for place in range(1, 15):
        broken, fixing = f"p{place:02}", f"p{place + 1:02}"
        needs = {broken: (fixing,)}
        for culprit in ("p00", "p15", "p07"):
            if culprit in (broken, fixing):
                continue
            world = World(16, builds=needs)
            answer = finished(begun(world), world, frozenset({culprit}))
            assert members(answer) == {culprit: PatchRole.CULPRIT}, place
            # The same where neither builds without the other.
            world = World(16, builds={broken: (fixing,), fixing: (broken,)})
            answer = finished(begun(world), world, frozenset({culprit}))
            assert members(answer) == {culprit: PatchRole.CULPRIT}, place
        world = World(16, builds=needs, needs={fixing: (broken,)})
        answer = finished(begun(world), world, frozenset({broken}))
        assert set(members(answer)) == {broken, fixing}


def test_patches_that_only_do_it_together() -> None:
    world = World(40)
    culprits = frozenset({"p00", "p13", "p39"})
    assert set(members(finished(begun(world), world, culprits))) == culprits


def test_an_effect_that_a_later_patch_takes_away_again() -> None:
    """p03 has it, p08 takes it away, p12 brings it back: any one of the answers will do, and no
    patch of it can be left out.
    """
    world = World(16)

    def has(patches: frozenset[str]) -> bool:
        return ("p03" in patches and "p08" not in patches) or "p12" in patches

    search = begun(world)
    while builds := search.next_builds():
        chosen = builds[0].flips
        search = search.observe(chosen, SetVerdict.HAS if has(chosen) else SetVerdict.LACKS)
    found = frozenset(members(search.answer()))
    assert has(found)
    assert not any(has(found - {name}) for name in found)


def test_an_end_to_the_builds() -> None:
    world = World(64)
    culprits = frozenset({"p10", "p50"})
    full = begun(world)
    patches = world.patches()
    search = MinimalSearch(tuple(patches), full.known, max_builds=9)
    answer = finished(search, world, culprits)
    assert answer.tests == 9
    assert not answer.complete
    assert members(answer) == {"p50": PatchRole.CULPRIT}
    assert answer.note == "the search ended after 9 builds"


def test_sets_that_are_known_to_be_refused_are_no_tests() -> None:
    world = World(8, builds={"p05": ("p02",)})
    search = begun(world)
    while builds := search.next_builds():
        verdict, reason = judge(world, frozenset({"p05"}), builds[0].flips)
        built = verdict is not SetVerdict.UNRESOLVED
        search = search.observe(builds[0].flips, verdict, reason, built=built)
    answer = search.answer()
    assert answer.refused > 0
    assert answer.tests + answer.refused == len(search.tested)
    assert set(members(answer)) == {"p02", "p05"}


@pytest.mark.parametrize("verdict", [SetVerdict.LACKS, SetVerdict.UNRESOLVED])
def test_a_series_without_the_effect_has_no_answer(verdict: SetVerdict) -> None:
    world = World(4)
    search = MinimalSearch(tuple(world.patches()), (Trial(frozenset(world.names), verdict),))
    assert search.next_builds() == ()
    assert search.answer().members == ()
