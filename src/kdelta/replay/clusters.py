# SPDX-License-Identifier: GPL-2.0-or-later
"""Orders of functions by rules of thumb: call-chain clusters, first use, density of execution."""

import numpy as np

from kdelta.counts.arrays import I64
from kdelta.replay.transitions import Transitions

PAGE_BYTES = 4096


def c3(graph: Transitions, sizes: I64, limit_bytes: int = PAGE_BYTES) -> I64:
    """Call-chain clustering: all units in an order, (n_units,), from calls and bytes of each.

    G. Ottoni, B. Maher: Optimizing Function Placement for Large-Scale Data-Center Applications,
    CGO 2017, section 4. Each function begins as a cluster of its own. From the hottest down, the
    cluster of a function is appended to that of its most frequent caller, unless it is the same or
    both together are larger than a page. Clusters are then laid out by density: what they execute
    to a byte. Hot is what executes many instructions. Ties go to the unit that is linked first.
    """
    n_units = len(sizes)
    caller = _callers(graph, n_units)
    cluster = np.arange(n_units)
    members = [[unit] for unit in range(n_units)]
    size = sizes.astype(np.int64).copy()
    for unit in np.argsort(-graph.insns, kind="stable").tolist():
        if caller[unit] < 0:
            continue
        into, moved = int(cluster[caller[unit]]), int(cluster[unit])
        if into == moved or size[into] + size[moved] > limit_bytes:
            continue
        members[into] += members[moved]
        cluster[members[moved]] = into
        size[into] += size[moved]
        members[moved] = []
    roots = [root for root in range(n_units) if members[root]]
    heat = np.bincount(cluster, weights=graph.insns, minlength=n_units)
    roots.sort(key=lambda root: (-heat[root] / max(int(size[root]), 1), root))
    return np.array([unit for root in roots for unit in members[root]], dtype=np.int64)


def _callers(graph: Transitions, n_units: int) -> I64:
    """Of each unit the one that called it most often, -1 where none did."""
    found = np.full(n_units, -1, dtype=np.int64)
    best = np.zeros(n_units)
    for source, target, count in zip(
        graph.sources.tolist(), graph.targets.tolist(), graph.calls.tolist(), strict=True
    ):
        if count > best[target]:
            found[target], best[target] = source, count
    return found


def by_first_use(graph: Transitions, n_units: int) -> I64:
    """Units in the order in which they were first executed, then those that never were."""
    rest = np.setdiff1d(np.arange(n_units), graph.first_use)
    return np.concatenate([graph.first_use, rest])


def by_density(graph: Transitions, sizes: I64) -> I64:
    """Units by what they execute to a byte, the most first."""
    order: I64 = np.argsort(-graph.insns / np.maximum(sizes, 1), kind="stable")
    return order
