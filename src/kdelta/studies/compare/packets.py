# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs, in a comparison: in instructions, by phase, and by a CPU's model."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.packets import PacketEffect, PhaseCost
from kdelta.report import cells
from kdelta.report.document import Block, Cell, Column, Prose, Section, Table
from kdelta.report.measured import placements_in
from kdelta.report.model import ReportedCPU
from kdelta.report.packets import NOT_IN_IT, OF_THE_MODEL, ModelRate, model_rates
from kdelta.studies.compare.model import Compared

_SIDES = ("base", "other")


def sections(
    compared: Compared, cpu: ReportedCPU | None, about: str, mark: str
) -> Iterator[Section]:
    """Yield the section, where any region is about packets."""
    if not compared.packets:
        return
    blocks: list[Block] = [_insns(compared.packets, mark)]
    if any(compared.phases.values()):
        blocks.append(_phases(compared, mark))
    effects = placements_in(compared.measured)
    if cpu is not None and (modelled := _modelled(compared.packets, effects, cpu)):
        at = "" if cpu.clock_mhz is None else f" at {cpu.clock_mhz:.0f} MHz"
        columns = (
            Column("region", "name"),
            Column("what", "word"),
            *(Column(who, "number") for who in _SIDES),
        )
        caption = f"A packet by the model of {cpu.name}{at}, misses hidden to exposed"
        blocks.append(Table(f"model{mark}", caption, columns, modelled))
        blocks += [Prose(OF_THE_MODEL)] if cpu.clock_mhz is not None else []
    title = f"Packets: {about}" if about else "Packets"
    yield Section(f"packets{mark}", title, (*blocks, Prose(NOT_IN_IT)))


def _insns(effects: tuple[PacketEffect, ...], mark: str) -> Table:
    columns = (
        Column("region", "name"),
        Column("verdict", "word"),
        *(Column(title, "number") for title in ("base", "other", "diff", "%", "spread")),
        Column("packets", "number"),
        Column("bytes", "number", "of a packet's frame"),
    )
    rows = []
    for one in effects:
        after = (one.packets.other.value, one.frame_bytes.other.value)
        rows.append(
            (
                Cell(one.region),
                cells.verdict(one.verdict.word),
                *cells.effect(one.insns),
                *(cells.number(value) for value in after),
            )
        )
    caption = "Instructions a packet, of all tasks and interrupts"
    return Table(f"packets-table{mark}", caption, columns, tuple(rows))


def _phases(compared: Compared, mark: str) -> Table:
    """Of the traced runs, the first of each kernel: what is in no phase is the rest."""
    columns = (
        Column("region", "name"),
        Column("phase", "word"),
        *(Column(title, "number") for title in ("base", "other", "diff", "%")),
        *(Column(f"L1I misses, {who}", "number") for who in _SIDES),
    )
    rows = []
    for region, base in compared.phases.get("base", {}).items():
        theirs = {one.phase: one for one in compared.phases.get("other", {}).get(region, ())}
        rows += [_phase(region, one, theirs[one.phase]) for one in base if one.phase in theirs]
    caption = "Instructions and misses a packet by phase, in the first traced run of each kernel"
    return Table(f"phases{mark}", caption, columns, tuple(rows))


def _phase(region: str, base: PhaseCost, other: PhaseCost) -> tuple[Cell, ...]:
    diff = other.insns - base.insns
    part = 100 * diff / base.insns if base.insns else None if diff else Fraction(0)
    misses = [one.misses.get("l1i", 0.0) for one in (base, other)]
    return (
        Cell(region),
        Cell(base.phase, tone="same"),
        *cells.between(base.insns, other.insns),
        cells.percent(part),
        *(cells.number(count) for count in misses),
    )


def _modelled(
    effects: tuple[PacketEffect, ...], cycles: Mapping[str, PlacementEffect], cpu: ReportedCPU
) -> tuple[tuple[Cell, ...], ...]:
    rows: list[tuple[Cell, ...]] = []
    for one in effects:
        if one.region in cycles:
            rates = model_rates(one, cycles[one.region], cpu)
            rows += _rates(one.region, *(rates[who] for who in _SIDES))
    return tuple(rows)


def _rates(region: str, *sides: ModelRate) -> Iterator[tuple[Cell, ...]]:
    for title, ends in (
        ("model cycles", [side.cycles for side in sides]),
        ("packets/s", [side.packets_per_second for side in sides]),
        ("Mb/s", [side.megabits_per_second for side in sides]),
    ):
        if all(end is not None for end in ends):
            shown = (cells.ends(Interval(*sorted(end))) for end in ends if end is not None)
            yield (Cell(region), Cell(title, tone="same"), *shown)
    for kind in sides[0].misses:
        each = (cells.number(side.misses.get(kind, 0.0)) for side in sides)
        yield (Cell(region), Cell(f"{kind} misses", tone="same"), *each)
