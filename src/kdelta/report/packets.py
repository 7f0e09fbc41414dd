# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs, as text, and what a model's cycles would make of it at a CPU's clock."""

import msgspec

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.packets import PacketEffect
from kdelta.report.model import ReportedCPU

NOT_IN_IT = (
    "No driver of a network card is in these figures, and no cache maintenance for its DMA: "
    "packets go through pairs of virtual devices. A real router pays for both besides. Sender, "
    "router and receiver share one CPU and its caches."
)
"""What a report of packets must say."""

OF_THE_MODEL = (
    "Packets/s and Mb/s are the model's: the clock by the model cycles a packet, of one CPU that "
    "does nothing else; of the measured tasks' own work, in the layouts as linked."
)

_BITS = 8
_MEGA = 10**6


class ModelRate(msgspec.Struct, frozen=True):
    """What a model makes of a region on one side, with misses hidden and exposed, in the layout
    as linked: cycles and misses by kind a packet; packets and Mb a second, None without a clock.
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
        ends = [getattr(side, who).as_linked / each for side in (effect.hidden, effect.exposed)]
        misses = {kind: getattr(of, who).as_linked / each for kind, of in effect.misses.items()}
        rate = bits = None
        if cpu.clock_mhz is not None and ends[0] > 0:
            hidden, exposed = (cpu.clock_mhz * _MEGA / end for end in ends)
            rate = hidden, exposed
            bits = hidden * size * _BITS / _MEGA, exposed * size * _BITS / _MEGA
        found[who] = ModelRate((ends[0], ends[1]), misses, rate, bits)
    return found
