# SPDX-License-Identifier: GPL-2.0-or-later
"""What orders miss by which they are not looked for: in the L2, and where it is not LRU.

A search judges thousands of orders, and the L2 with its data takes far longer to replay than lines
and pages do. So it is replayed at the end: for what each method found, and for the ensemble.

Without LRU hardly anything in the replay repeats: it takes ten times as long. And what is counted
while a kernel runs is counted by LRU. So an order is looked for, and shown, under LRU; what the
CPU's own policy makes of it is shown next to that.
"""

from collections.abc import Callable

import numpy as np

from kdelta.cpus.model import CPU
from kdelta.host.command import quiet
from kdelta.replay.judge import Misses
from kdelta.replay.layouts import U64, ordered
from kdelta.replay.order import Further, PlaceResult
from kdelta.studies.tracing.placement import (
    REPLAYED,
    PlacedKernel,
    caches_of,
    has_data,
    l2_totals,
    own_misses,
    policies_of,
)

NOT_SEARCHED = (
    "L2: orders were looked for by the misses of the other kinds; those of the L2 count where one "
    "of the methods is taken"
)
FEW_SETS = (
    "L2: an order with functions that only fill gives few sets to what misses anyway, in the L2 as "
    "in the L1I; it may miss far more there, which --data counts"
)


def l2_of(placed: PlacedKernel, cpu: CPU, doing: Callable[[str], None] = quiet) -> Further | None:
    """How to tell what layouts of all functions miss in the L2; None unless each trace has what
    that takes. doing: is called with each region.
    """
    if not all(has_data(trace) for trace in placed.traces):
        return None

    def misses(layouts: U64) -> Misses:
        found = []
        for index, trace in enumerate(placed.traces):
            doing(f"{trace.region}: L2")
            found.append(l2_totals(placed, index, layouts[:, placed.executed], cpu))
        return {kind: np.stack([row[kind] for row in found]) for kind in found[0]}

    return misses


def notes_on_policy(placed: PlacedKernel, cpu: CPU, result: PlaceResult) -> list[str]:
    """Of each kind of misses, and each region: as linked and in the order, under the policy."""
    policies = policies_of(cpu)
    if not policies:
        return []
    words = ", ".join(f"{kind} {policy}" for kind, policy in policies.items())
    notes = [f"replacement on {cpu.name} is not LRU ({words}): the order is looked for under LRU"]
    caches = {kind: cache for kind, cache in caches_of(cpu).items() if kind in policies}
    layout = ordered(placed.placement, result.order)[0][placed.executed]
    both = dict.fromkeys(REPLAYED, np.stack([placed.shipped(), layout]))
    for index, trace in enumerate(placed.traces):
        found = own_misses(placed.prepared(index), both, caches, placed.iterations(index))
        for kind, (before, after) in found.items():
            if before or after:
                notes.append(
                    f"{trace.region}: {kind} misses replaced {policies[kind]}: {before:.2f} as "
                    f"linked, {after:.2f} in the order"
                )
    return notes
