# SPDX-License-Identifier: GPL-2.0-or-later
"""How the JSON of what ablations and series have in common differs from its types."""

from typing import Any, Protocol, runtime_checkable

from kdelta.infer.effects.estimate import Estimate
from kdelta.report.model import (
    Side,
)
from kdelta.report.shapes import HasEffects
from kdelta.studies.search.means import MeanAccount, Means


@runtime_checkable
class SearchReport(Protocol):
    """A report of what was found between two ends."""

    @property
    def ends(self) -> tuple[Side, Side]: ...
    @property
    def regions(self) -> Any: ...
    @property
    def mean(self) -> Any: ...


def before(report: SearchReport) -> Side:
    """Return the end without the changes."""
    return report.ends[0]


def after(report: SearchReport) -> Side:
    """Return the end with all changes."""
    return report.ends[1]


def means(report: SearchReport) -> MeanAccount | None:
    """Over all steady regions; null without one."""
    return Means(report.regions, report.mean).account


def mean(one: HasEffects, report: SearchReport) -> Estimate | None:
    """The mean of its effects over regions, as in `means`; null unless it is known."""
    return Means(report.regions, report.mean).of(one.effects) if one.effects else None


def seen(one: HasEffects, report: SearchReport) -> bool | None:
    """Whether the interval of that mean excludes zero."""
    return Means(report.regions, report.mean).sees(one.effects) if one.effects else None
