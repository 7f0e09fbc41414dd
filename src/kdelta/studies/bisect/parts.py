# SPDX-License-Identifier: GPL-2.0-or-later
"""What all forms of a bisection name alike: its answer, regions that changed, what is left."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from kdelta.infer.effects.estimate import NARROW, STEADY, ZERO, Adds, Estimate, is_seen
from kdelta.report import figures
from kdelta.spec.errors import LabError
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.search.means import percents
from kdelta.studies.search.model import BisectedRegion


def verdict_text(report: BisectReport) -> str:
    """In words, what was found."""
    if report.good == report.bad:
        return "Good and bad are the same commit: there is nothing to explain."
    where = f" in {' and '.join(report.asked)}" if report.asked else ""
    if not report.found and not report.groups:
        return f"There is no difference to explain{where}: {_no_difference(report)}"
    effects = [one for one in report.found if not one.moved]
    parts = [_counted(len(effects), "commit")] if effects or not report.groups else []
    if report.groups:
        parts.append(_counted(len(report.groups), "group") + " of commits")
    verb = "accounts" if len(effects) + len(report.groups) == 1 else "account"
    text = f"{' and '.join(parts)} {verb} for the difference{where}."
    if report.first:
        text = f"The largest effect{where} was searched for, and no other."
    moved = len(report.found) - len(effects)
    if moved:
        text += f" {_counted(moved, 'commit')} moved work between functions, and no region changed."
    return text


def _no_difference(report: BisectReport) -> str:
    changed = [
        one
        for one in report.regions
        if is_seen(one.whole) and (not report.asked or one.name in report.asked)
    ]
    if not changed:
        regions = "it" if len(report.asked) == 1 else "they" if report.asked else "all regions"
        verb = "has" if len(report.asked) == 1 else "have"
        return f"{regions} {verb} the same path at both ends, within the spread."
    most = max(changed, key=lambda one: abs(part_of(one.whole.value, one)))
    return f"the largest is {_figures(most)}, which is placement or within the margin."


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _figures(region: BisectedRegion) -> str:
    part = figures.percent(100 * part_of(region.whole.value, region))
    return (
        f"{region.name} {figures.number(region.good.value)} -> "
        f"{figures.number(region.bad.value)} ({part})"
    )


def part_of(value: Fraction, region: BisectedRegion) -> Fraction:
    """An effect as a part of the region's cost in the good end; all of it where that is zero."""
    return value / region.good.value if region.good.value else Fraction(bool(value))


def changed_regions(
    effects: Mapping[str, Estimate], report: BisectReport
) -> list[tuple[BisectedRegion, Estimate]]:
    """The regions where an effect is more than its spread, the largest first."""
    rows = [
        (region, effects[region.name])
        for region in report.regions
        if region.name in effects and is_seen(effects[region.name])
    ]
    return sorted(rows, key=lambda row: (row[0].rate, -abs(part_of(row[1].value, row[0]))))


def left_texts(regions: Sequence[BisectedRegion]) -> list[str]:
    """Where what was found does not add up to the whole, and where one cannot tell."""
    said = {
        Adds.LEFT_OVER: "more than the spread is left in",
        Adds.CANNOT_TELL: "whether what was found is all of it cannot be told, since the spread of "
        f"what is left is wider than {percents(NARROW)} of the region, in",
    }
    found = {adds: [one.name for one in regions if one.adds is adds] for adds in said}
    return [f"{text} {', '.join(found[adds])}" for adds, text in said.items() if found[adds]]


def varying_texts(regions: Sequence[BisectedRegion]) -> list[str]:
    """The regions that changed whose runs vary, with the figures between which they do."""
    return [
        f"runs of one kernel vary by more than {percents(STEADY)} in {one.name}: "
        f"{figures.number(one.varies.low)} to {figures.number(one.varies.high)} in "
        f"{one.varies.n} runs"
        for one in regions
        if is_seen(one.whole) and not one.rate and not one.steady
    ]


def rounded_parts(region: BisectedRegion) -> tuple[int, int]:
    """What was found and what is left, in hundredths that add up to bad - good as printed; LabError
    if the exact figures do not.
    """
    if region.explained.value + region.remainder.value != region.whole.value:
        raise LabError(
            f"{region.name}: what was found adds up to {float(region.explained.value)}, and what "
            f"is left is {float(region.remainder.value)}",
            "this is an error of kdelta; please report it with the output of --json",
        )
    total = figures.scaled(region.bad.value) - figures.scaled(region.good.value)
    parts = [region.explained.value, region.remainder.value]
    if region.remainder.value == ZERO:
        return total, 0
    found, left = figures.rounded_to_total(parts, total)
    return found, left
