# SPDX-License-Identifier: GPL-2.0-or-later
"""What one kernel's regions execute, by the names of prices, as estimates over its runs."""

from collections.abc import Sequence

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.infer.cycles.cycles import executed_amounts
from kdelta.infer.effects.estimate import Estimate, Scale


def executed_estimates(runs: Sequence[RunCounts]) -> dict[str, dict[str, Estimate]]:
    """region -> name of a price -> how much of that its own work executes an iteration, of the
    regions that any run has, over the runs that have it.
    """
    found = [merged_regions(run) for run in runs]
    names = dict.fromkeys(name for regions in found for name in regions)
    return {
        name: _estimates([regions[name] for regions in found if name in regions]) for name in names
    }


def _estimates(regions: Sequence[RegionCounts]) -> dict[str, Estimate]:
    scale = Scale([region.iteration_count for region in regions])
    amounts = [executed_amounts(region.cost("own")) for region in regions]
    names = dict.fromkeys(name for held in amounts for name in held)
    return {name: scale.estimate([held.get(name, 0) for held in amounts]) for name in names}
