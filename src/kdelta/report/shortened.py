# SPDX-License-Identifier: GPL-2.0-or-later
"""A document with as much of one kind of section as was asked for, for a terminal."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import msgspec

from kdelta.report.document import Block, Cell, Document, Fold, Prose, Section, Table, figure_of
from kdelta.report.stored import Stored

Part = Literal["folds", "rows"]


def shortened(document: Document, section: str, part: Part, most: int) -> Document:
    """Return the document with so many folds, or rows of tables, in the sections whose ids begin
    so.
    """
    sections = tuple(
        _section(one, part, most) if one.id.partition("-")[0] == section else one
        for one in document.sections
    )
    return msgspec.structs.replace(document, sections=sections)


def explained(
    document: Callable[[Stored], Document], section: str, part: Part, most: int
) -> Callable[[Stored], Document]:
    """Return what makes the document with as much of a section as --explain N asks for, or with
    `most` if it was not given.
    """
    return lambda stored: shortened(
        document(stored), section, part, stored.shown.get("explain", most)
    )


def _section(section: Section, part: Part, most: int) -> Section:
    cut = _folds if part == "folds" else _rows
    return msgspec.structs.replace(section, blocks=cut(section.blocks, most))


def _folds(blocks: tuple[Block, ...], most: int) -> tuple[Block, ...]:
    left = [one for one in blocks if isinstance(one, Fold) and not one.always][most:]
    kept = tuple(one for one in blocks if one not in left)
    return (*kept, Prose(f"And {len(left)} more: --explain.")) if left else kept


def _rows(blocks: tuple[Block, ...], most: int) -> tuple[Block, ...]:
    return tuple(_fewer(one, most) for one in blocks)


def _fewer(block: Block, most: int) -> Block:
    change = msgspec.structs.replace
    if isinstance(block, Fold):
        return change(block, blocks=_rows(block.blocks, most))
    if not isinstance(block, Table) or len(block.rows) <= most:
        return block
    left = block.rows[most:]
    name = Cell(f"and {len(left)} more")
    if not any(column.sums for column in block.columns):
        more = (name, *[Cell("")] * (len(block.columns) - 1))
        return change(block, rows=block.rows[:most], foot=(more, *block.foot))
    sums = (
        _sum([row[at] for row in left]) if column.sums else Cell("")
        for at, column in enumerate(block.columns[1:], start=1)
    )
    return change(block, rows=(*block.rows[:most], (name, *sums)))


def _sum(cells: Sequence[Cell]) -> Cell:
    """What these figures add up to, as they are printed."""
    total = sum((figure_of(one) for one in cells), Fraction(0))
    sign = "+" if any(one.text.startswith(("+", "-")) for one in cells) else ""
    return Cell(f"{float(total):{sign}.2f}".removesuffix(".00"), float(total))
