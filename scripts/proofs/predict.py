# SPDX-License-Identifier: GPL-2.0-or-later
"""What another link of the same objects will miss, predicted from one traced run of this one.

    found = layout_in(one, other)
    misses_in(one, found.layout, cpu.l1i)["open-close"]

The other kernel need not have run: its symbols say where its functions lie.
"""

import msgspec
import numpy as np
from other_kernel import MatchedPlacement, as_in

from kdelta.counts.arrays import I64, U64
from kdelta.counts.trace import Trace
from kdelta.cpus.model import Cache
from kdelta.kernels.model import Kernel
from kdelta.measures.cycles.placement import (
    OWN,
    PlacedKernel,
    alignment_of,
    vmlinux_of,
    was_merged,
)
from kdelta.measures.path.shared import kept_digest
from kdelta.replay.functions import placement_of
from kdelta.replay.kernel_text import vmlinux_symbols
from kdelta.replay.simulate import PreparedTrace
from kdelta.spec.errors import UserError

_TAIL = 4  # of the last stretch without interrupts, so much less is the region's end


def layout_in(one: PlacedKernel, other: Kernel) -> MatchedPlacement:
    """Where another kernel has the functions that this one executed; its `layout` is of these,
    (n_executed,). UserError for one that was not built here, or has no symbols.
    """
    vmlinux = vmlinux_of(other)
    if vmlinux is None:
        raise UserError(f"nothing is known of where {other.spec} has its functions")
    digest = kept_digest(other)
    symbols = vmlinux_symbols(vmlinux)
    theirs = placement_of(
        (), symbols, digest=digest, alignment=alignment_of(other), merged=was_merged(other)
    )
    both = (one.digest, digest) if one.digest and digest else None
    found = as_in(one.placement, theirs, both)
    if found.layout is None:
        return found
    return msgspec.structs.replace(found, layout=found.layout[one.executed])


def misses_in(one: PlacedKernel, layout: U64, cache: Cache) -> dict[str, tuple[int, ...]]:
    """region -> its misses by context, in a layout (n_executed,) of this kernel, whole traces.

    The cache begins as the workload's warm-up leaves it: as the region's own work that nothing
    interrupts does. (Ensembles begin as the pass before left it; then what is executed once an
    interrupt is there from the interrupt before, if the work between leaves room for it.)
    """
    found = {}
    for trace, place in zip(one.traces, one.places, strict=True):
        warm_up = _undisturbed(trace)
        parts = [warm_up, np.concatenate([warm_up, np.arange(len(trace.sequence))])]
        before, both = (
            PreparedTrace(_part(trace, at), place)
            .replay(layout[np.newaxis], cache, by_function=False, warm=False)
            .total[0]
            for at in parts
        )
        found[trace.region] = tuple(int(n) for n in both - before)
    return found


def _part(trace: Trace, at: I64) -> Trace:
    return msgspec.structs.replace(trace, sequence=trace.sequence[at], contexts=trace.contexts[at])


def _undisturbed(trace: Trace) -> I64:
    """Indexes of the sequence that make a warm-up: the longest stretch of own work, then how the
    region ends. What follows an interrupt is left out: it is executed once for each.
    """
    own = np.concatenate([[False], trace.contexts == OWN, [False]])
    edges = np.flatnonzero(own[1:] != own[:-1])
    if not len(edges):
        return np.arange(len(trace.sequence))
    begins, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - begins))
    begin, end = int(begins[longest]), int(ends[longest])
    if begin:
        begin = (begin + end) // 2
    found = np.arange(begin, end)
    if longest == len(begins) - 1:
        return found
    last = int(ends[-1] - begins[-1]) // _TAIL
    return np.concatenate([found, np.arange(ends[-1] - last, ends[-1])])
