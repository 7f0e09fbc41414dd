# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions with ensembles made by hand or drawn with a seed, for tests of verdicts."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from kdelta.cpus.model import MissPrice, Price
from kdelta.infer.cycles.ensembles import Ensemble, Floats, RegionCost
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import CodeChange, ComparedRegion, PlacementEffect
from kdelta.infer.cycles.prices import Prices
from kdelta.infer.effects.estimate import Estimate


def priced(
    insns: tuple[float, float] | float, *, calibrated: bool = True, **misses: tuple[float, float]
) -> Prices:
    """Prices of an instruction and of misses, hidden to exposed."""
    low, high = insns if isinstance(insns, tuple) else (insns, insns)
    return Prices(
        {"insns": Price(low, high)},
        {kind: MissPrice(*ends, calibrated) for kind, ends in misses.items()},
    )


NARROW = priced(0.5, l1i=(1, 4), itlb=(8, 20))
"""A core whose prices were measured."""

WIDE = priced(0.5, l1i=(0, 12), itlb=(0, 30), calibrated=False)
"""One whose front end runs ahead, and whose prices were not measured."""

INSNS = 7200
"""Of an open and close, an iteration; 2000 of these had the misses below (64 layouts)."""


def amount(value: int, spread: int = 0, n: int = 3) -> Estimate:
    half = Fraction(spread, 2)
    return Estimate(Fraction(value), value - half, value + half, n)


def cost(
    insns: int | Estimate,
    misses: Mapping[str, Sequence[float] | Floats],
    shipped: Mapping[str, float] | None = None,
    first_draw: int = 0,
) -> RegionCost:
    """A region of these instructions and misses; the layout as linked is the first, if not
    given.
    """
    found = {kind: np.array(counts, dtype=np.float64) for kind, counts in misses.items()}
    count = len(next(iter(found.values()))) if found else 0
    return RegionCost(
        {"insns": amount(insns) if isinstance(insns, int) else insns},
        Ensemble(tuple(range(first_draw, first_draw + count)), found),
        dict(shipped) if shipped is not None else {kind: row[0] for kind, row in found.items()},
    )


def realistic(
    seed: int,
    insns: int = INSNS,
    *,
    layouts: int = 128,
    times: float = 1.0,
    like: int | None = None,
    alike: float = 0.0,
    first_draw: int = 0,
) -> RegionCost:
    """An ensemble like that of open+close on Debian's 6.1, where 64 layouts had 119 to 237 misses
    an iteration, the median at 173. With `like`, another's seed, its layouts are so much `alike`
    (their correlation), as those are that two kernels get from the same draws.
    """
    normal = np.random.default_rng(seed).standard_normal((3, layouts + 1))
    if like is not None:
        same = np.random.default_rng(like).standard_normal((3, layouts + 1))
        normal = alike * same + np.sqrt(1 - alike**2) * normal
    l1i = times * 173 * np.exp(0.16 * normal[0])
    itlb = times * 4 * np.exp(0.1 * normal[0] + 0.2 * normal[1])
    return cost(
        insns,
        {"l1i": l1i[1:], "itlb": itlb[1:]},
        {"l1i": l1i[0], "itlb": itlb[0]},
        first_draw,
    )


def effect(
    base: RegionCost,
    other: RegionCost,
    prices: Prices = NARROW,
    margin: float = 0.01,
    code: CodeChange = CodeChange.DIFFERENT,
) -> PlacementEffect:
    (found,) = placement_effects([ComparedRegion("op", base, other, code)], prices, margin)
    return found
