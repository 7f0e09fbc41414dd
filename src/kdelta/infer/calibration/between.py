# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices of what no link changes, from the differences between programs; and the base rate.

    cycles[program] - what its links' events cost = rate[code] x insns + sum of price x count

Programs of one code execute the same functions, so they have one rate, and differ in order and
data. That is a weaker argument than links of one program, which differ in nothing but addresses.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from kdelta.infer.calibration.model import F64, FittedPrice, ProgramRows
from kdelta.infer.calibration.nonnegative import nonnegative

_TAIL = 2.5
_ROUNDS = 6
_HUBER = 1.345
_LEAST_SHARE = 0.005  # of a program's cycles, the least that its programs must differ by


def between_programs(
    rows: Sequence[ProgramRows], prices: Mapping[str, FittedPrice], *, seed: int, resamples: int
) -> tuple[dict[str, FittedPrice], FittedPrice | None]:
    """Prices of data's misses, and of events that links do not price; and the base rate.

    None for the rate where the instructions are not known. Intervals are of programs drawn again.
    """
    known = [one for one in rows if one.insns > 0]
    if not known:
        return {}, None
    codes = sorted({one.code or one.name for one in known})
    names = _names(known, prices)
    table, cycles = _table(known, codes, names, prices)
    found = _solved(table, cycles)
    random = np.random.default_rng(seed)
    drawn = np.zeros((resamples, table.shape[1]))
    for row in range(resamples):
        at = _drawn(known, codes, random)
        drawn[row] = _solved(table[at], cycles[at])
    low, high = np.percentile(drawn, [_TAIL, 100 - _TAIL], axis=0)
    n = len(codes)
    between = {
        name: FittedPrice(
            name,
            float(found[n + k]),
            float(min(low[n + k], found[n + k])),
            float(max(high[n + k], found[n + k])),
            int(np.count_nonzero(table[:, n + k])),
        )
        for k, name in enumerate(names)
        if found[n + k] > 0
    }
    rates = found[:n][found[:n] > 0]
    if not len(rates):
        return between, None
    middle = float(np.median(rates))
    return between, FittedPrice("base", middle, float(rates.min()), float(rates.max()), n)


def _names(rows: Sequence[ProgramRows], prices: Mapping[str, FittedPrice]) -> list[str]:
    """What programs of one code differ in: data, and mispredictions that links do not price."""
    return sorted(
        name
        for name in set.intersection(*(set(one.data) for one in rows)) - prices.keys()
        if any(_differ(rows, code, name) for code in {one.code or one.name for one in rows})
    )


def _differ(rows: Sequence[ProgramRows], code: str, name: str) -> bool:
    shares = [
        one.data[name] / float(np.median(one.cycles))
        for one in rows
        if (one.code or one.name) == code
    ]
    return max(shares) - min(shares) > _LEAST_SHARE


def _table(
    rows: Sequence[ProgramRows],
    codes: Sequence[str],
    names: Sequence[str],
    prices: Mapping[str, FittedPrice],
) -> tuple[F64, F64]:
    """Each program's row divided by its cycles, so that all count alike: (n, codes + names)."""
    table = np.zeros((len(rows), len(codes) + len(names)))
    cycles = np.zeros(len(rows))
    for row, one in enumerate(rows):
        paid = sum(
            price.value * float(np.median(one.events[name])) for name, price in prices.items()
        )
        middle = float(np.median(one.cycles))
        table[row, codes.index(one.code or one.name)] = one.insns
        table[row, len(codes) :] = [one.data[name] for name in names]
        cycles[row] = max(middle - paid, 0.0) / middle
        table[row] /= middle
    return table, cycles


def _solved(table: F64, cycles: F64) -> F64:
    weight = np.ones(len(cycles))
    found = np.zeros(table.shape[1])
    for _ in range(_ROUNDS):
        weighted = table * weight[:, None]
        found = nonnegative(weighted.T @ table, weighted.T @ cycles)
        off = np.abs(cycles - table @ found)
        scale = max(1e-3, 1.4826 * float(np.median(off)))
        weight = np.minimum(1.0, _HUBER * scale / np.maximum(off, 1e-12))
    return found


def _drawn(
    rows: Sequence[ProgramRows], codes: Sequence[str], random: np.random.Generator
) -> list[int]:
    """Programs drawn again within their code, so that each code keeps its rate."""
    found: list[int] = []
    for code in codes:
        mine = [at for at, one in enumerate(rows) if (one.code or one.name) == code]
        found += [mine[int(k)] for k in random.integers(0, len(mine), len(mine))]
    return found
