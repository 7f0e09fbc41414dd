# SPDX-License-Identifier: GPL-2.0-or-later
"""What orders miss in the L2, which they are not looked for by.

A search judges thousands of orders, and the L2 with its data takes far longer to replay than lines
and pages do. So it is replayed at the end: for what each method found, and for the ensemble.
"""

from collections.abc import Callable

import numpy as np

from kdelta.counts.arrays import U64
from kdelta.cpus.model import CPU
from kdelta.host.command import quiet
from kdelta.replay.order import Further
from kdelta.replay.search import Misses
from kdelta.studies.tracing.placement import PlacedKernel, has_data, l2_totals

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
