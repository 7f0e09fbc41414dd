# SPDX-License-Identifier: GPL-2.0-or-later
"""What all forms of an ablation name alike: its means, its answer, its units in their order."""

from collections.abc import Mapping

from kdelta.infer.effects.estimate import Estimate, is_seen, share_percent
from kdelta.studies.ablate.model import AblatedUnit, AblationReport, Fate
from kdelta.studies.search.account import AccountWords, Part
from kdelta.studies.search.means import (
    Means,
    averaged,
    bound_text,
    cell,
)

WORDS = AccountWords("units", "B - A is", "total", "not accounted for")
WHOLE = "B - A"

RULED_OUT = (Fate.DEAD, Fate.IDENTICAL)


def verdict_text(report: AblationReport) -> str:
    """In words: which units do most of it, and how many do nothing."""
    total = sum(unit.fate is not Fate.TOGETHER for unit in report.units)
    out = [unit for unit in report.units if unit.fate in RULED_OUT]
    text = f"{report.options} options differ, in {total} units. {_most_of_it(report)}"
    text += (
        f"{len(out)} {'unit was' if len(out) == 1 else 'units were'} ruled out without a kernel of "
        "their own."
    )
    return text


def _most_of_it(report: AblationReport) -> str:
    means = means_of(report)
    whole, count = means.whole(), len(averaged(report.regions))
    if whole is None:
        return "No region is steady enough for a mean. "
    where = f"the mean over {count} {'region' if count == 1 else 'regions'}"
    if not is_seen(whole):
        return f"No effect is seen in {where}: it is at most {bound_text(whole)}. "
    shares = []
    for unit in ranked_units(report)[:3]:
        mean = means.of(unit.effects)
        share = share_percent(mean, whole) if mean else None
        if share is not None:
            shares.append(f"{unit.name} {_share(share)}")
    parts = f": {', '.join(shares)}" if shares else ""
    return f"Of the change of {cell(whole)} in {where}{parts}. "


def _share(share: Estimate) -> str:
    value = f"{float(share.value):.0f} %"
    ends = f"{float(share.low):.0f}", f"{float(share.high):.0f}"
    return value if ends[0] == ends[1] else f"{value} ({ends[0]} to {ends[1]} %)"


def means_of(report: AblationReport) -> Means:
    """The means over the report's regions."""
    return Means(report.regions, report.mean)


def ranked_units(report: AblationReport) -> list[AblatedUnit]:
    """The units with an effect in the mean, those with the largest first."""
    means = means_of(report)
    seen = [unit for unit in _measured(report) if means.sees(unit.effects)]
    return sorted(seen, key=lambda unit: (-means.size(unit.effects), unit.name))


def unseen_units(report: AblationReport) -> list[AblatedUnit]:
    """The units that were measured, and the interval of whose mean holds zero, by name."""
    means = means_of(report)
    unseen = [unit for unit in _measured(report) if not means.sees(unit.effects)]
    return sorted(unseen, key=lambda unit: unit.name)


def _measured(report: AblationReport) -> list[AblatedUnit]:
    return [
        unit
        for unit in report.units
        if unit.fate not in RULED_OUT and unit.fate is not Fate.UNRESOLVED
    ]


def most_in(effects: Mapping[str, Estimate], report: AblationReport) -> str:
    """The region where an effect is the largest part, if its interval excludes zero."""
    return means_of(report).most_in(effects) or "nowhere"


def parts_of(region: str, report: AblationReport) -> list[Part]:
    """A region's units, and what units do only together."""
    units = [(unit.name, unit.effects[region]) for unit in report.units if region in unit.effects]
    return units + [
        (f"together: {' + '.join(pair.units)}", pair.effects[region])
        for pair in report.interactions
        if region in pair.effects
    ]
