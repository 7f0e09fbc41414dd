# SPDX-License-Identifier: GPL-2.0-or-later
"""The section of a page that has its flame graphs."""

from collections.abc import Sequence

import msgspec

from kdelta.report.html.flame import SMALLEST, Flame
from kdelta.report.html.model import Block, Document, Flames, Prose, Section

_BEFORE = ("environment", "notes", "text")


def with_flames(found: Document, flames: Sequence[Flame]) -> Document:
    """The page with its flame graphs, before what it was made with."""
    if not flames:
        return found
    at = next(
        (at for at, section in enumerate(found.sections) if section.id in _BEFORE),
        len(found.sections),
    )
    sections = (*found.sections[:at], flame_section(flames), *found.sections[at:])
    return msgspec.structs.replace(found, sections=sections)


def flame_section(flames: Sequence[Flame]) -> Section:
    """The flame graphs, and how they are read."""
    held = any(len(one.sides) > 1 for one in flames)
    what = (
        "Callers are above what they call; a frame is as wide as what was executed in it and below "
        "it. "
    )
    if held:
        what += (
            "Red frames execute more themselves in the other kernel, blue ones less; the mark "
            "in front of the name says the same. "
        )
    what += (
        f"Frames that have less than {100 * SMALLEST:g} % of a region are summed up as smaller "
        "ones."
    )
    title = "Differential flame graph" if held else "Flame graph"
    blocks: tuple[Block, ...] = (Prose(what), Flames("flame", tuple(flames)))
    return Section("flames", title, blocks)
