# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs on both sides of a comparison, whatever does the work.

Packets are forwarded in softirqs, on anybody's time.
"""

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.infer.effects.effects import Verdict, verdict_on
from kdelta.infer.effects.estimate import Quantity, estimate


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
    names = [
        name
        for name in runs[0]
        if all(name in run and run[name].packet_insns() is not None for run in runs)
    ]
    sides = runs[: len(base)], runs[len(base) :]
    return tuple(
        _effect(name, [run[name] for run in sides[0]], [run[name] for run in sides[1]])
        for name in names
    )


def _effect(name: str, base: Sequence[RegionCounts], other: Sequence[RegionCounts]) -> PacketEffect:
    packets = [[_packets(region) for region in side] for side in (base, other)]
    sizes = [[size / count for count, size in side] for side in packets]
    insns = Quantity(*(estimate([_insns(region) for region in side]) for side in (base, other)))
    return PacketEffect(
        region=name,
        verdict=verdict_on(insns),
        packets=Quantity(*(estimate([count for count, _ in side]) for side in packets)),
        per_iteration=Quantity(
            *(
                estimate([_packets(region)[0] / region.iteration_count for region in side])
                for side in (base, other)
            )
        ),
        frame_bytes=Quantity(*map(estimate, sizes)),
        insns=insns,
    )


def _packets(region: RegionCounts) -> tuple[Fraction, Fraction]:
    assert region.packets is not None
    return Fraction(region.packets.count), Fraction(region.packets.frame_bytes)


def _insns(region: RegionCounts) -> Fraction:
    insns = region.packet_insns()
    assert insns is not None
    return insns
