# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs on both sides of a comparison, whatever does the work.

Packets are forwarded in softirqs, on anybody's time.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import Packets, RegionCounts, RunCounts, merged_regions
from kdelta.infer.effects.effects import Verdict, verdict_on
from kdelta.infer.effects.estimate import Quantity, estimate
from kdelta.infer.effects.paths import common_regions


class PhaseCost(msgspec.Struct, frozen=True):
    """What one phase of a traced region costs a packet, of all tasks and interrupts.

    calls   how often it was called in the region; 0 for what is in no phase
    misses  by kind, in the layout as linked
    """

    phase: str
    calls: int
    insns: Fraction
    misses: dict[str, float]


class PacketEffect(msgspec.Struct, frozen=True):
    """One region that is about packets.

    packets        in the whole region
    per_iteration  packets an iteration
    frame_bytes    of a packet, as an Ethernet frame without its checksum
    insns          a packet, of all tasks and interrupts
    """

    region: str
    verdict: Verdict
    packets: Quantity
    per_iteration: Quantity
    frame_bytes: Quantity
    insns: Quantity


def packet_effects(
    base: Sequence[RunCounts], other: Sequence[RunCounts]
) -> tuple[PacketEffect, ...]:
    """The regions that are about packets in every run of both, in the order of the base's."""
    runs = [merged_regions(run) for run in (*base, *other)]
    if not base or not other:
        return ()
    return tuple(
        _effect(name, regions[: len(base)], regions[len(base) :])
        for name, regions in common_regions(runs).items()
        if all(region.packet_insns() is not None for region in regions)
    )


def _effect(name: str, base: Sequence[RegionCounts], other: Sequence[RegionCounts]) -> PacketEffect:
    def of(figure: Callable[[RegionCounts], Fraction]) -> Quantity:
        return Quantity(*(estimate([figure(region) for region in side]) for side in (base, other)))

    insns = of(_insns)
    return PacketEffect(
        region=name,
        verdict=verdict_on(insns),
        packets=of(lambda region: Fraction(_packets(region).count)),
        per_iteration=of(lambda one: Fraction(_packets(one).count, one.iteration_count)),
        frame_bytes=of(lambda one: Fraction(_packets(one).frame_bytes, _packets(one).count)),
        insns=insns,
    )


def _packets(region: RegionCounts) -> Packets:
    assert region.packets is not None
    return region.packets


def _insns(region: RegionCounts) -> Fraction:
    insns = region.packet_insns()
    assert insns is not None
    return insns
