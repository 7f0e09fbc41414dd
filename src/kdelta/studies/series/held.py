# SPDX-License-Identifier: GPL-2.0-or-later
"""A branch of measured patches on a new base: what of its earlier effects still holds."""

import enum
import re
from collections.abc import Iterator

import msgspec

from kdelta.infer.effects.estimate import Estimate, is_seen
from kdelta.infer.search.search_model import PatchOutcome
from kdelta.studies.search.model import AblatedRegion
from kdelta.studies.series.model import SeriesReport, SeriesRow

_TRAILER = re.compile(r"(?P<region>.+) (?P<percent>[+-]\d+(?:\.\d+)?) % path \(.*\)")
_SAME_PART = 0.1
"""The part of an earlier effect by which it may differ and still hold."""


class StatedOutcome(enum.StrEnum):
    """What became of an effect."""

    HOLDS = "holds"
    LESS = "less"
    MORE = "more"
    GONE = "gone"
    REVERSED = "reversed"
    UNKNOWN = "unknown"
    """The patch could not be measured alone, or there is no such region any more."""


class StatedEffect(msgspec.Struct, frozen=True):
    """An effect that a trailer states, in per cent, and what it is now (None: unknown)."""

    patch: str
    region: str
    earlier: float
    now: float | None
    word: StatedOutcome


def held(report: SeriesReport) -> tuple[StatedEffect, ...]:
    """One for each effect that the trailers of patches state, in order."""
    return tuple(one for row in report.rows for one in _of_row(row, report))


def _of_row(row: SeriesRow, report: SeriesReport) -> Iterator[StatedEffect]:
    regions = {trailer_name(region): region for region in report.regions}
    for text in row.earlier:
        if match := _TRAILER.fullmatch(text):
            earlier = float(match["percent"])
            now = _now(row, regions.get(match["region"]))
            yield StatedEffect(row.name, match["region"], earlier, now, _word(earlier, now))


def trailer_name(region: AblatedRegion) -> str:
    """Return what trailers call a region: its workload comes first."""
    return region.name if "/" in region.name else f"{region.workload}/{region.name}"


def _now(row: SeriesRow, region: AblatedRegion | None) -> float | None:
    if region is None or not region.before.value:
        return None
    if row.answer.outcome in (PatchOutcome.TOGETHER, PatchOutcome.UNRESOLVED):
        return None
    effect: Estimate | None = row.answer.effects.get(region.name)
    if effect is None or not is_seen(effect):
        return 0.0
    return float(100 * effect.value / region.before.value)


def _word(earlier: float, now: float | None) -> StatedOutcome:
    if now is None:
        return StatedOutcome.UNKNOWN
    if not now:
        return StatedOutcome.GONE
    if now * earlier < 0:
        return StatedOutcome.REVERSED
    if abs(now - earlier) <= max(_SAME_PART * abs(earlier), 0.005):
        return StatedOutcome.HOLDS
    return StatedOutcome.MORE if abs(now) > abs(earlier) else StatedOutcome.LESS
