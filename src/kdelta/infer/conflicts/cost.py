# SPDX-License-Identifier: GPL-2.0-or-later
"""What conflicts may cost, by published latencies of a CPU: a range, no part of it measured."""

from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts
from kdelta.cpus.model import LineTransfer


class TransferCost(msgspec.Struct, frozen=True):
    """How long an iteration of all CPUs waits for lines, in nanoseconds.

    least      each CPU takes the line that is accessed most once, from its nearest neighbor, and
               gets all others meanwhile
    most       each access to any line takes it from the farthest CPU, one after the other
    """

    least: Fraction
    most: Fraction


def transfer_cost(found: Conflicts, transfer: LineTransfer) -> TransferCost | None:
    """Return what the lines cost that are contended for in each iteration; None without any."""
    if not found.steady:
        return None
    takers = max(sum(cpu.total > 0 for cpu in line.cpus) for line in found.steady)
    accesses = Fraction(sum(line.accesses for line in found.steady), found.iterations)
    return TransferCost(takers * Fraction(transfer.near[0]), accesses * Fraction(transfer.far[1]))
