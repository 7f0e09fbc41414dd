# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs, as text, and what a model's cycles would make of it at a CPU's clock."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RegionCounts
from kdelta.infer.packets import PacketEffect, PhaseCost
from kdelta.infer.placement_model import PlacementEffect
from kdelta.report import figures
from kdelta.report.layout import WIDTH, wrapped
from kdelta.report.model import Phases, ReportedCPU

NOT_IN_IT = (
    "No driver of a network card is in these figures, and no cache maintenance for its DMA: "
    "packets go through pairs of virtual devices. A real router pays for both besides. Sender, "
    "router and receiver share one CPU and its caches."
)
"""What a report of packets must say."""

OF_THE_MODEL = (
    "Packets/s and Mb/s are the model's: the clock by the model cycles a packet, of one CPU that "
    "does nothing else; of the measured tasks' own work, in the layouts as shipped."
)

_FIGURE = 10
_SIDE = 22
_NAME = 21
_BITS = 8
_SHOWN = "l1i"
_MEGA = 10**6


class ModelRate(msgspec.Struct, frozen=True):
    """What a model makes of a region on one side, with misses hidden and exposed, in the layout
    as shipped: cycles and misses by kind a packet; packets and Mb a second, None without a clock.
    """

    cycles: tuple[float, float]
    misses: dict[str, float]
    packets_per_second: tuple[float, float] | None
    megabits_per_second: tuple[float, float] | None


def model_rates(
    packets: PacketEffect, effect: PlacementEffect, cpu: ReportedCPU
) -> dict[str, ModelRate]:
    """By side ("base", "other"), what the model makes of its packets."""
    found = {}
    for who in ("base", "other"):
        each = float(getattr(packets.per_iteration, who).value)
        size = float(getattr(packets.frame_bytes, who).value)
        ends = [getattr(side, who).shipped / each for side in (effect.hidden, effect.exposed)]
        misses = {kind: getattr(of, who).shipped / each for kind, of in effect.misses.items()}
        rate = None
        if cpu.clock_mhz is not None and ends[0] > 0:
            rate = (cpu.clock_mhz * _MEGA / ends[0], cpu.clock_mhz * _MEGA / ends[1])
        bits = None if rate is None else tuple(one * size * _BITS / _MEGA for one in rate)
        found[who] = ModelRate(
            (ends[0], ends[1]), misses, rate, None if bits is None else (bits[0], bits[1])
        )
    return found


def run_lines(regions: Iterable[RegionCounts]) -> list[str]:
    """The packets of one run's regions; nothing if none is about packets."""
    rows = []
    for region in regions:
        insns = region.packet_insns()
        if region.packets is None or insns is None:
            continue
        count = region.packets.count
        cells = (
            f"{count:>{_FIGURE}} {_figure(insns)} "
            f"{_figure(Fraction(region.packets.frame_bytes, count))}"
        )
        rows += _named(region.name, cells)
    if not rows:
        return []
    heads = " ".join(f"{word:>{_FIGURE}}" for word in ("packets", "insns each", "bytes each"))
    title = f"{'forwarded':<{_NAME}} {heads}"
    note = "insns each: of all tasks and interrupts, since packets are forwarded on anybody's time"
    return ["", title, *rows, *wrapped(note, "", "  "), *wrapped(NOT_IN_IT, "", "  ")]


def packet_lines(
    effects: Sequence[PacketEffect],
    cycles: Mapping[str, PlacementEffect] | None = None,
    cpu: ReportedCPU | None = None,
    phases: Phases | None = None,
) -> list[str]:
    """The packets of a comparison; cycles: by region, where model cycles on `cpu` are known.
    phases: of the traced runs, the first of each kernel, of which they are parts.
    """
    if not effects:
        return []
    heads = " ".join(f"{word:>{_FIGURE}}" for word in ("base", "other", "diff"))
    lines = ["", "instructions a packet, of all tasks and interrupts"]
    lines.append(f"{'forwarded':<{_NAME}} {heads} {'%':>7} {'packets':>8} {'bytes':>7}")
    for effect in effects:
        base, other = figures.pair(effect.insns)
        diff = figures.signed(other - base, _FIGURE, effect.insns.effect.value, aligned=False)
        cells = " ".join(
            [
                *(figures.plain(side, _FIGURE, aligned=False) for side in (base, other)),
                diff,
                f"{figures.percent(effect.insns.percent):>7}",
                f"{figures.number(effect.packets.other.value):>8}",
                f"{figures.number(effect.frame_bytes.other.value):>7}",
            ]
        )
        lines += _named(effect.region, cells)
        lines += _phase_rows(effect.region, phases or {}, _phase_insns)
    if any((phases or {}).values()):
        about = "Phases are parts of the traced run, the first of each kernel; the rest is in none."
        lines += wrapped(about, "", "  ")
    if cpu is not None:
        lines += _modelled(effects, cycles or {}, cpu, phases or {})
    return [*lines, *wrapped(NOT_IN_IT, "", "  ")]


def _phase_rows(
    region: str, phases: Phases, row: Callable[[PhaseCost, PhaseCost], str]
) -> list[str]:
    """A line for each phase of a region that both sides know."""
    sides = [phases.get(who, {}).get(region, ()) for who in ("base", "other")]
    theirs = {one.phase: one for one in sides[1]}
    return [row(one, theirs[one.phase]) for one in sides[0] if one.phase in theirs]


def _phase_insns(base: PhaseCost, other: PhaseCost) -> str:
    ends = [figures.scaled(one.insns) for one in (base, other)]
    effect = other.insns - base.insns
    part = 100 * effect / base.insns if base.insns else None
    cells = " ".join(
        [
            *(figures.plain(end, _FIGURE, aligned=False) for end in ends),
            figures.signed(ends[1] - ends[0], _FIGURE, effect, aligned=False),
            f"{figures.percent(part):>7}",
        ]
    )
    return f"{f'  {base.phase}':<{_NAME}} {cells}"


def _phase_misses(base: PhaseCost, other: PhaseCost) -> str:
    cells = [_brief(one.misses.get(_SHOWN, 0.0)) for one in (base, other)]
    return _row(f"  l1i in {base.phase}", *cells)


def _modelled(
    effects: Sequence[PacketEffect],
    cycles: Mapping[str, PlacementEffect],
    cpu: ReportedCPU,
    phases: Phases,
) -> list[str]:
    rows = []
    for effect in effects:
        if effect.region in cycles:
            rates = model_rates(effect, cycles[effect.region], cpu)
            rows += [effect.region, *_rate_rows(rates["base"], rates["other"])]
            rows += _phase_rows(effect.region, phases, _phase_misses)
    if not rows:
        return []
    at = "" if cpu.clock_mhz is None else f" at {cpu.clock_mhz:.0f} MHz"
    title = f"a packet by the model of {cpu.name}{at}, misses hidden to exposed"
    heads = f"{'':<{_NAME}} {'base':>{_SIDE}} {'other':>{_SIDE}}"
    about = wrapped(OF_THE_MODEL, "", "  ") if cpu.clock_mhz is not None else []
    return ["", title, heads, *rows, *about]


def _rate_rows(base: ModelRate, other: ModelRate) -> list[str]:
    rows = [_row("model cycles", *(_range(one.cycles) for one in (base, other)))]
    for kind, count in base.misses.items():
        cells = [_brief(one.misses.get(kind, 0.0)) for one in (base, other)]
        if count or other.misses.get(kind):
            rows.append(_row(f"{kind} misses", *cells))
    if base.packets_per_second and other.packets_per_second:
        rates = (base.packets_per_second, other.packets_per_second)
        rows.append(_row("model's packets/s", *(_range(rate) for rate in rates)))
    if base.megabits_per_second and other.megabits_per_second:
        bits = (base.megabits_per_second, other.megabits_per_second)
        rows.append(_row("model's Mb/s", *(_range(one) for one in bits)))
    return rows


def _row(name: str, base: str, other: str) -> str:
    return f"{f'  {name}':<{_NAME}} {base:>{_SIDE}} {other:>{_SIDE}}"


def _range(ends: Sequence[float]) -> str:
    shown = [_brief(end) for end in ends]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def _brief(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}"


def _figure(value: Fraction) -> str:
    return figures.plain(figures.scaled(value, figures.unit_of(value)), _FIGURE, aligned=False)


def _named(name: str, cells: str) -> list[str]:
    if len(name) > _NAME:
        return [name, f"{'':<{_NAME}} {cells}"]
    line = f"{name:<{_NAME}} {cells}"
    assert len(line) < WIDTH
    return [line]
