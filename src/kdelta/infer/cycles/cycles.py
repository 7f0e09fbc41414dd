# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles: what was executed and what missed, weighed by a CPU. docs/cpus.md has the formula.

They are no prediction of a clock's reading: what the formula leaves out is listed there too.
"""

import math
from collections.abc import Mapping, Sequence

from kdelta.counts.by_key import by_key
from kdelta.counts.model import Cost, RegionCounts, RunCounts, merged_regions, plain_kind
from kdelta.cpus.model import CPU, MissKind
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.prices import INSNS, PRICED_APART, STRING_BYTES, prices_of
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.paths import iteration_scale
from kdelta.spec.errors import LabError

Ends = tuple[float, float]
"""The lowest and the highest price of one thing."""


def executed_amounts(cost: Cost) -> dict[str, int]:
    """Return how often what takes cycles was executed, by its name. The further iterations of a
    string operation are not in it: its bytes are.
    """
    found = {INSNS: cost.insns, STRING_BYTES: cost.string_bytes}
    for kind, count in cost.specials.items():
        name = kind if kind in PRICED_APART else plain_kind(kind)
        found[name] = found.get(name, 0) + count
    return found


def model_cycles(cost: Cost, misses: Mapping[MissKind, float], cpu: CPU) -> Interval:
    """What a cost and its misses take on a CPU, in model cycles, from the lowest prices to the
    highest.

        cycles = insns x cycles_per_insn + string_bytes / string_bytes_per_cycle
               + sum over special instructions of count x price
               + sum over kinds of misses of count x (hidden to exposed)

    It is linear, and prices are one CPU's: so to price a difference, give it differences of counts
    (they may be negative), never subtract intervals. Raises ValueError for a kind of miss that the
    CPU has no price for, and LabError if the parts do not add up.
    """
    unknown = [kind for kind in misses if kind not in cpu.misses]
    if unknown:
        raise ValueError(f"{cpu.name} has no price for a miss of {', '.join(unknown)}")
    executed = executed_amounts(cost)
    prices: dict[str, Ends] = {
        name: (price.low, price.high)
        for name, price in prices_of(cpu).executed.items()
        if name in executed
    }
    prices |= {kind: (cpu.misses[kind].hidden, cpu.misses[kind].exposed) for kind in misses}
    amounts = {name: float(executed[name]) for name in prices if name in executed}
    amounts |= {str(kind): count for kind, count in misses.items()}
    total = _total(amounts, prices)
    parts = [sorted(amount * end for end in prices[name]) for name, amount in amounts.items()]
    for end, whole in enumerate((total.low, total.high)):
        found = math.fsum(part[end] for part in parts)
        if not math.isclose(found, whole, rel_tol=1e-9, abs_tol=1e-6):
            raise LabError(
                f"the parts of model cycles add up to {found}, not {whole} (their "
                f"{('low', 'high')[end]} ends)",
                "this is a fault of kdelta's; please report it with the CPU and the run",
            )
    return total


def _total(amounts: Mapping[str, float], prices: Mapping[str, Ends]) -> Interval:
    """Each end alone: what is negative is most expensive at the lowest price."""
    low = high = 0.0
    for name, amount in amounts.items():
        cheap, expensive = prices[name] if amount > 0 else reversed(prices[name])
        low += amount * cheap
        high += amount * expensive
    return Interval(low, high)


def executed_estimates(runs: Sequence[RunCounts]) -> dict[str, dict[str, Estimate]]:
    """region -> name of a price -> how much of that its own work executes an iteration, of the
    regions that any run has, over the runs that have it.
    """
    found = by_key(named for run in runs for named in merged_regions(run).items())
    return {name: _estimates(regions) for name, regions in found.items()}


def _estimates(regions: Sequence[RegionCounts]) -> dict[str, Estimate]:
    scale = iteration_scale(regions)
    amounts = [executed_amounts(region.cost("own")) for region in regions]
    names = dict.fromkeys(name for held in amounts for name in held)
    return {name: scale.estimate([held.get(name, 0) for held in amounts]) for name in names}
