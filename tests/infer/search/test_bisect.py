# SPDX-License-Identifier: GPL-2.0-or-later
"""Searching commits: planted culprits are found, all of them and nothing else, by few builds."""

import math
import random
from collections.abc import Collection, Mapping
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.infer.effects.estimate import estimate
from kdelta.infer.search.bisect import Bisect, begin_bisect, never_alike
from kdelta.infer.search.search_model import (
    Alike,
    BisectAnswer,
    Clues,
    Failed,
    History,
    Measured,
    Outcome,
    Step,
    Wants,
)
from kdelta.spec.run import RunStatus

BASE = 10_000
Effects = Mapping[str, Mapping[str, int]]
"""commit -> function -> what it adds; a function's region is what stands before its dot."""


class World(msgspec.Struct, frozen=True):
    """A history, what commits add, which do not build. `noise`: what each kernel adds at random,
    of which its runs tell nothing, such as its layout does.
    """

    parents: dict[str, tuple[str, ...]]
    effects: Effects
    failing: frozenset[str] = frozenset()
    noise: int = 0
    spread: int = 0

    def below(self, commit: str) -> set[str]:
        found, pending = {commit}, [commit]
        while pending:
            for parent in self.parents[pending.pop()]:
                if parent not in found:
                    found.add(parent)
                    pending.append(parent)
        return found

    def run(self, commit: str) -> Outcome:
        if commit in self.failing:
            return Failed(RunStatus.BUILD_FAILED, "error: x")
        return self.measured(commit)

    def measured(self, commit: str) -> Measured:
        costs = {f"{region}.{name}": BASE for region in "ab" for name in "fg"}
        for one in self.below(commit):
            for name, more in self.effects.get(one, {}).items():
                costs[name] = costs.get(name, 0) + more
        draw = random.Random(commit)
        parts: dict[str, dict[str, list[Fraction]]] = {}
        for name, cost in costs.items():
            still = cost + draw.randint(0, self.noise)
            runs = [Fraction(still + draw.randint(0, self.spread)) for _ in range(3)]
            parts.setdefault(name.partition(".")[0], {})[name] = runs
        return Measured(
            {
                region: estimate(
                    [sum(each, Fraction(0)) for each in zip(*its.values(), strict=True)]
                )
                for region, its in parts.items()
            },
            {
                region: {name: estimate(runs) for name, runs in its.items()}
                for region, its in parts.items()
            },
        )


class Finished(msgspec.Struct, frozen=True):
    search: Bisect
    answer: BisectAnswer
    asked: tuple[str, ...]

    @property
    def halvings(self) -> int:
        steps = [one.step for one in self.search.observed]
        return sum(step in (Step.HALVING, Step.BASE) for step in steps)

    @property
    def named(self) -> set[str]:
        return {one.commit for one in self.answer.culprits}


def searched(
    world: World,
    *,
    good: str = "",
    ruled_out: Collection[str] = (),
    wants: Wants | None = None,
    clues: Clues | None = None,
    alike: Alike = never_alike,
) -> Finished:
    names = list(world.parents)
    history = History(
        world.parents, good or names[0], names[-1], frozenset(ruled_out), clues or Clues()
    )
    ends = world.measured(history.good), world.measured(history.bad)
    search = begin_bisect(history, *ends, wants, alike)
    asked: list[str] = []
    while builds := search.next_builds():
        (commit,) = builds[0].flips
        assert builds[0].flips not in {one.flips for one in search.observed}, "asked twice"
        assert len(asked) < 500
        asked.append(commit)
        search = search.observe(builds[0].flips, world.run(commit))
    return Finished(search, search.answer(), tuple(asked))


def line(count: int) -> dict[str, tuple[str, ...]]:
    """The good end, and so many commits one after the other."""
    return {f"c{at:04}": (f"c{at - 1:04}",) if at else () for at in range(count + 1)}


def logs(count: int) -> int:
    return math.ceil(math.log2(max(1, count)))


def effect_of(done: Finished, commit: str, region: str = "a") -> int:
    found = next(one for one in done.answer.culprits if one.commit == commit)
    return int(found.effects[region].value)


@pytest.mark.parametrize("count", [1, 2, 3, 40, 1000, 1023, 1024, 1025])
@pytest.mark.slow
def test_one_culprit_takes_log2(count: int) -> None:
    for at in {1, 2, count // 2, count - 1, count} & set(range(1, count + 1)):
        name = f"c{at:04}"
        done = searched(World(line(count), {name: {"a.f": 30}}))
        assert done.named == {name}
        assert effect_of(done, name) == 30
        assert done.answer.culprits[0].confirmed
        assert done.answer.culprits[0].between == (f"c{at - 1:04}", name)
        assert done.answer.culprits[0].functions["a"].keys() == {"a.f"}
        assert len(done.asked) <= logs(count)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(count=st.integers(1, 120), data=st.data())
def test_all_culprits_of_a_line(count: int, data: st.DataObject) -> None:
    """Of those that touch one function, sums of any two are something."""
    places = sorted(data.draw(st.sets(st.integers(1, count), min_size=1, max_size=4)))
    names = st.sampled_from(["a.f", "a.g", "b.f", "b.h"])
    effects = {
        f"c{at:04}": {data.draw(names): data.draw(st.sampled_from([1, -1])) * 100 * 7**place}
        for place, at in enumerate(places)
    }
    out = data.draw(st.sets(st.sampled_from(list(line(count))))) - effects.keys()
    done = searched(World(line(count), effects), ruled_out=out)
    assert done.named == effects.keys()
    for one in done.answer.culprits:
        ((name, size),) = effects[one.commit].items()
        assert one.effects[name[0]].value == size
        assert one.functions[name[0]][name].value == size
    assert all(one.remainder.value == 0 for one in done.answer.sums.values())
    left = len(line(count).keys() - out - {"c0000"})
    assert done.halvings <= len(effects) * logs(left)
    assert len(done.asked) <= len(effects) * (logs(left) + 2)


def merged(random_: random.Random, count: int) -> dict[str, tuple[str, ...]]:
    """A history with branches from anywhere, some merged twice, and back-merges."""
    parents: dict[str, tuple[str, ...]] = {"old": (), "good": ("old",)}
    tips = ["good"]
    for at in range(count):
        name = f"n{at:03}"
        kind = random_.random()
        place = random_.randrange(len(tips))
        if kind < 0.12:
            tips.append(random_.choice(list(parents)))
        if kind > 0.8 and len(tips) > 1:
            other = random_.choice([tip for tip in range(len(tips)) if tip != place])
            if tips[place] != tips[other]:
                parents[name] = (tips[place], tips[other])
                tips[place] = name
                if random_.random() < 0.6:
                    del tips[other]
                continue
        parents[name] = (tips[place],)
        tips[place] = name
    last = tuple(dict.fromkeys(tips))
    parents["end"] = last
    parents["bad"] = ("end", "good")
    return parents


@given(seed=st.integers(0, 10**9), count=st.integers(1, 80), culprits=st.integers(1, 3))
@pytest.mark.slow
def test_culprits_among_merges(seed: int, count: int, culprits: int) -> None:
    random_ = random.Random(seed)
    parents = merged(random_, count)
    probe = World(parents, {})
    inside = [n for n in parents if n in probe.below("bad") - probe.below("good") and n != "bad"]
    names = random_.sample(inside, min(culprits, len(inside)))
    # No two of them add up to nothing.
    effects = {n: {"a.f": random_.choice([-1, 1]) * 100 * 7**at} for at, n in enumerate(names)}
    done = searched(World(parents, effects), good="good")
    assert done.named == effects.keys(), done.answer
    for name in names:
        assert effect_of(done, name) == effects[name]["a.f"]
    assert len(done.asked) <= len(names) * (logs(len(inside)) + 3)


@pytest.mark.slow
def test_what_fails_is_searched_around() -> None:
    effects = {"c0020": {"a.f": 30}}
    for bad in range(1, 40):
        if bad in (19, 20):
            continue
        done = searched(World(line(40), effects, frozenset({f"c{bad:04}"})))
        assert done.named == {"c0020"}
        assert len(done.asked) <= logs(40) + 3


def test_a_long_stretch_that_fails_is_left_in_few_steps() -> None:
    effects = {"c0030": {"a.f": 30}}
    failing = frozenset(f"c{at:04}" for at in range(100, 400))
    done = searched(World(line(500), effects, failing))
    assert done.named == {"c0030"}
    assert len(done.asked) <= logs(500) + 9
    assert set(done.answer.failed) == failing & set(done.asked)


def test_what_only_failures_part_stays_together() -> None:
    failing = frozenset({"c0018", "c0019", "c0020"})
    done = searched(World(line(40), {"c0019": {"a.f": 30}}, failing))
    assert done.named == set()
    (group,) = done.answer.groups
    assert set(group.units) == {*failing, "c0021"}
    assert group.effects["a"].value == 30
    assert "failed" in group.text
    assert done.answer.sums["a"].remainder.value == 0


def test_one_that_fails_besides_the_culprit_is_no_reason_to_doubt() -> None:
    done = searched(World(line(9), {"c0005": {"a.f": 30}}, frozenset({"c0004"})))
    assert [one.units for one in done.answer.groups] == [("c0004", "c0005")]
    ruled = searched(
        World(line(9), {"c0005": {"a.f": 30}}, frozenset({"c0004"})), ruled_out=["c0004"]
    )
    assert ruled.named == {"c0005"}
    assert not ruled.answer.culprits[0].confirmed
    assert "c0003" in ruled.answer.culprits[0].text


def test_a_ruling_out_that_was_wrong_is_noticed() -> None:
    world = World(line(60), {"c0030": {"a.f": 30}})
    done = searched(world, ruled_out=[f"c{at:04}" for at in range(1, 61) if at % 7])
    assert done.named == {"c0030"}
    assert "ruling out was wrong" in done.answer.notes[0]
    nothing = searched(world, ruled_out=list(world.parents))
    assert nothing.named == {"c0030"}
    assert nothing.answer.candidates == 60


def test_without_a_difference_nothing_is_built() -> None:
    done = searched(World(line(60), {}))
    assert (done.asked, done.named, done.answer.groups) == ((), set(), ())


def test_within_the_spread_nothing_is_built() -> None:
    done = searched(World(line(60), {"c0030": {"a.f": 3}}, spread=40))
    assert done.asked == ()
    done = searched(World(line(60), {"c0030": {"a.f": 4000}}, spread=40))
    assert done.named == {"c0030"}


def test_a_margin() -> None:
    world = World(line(60), {"c0030": {"a.f": 30}, "c0040": {"a.f": 500}})
    assert searched(world, wants=Wants(margin=Fraction(1, 100))).named == {"c0040"}
    assert searched(world, wants=Wants(margin=Fraction(0))).named == {"c0030", "c0040"}
    rough = Wants(margins={"a": Fraction(1, 2)})
    assert searched(world, wants=rough).asked == ()


def test_the_first_and_one_region() -> None:
    world = World(line(60), {"c0010": {"a.f": 300}, "c0030": {"a.f": -900}, "c0050": {"b.f": 2000}})
    first = searched(world, wants=Wants(first=True))
    assert first.named == {"c0050"}
    assert [one.text[:12] for one in first.answer.groups] == ["not searched"]
    assert searched(world, wants=Wants(regions=frozenset({"a"}))).named == {"c0010", "c0030"}


def test_what_moves_between_functions() -> None:
    """A region's path is the same, and two commits still did something."""
    world = World(line(60), {"c0010": {"a.f": 300}, "c0030": {"a.g": -300}})
    assert searched(world).named == {"c0010", "c0030"}
    inlined = World(line(60), {"c0030": {"a.g": -300, "a.f": 300}})
    (moved,) = searched(inlined).answer.culprits
    assert moved.moved
    assert searched(inlined, wants=Wants(first=True)).named == {"c0030"}


def test_placement_is_never_named() -> None:
    """Each kernel's path differs, beyond its own spread, by where its code lies."""
    world = World(line(60), {"c0030": {"a.f": 900}}, noise=100)

    def alike(one: str, other: str) -> bool:
        return (one < "c0030") == (other < "c0030")

    done = searched(world, alike=alike)
    assert done.named == {"c0030"}
    assert done.answer.placed
    assert all(not (one.below < "c0030" <= one.above) for one in done.answer.placed)
    assert not searched(World(line(60), {}, noise=900), alike=lambda *_: True).asked


def test_no_more_builds_than_allowed() -> None:
    done = searched(World(line(500), {"c0300": {"a.f": 300}}), wants=Wants(max_builds=3))
    assert len(done.asked) == 3
    (group,) = done.answer.groups
    assert "c0300" in group.units
    assert "3 builds" in group.text


def test_clues_save_builds() -> None:
    world = World(line(1000), {"c0300": {"a.f": 300}})
    clues = Clues(
        {f"c{at:04}": frozenset({"x.o"}) for at in range(0, 1001, 100)}, {"a.f": frozenset({"x.o"})}
    )
    assert len(searched(world, clues=clues).asked) <= logs(9) + 4
    for place in (1, 299, 555, 1000):
        wrong = World(line(1000), {f"c{place:04}": {"a.f": 300}})
        done = searched(wrong, clues=clues)
        assert done.named == {f"c{place:04}"}
        assert len(done.asked) <= logs(1000) + 3


def test_a_merge_that_does_something_of_its_own() -> None:
    parents = line(4) | {
        "s1": ("c0001",),
        "s2": ("s1",),
        "m": ("c0004", "s2"),
        "n": ("m",),
    }
    world = World(parents, {"m": {"a.f": 70}})
    (culprit,) = searched(world).answer.culprits
    assert culprit.commit == "m"
    assert "the merge itself" in culprit.text
    assert culprit.between is None


def test_a_branch_from_before_the_good_end() -> None:
    """Its kernels lack what the good end has, and are not taken for better ones."""
    parents = {
        "o0": (),
        **{f"o{at}": (f"o{at - 1}",) for at in range(1, 6)},
        "s1": ("o1",),
        **{f"s{at}": (f"s{at - 1}",) for at in range(2, 9)},
        "t1": ("o5",),
        "m": ("t1", "s8"),
        "t2": ("m",),
    }
    world = World(parents, {"o3": {"a.f": 900}, "s5": {"a.f": -900}})
    done = searched(world, good="o5")
    assert done.named == {"s5"}
    assert effect_of(done, "s5") == -900
    assert "o1" in done.asked
    assert "branches begin" in done.answer.notes[0]
