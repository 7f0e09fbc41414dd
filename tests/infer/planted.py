# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up series: what each patch does and needs is planted, what a search finds is compared."""

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.search_model import Candidate, Failed, Measured, Outcome
from kdelta.spec.run import RunStatus

Effects = Mapping[str, int]
"""region/function -> instructions."""

BASE = {"open/do_open": 100, "open/lookup": 50, "read/do_read": 70}


class World(msgspec.Struct, frozen=True):
    """A series of n patches named p00, p01, ...

    effects    what a patch does wherever it is
    pairs      what two patches do only together, besides that
    needs      what a patch's text needs: without it the patch does not apply
    builds     what it needs to build; may be a later patch
    boots      the same to boot
    """

    n: int
    effects: Mapping[str, Effects] = {}
    pairs: Mapping[tuple[str, str], Effects] = {}
    needs: Mapping[str, tuple[str, ...]] = {}
    builds: Mapping[str, tuple[str, ...]] = {}
    boots: Mapping[str, tuple[str, ...]] = {}

    @property
    def names(self) -> list[str]:
        return [f"p{number:02}" for number in range(self.n)]

    def patches(
        self,
        pruned: Collection[str] = (),
        suspects: Mapping[str, tuple[str, ...]] | None = None,
    ) -> list[Candidate]:
        return [
            Candidate(
                name,
                self.closed(name),
                pruned=name in pruned,
                suspects=(suspects or {}).get(name, ()),
            )
            for name in self.names
        ]

    def closed(self, name: str) -> tuple[str, ...]:
        found = set(self.needs.get(name, ()))
        for one in list(found):
            found.update(self.closed(one))
        return tuple(sorted(found))

    def outcome(self, patches: frozenset[str]) -> Outcome:
        for table, word in ((self.builds, RunStatus.BUILD_FAILED), (self.boots, _BOOT)):
            for name in sorted(patches):
                missing = set(table.get(name, ())) - patches
                if missing:
                    return Failed(word, f"{name} without {min(missing)}")
        cost = dict(BASE)
        parts: list[Effects] = [self.effects.get(name, {}) for name in patches]
        parts += [found for pair, found in self.pairs.items() if patches.issuperset(pair)]
        for part in parts:
            for name, value in part.items():
                cost[name] = cost.get(name, 0) + value
        return measured(cost)

    def applies(self, patches: frozenset[str]) -> bool:
        return all(patches.issuperset(self.closed(name)) for name in patches)


_BOOT = RunStatus.BOOT_FAILED


def measured(cost: Mapping[str, int]) -> Measured:
    """A kernel in which functions cost that much."""
    regions: dict[str, dict[str, Estimate]] = {}
    for name, value in cost.items():
        region, _, function = name.partition("/")
        regions.setdefault(region, {})[function] = exactly(value)
    totals = {
        region: exactly(sum(int(one.value) for one in functions.values()))
        for region, functions in regions.items()
    }
    return Measured(totals, regions)


def exactly(value: int) -> Estimate:
    """A figure on which three runs agree."""
    return Estimate(Fraction(value), Fraction(value), Fraction(value), 3)


def by_region(effects: Mapping[str, Estimate]) -> dict[str, int]:
    """What is not zero."""
    return {name: int(one.value) for name, one in effects.items() if one.value}


def summed(parts: Iterable[Effects]) -> dict[str, int]:
    """By region."""
    found: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            region = name.partition("/")[0]
            found[region] = found.get(region, 0) + value
    return {name: value for name, value in found.items() if value}
