# SPDX-License-Identifier: GPL-2.0-or-later
"""Least squares with coefficients that are not negative, and rank correlation."""

import numpy as np
import numpy.typing as npt

from kdelta.infer.calibration.model import F64
from kdelta.infer.cycles import sensitivity

_TOLERANCE = 1e-10
_ROUNDS = 10  # the active set changes at most so often for each coefficient


def nonnegative(gram: F64, moments: F64) -> F64:
    """x >= 0 (k,) of the least x'Gx - 2 m'x, with gram G (k, k) = A'A and moments m (k,) = A'b.

    The active-set method of Lawson and Hanson (Solving Least Squares Problems, chapter 23), on the
    normal equations. Of columns that say the same, the first is used.
    """
    k = len(moments)
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    used = scale > 0
    safe = np.where(used, scale, 1.0)
    g, m = gram / np.outer(safe, safe), np.where(used, moments / safe, 0.0)
    x = np.zeros(k)
    free = np.zeros(k, dtype=bool)
    barred = ~used
    least = _TOLERANCE * max(1.0, float(np.abs(m).max(initial=0.0)))
    for _ in range(_ROUNDS * max(1, k)):
        slope = np.where(free | barred, -np.inf, m - g @ x)
        if not k or slope.max() <= least:
            break
        entering = int(slope.argmax())
        free[entering] = True
        solved = _solved(g, m, free)
        if solved[entering] <= 0:  # what rounding lets in, or another column's copy
            free[entering] = False
            barred[entering] = True
            continue
        x = _within(g, m, x, free)
        barred = ~used
    return x / safe


def _solved(g: F64, m: F64, free: npt.NDArray[np.bool_]) -> F64:
    found = np.zeros(len(m))
    held = np.flatnonzero(free)
    block = g[np.ix_(held, held)]
    if np.linalg.eigvalsh(block)[0] > _TOLERANCE:
        found[held] = np.linalg.solve(block, m[held])
    return found


def _within(g: F64, m: F64, x: F64, free: npt.NDArray[np.bool_]) -> F64:
    """From x towards the least squares of what is free, as far as nothing becomes negative."""
    while True:
        target = _solved(g, m, free)
        below = free & (target <= 0)
        if not below.any():
            return target
        steps = np.where(below, x / np.maximum(x - target, 1e-300), np.inf)
        x = x + float(np.clip(steps.min(), 0.0, 1.0)) * (target - x)
        free &= x > _TOLERANCE
        x = np.where(free, x, 0.0)
        if not free.any():
            return x


def rank_correlation(one: F64, other: F64) -> float | None:
    """Spearman's, from -1 to 1; None where either is the same throughout, or of fewer than 3."""
    return None if len(one) < 3 else sensitivity.rank_correlation(one, other)
