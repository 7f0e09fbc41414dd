# SPDX-License-Identifier: GPL-2.0-or-later
"""An order for code that is larger than the cache: what is worth keeping has most sets to itself.

A cache that evicts what was least recently used keeps nothing of a loop that is larger than it. So
what would miss anyway is given a few sets of every page of sets, where it only evicts its like, and
never executed code fills the places between.
"""

import bisect
import itertools
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U64
from kdelta.cpus.model import Cache
from kdelta.replay.functions import Placement, TextRange
from kdelta.replay.kernel_text import is_nameless, linker_name
from kdelta.replay.search import CaseJudge, Start
from kdelta.replay.units import Units, units_of

# The share of the sets that is kept, and how many times as large as these sets the code may be that
# is given them: for one region mostly once or twice, for a whole workload up to nine times.
_KEPT = (0.5, 0.75, 0.875, 0.9375)
_TIMES = (1.0, 1.3, 1.7, 2.5, 4.0, 6.0, 9.0, 13.0)
_LEAST_SETS = 16
_MOST_PADDING = 2 << 20
_AHEAD = 40  # units among which one is looked for that still fits
_NEAR = 32  # bytes before a boundary that may stay empty


class _PackingPlan(msgspec.Struct):
    """Units (numbers) and what fills (functions of the whole placement) by address, and where each
    unit begins.
    """

    items: list[int | list[int]]
    starts: dict[int, int]
    padding: int = 0


def sets_apart(
    placement: Placement, units: Units, judge: CaseJudge, order: I64, cache: Cache
) -> Start | None:
    """The cheapest of such orders, over several shares of the sets; None if all code fits, or for a
    cache of few sets. order: of all units, in which they are laid out in either part. What is found
    is an order of the same units and of others numbered behind them, which only fill.
    """
    if cache.sets < _LEAST_SETS or units.bytes.sum() <= cache.bytes:
        return None
    packer = _Packer(placement, units, order, cache)
    plans = [
        plan
        for kept in _KEPT
        for worth in _worths(judge, units, order, cache, kept)
        for times in _TIMES
        if (plan := packer.plan(kept, times, worth)).padding <= _MOST_PADDING
    ]
    if not plans:
        return None
    costs = judge.costs(judge.misses(np.stack([packer.layout(plan) for plan in plans])))
    return packer.with_padding(plans[int(np.argmin(costs))])


def _worths(judge: CaseJudge, units: Units, order: I64, cache: Cache, kept: float) -> Iterator[F64]:
    """What keeping a byte of each unit is worth: its misses in as much cache as is not kept; and
    only what of these it has not in all of the cache.
    """
    layout = units.layouts([order])[0]
    rest = max(1, round((1 - kept) * cache.entries))
    some = judge.blame(layout, Cache(1, rest, cache.line_bytes))
    yield some / units.bytes
    yield (some - judge.blame(layout, cache.fully_associative)) / units.bytes


class _Packer:
    """Lays units out in the range that has most of them; others stay where `order` has them."""

    def __init__(self, placement: Placement, units: Units, order: I64, cache: Cache) -> None:
        self._placement, self._units, self._order, self._cache = placement, units, order, cache
        part = max(units.small.ranges, key=lambda part: len(part.members))
        self._groups = _groups_of(units, part)
        self._base = units.layouts([order])[0]
        ours = [at for unit, held in enumerate(self._groups) if held for at in units.chosen[unit]]
        self._start = int(self._base[ours].min()) if ours else part.start
        self._unit_of = units.of_function[units.functions]
        whole = next(found for found in placement.ranges if found.start == part.start)
        self._alignment = int(whole.alignments.min())
        self._filler = _Filler(placement, whole)

    def plan(self, kept: float, times: float, worth: F64) -> _PackingPlan:
        """What is worth the most, so many times as much as fits, has that share of the sets."""
        room = kept * self._cache.bytes * times
        mine = [unit for unit in np.argsort(-worth, kind="stable").tolist() if self._groups[unit]]
        fits = np.cumsum(self._units.bytes[mine]) <= room
        chosen = {unit for unit, does in zip(mine, fits.tolist(), strict=True) if does}
        order = [unit for unit in self._order.tolist() if self._groups[unit]]
        queues = (
            [unit for unit in order if unit in chosen],
            [unit for unit in order if unit not in chosen],
        )
        return self._walk(queues, round(kept * self._cache.sets) * self._cache.line_bytes)

    def _walk(self, queues: tuple[list[int], list[int]], kept_bytes: int) -> _PackingPlan:
        """Goes through the addresses: the first queue's units lie in the first bytes of each page
        of sets, the second's in the others.
        """
        page = self._cache.sets * self._cache.line_bytes
        plan, at = _PackingPlan([], {}), self._start
        filler = self._filler.fresh()
        while queues[0] or queues[1]:
            inside = at % page
            side = int(inside >= kept_bytes)
            room = (page if side else kept_bytes) - inside
            if room <= _NEAR:
                side, room = 1 - side, room + (kept_bytes if side else page - kept_bytes)
            queue = queues[side]
            begins = room >= (page - kept_bytes if side else kept_bytes)
            place = self._fitting(queue, at, room)
            if place is None and queue and begins:
                place = 0  # larger than the part of a page
            if place is None and queues[0] and not queues[1]:
                queue, place = queues[0], 0
            if place is not None:
                unit = queue.pop(place)
                plan.items.append(unit)
                plan.starts[unit] = _up(at, self._groups[unit][0][1])
                at = self._after(unit, at)
                continue
            filled, filled_bytes = filler.fill(room, self._alignment)
            if not filled or plan.padding > _MOST_PADDING:
                plan.padding = _MOST_PADDING + 1
                break
            plan.items.append(filled)
            plan.padding += filled_bytes
            at = _up(at, self._alignment) + filled_bytes
        return plan

    def _fitting(self, queue: Sequence[int], at: int, room: int) -> int | None:
        for place, unit in enumerate(itertools.islice(queue, _AHEAD)):
            if self._after(unit, at) <= at + room:
                return place
        return None

    def _after(self, unit: int, at: int) -> int:
        """Where a unit ends that is put at an address."""
        for size, alignment in self._groups[unit]:
            at = _up(at, alignment) + size
        return at

    def layout(self, plan: _PackingPlan) -> U64:
        """The layout of `small` that a plan makes, as far as units go."""
        found: U64 = self._base.copy()
        for unit, start in plan.starts.items():
            functions = np.flatnonzero(self._unit_of == unit)
            found[functions] = np.uint64(start) + (found[functions] - found[functions[0]])
        return found

    def with_padding(self, plan: _PackingPlan) -> Start:
        """The order that a plan makes."""
        units = units_of(self._placement, [item for item in plan.items if isinstance(item, list)])
        number = itertools.count(len(self._units.names))
        order = [next(number) if isinstance(item, list) else item for item in plan.items]
        others = [unit for unit in self._order.tolist() if not self._groups[unit]]
        return Start(units, np.array(order + others, dtype=np.int64))


def _up(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment


def _groups_of(units: Units, part: TextRange) -> list[list[tuple[int, int]]]:
    """Of each unit bytes and alignment of its groups, in their order; none for a unit that is not
    all in this range.
    """
    group = {int(f): int(g) for f, g in zip(part.members, part.groups, strict=True)}
    return [
        [(int(part.bytes[group[f]]), int(part.alignments[group[f]])) for f in chosen]
        if all(f in group for f in chosen)
        else []
        for chosen in units.chosen
    ]


class _Filler:
    """Never executed functions by their size, each to be had once."""

    def __init__(self, placement: Placement, part: TextRange) -> None:
        self._by_size: dict[int, list[int]] = {}
        alone = (np.bincount(part.groups) == 1) & (part.alignments == part.alignments.min())
        for function, group in zip(part.members.tolist(), part.groups.tolist(), strict=True):
            name = placement.functions[function].name
            if (
                alone[group]
                and not placement.executed[function]
                and not is_nameless(name)
                # What looks like code before it may be padding that it asks for.
                and not is_nameless(placement.functions[max(0, function - 1)].name)
                and len(placement.indexes[linker_name(name)]) == 1
            ):
                size = _up(int(part.bytes[group]), int(part.alignments[group]))
                self._by_size.setdefault(size, []).append(function)
        self._sizes = sorted(self._by_size)
        self._taken: dict[int, int] = {}

    def fresh(self) -> "_Filler":
        """The same with nothing taken."""
        self._taken = {}
        return self

    def fill(self, room: int, alignment: int) -> tuple[list[int], int]:
        """The largest that fit into so many bytes, again and again; how many bytes they take."""
        found: list[int] = []
        left = room
        while left >= alignment and (size := self._largest(left)) is not None:
            taken = self._taken.get(size, 0)
            found.append(self._by_size[size][taken])
            self._taken[size] = taken + 1
            left -= size
        return found, room - left

    def _largest(self, room: int) -> int | None:
        for at in range(bisect.bisect_right(self._sizes, room) - 1, -1, -1):
            size = self._sizes[at]
            if self._taken.get(size, 0) < len(self._by_size[size]):
                return size
        return None
