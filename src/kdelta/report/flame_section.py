# SPDX-License-Identifier: GPL-2.0-or-later
"""The section of a document that has its flame graphs."""

from collections.abc import Sequence

import msgspec

from kdelta.report.document import Block, Document, Flames, Prose, Section
from kdelta.report.flame import SMALLEST, Flame


def with_flames(found: Document, flames: Sequence[Flame]) -> Document:
    """The document with its flame graphs."""
    if not flames:
        return found
    return msgspec.structs.replace(found, sections=(*found.sections, flame_section(flames)))


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
