# SPDX-License-Identifier: GPL-2.0-or-later
"""How the JSON of what ablations and series have in common differs from its types."""

from kdelta.infer.effects.estimate import Estimate
from kdelta.report.model import Side
from kdelta.report.shapes import HasEffects
from kdelta.studies.search.means import MeanAccount, SearchReport, means_of


def before(report: SearchReport) -> Side:
    """Return the end without the changes."""
    return report.ends[0]


def after(report: SearchReport) -> Side:
    """Return the end with all changes."""
    return report.ends[1]


def means(report: SearchReport) -> MeanAccount | None:
    """Over all steady regions; null without one."""
    return means_of(report).account


def mean(one: HasEffects, report: SearchReport) -> Estimate | None:
    """The mean of its effects over regions, as in `means`; null unless it is known."""
    return means_of(report).of(one.effects) if one.effects else None


def seen(one: HasEffects, report: SearchReport) -> bool | None:
    """Whether the interval of that mean excludes zero."""
    return means_of(report).sees(one.effects) if one.effects else None
