# SPDX-License-Identifier: GPL-2.0-or-later
"""What conflicts may cost, by how long lines take from CPU to CPU."""

from fractions import Fraction

from kdelta.counts.conflicts import (
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
)
from kdelta.cpus.model import LineTransfer
from kdelta.infer.conflicts.cost import TransferCost, transfer_cost

TRANSFER = LineTransfer((15, 19), (68, 80))


def conflicts(*accesses: tuple[int, ...], steady: bool = True) -> Conflicts:
    """Return ten iterations; of each line, how often each CPU writes it."""
    lines = tuple(
        ContendedLine(
            "object",
            (ContestedField("x.y", True, "f", sum(cpus), sum(cpus)),),
            True,
            steady,
            1,
            (FieldUse("x.y", "f", tuple(CpuAccesses(0, n) for n in cpus)),),
        )
        for cpus in accesses
    )
    return Conflicts("stat", 10, 2, False, lines)


def test_at_least_each_cpu_takes_one_line_and_at_most_each_access_one() -> None:
    # 30 nearest transfers of two CPUs; 5 accesses an iteration, from the farthest CPU.
    found = transfer_cost(conflicts((10, 10), (10, 20)), TRANSFER)
    assert found == TransferCost(Fraction(30), Fraction(400))


def test_cpus_that_do_not_access_it_take_no_line() -> None:
    found = transfer_cost(conflicts((10, 10, 0, 0)), TRANSFER)
    assert found == TransferCost(Fraction(30), Fraction(160))


def test_what_is_not_contended_for_costs_nothing() -> None:
    assert transfer_cost(conflicts(), TRANSFER) is None
    assert transfer_cost(conflicts((10, 10), steady=False), TRANSFER) is None
