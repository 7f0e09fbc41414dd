# SPDX-License-Identifier: GPL-2.0-or-later
"""What a system call's way into the kernel and back costs, broken down by variants: each of them
leaves out one thing more than the one before, so that differences between neighbours add up to the
whole.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, get_args

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import Context, Cost, RegionCounts, RunCounts, merged_regions
from kdelta.cpus.model import ASSUMED, CPU, Price
from kdelta.infer.cycles.cycles import executed_amounts
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.prices import INSNS, STRING_BYTES, prices_of
from kdelta.infer.effects.estimate import ZERO, Estimate, estimate
from kdelta.infer.effects.functions import must_add_up

VariantName = Literal["stock", "mitigations-off", "kernel", "kernel-direct", "kernel-skip"]
"""stock: the tree as it is. mitigations-off: with that parameter. kernel: programs in ring 0, by
the same instruction. kernel-direct: by a jump to the same entry. kernel-skip: past what only a
change of privilege needs. The last three with mitigations off, too.
"""
VARIANTS: tuple[VariantName, ...] = get_args(VariantName)

Part = Literal["mitigations", "crossing", "direct call", "entry work"]
PARTS: tuple[Part, ...] = get_args(Part)
"""What each variant leaves out besides what the one before it does; the first leaves out nothing.
"""

TOTAL = "total"

Amounts = dict[str, Fraction]
"""What has a price, by the price's name: "insns", "string_bytes", and special instructions."""


class VariantCost(msgspec.Struct, frozen=True):
    """What an operation's own work costs in a variant: instructions an iteration, of which `user`
    and `kernel` are the two halves, and `amounts` of all that a CPU may have prices of.
    `interrupts` and `other` are what these executed on its time. `cycles`: its path on a CPU, None
    without one.
    """

    name: VariantName
    insns: Estimate
    user: Estimate
    kernel: Estimate
    interrupts: Estimate
    other: Estimate
    amounts: Amounts
    cycles: Interval | None = None

    @property
    def specials(self) -> Amounts:
        """Special instructions by kind."""
        return {k: n for k, n in self.amounts.items() if k not in {INSNS, STRING_BYTES}}


class Share(msgspec.Struct, frozen=True):
    """What is gained from one variant to a later one, an iteration: positive is less work. `parts`
    are one, or those of all variants between where these are missing. `of_whole`: of the
    instructions gained in all, a fraction; None where that is zero. `cycles`: those gained.
    """

    parts: tuple[Part, ...]
    before: VariantName
    after: VariantName
    insns: Fraction
    user: Fraction
    kernel: Fraction
    of_whole: Fraction | None
    cycles: Interval | None = None


class OperationCrossing(msgspec.Struct, frozen=True):
    """An operation in the variants that have it, in the order of VARIANTS, and what lies between
    them. The shares add up to `whole`, which is None where fewer than two variants have it.
    """

    name: str
    variants: tuple[VariantCost, ...]
    shares: tuple[Share, ...]
    whole: Share | None

    def variant(self, name: VariantName) -> VariantCost | None:
        """What it costs in that variant; None if it has no figure of it."""
        return next((one for one in self.variants if one.name == name), None)


class Crossing(msgspec.Struct, frozen=True):
    """All operations, and their sum over those that every variant with a run has, an iteration of
    each. `left_out`: the others. `assumed`: special instructions that were executed and whose price
    the CPU's file assumes, or has not at all (`unpriced`), with the range that is taken for them.
    """

    operations: tuple[OperationCrossing, ...]
    total: OperationCrossing
    left_out: tuple[str, ...] = ()
    assumed: dict[str, Interval] = {}
    unpriced: dict[str, Interval] = {}


_Run = Mapping[str, RegionCounts]


def crossing_of(
    variants: Mapping[VariantName, Sequence[RunCounts]], cpu: CPU | None = None
) -> Crossing:
    """The variants' runs that went well, perturbed alike, broken down. A variant without a run is
    as one that is not there. Raises LabError if anything does not add up.
    """
    runs = {
        name: [merged_regions(counts) for counts in variants[name]]
        for name in VARIANTS
        if variants.get(name)
    }
    names = list(dict.fromkeys(name for one in runs.values() for run in one for name in run))
    prices = _prices(cpu, runs) if cpu else None
    operations = tuple(
        _broken_down(
            name,
            [name],
            {variant: [run for run in one if name in run] for variant, one in runs.items()},
            prices,
        )
        for name in names
    )
    common = [name for name in names if all(name in run for one in runs.values() for run in one)]
    found = Crossing(
        operations,
        total=_broken_down(TOTAL, common, runs if common else {}, prices),
        left_out=tuple(name for name in names if name not in common),
        assumed=_interval(prices.assumed) if prices else {},
        unpriced=_interval(prices.unpriced) if prices else {},
    )
    check_crossing(found)
    return found


def check_crossing(found: Crossing) -> None:
    """Raises LabError unless user and kernel add up to each variant's work, and shares to the
    whole.
    """
    for one in (*found.operations, found.total):
        for variant in one.variants:
            halves = (variant.user.value, variant.kernel.value)
            must_add_up(f"{one.name}: the halves", halves, variant.insns.value)
        if one.whole is not None:
            for figure in ("insns", "user", "kernel"):
                shares = (getattr(share, figure) for share in one.shares)
                whole = getattr(one.whole, figure)
                must_add_up(f"{one.name}: the shares of {figure}", shares, whole)
    summed = [one for one in found.operations if one.name not in found.left_out]
    names = [variant.name for variant in found.total.variants]
    having = {name: [one.variant(name) for one in summed] for name in names}
    for figure in ("insns", "user", "kernel"):
        for variant in found.total.variants:
            parts = (getattr(one, figure).value for one in having[variant.name] if one is not None)
            must_add_up(f"{TOTAL}: the operations' {figure}", parts, getattr(variant, figure).value)


class _Prices(msgspec.Struct, frozen=True):
    """Of all that was executed: prices by name, and which of them were neither published nor
    measured.
    """

    known: dict[str, Price]
    assumed: dict[str, Price]
    unpriced: dict[str, Price]

    def cycles(self, amounts: Mapping[str, Fraction]) -> Interval:
        """What these cost from the lowest prices to the highest; what is negative is most expensive
        at the lowest. Amounts are exact, so differences are priced and prices never subtracted.
        """
        low = high = 0.0
        for name, amount in amounts.items():
            price = self.known.get(name) or self.unpriced[name]
            ends = (price.low, price.high) if amount > 0 else (price.high, price.low)
            low += float(amount) * ends[0]
            high += float(amount) * ends[1]
        return Interval(low, high)


def _prices(cpu: CPU, runs: Mapping[VariantName, Sequence[_Run]]) -> _Prices:
    known = prices_of(cpu).executed
    kinds = sorted(
        {
            kind
            for one in runs.values()
            for run in one
            for region in run.values()
            for kind in region.cost("own").specials
        }
    )
    # What has no price is as cheap as the cheapest that has one, up to the most expensive.
    lows = [price.low for price in cpu.specials.values()] or [0.0]
    highs = [price.high for price in cpu.specials.values()] or [0.0]
    anything = Price(min(lows), max(highs))
    return _Prices(
        known,
        assumed={
            kind: known[kind]
            for kind in kinds
            if kind in known and cpu.sources.get(f"special.{kind}", "").startswith(ASSUMED)
        },
        unpriced={kind: anything for kind in kinds if kind not in known},
    )


def _interval(prices: Mapping[str, Price]) -> dict[str, Interval]:
    return {kind: Interval(price.low, price.high) for kind, price in prices.items()}


def _broken_down(
    name: str,
    regions: Sequence[str],
    runs: Mapping[VariantName, Sequence[_Run]],
    prices: _Prices | None,
) -> OperationCrossing:
    """The sum over these regions, which all of the runs have; of variants that have a run."""
    variants = tuple(_variant(name, regions, one, prices) for name, one in runs.items() if one)
    whole = _share(variants[0], variants[-1], None, prices) if len(variants) > 1 else None
    shares = tuple(
        _share(before, after, whole.insns if whole else None, prices)
        for before, after in itertools.pairwise(variants)
    )
    if whole is not None:
        whole = msgspec.structs.replace(whole, of_whole=Fraction(1) if whole.insns else None)
    return OperationCrossing(name, variants, shares, whole)


def _variant(
    variant: VariantName, regions: Sequence[str], runs: Sequence[_Run], prices: _Prices | None
) -> VariantCost:
    def of(figure: Callable[[RegionCounts], int]) -> Estimate:
        return estimate(
            [
                sum(
                    (Fraction(figure(run[name]), run[name].iteration_count) for name in regions),
                    ZERO,
                )
                for run in runs
            ]
        )

    def of_context(context: Context, kernel: bool | None = None) -> Estimate:
        return of(lambda region: region.cost(context, kernel).insns)

    amounts = _mean_amounts(
        [
            (run[name].cost("own"), run[name].iteration_count * len(runs))
            for run in runs
            for name in regions
        ]
    )
    return VariantCost(
        variant,
        insns=of_context("own"),
        user=of_context("own", kernel=False),
        kernel=of_context("own", kernel=True),
        interrupts=of_context("interrupts"),
        other=of_context("other"),
        amounts=amounts,
        cycles=prices.cycles(amounts) if prices else None,
    )


def _mean_amounts(costs: Iterable[tuple[Cost, int]]) -> Amounts:
    """The sum of costs, each divided by its number."""
    found = by_key(
        (name, Fraction(count, divisor))
        for cost, divisor in costs
        for name, count in executed_amounts(cost).items()
    )
    return {name: sum(parts, ZERO) for name, parts in sorted(found.items())}


def _share(
    before: VariantCost, after: VariantCost, whole: Fraction | None, prices: _Prices | None
) -> Share:
    first, last = VARIANTS.index(before.name), VARIANTS.index(after.name)
    insns = before.insns.value - after.insns.value
    names = {**before.amounts, **after.amounts}
    saved = {name: before.amounts.get(name, ZERO) - after.amounts.get(name, ZERO) for name in names}
    return Share(
        parts=PARTS[first:last],
        before=before.name,
        after=after.name,
        insns=insns,
        user=before.user.value - after.user.value,
        kernel=before.kernel.value - after.kernel.value,
        of_whole=insns / whole if whole else None,
        cycles=prices.cycles(saved) if prices else None,
    )
