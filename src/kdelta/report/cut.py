# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace was cut off at its limit: the first part next to the whole, in words."""

import msgspec

from kdelta.infer.cycles.placement_model import CycleVerdict

_LEAST = 0.01
_WIDTH = 8
ALONE = "kernel"
"""What a kernel is called that is compared with none."""


class CutMisses(msgspec.Struct, frozen=True):
    """L1I misses of a region's own work, an iteration, as its kernel is linked.

    part   how much of the region's own instructions its trace has, from 0 to 1
    first  in that first part, by the replay; None where nothing fitted into the trace
    whole  in all of the region, counted while it ran; None where that was not to be had
    """

    part: float
    first: float | None
    whole: float | None


class CutRegion(msgspec.Struct, frozen=True):
    """A region whose trace was cut off, by kernel ("kernel", or "base" and "other"): each whose own
    was. verdict: on its model cycles, where two kernels were to be judged and of one there is no
    trace; None where there is an effect.
    """

    name: str
    kernels: dict[str, CutMisses]
    verdict: CycleVerdict | None = None


def cut_note(region: CutRegion) -> str:
    """The same of one region in words."""
    words = [_words(who, found) for who, found in region.kernels.items()]
    return f"{region.name}: its trace was cut off: {'; '.join(words)}"


def _words(who: str, found: CutMisses) -> str:
    place = f"in {who} " if who != ALONE else ""
    whole = (
        f"{figure_text(found.whole)} L1I misses an iteration as linked, counted while it ran"
        if found.whole is not None
        else "misses that were not counted"
    )
    if found.first is None:
        return f"{place}nothing of it was kept; all of it has {whole}"
    return (
        f"{place}misses are those of its first part, {part_text(found)} % of its instructions, "
        f"with {figure_text(found.first)} of the L1I as linked; all of it has {whole}"
    )


def part_text(found: CutMisses) -> str:
    """How many per cent were kept, so that less than all never reads as all."""
    percent = min(100 * found.part, 99.99)
    return f"{percent:.2g}" if percent < 10 else f"{percent:.4g}"


def figure_text(misses: float | None) -> str:
    """Misses in at most eight characters, or a mark where they are not known."""
    if misses is None:
        return "?"
    if 0 < misses < _LEAST:
        return f"<{_LEAST}"
    shown = [f"{misses:.{places}f}" for places in (2, 1, 0)]
    return next((text for text in shown if len(text) <= _WIDTH), f"{misses:.2e}")
