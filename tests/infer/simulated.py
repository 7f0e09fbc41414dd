# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that were never built: what sets of flips cost is made up, so that it is known."""

import random
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import estimate
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search import Search, begin
from kdelta.infer.search.search_model import (
    Candidate,
    Failed,
    FlipSet,
    Limits,
    Measured,
    Outcome,
    SearchAnswer,
    Step,
)
from kdelta.spec.run import RunStatus

BASE = 10_000
REGIONS = tuple(f"r{index}" for index in range(6))
Terms = Mapping[FlipSet, Mapping[str, int]]


class World(msgspec.Struct, frozen=True):
    """terms: what it costs, by region, when these units are all flipped. Sets fail that have one of
    `failing` in them and nothing of what stands next to it.
    """

    units: tuple[Candidate, ...]
    terms: Terms
    spread: int = 0
    failing: tuple[tuple[FlipSet, FlipSet], ...] = ()
    seed: int = 0

    def cost(self, flips: FlipSet, region: str) -> int:
        return BASE + sum(row.get(region, 0) for key, row in self.terms.items() if key <= flips)

    def run(self, flips: FlipSet) -> Outcome:
        for bad, cure in self.failing:
            if bad <= flips and not cure & flips:
                return Failed(RunStatus.BOOT_FAILED, "panic")
        return self.measured(flips)

    def measured(self, flips: FlipSet) -> Measured:
        noise = random.Random(f"{self.seed} {sorted(flips)}")
        return Measured(
            {
                region: estimate(
                    [
                        Fraction(self.cost(flips, region) + noise.randint(0, self.spread))
                        for _ in range(3)
                    ]
                )
                for region in REGIONS
            }
        )

    def alone(self, name: str) -> dict[str, int]:
        """What a unit does in A, after what it needs."""
        below = Needs(self.units).below(name)
        return {r: self.cost(below | {name}, r) - self.cost(below, r) for r in REGIONS}


class Found(msgspec.Struct, frozen=True):
    search: Search
    answer: SearchAnswer
    asked: tuple[FlipSet, ...]

    @property
    def builds(self) -> int:
        """Without the proof."""
        return sum(step is not Step.PROOF for step in steps_of(self))


def steps_of(found: Found) -> list[Step | None]:
    """What each build was for, A and B apart."""
    return [one.step for one in found.search.observed[2:]]


def searched(world: World, limits: Limits | None = None) -> Found:
    everything = frozenset(unit.name for unit in world.units)
    search = begin(world.units, world.measured(frozenset()), world.measured(everything), limits)
    asked = []
    while builds := search.next_builds():
        flips = builds[0].flips
        assert not any(one.flips == flips for one in search.observed), "asked twice"
        asked.append(flips)
        search = search.observe(flips, world.run(flips))
    return Found(search, search.answer(), tuple(asked))


def named(count: int) -> list[str]:
    return [f"U{index:03}" for index in range(count)]


def some_effect(random_: random.Random, regions: Sequence[str] = REGIONS) -> dict[str, int]:
    """In one to all regions; no two are likely to cancel."""
    chosen = random_.sample(regions, random_.randint(1, len(regions)))
    return {region: random_.choice((-1, 1)) * random_.randint(100, 100_000) for region in chosen}


def world_of(
    count: int,
    matter: int,
    seed: int,
    *,
    prior: float = 0.5,
    pairs: int = 0,
    spread: int = 0,
    needs: Mapping[str, tuple[str, ...]] | None = None,
    pruned: Collection[str] = (),
) -> World:
    """Random effects of `matter` of `count` units, and of pairs on top of them."""
    random_ = random.Random(seed)
    names = named(count)
    terms = {frozenset({name}): some_effect(random_) for name in random_.sample(names, matter)}
    while len(terms) < matter + pairs:
        terms[frozenset(random_.sample(names, 2))] = some_effect(random_)
    units = tuple(
        Candidate(name, (needs or {}).get(name, ()), prior, name in pruned) for name in names
    )
    return World(units, terms, spread=spread, seed=seed)
