# SPDX-License-Identifier: GPL-2.0-or-later
"""What an order misses in caches that replace otherwise than by LRU, by which it was looked for.

A search judges thousands of orders, and without LRU hardly anything in the replay repeats: it takes
ten times as long. And what is counted while a kernel runs is counted by LRU. So an order is looked
for, and shown, under LRU; what the CPU's own policy makes of it is shown next to that.
"""

import numpy as np

from kdelta.cpus.model import CPU
from kdelta.replay.layouts import ordered
from kdelta.replay.order import PlaceResult
from kdelta.studies.tracing.placement import (
    REPLAYED,
    PlacedKernel,
    caches_of,
    own_misses,
    policies_of,
)


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
