# SPDX-License-Identifier: GPL-2.0-or-later
"""How the configs of two kernels differ."""

from collections.abc import Iterator

from kdelta.report import words
from kdelta.report.document import Cell, Column, Fold, Prose, Section, Table
from kdelta.report.model import Compared, ReportedOption

_OFF = "n"


def sections(compared: Compared, title: str, mark: str) -> Iterator[Section]:
    """Yield the section, where both configs are known."""
    changes = compared.config
    if changes is None:
        return
    if not changes:
        yield Section(
            f"config{mark}", title, (Prose("They do not: both are the same."),), detail=True
        )
        return
    columns = (
        Column("option", "name"),
        Column("base"),
        Column("other"),
        Column("what", "word"),
    )
    rows = tuple(
        (Cell(one.option), Cell(one.base), Cell(one.other), Cell(_change(one), tone="same"))
        for one in changes
    )
    count = words.counted(len(changes), "option has", "options have")
    lead = Prose(
        f"{count} another value. kdelta ablate finds which of them account for the difference, "
        "where both kernels are built from one tree."
    )
    table = Table(f"config-table{mark}", "Options", columns, rows, filtered=True)
    blocks = (lead, Fold("All of them", (table,)))
    yield Section(f"config{mark}", title, blocks, detail=True)


def _change(one: ReportedOption) -> str:
    if one.base == _OFF:
        return "switched on"
    return "switched off" if one.other == _OFF else "changed"
