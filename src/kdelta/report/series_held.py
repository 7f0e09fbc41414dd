# SPDX-License-Identifier: GPL-2.0-or-later
"""A branch of measured patches on a new base: what of its earlier effects still holds."""

import enum
import re
from collections.abc import Iterator
from fractions import Fraction

import msgspec

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import is_seen
from kdelta.infer.series_model import PatchFate
from kdelta.report import figures
from kdelta.report.ablation_model import AblatedRegion
from kdelta.report.layout import wrapped
from kdelta.report.series_model import SeriesReport, SeriesRow

_TRAILER = re.compile(r"(?P<region>.+) (?P<percent>[+-]\d+(?:\.\d+)?) % path \(.*\)")
_SAME_PART = 0.1
"""The part of an earlier effect by which it may differ and still hold."""


class Holds(enum.StrEnum):
    """What became of an effect."""

    HOLDS = "holds"
    LESS = "less"
    MORE = "more"
    GONE = "gone"
    REVERSED = "reversed"
    UNKNOWN = "unknown"
    """The patch could not be measured by itself, or there is no such region any more."""


class Held(msgspec.Struct, frozen=True):
    """An effect that a trailer tells, in per cent, and what it is now (None: unknown)."""

    patch: str
    region: str
    earlier: float
    now: float | None
    word: Holds


def held(report: SeriesReport) -> tuple[Held, ...]:
    """One for each effect that the trailers of patches tell, in order."""
    return tuple(one for row in report.rows for one in _of_row(row, report))


def _of_row(row: SeriesRow, report: SeriesReport) -> Iterator[Held]:
    regions = {_named(region): region for region in report.regions}
    for text in row.earlier:
        match = _TRAILER.fullmatch(text)
        if match is None:
            continue
        earlier = float(match["percent"])
        now = _now(row, regions.get(match["region"]))
        yield Held(row.name, match["region"], earlier, now, _word(earlier, now))


def _named(region: AblatedRegion) -> str:
    return region.name if "/" in region.name else f"{region.workload}/{region.name}"


def _now(row: SeriesRow, region: AblatedRegion | None) -> float | None:
    if region is None or not region.before.value:
        return None
    if row.answer.fate in (PatchFate.TOGETHER, PatchFate.UNRESOLVED):
        return None
    effect: Estimate | None = row.answer.effects.get(region.name)
    if effect is None or not is_seen(effect):
        return 0.0
    return float(100 * effect.value / region.before.value)


def _word(earlier: float, now: float | None) -> Holds:
    if now is None:
        return Holds.UNKNOWN
    if not now:
        return Holds.GONE
    if now * earlier < 0:
        return Holds.REVERSED
    if abs(now - earlier) <= max(_SAME_PART * abs(earlier), 0.005):
        return Holds.HOLDS
    return Holds.MORE if abs(now) > abs(earlier) else Holds.LESS


def held_lines(report: SeriesReport) -> list[str]:
    """The table, or nothing where no patch was measured before."""
    found = held(report)
    if not found and not any(row.earlier for row in report.rows):
        return []
    counted = {word: sum(one.word is word for one in found) for word in Holds}
    shown = ", ".join(f"{count} {word.value}" for word, count in counted.items() if count)
    lines = ["", f"what still holds: {shown or 'no effect was told'}"]
    name = ""
    for one in found:
        if one.patch != name:
            name = one.patch
            lines += wrapped(name, "  ", "    ")
        now = "?" if one.now is None else figures.percent(_fraction(one.now))
        earlier = figures.percent(_fraction(one.earlier))
        lines.append(f"    {one.region:<36} {earlier:>10} -> {now:>9}  {one.word.value}")
    return lines


def _fraction(value: float) -> Fraction:
    return Fraction(f"{value:.4f}")
