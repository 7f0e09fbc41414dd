# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace was cut off, as text and as JSON: the first part beside the whole."""

from collections.abc import Sequence

import msgspec

from kdelta.report.cut_model import CutMisses, CutRegion
from kdelta.report.layout import wrapped

_NAME = 20
_FIGURE = 12
_LEAST = 0.01
_WIDTH = 8
ALONE = "kernel"
"""What a kernel is called that is held against none."""

_TITLE = (
    "traces that were cut off: L1I misses an iteration as shipped, of the first part, which all "
    "other figures are of, and of the whole region, counted while it ran"
)


class JsonCutMisses(msgspec.Struct, frozen=True):
    """L1I misses of a region's own work an iteration as shipped: of the `first` part, which has
    `part` (0 to 1) of its instructions (null: nothing was kept), and of the `whole` region, counted
    while it ran (null: it could not be).
    """

    part: float
    first: float | None
    whole: float | None


class JsonCut(msgspec.Struct, frozen=True):
    """A region whose trace was cut off, by kernel: `kernel`, or `base` and `other`. `word` and
    `reason`: its verdict, where one has no trace and so there is no effect; else empty.
    """

    name: str
    kernels: dict[str, JsonCutMisses]
    word: str
    reason: str


def json_cut(regions: Sequence[CutRegion]) -> list[JsonCut]:
    """The regions."""
    return [
        JsonCut(
            name=one.name,
            kernels={
                who: JsonCutMisses(found.part, found.first, found.whole)
                for who, found in one.kernels.items()
            },
            word=one.verdict.word.value if one.verdict else "",
            reason=one.verdict.reason if one.verdict else "",
        )
        for one in regions
    ]


def cut_lines(regions: Sequence[CutRegion]) -> list[str]:
    """A table of regions of one kernel; nothing for none."""
    if not regions:
        return []
    words = ("kept", "first part", "whole")
    lines = ["", *wrapped(_TITLE, "", "  ")]
    lines.append(f"{'operation':<{_NAME}}" + "".join(f"{word:>{_FIGURE}}" for word in words))
    for one in regions:
        found = one.kernels[ALONE]
        cells = (f"{part_text(found)} %", figure_text(found.first), figure_text(found.whole))
        name = f"{one.name:<{_NAME}}" if len(one.name) < _NAME else f"{one.name}\n{'':<{_NAME}}"
        lines.append(name + "".join(f"{cell:>{_FIGURE}}" for cell in cells))
    return lines


def cut_note(region: CutRegion) -> str:
    """The same of one region in words."""
    words = [_words(who, found) for who, found in region.kernels.items()]
    return f"{region.name}: its trace was cut off: {'; '.join(words)}"


def _words(who: str, found: CutMisses) -> str:
    place = f"in {who} " if who != ALONE else ""
    whole = (
        f"{figure_text(found.whole)} L1I misses an iteration as shipped, counted while it ran"
        if found.whole is not None
        else "misses that nobody counted"
    )
    if found.first is None:
        return f"{place}nothing of it was kept; all of it has {whole}"
    return (
        f"{place}misses are those of its first part, {part_text(found)} % of its instructions, "
        f"with {figure_text(found.first)} of the L1I as shipped; all of it has {whole}"
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
