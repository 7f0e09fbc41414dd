# SPDX-License-Identifier: GPL-2.0-or-later
"""Sections of what CPUs contend for: where they wait for each other, and what it may cost."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.cpus.model import LineTransfer
from kdelta.infer.conflicts.cost import transfer_cost
from kdelta.infer.conflicts.waiting import Waiting
from kdelta.report import cells, words
from kdelta.report.document import Block, Cell, Column, Prose, Section, Table
from kdelta.report.names import side_names
from kdelta.studies.conflicts.model import ConflictsReport

_TURNS = "With turns of 500 to 50,000 instructions, drawn by seed"


def waiting_sections(report: ConflictsReport) -> Iterator[Section]:
    """Yield the section of regions in which CPUs wait for each other, where runs have short
    turns.
    """
    if not any(side.short_turns for side in report.sides):
        return
    found = [{one.region: one for one in side.waits} for side in report.sides]
    names = sorted(
        dict.fromkeys(name for waits in found for name in waits),
        key=lambda name: -max(waits[name].insns.value for waits in found if name in waits),
    )
    alone = len(found) == 1
    if not alone:
        names = [name for name in names if any(_insns(name, waits) for waits in found)]
    times = (
        Column("waits", "number", "how often a CPU begins to wait, an iteration"),
        Column("polls", "number", "how often it looks whether others answered, an iteration"),
    )
    columns = (
        Column("region", "name"),
        *(Column(of, "number", "in which a CPU waits, an iteration") for of in _titles(report)),
        *(times if alone else ()),
        Column("for"),
        Column("in"),
    )
    rows = tuple(tuple(_waiting_row(name, found)) for name in names)
    blocks: tuple[Block, ...] = (Prose(f"{_TURNS}, no CPU waits for another in any region."),)
    if rows:
        caption = f"{_TURNS}: instructions while another CPU has the lock"
        blocks = (Table("waiting-table", caption, columns, rows, filtered=True),)
    yield Section("waiting", "Regions whose CPUs wait for each other", blocks)


def _titles(report: ConflictsReport) -> tuple[str, ...]:
    return side_names(report.sides).columns if len(report.sides) > 1 else ("waiting",)


def _waiting_row(name: str, found: Sequence[Mapping[str, Waiting]]) -> Iterator[Cell]:
    yield Cell(name)
    every = [waits[name] for waits in found if name in waits]
    for waits in found:
        yield cells.number(_insns(name, waits))
    if len(found) == 1:
        yield cells.number(every[0].times.value)
        yield cells.number(every[0].polls.value)
    locks = list(dict.fromkeys(lock for one in every for lock in one.locks))
    yield Cell(words.some(locks, 2) if locks else "-")
    by = dict.fromkeys(function for one in every for function in one.functions)
    yield Cell(words.some(list(by), 2))


def _insns(name: str, waits: Mapping[str, Waiting]) -> Fraction:
    return waits[name].insns.value if name in waits else Fraction(0)


def cost_sections(report: ConflictsReport) -> Iterator[Section]:
    """Yield the section of what conflicts may cost on the CPU that was named, if any."""
    if report.on is None or report.on.transfer is None:
        return
    transfer, cpu = report.on.transfer, report.on.cpu
    titles = side_names(report.sides).columns if len(report.sides) > 1 else ("nanoseconds",)
    columns = (
        Column("region", "name"),
        *(Column(of, "number", "an iteration, not measured") for of in titles),
    )
    caption = (
        f"By published latencies of {cpu}, in nanoseconds an iteration of all CPUs: from each CPU "
        "taking one line once from its nearest neighbor, to each access taking its line from the "
        "farthest"
    )
    if rows := tuple(_cost_rows(report, transfer)):
        table = Table("costs-table", caption, columns, rows, filtered=True)
        yield Section("costs", "What it may cost", (table, Prose(_ceiling(cpu, transfer))))


def _cost_rows(report: ConflictsReport, transfer: LineTransfer) -> Iterator[tuple[Cell, ...]]:
    for region in report.regions:
        costs = [
            transfer_cost(found, transfer) if (found := side.of(region)) else None
            for side in report.sides
        ]
        if any(costs):
            texts = (f"{_ns(one.least)} to {_ns(one.most)}" if one else "0" for one in costs)
            yield Cell(region), *map(Cell, texts)


def _ceiling(cpu: str, transfer: LineTransfer) -> str:
    slow, fast = (_ns(Fraction(1000) / Fraction(ns)) for ns in reversed(transfer.near))
    most = fast if slow == fast else f"{slow} to {fast}"
    return (
        f"However many CPUs of {cpu} execute steps that contend for one line, all of them together "
        f"execute at most {most} million a second, where each step takes the line from another CPU."
    )


def _ns(value: Fraction) -> str:
    return cells.number(value).text
