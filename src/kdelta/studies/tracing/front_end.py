# SPDX-License-Identifier: GPL-2.0-or-later
"""What a CPU's front end does in a region's own work, as far as its file has prices for it.

docs/cpus.md, "The front end", says which layouts it is replayed in.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU, EXPOSED, FRONT_END_KINDS, MISPREDICTIONS, WAITS, MissKind
from kdelta.infer.cycles.ensembles import Ensemble, Floats, RegionCost
from kdelta.replay.front_end.replay import EVENTS, PreparedFrontEnd
from kdelta.replay.simulate import PlacedBlocks

BRANCHES = 200_000_000
"""So many branches of a region are replayed at most, in all layouts together: some 5 s on two
cores. The plain replay, which has no such bound, is a hundred times as fast."""

LEAST_LAYOUTS = 16
"""With fewer an ensemble says little: then the front end is left out."""

_OWN = CONTEXTS.index("own")
_PASSES = 2  # one that warms, and one that counts
_PREDICTED: tuple[MissKind, ...] = (*MISPREDICTIONS, "btb-first", "btb")


def priced_events(cpu: CPU) -> tuple[MissKind, ...]:
    """What of a front end is counted: what the CPU's file has a price for."""
    if cpu.front_end is None:
        return ()
    kinds: tuple[MissKind, ...] = (*FRONT_END_KINDS, *(("btb",) if cpu.front_end.btb else ()))
    return tuple(kind for kind in kinds if kind in cpu.misses)


def layouts_in_reach(branches: int, n: int) -> int:
    """In how many of n layouts a region of so many branches is replayed; 0 for too long a one."""
    most = BRANCHES // max(1, _PASSES * branches)
    return min(n, most) if min(n, most) >= min(n, LEAST_LAYOUTS) else 0


def own_events(
    trace: Trace, placed: PlacedBlocks, layouts: U64, cpu: CPU, per: float
) -> dict[str, Floats]:
    """What the region's own work does to the front end, by kind, divided by `per`: (m,) each, in
    the first m of `layouts`, which are fewer where the region is long. Nothing where the trace does
    not say how blocks end, the region is too long, or the CPU's file has no price for any of it.
    """
    kinds = priced_events(cpu)
    if not kinds or trace.jumps is None:
        return {}
    prepared = PreparedFrontEnd(trace, placed)
    n = layouts_in_reach(prepared.branches, len(layouts))
    if not n:
        return {}
    found = prepared.replay(layouts[:n], cpu, without=_without(kinds)).total[:, :, _OWN]
    counts: dict[str, Floats] = {
        event: np.asarray(found[:, k], np.float64) for k, event in enumerate(EVENTS)
    }
    return {str(kind): counts[kind] / per for kind in kinds}


def _without(kinds: Collection[MissKind]) -> frozenset[str]:
    """What is neither priced nor has a bearing on what is."""
    needed: set[str] = set(kinds)
    idle: set[str] = {"itlb", "fetch-windows", "op-cache", EXPOSED, WAITS} - needed
    if {EXPOSED, WAITS}.isdisjoint(kinds):
        idle |= {"run-ahead", "next-line", *(set(_PREDICTED) - needed)}
    return frozenset(idle)


def with_events(misses: Mapping[str, Floats], events: Mapping[str, Floats]) -> dict[str, Floats]:
    """Both, in as many layouts as both have."""
    n = min((len(row) for row in events.values()), default=None)
    return {kind: row[:n] for kind, row in {**misses, **events}.items()}


def alike(base: RegionCost, other: RegionCost) -> tuple[RegionCost, RegionCost]:
    """Both with what both have of the front end, in as many layouts as both have."""
    kinds = set(FRONT_END_KINDS)
    if base.shipped.keys() & kinds != other.shipped.keys() & kinds:
        base, other = (_reduced(one, kinds | {"btb"}) for one in (base, other))
    n = min(len(base.ensemble.draws), len(other.ensemble.draws))
    if base.ensemble.draws[:n] != other.ensemble.draws[:n]:
        return base, other
    return _reduced(base, n=n), _reduced(other, n=n)


def _reduced(cost: RegionCost, unwanted: Collection[str] = (), n: int | None = None) -> RegionCost:
    misses = {kind: row[:n] for kind, row in cost.ensemble.misses.items() if kind not in unwanted}
    return msgspec.structs.replace(
        cost,
        ensemble=Ensemble(cost.ensemble.draws[:n] if misses else (), misses),
        shipped={kind: count for kind, count in cost.shipped.items() if kind in misses},
    )


def note_on_front_end(cpu: CPU, counted: Mapping[str, Sequence[Collection[str]]]) -> list[str]:
    """Of which regions the front end is not in model cycles, if the CPU's file has prices of it.
    counted: by region, the kinds that are, of each kernel.
    """
    kinds = set(priced_events(cpu)) - {"btb"}
    if not kinds:
        return []
    without = [
        name for name, sides in counted.items() if not all(kinds <= set(side) for side in sides)
    ]
    if not without:
        return []
    words = (
        f"front end: not replayed of {', '.join(without)}, of which a trace is too long for it (of "
        f"more than {BRANCHES // _PASSES // LEAST_LAYOUTS} branches) or does not say how blocks end"
    )
    return [words]
