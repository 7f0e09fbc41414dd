# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace was cut off, as text: the first part next to the whole."""

from kdelta.report.cut_model import CutMisses, CutRegion

_NAME = 20
_FIGURE = 12
_LEAST = 0.01
_WIDTH = 8
ALONE = "kernel"
"""What a kernel is called that is compared with none."""

_TITLE = (
    "traces that were cut off: L1I misses an iteration as linked, of the first part, which all "
    "other figures are of, and of the whole region, counted while it ran"
)


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
