# SPDX-License-Identifier: GPL-2.0-or-later
"""How the packets of a traced run divide into a workload's phases, as the kernel is linked."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from kdelta.counts.arrays import I64
from kdelta.counts.model import merged_regions
from kdelta.counts.symbols import Symbol
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.packets import PhaseCost
from kdelta.measures.cycles.placement import REPLAYED, PlacedKernel, caches_of
from kdelta.replay.phases import PhasedTrace
from kdelta.spec.phase import PhaseRule


def phase_costs(
    one: PlacedKernel, rules: Sequence[PhaseRule], symbols: Sequence[Symbol], cpu: CPU
) -> dict[str, tuple[PhaseCost, ...]]:
    """By region that is about packets and whose trace is whole: what each phase costs a packet, all
    tasks and interrupts together, the rest last. symbols: of the kernel and its modules.
    """
    regions = merged_regions(one.counts)
    wanted = [
        index
        for index, trace in enumerate(one.traces)
        if regions[trace.region].packet_insns() is not None
    ]
    if not rules or not wanted:
        return {}
    symbols = _of_blocks(symbols, [one.traces[index] for index in wanted])
    found = {}
    for index in wanted:
        trace = one.traces[index]
        packets = regions[trace.region].packets
        assert packets is not None
        with interruptible():
            phased = PhasedTrace(trace, symbols, rules)
            prepared = phased.prepared(one.places[index])
            shipped = one.shipped()[np.newaxis]
            misses = {
                str(kind): prepared.replay(shipped, cache, kind=REPLAYED[kind])[0].sum(axis=1)
                for kind, cache in caches_of(cpu).items()
            }
        found[trace.region] = _costs(phased, misses, packets.count)
    return found


def _costs(phased: PhasedTrace, misses: Mapping[str, I64], packets: int) -> tuple[PhaseCost, ...]:
    return tuple(
        PhaseCost(
            phase=name,
            calls=int(phased.calls[at]),
            insns=Fraction(int(phased.insns[at].sum()), packets),
            misses={kind: float(count[at]) / packets for kind, count in misses.items()},
        )
        for at, name in enumerate(phased.names)
    )


def _of_blocks(symbols: Sequence[Symbol], traces: Sequence[Trace]) -> list[Symbol]:
    """The symbols that blocks of these traces lie behind: of a kernel's 150,000 a few thousand."""
    starts = np.unique(np.array([symbol[0] for symbol in symbols], dtype=np.uint64))
    blocks = np.concatenate([trace.addresses for trace in traces])
    at = np.unique(np.searchsorted(starts, blocks, side="right"))
    held = {int(starts[index - 1]) for index in at if index}
    return [symbol for symbol in symbols if symbol[0] in held]
