# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses under the CPU's own replacement policy, and next to them those under LRU."""

from collections.abc import Iterator

from kdelta.cpus.misses import PLURALS
from kdelta.infer.cycles.sensitivity import ALIKE, Replaced
from kdelta.report import cells
from kdelta.report.document import Cell, Column, Section, Table
from kdelta.studies.layout.model import LayoutReport

_HOW = {"random": "at random", "round-robin": "in turn"}


def replacement_section(report: LayoutReport) -> Iterator[Section]:
    """A table for each kind of misses: of each region the median layout and the one as linked,
    under either policy. Regions without any misses are left out.
    """
    kinds = dict.fromkeys(kind for one in report.regions for kind in one.replacement)
    tables = tuple(table for kind in kinds for table in _table(kind, report))
    if tables:
        yield Section("replacement", "Replacement policy", tables)


def _table(kind: str, report: LayoutReport) -> Iterator[Table]:
    held = [(one.name, one.replacement[kind]) for one in report.regions if kind in one.replacement]
    held = [(name, one) for name, one in held if one.own.most or one.lru.most]
    if not held:
        return
    how = _HOW.get(held[0][1].policy, held[0][1].policy)
    caption = (
        f"{PLURALS.get(kind, kind)}: this cache replaces {how}; next to it, if the least recently "
        "used left (LRU)"
    )
    rho = f"rank correlation of the layouts under both; below {ALIKE:g} (*) it depends on the "
    columns = (
        Column("operation", "name"),
        Column("median", "number"),
        Column("as linked", "number"),
        Column("p", "number", "per cent of the layouts with less than the one as linked"),
        Column("LRU median", "number"),
        Column("LRU as linked", "number"),
        Column("LRU p", "number"),
        Column("rho", "number", f"{rho}policy which layouts are good"),
    )
    yield Table(f"replacement-{kind}", caption, columns, tuple(_row(*row) for row in held))


def _row(name: str, found: Replaced) -> tuple[Cell, ...]:
    shown = [
        cell
        for one in (found.own, found.lru)
        for cell in (
            cells.number(one.median),
            cells.number(one.shipped),
            Cell(f"{one.percentile:.0f}", one.percentile),
        )
    ]
    rho = "-" if found.correlation is None else f"{found.correlation:.2f}"
    return (Cell(name), *shown, Cell(f"{rho}{'*' if found.hangs else ''}", found.correlation or 0))
