# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets as JSON: what one costs, and what a model makes of it."""

import msgspec

from kdelta.counts.model import RegionCounts
from kdelta.infer.packets import PacketEffect
from kdelta.report.estimate_json import (
    JsonQuantity,
    JsonVerdict,
    Number,
    json_number,
    json_quantity,
    json_verdict,
)
from kdelta.report.model import CycleReport, Phases, ReportedCPU
from kdelta.report.packets import NOT_IN_IT, model_rates


class JsonModelRate(msgspec.Struct, frozen=True):
    """What a model makes of a region's packets in the layout as shipped: cycles and misses a
    packet, and at the CPU's clock packets and megabits a second, each with all misses hidden and
    with all exposed. Of the measured tasks' own work; no device's driver is in it.
    """

    cycles: tuple[float, float]
    misses: dict[str, float]
    packets_per_second: tuple[float, float] | None
    megabits_per_second: tuple[float, float] | None


class JsonPhase(msgspec.Struct, frozen=True):
    """What one phase of a traced region costs a packet, of all tasks and interrupts, with its
    misses in the layout as shipped. `calls`: in the whole region; 0 for what is in no phase.
    """

    phase: str
    calls: int
    insns: Number
    misses: dict[str, float]


class JsonPackets(msgspec.Struct, frozen=True):
    """A region that is about packets: how many in all, and a packet's instructions, of all tasks
    and interrupts. `model` is by side, "base" and "other"; null where model cycles are not known.
    `phases` are by side too, where the workload has any and was traced.
    """

    region: str
    verdict: JsonVerdict
    packets: JsonQuantity
    per_iteration: JsonQuantity
    frame_bytes: JsonQuantity
    insns: JsonQuantity
    model: dict[str, JsonModelRate] | None
    phases: dict[str, list[JsonPhase]]
    not_in_it: str


class JsonRegionPackets(msgspec.Struct, frozen=True):
    """The packets of a region, with the bytes of their frames, and the instructions of all tasks
    and interrupts a packet.
    """

    count: int
    frame_bytes: int
    insns_each: Number


def json_packets(
    packets: PacketEffect, cycles: CycleReport | None, cpu: ReportedCPU | None, phases: Phases
) -> JsonPackets:
    """A region's packets on both sides; cpu: whose model cycles these are."""
    quantities = {
        name: json_quantity(getattr(packets, name))
        for name in ("packets", "per_iteration", "frame_bytes", "insns")
    }
    model = None
    for effect in cycles.effects if cycles and cpu else ():
        if effect.region == packets.region and cpu:
            rates = model_rates(packets, effect, cpu)
            model = msgspec.convert(rates, dict[str, JsonModelRate], from_attributes=True)
    return JsonPackets(
        region=packets.region,
        verdict=json_verdict(packets.verdict),
        model=model,
        phases={
            who: [
                JsonPhase(one.phase, one.calls, json_number(one.insns), one.misses)
                for one in found[packets.region]
            ]
            for who, found in phases.items()
            if packets.region in found
        },
        not_in_it=NOT_IN_IT,
        **quantities,
    )


def json_region_packets(region: RegionCounts) -> JsonRegionPackets | None:
    """A region's packets in one run; None where it is not about any."""
    insns = region.packet_insns()
    if region.packets is None or insns is None:
        return None
    return JsonRegionPackets(region.packets.count, region.packets.frame_bytes, json_number(insns))
