# SPDX-License-Identifier: GPL-2.0-or-later
"""What reports of searches share: regions on both ends and means over them, builds."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Protocol

import msgspec

from kdelta.infer.effects.estimate import (
    MEAN,
    NARROW,
    Adds,
    Estimate,
    adds,
    bound,
    farthest,
    is_seen,
    is_steady,
    mean_percent,
    widest,
)
from kdelta.infer.search.search_model import RegionSum
from kdelta.report import figures, words

INSTRUCTIONS = "instructions"
"""What the path is counted in."""


class RegionBetween(msgspec.Struct, frozen=True, kw_only=True):
    """A region on both ends. `rate`: it is instructions a virtual second. `explained`: the effects
    of what was found, added up; `remainder`: what of the whole they do not account for. `unit`: of
    its figures. `widest`: its cost in the kernel whose runs vary most, of all that were measured;
    None where only the ends are known.
    """

    workload: str
    name: str
    before: Estimate
    after: Estimate
    whole: Estimate
    explained: Estimate
    remainder: Estimate
    rate: bool = False
    unit: str = INSTRUCTIONS
    widest: Estimate | None = None

    @property
    def adds(self) -> Adds:
        """Return whether the parts add up to the whole."""
        return adds(self.remainder, self.before)

    @property
    def varies(self) -> Estimate:
        """Return the cost in the kernel whose runs vary most, as the search found it if it did."""
        return self.widest or widest([self.before, self.after])

    @property
    def steady(self) -> bool:
        """Return whether runs of each kernel vary so little that the region is in means."""
        return is_steady(self.varies)

    @property
    def counted_in(self) -> str:
        """Return what its figures are, and of what."""
        return f"{self.unit} a virtual second" if self.rate else f"{self.unit} an iteration"

    def percent(self, value: Fraction) -> Fraction | None:
        """Return a value in per cent of what the region costs before; None where that is 0."""
        return 100 * value / self.before.value if self.before.value else None


class AblatedRegion(RegionBetween, frozen=True, kw_only=True):
    """A region that parts are summed up of. `lookups`: the part of the whole effect that functions
    have which search tables of addresses; it is in none of the other figures.
    """

    lookups: Estimate


class BisectedRegion(RegionBetween, frozen=True, kw_only=True):
    """A region of two commits."""

    before: Estimate = msgspec.field(name="good")
    after: Estimate = msgspec.field(name="bad")


class AblationBuild(msgspec.Struct, frozen=True):
    """A kernel that was built, or taken from the cache (`seconds` None)."""

    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    vmlinux_bytes: int | None


class BisectBuild(msgspec.Struct, frozen=True):
    """A commit's kernel, built or taken from the cache (`seconds` None)."""

    commit: str
    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    subject: str = ""


_TWO_PLACES = 10
"""Below so many per cent a spread has two decimals."""


Total = tuple[str, Mapping[str, Estimate], str]
"""A row below a table of parts: a name, an effect by region, a word on what is left over."""


def percents(part: Fraction) -> str:
    """A part of a whole in per cent: a limit in words."""
    return f"{float(100 * part):g} %"


def averaged(regions: Iterable[AblatedRegion], workload: str | None = None) -> list[AblatedRegion]:
    """Return the regions that means are over, of one workload or of all."""
    return [
        one
        for one in regions
        if _is_path(one) and one.steady and (workload is None or one.workload == workload)
    ]


def apart(regions: Iterable[AblatedRegion]) -> list[AblatedRegion]:
    """Return the regions that are in no mean, since runs of one kernel vary there."""
    return [one for one in regions if _is_path(one) and not one.steady]


def _is_path(region: AblatedRegion) -> bool:
    return not region.rate and region.unit == INSTRUCTIONS and bool(region.before.value)


class Means(msgspec.Struct, frozen=True):
    """Means over the regions of a report, in per cent of the base. None without a region. `known`:
    that of the whole, where runs have it.
    """

    regions: tuple[AblatedRegion, ...]
    known: RegionSum | None = None

    def of(self, effects: Mapping[str, Estimate], workload: str | None = None) -> Estimate | None:
        """The mean of an effect, over one workload's regions or all."""
        costs = {one.name: one.before for one in averaged(self.regions, workload)}
        found = mean_percent(effects, costs)
        mean = effects.get(MEAN)
        is_whole = len(costs) == len(averaged(self.regions))
        return mean if found and mean and is_whole and mean.value == found.value else found

    @property
    def whole(self) -> Estimate | None:
        """From one end to the other."""
        return self.of(self.wholes)

    @property
    def remainder(self) -> Estimate | None:
        """What the parts leave."""
        return self.of(self.rests)

    @property
    def wholes(self) -> dict[str, Estimate]:
        """From one end to the other, by region."""
        mean = {MEAN: self.known.whole} if self.known else {}
        return {one.name: one.whole for one in self.regions} | mean

    @property
    def sums(self) -> dict[str, Estimate]:
        """What the parts add up to, by region."""
        mean = {MEAN: self.known.explained} if self.known else {}
        return {one.name: one.explained for one in self.regions} | mean

    @property
    def rests(self) -> dict[str, Estimate]:
        """What they leave, by region."""
        mean = {MEAN: self.known.remainder} if self.known else {}
        return {one.name: one.remainder for one in self.regions} | mean

    @property
    def adds(self) -> Adds | None:
        """Whether parts add up to the whole in the mean."""
        rest = self.remainder
        if rest is None:
            return None
        if is_seen(rest):
            return Adds.LEFT_OVER
        return Adds.ADDS_UP if rest.high - rest.low <= 100 * NARROW else Adds.CANNOT_TELL

    def sees(self, effects: Mapping[str, Estimate]) -> bool:
        """Whether the interval of an effect's mean excludes zero."""
        mean = self.of(effects)
        return mean is not None and is_seen(mean)

    def size(self, effects: Mapping[str, Estimate]) -> Fraction:
        """How large an effect is in the mean, in either direction."""
        mean = self.of(effects)
        return abs(mean.value) if mean else Fraction(0)

    def seen_in(self, effects: Mapping[str, Estimate]) -> list[tuple[str, Estimate]]:
        """The regions where an effect's interval excludes zero, with the effect in per cent of the
        region, the largest first.
        """
        found = [
            (region.name, part_of(effects[region.name], region))
            for region in self.regions
            if region.name in effects
            and not region.rate
            and region.before.value
            and is_seen(effects[region.name])
        ]
        return sorted(found, key=lambda row: -abs(row[1].value))

    def known_least(self, effects: Mapping[str, Estimate]) -> str:
        """Return the region in which an effect may be the largest part of it, in either direction,
        and how large; "" where it is 0 in all of them.
        """
        parts = {
            region.name: part_of(effects[region.name], region)
            for region in self.regions
            if region.name in effects and not region.rate and region.before.value
        }
        name = max(parts, key=lambda one: bound(parts[one]), default="")
        return f"{name} {bound_text(parts[name])}" if name and bound(parts[name]) else ""

    def most_in(self, effects: Mapping[str, Estimate]) -> str:
        """The region where an effect is the largest part of it, and that part; "" without one."""
        found = self.seen_in(effects)
        return f"{found[0][0]} {cell(found[0][1])}" if found else ""


class SearchReport(Protocol):
    """A report of what was found between two ends."""

    @property
    def regions(self) -> Any: ...
    @property
    def mean(self) -> Any: ...


def means_of(report: SearchReport) -> Means:
    """The means over the report's regions."""
    return Means(report.regions, report.mean)


def part_of(effect: Estimate, region: AblatedRegion) -> Estimate:
    """An effect in per cent of what the region costs in the base."""
    cost = abs(region.before.value) / 100
    return Estimate(effect.value / cost, effect.low / cost, effect.high / cost, effect.n)


def spread(mean: Estimate) -> str:
    """How far a mean in per cent may be off: rounded up, so that the interval is not narrower."""
    if mean.n < 2:
        return "n=1" if mean.n else ""
    if mean.exact:
        return "exact"
    far = farthest(mean)
    places = 2 if far < _TWO_PLACES else 1
    return f"+-{math.ceil(far * 10**places) / 10**places:.{places}f}"


def cell(mean: Estimate | None) -> str:
    """A mean with its spread; "-" without a region."""
    return "-" if mean is None else f"{figures.percent(mean.value)} {spread(mean)}".rstrip()


def bound_text(mean: Estimate | None) -> str:
    """How large a mean may be."""
    if mean is None:
        return "unknown"
    if mean.n < 2:
        return "one run"
    far = bound(mean)
    return f"{math.ceil(far * 100) / 100:.2f} %" if far else "exactly 0"


def apart_text(region: AblatedRegion) -> str:
    """Between what figures the runs of a kernel vary, and what the whole does there."""
    varies = region.varies
    low, high = figures.number(varies.low), figures.number(varies.high)
    return (
        f"{region.name}: {low} to {high} instructions in {varies.n} runs; from end to end "
        f"{cell(part_of(region.whole, region))}"
    )


def remainder_words(adds: Adds) -> str:
    """What a remainder says; `about` has the limit."""
    return {
        Adds.ADDS_UP: "within the spread",
        Adds.LEFT_OVER: "more than the spread",
        Adds.CANNOT_TELL: "cannot tell",
    }[adds]


def how_made(count: int, base: str) -> str:
    """How means are made."""
    return (
        f"Mean over {words.counted(count, 'region')}, in per cent of {base}, of the "
        "instructions of the measured tasks; a minus is faster. Behind it how far it may be off: "
        "the range over runs, or where these are not known the spreads of regions, which add up. "
        "What is left over is within the spread if that holds 0 and "
        f"is no wider than {percents(NARROW)}; if it is wider, one cannot tell."
    )


def left_over(means: Means) -> str:
    """What is left over in the mean, in words; "" where it is exactly nothing."""
    rest, word = means.remainder, means.adds
    return remainder_words(word) if rest and word and (rest.value or farthest(rest)) else ""


def totals(means: Means, whole: str, rest: str) -> list[Total]:
    """Return the rows of what parts add up to, of the whole, and of what is left over, if anything
    is.

    whole, rest: what these are called.
    """
    rows: list[Total] = [("sum of these", means.sums, ""), (whole, means.wholes, "")]
    word = left_over(means)
    return [*rows, (rest, means.rests, word)] if word else rows
