# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices of what is executed and of misses, each an interval, and the amounts that have them."""

from collections.abc import Iterable

import msgspec

from kdelta.counts.model import plain_kind
from kdelta.cpus.model import (
    CPU,
    DATA_MISS_KINDS,
    L2_OF_DATA,
    DataMissKind,
    MissPrice,
    Price,
)

INSNS = "insns"
STRING_BYTES = "string_bytes"
FIXED: tuple[DataMissKind, ...] = tuple(kind for kind in DATA_MISS_KINDS if kind not in L2_OF_DATA)
"""Misses of data that are the same under all layouts of code: a part of what a path costs. The L2
holds code, too, so what data misses there goes with the layouts."""

PRICED_APART = frozenset(
    {"wrmsr PRED_CMD (IBPB)", "wrmsr PRED_CMD (SBPB)", "wrmsr FLUSH_CMD (L1D)"}
)
"""Kinds of special instructions that may cost many times what others of their instruction do."""

L2, L2_CODE, L2_DATA = "l2", "l2_code", "l2_data"
"""Misses of the L2, and what they are made of."""


class Prices(msgspec.Struct, frozen=True):
    """What a CPU takes for what, in cycles apiece.

    executed  of an instruction ("insns"), of a byte of a string operation ("string_bytes"), of a
              special instruction beyond its being one, by kind; of a miss of data, by kind, as far
              as no layout changes them (FIXED); what has no price costs nothing
    misses    of a miss, by kind; a kind without a price is shown, and costs nothing
    guesses   those of `executed` that are prices of misses which were not measured
    """

    executed: dict[str, Price]
    misses: dict[str, MissPrice]
    guesses: tuple[str, ...] = ()


def prices_of(cpu: CPU) -> Prices:
    """Return what things cost on a CPU. Misses of the L2 by data and by code cost apart where its
    file has the former, else their sum does.
    """
    fixed = {str(kind): cpu.misses[kind] for kind in FIXED if kind in cpu.misses}
    fast, slow = cpu.string_bytes_per_cycle.high, cpu.string_bytes_per_cycle.low
    return Prices(
        executed={
            INSNS: Price(cpu.cycles_per_insn, cpu.cycles_per_insn),
            STRING_BYTES: Price(1 / fast, 1 / slow),
            **_specials(cpu),
            **{kind: Price(price.hidden, price.exposed) for kind, price in fixed.items()},
        },
        misses=_varying(cpu),
        guesses=tuple(kind for kind, price in fixed.items() if not price.calibrated),
    )


def _specials(cpu: CPU) -> dict[str, Price]:
    """Return the cycles of special instructions: of a kind without any, its instruction's."""
    known = cpu.specials
    same = {kind: known[plain] for kind in PRICED_APART if (plain := plain_kind(kind)) in known}
    return {**same, **known}


def _varying(cpu: CPU) -> dict[str, MissPrice]:
    """Of misses that layouts of code change."""
    of_data = set(DATA_MISS_KINDS)
    found = {str(kind): price for kind, price in cpu.misses.items() if kind not in of_data}
    each = [price for kind in L2_OF_DATA if (price := cpu.misses.get(kind)) is not None]
    if L2 in found and each:
        found[L2_CODE] = found.pop(L2)
        # Loads and stores are not distinguished there.
        found[L2_DATA] = MissPrice(
            hidden=min(price.hidden for price in each),
            exposed=max(price.exposed for price in each),
            calibrated=all(price.calibrated for price in each),
        )
    return found


def believed(prices: Prices, name: str) -> Price:
    """The interval of one of the prices of what is executed: from zero for a miss of data whose
    price was never measured.
    """
    price = prices.executed[name]
    return Price(0.0, price.high) if name in prices.guesses else price


def priced_kinds(prices: Prices, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return those of these kinds of misses that cost anything."""
    return tuple(kind for kind in kinds if kind in prices.misses)
