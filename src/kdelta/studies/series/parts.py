# SPDX-License-Identifier: GPL-2.0-or-later
"""What all forms of a series name alike: its means, its answer, what did something."""

from collections.abc import Mapping

from kdelta.infer.effects.estimate import MEAN, Estimate, is_seen
from kdelta.infer.search.series_model import PatchFate, View
from kdelta.studies.search.account import AccountWords, Part
from kdelta.studies.search.means import (
    Means,
    averaged,
    cell,
)
from kdelta.studies.series.model import SeriesReport, SeriesRow

WORDS = AccountWords("patches", "all do", "all patches", "patches without effect")

HEADS = {View.ORDER: "in order", View.LEFT_OUT: "left out", View.ALONE: "alone"}


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def means_of(report: SeriesReport) -> Means:
    """The means over the report's regions."""
    return Means(report.regions, report.mean)


def verdict_text(report: SeriesReport) -> str:
    """In words: what all do, which patches do most of it, and how many do nothing."""
    whole, count = means_of(report).whole(), len(averaged(report.regions))
    changed = [one for one in report.regions if not one.rate and is_seen(one.whole)]
    if whole is None:
        text = "No region is steady enough for a mean. "
    elif not changed:
        text = "All patches together change no region's path. "
    else:
        text = (
            f"All patches together change the path by {cell(whole)} in the mean over "
            f"{_count(count, 'region', 'regions')}; {len(changed)} differ. "
        )
    doing = [row for row in report.of(PatchFate.MEASURED) if does_something(row.answer.effects)]
    if report.minimal is None:
        text += f"{_count(len(doing), 'patch is', 'patches are')} known to do something. "
    out = len(report.of(PatchFate.RULED_OUT))
    text += f"{_count(out, 'patch was', 'patches were')} ruled out without a kernel of their own."
    return text


def does_something(effects: Mapping[str, Estimate]) -> bool:
    """Whether an effect is more than its spread in any region."""
    return any(is_seen(one) for region, one in effects.items() if region != MEAN)


def unseen_rows(report: SeriesReport) -> list[SeriesRow]:
    """The patches that were measured, or cleared with others, and do nothing in any region."""
    measured = [*report.of(PatchFate.MEASURED), *report.of(PatchFate.CLEARED)]
    return [row for row in measured if not does_something(row.answer.effects)]


def most_in(effects: Mapping[str, Estimate], report: SeriesReport) -> str:
    """The region where an effect is the largest part, if its interval excludes zero."""
    return means_of(report).most_in(effects)


def parts_of(region: str, report: SeriesReport) -> list[Part]:
    """A region's patches and groups of them."""
    patches = [
        (row.name, row.answer.effects[region])
        for row in report.of(PatchFate.MEASURED)
        if region in row.answer.effects
    ]
    return patches + [
        (f"group {number} ({len(group.patches)} patches)", group.effects[region])
        for number, group in enumerate(report.groups, start=1)
        if region in group.effects
    ]
