# SPDX-License-Identifier: GPL-2.0-or-later
"""What an order that was found misses in the L2, which it was not looked for by.

A search judges thousands of orders, and the L2 with its data takes far longer to replay than lines
and pages do. So it is replayed at the end: for the shipped layout, the order, and the ensemble.
"""

from collections.abc import Callable

import numpy as np

from kdelta.cpus.model import CPU
from kdelta.host.command import quiet
from kdelta.replay.layouts import as_linked, ordered
from kdelta.replay.order import SHIPPED, PlaceResult
from kdelta.report.place_model import PlacedMisses
from kdelta.studies.placement import PlacedKernel, drawn, has_data, own_l2_misses

NOT_SEARCHED = (
    "L2: the order was looked for and chosen by the misses of the other kinds; those of the L2 are "
    "only shown"
)


def l2_of_order(
    placed: PlacedKernel,
    result: PlaceResult,
    cpu: CPU,
    layouts: int,
    doing: Callable[[str], None] = quiet,
) -> dict[str, dict[str, PlacedMisses]]:
    """region -> kind -> misses of the L2 an iteration, for each region whose trace has what that
    takes. layouts: how many the ensemble has, which is that of the result.
    """
    shipped = as_linked(placed.placement)
    if result.method == SHIPPED:
        order = shipped
    else:
        order, _ = ordered(placed.placement, result.order)
    both = np.stack([shipped, order])[:, placed.executed]
    every = np.concatenate([both, drawn(placed, layouts, result.seed).layouts])
    found: dict[str, dict[str, PlacedMisses]] = {}
    for index, trace in enumerate(placed.traces):
        if not has_data(trace):
            continue
        doing(f"{trace.region}: L2")
        found[trace.region] = {
            kind: PlacedMisses(
                shipped=float(row[0]),
                predicted=float(row[1]),
                median=float(np.median(row[2:])),
                best=float(row[2:].min()),
                associative=None,
                bound=None,
                methods={SHIPPED: float(row[0]), result.method: float(row[1])},
            )
            for kind, row in own_l2_misses(placed, index, every, cpu).items()
        }
    return found
