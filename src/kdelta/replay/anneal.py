# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated annealing over orders, with any judge; it knows nothing of caches but who is to blame.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by Simulated Annealing, Science 220 (1983).
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64

# Tried on regions of Debian's 6.1 (open+close, pipe and TCP round trips), 3,000 evaluations each,
# over batches of 4 to 32, temperatures from 0.005 to 0.1 down to 0.0001 to 0.001 and with each kind
# of move left out; docs/placement.md has what came of it.
_BATCH = 16
_HOT, _COLD = 0.01, 0.0002  # temperature, as a fraction of the cost of the start
_BLAMED_SHARE = 0.7
_SWAP_SHARE, _LIKE_SHARE = 0.34, 0.16
_ALIKE = 12  # how many units of about the same size a unit is swapped with
_SHORT_SHARE, _SHORT = 0.7, 0.3
_REVERSED_SHARE = 0.2


class OrderCosts(msgspec.Struct, frozen=True, eq=False):
    """What several orders cost, (n_orders,), and which units that is to blame on, (n_orders,
    n_units): any numbers of at least 0; a unit is moved the more often the more it is to blame.
    """

    costs: F64
    blame: F64


Judge = Callable[[Sequence[I64]], OrderCosts]

Watch = Callable[[int, float], None]
"""Is told how many orders have been judged, and what the best of them costs."""


class BestOrder(msgspec.Struct, frozen=True, eq=False):
    """The best order that was seen, what it costs, and how many orders were judged for it."""

    order: I64
    cost: float
    evaluations: int


class _AnnealState(msgspec.Struct):
    order: I64
    cost: float
    blame: F64


def anneal(
    judge: Judge, start: I64, sizes: I64, *, seed: int, evaluations: int, watch: Watch | None = None
) -> BestOrder:
    """Looks for an order of all units that costs less than `start`, which is never worse itself.

    start: a permutation of all units, (n_units,). sizes (n_units,), in bytes: units of like size
    are swapped by preference, since nothing else moves then. At most `evaluations` orders are
    judged, that of the start included, a batch at once; the result depends on the seed and on
    nothing else. Of a batch of neighbours the cheapest is taken if it is cheaper than what there
    is, or with a probability that falls with the difference and the temperature. It ends early when
    nothing is left to save. watch: is called after each batch.
    """
    rng = np.random.default_rng(seed)
    first = judge([start])
    now = _AnnealState(start, float(first.costs[0]), first.blame[0])
    best = BestOrder(start, now.cost, 1)
    used = 1
    moves = _Moves(sizes, rng)
    while used < evaluations and best.cost > 0 and len(start) > 1:
        batch = [moves.neighbour(now) for _ in range(min(_BATCH, evaluations - used))]
        judged = judge(batch)
        used += len(batch)
        at = int(np.argmin(judged.costs))
        cost = float(judged.costs[at])
        temperature = first.costs[0] * _HOT * (_COLD / _HOT) ** (used / evaluations)
        if cost <= now.cost or rng.random() < np.exp((now.cost - cost) / temperature):
            now = _AnnealState(batch[at], cost, judged.blame[at])
        if now.cost < best.cost:
            best = BestOrder(now.order, now.cost, used)
        if watch:
            watch(used, best.cost)
    return BestOrder(best.order, best.cost, used)


class _Moves:
    """Neighbours of an order: two units swapped, or a run of them moved elsewhere."""

    def __init__(self, sizes: I64, rng: np.random.Generator) -> None:
        self._rng = rng
        self._by_size = np.argsort(sizes, kind="stable")
        self._rank = np.argsort(self._by_size)

    def neighbour(self, state: _AnnealState) -> I64:
        """Another order, with a unit moved that is likely to be to blame."""
        rng, order = self._rng, state.order
        unit = self._unit(state)
        at = int(np.flatnonzero(order == unit)[0])
        kind = rng.random()
        if kind < _SWAP_SHARE:
            return _swapped(order, at, int(rng.integers(len(order))))
        if kind < _SWAP_SHARE + _LIKE_SHARE:
            return _swapped(order, at, int(np.flatnonzero(order == self._like(unit))[0]))
        return self._moved(order, at)

    def _unit(self, state: _AnnealState) -> int:
        rng = self._rng
        sums = np.cumsum(state.blame)
        if rng.random() < _BLAMED_SHARE and sums[-1] > 0:
            found = np.searchsorted(sums, rng.random() * sums[-1], side="right")
            return min(int(found), len(sums) - 1)
        return int(rng.integers(len(sums)))

    def _like(self, unit: int) -> int:
        """A unit of about the same size."""
        n_units = len(self._rank)
        first = max(0, min(int(self._rank[unit]) - _ALIKE // 2, n_units - _ALIKE - 1))
        return int(self._by_size[first + int(self._rng.integers(min(n_units, _ALIKE + 1)))])

    def _moved(self, order: I64, at: int) -> I64:
        """A run of units with that at `at` in it, mostly a short one, put elsewhere."""
        rng, n_units = self._rng, len(order)
        if rng.random() < _SHORT_SHARE:
            length = int(rng.geometric(_SHORT))
        else:
            length = int(rng.integers(1, max(2, n_units // 4)))
        length = min(length, n_units - 1)
        first = max(0, min(at - int(rng.integers(length)), n_units - length))
        run = order[first : first + length]
        rest = np.concatenate([order[:first], order[first + length :]])
        to = int(rng.integers(len(rest) + 1))
        if rng.random() < _REVERSED_SHARE:
            run = run[::-1]
        return np.concatenate([rest[:to], run, rest[to:]])


def _swapped(order: I64, one: int, other: int) -> I64:
    found = order.copy()
    found[[one, other]] = order[[other, one]]
    return found
