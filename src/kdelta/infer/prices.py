# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices of what is executed and of misses, each an interval, and the amounts that have them."""

import msgspec

from kdelta.cpus.model import CPU, MissPrice, Price
from kdelta.infer.effects import Costs
from kdelta.infer.estimate import Estimate

INSNS = "insns"
STRING_BYTES = "string_bytes"


class Prices(msgspec.Struct, frozen=True):
    """What a CPU takes for what, in cycles apiece.

    executed  of an instruction ("insns"), of a byte of a string operation ("string_bytes"), of a
              special instruction beyond its being one, by kind; what has no price costs nothing
    misses    of a miss, by kind; a kind without a price is shown, and costs nothing
    """

    executed: dict[str, Price]
    misses: dict[str, MissPrice]


def prices_of(cpu: CPU) -> Prices:
    """All prices of a CPU."""
    fast, slow = cpu.string_bytes_per_cycle.high, cpu.string_bytes_per_cycle.low
    return Prices(
        executed={
            INSNS: Price(cpu.cycles_per_insn, cpu.cycles_per_insn),
            STRING_BYTES: Price(1 / fast, 1 / slow),
            **cpu.specials,
        },
        misses={str(kind): price for kind, price in cpu.misses.items()},
    )


def executed_of(costs: Costs) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """What the base and the other kernel execute an iteration, by the names of the prices."""
    amounts = {INSNS: costs.insns, STRING_BYTES: costs.string_bytes, **costs.specials}
    return (
        {name: quantity.base for name, quantity in amounts.items()},
        {name: quantity.other for name, quantity in amounts.items()},
    )
