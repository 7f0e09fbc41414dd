# SPDX-License-Identifier: GPL-2.0-or-later
"""What an order of functions moves: units that an ordering file cannot part, executed ones only.

A linker knows functions by their names and moves whole sections. So functions of one group go
together, and so do functions that share a name.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, U64, Flags
from kdelta.counts.by_key import by_key
from kdelta.replay.functions import Placement, TextRange
from kdelta.replay.kernel_text import is_nameless, linker_name
from kdelta.replay.layouts import in_orders, middle_of
from kdelta.replay.simulate import PlacedBlocks


class Units(msgspec.Struct, frozen=True, eq=False):
    """The executed units that can move, by address as linked, then units that only fill.

    names: of each unit, what an ordering file has of it, by address. bytes (n_units,): of each with
    all that moves with it. of_function: the unit of each function of the placement, -1 for what is
    not executed or does not move. small: a placement of these units and of what stays, with
    all else that moves in few pieces at the end of its range: its layouts are made in a fraction of
    the time. chosen: of each unit, indexes of functions of `small`, one of each group, in their
    order. functions: the index in the whole placement of each function of `small`; of such a piece,
    that of a function in it. executed: how many units are executed; those behind only fill.
    """

    names: tuple[tuple[str, ...], ...]
    bytes: I64
    of_function: I64
    small: Placement
    chosen: tuple[tuple[int, ...], ...]
    functions: I64
    executed: int

    def order(self, units: Iterable[int]) -> tuple[str, ...]:
        """The names of an ordering file that puts these units first, in this order. What only fills
        stays in it even behind all others: it changes what padding the rest takes up to a page.
        """
        return tuple(dict.fromkeys(name for unit in units for name in self.names[unit]))

    def layouts(self, orders: Sequence[I64]) -> U64:
        """The start of each function of `small` under each order of all units, (n_orders, n): those
        of `layouts.ordered`.
        """
        rows = [[at for unit in order.tolist() for at in self.chosen[unit]] for order in orders]
        return in_orders(self.small, rows)


def units_of(placement: Placement, padding: Sequence[Sequence[int]] = ()) -> Units:
    """The units of a placement of which anything is executed by any of its traces.

    padding: functions that are never executed, alone in their group and with their name, each list
    of which is a unit more.
    """
    functions = placement.functions
    executed = placement.executed
    running = {functions[index].group for index in np.flatnonzero(executed).tolist()
               if functions[index].movable}  # fmt: skip
    members = by_key((f.group, index) for index, f in enumerate(functions) if f.movable)
    spoken = {group: _names(placement, members[group]) for group in sorted(running)}
    # Code that no name can be asked for stays among what is not ordered.
    nameless = {group for group, names in spoken.items() if not names}
    spoken = {group: names for group, names in spoken.items() if names}
    merged = _merged(placement, spoken)
    for filling in padding:
        groups = [functions[index].group for index in filling]
        merged.append(groups)
        spoken.update((functions[i].group, (linker_name(functions[i].name),)) for i in filling)
    units = [[*dict.fromkeys(name for group in unit for name in spoken.get(group, ()))]
             for unit in merged]  # fmt: skip
    small, kept = _small(placement, {group for unit in merged for group in unit}, nameless)
    place = {index: at for at, index in enumerate(kept.tolist())}
    of_function = np.full(len(functions), -1, dtype=np.int64)
    for unit, groups in enumerate(merged):
        of_function[[i for group in groups for i in members[group]]] = unit
    return Units(
        names=tuple(tuple(names) for names in units),
        bytes=np.array(
            [sum(functions[i].bytes for group in unit for i in members[group]) for unit in merged],
            dtype=np.int64,
        ),
        of_function=of_function,
        small=small,
        chosen=tuple(tuple(place[i] for i in _as_ordered(placement, names)) for names in units),
        functions=kept,
        executed=len(merged) - len(padding),
    )


def _names(placement: Placement, members: Sequence[int]) -> tuple[str, ...]:
    """What a group is asked for by: the names of its executed functions, else of any; none if it
    has no name.
    """
    named = [i for i in members if not is_nameless(placement.functions[i].name)]
    ran = [i for i in named if placement.executed[i]]
    return tuple(dict.fromkeys(linker_name(placement.functions[i].name) for i in ran or named[:1]))


def _as_ordered(placement: Placement, names: Sequence[str]) -> list[int]:
    """One function of each group, in the order in which these names bring them."""
    found: dict[int, int] = {}
    for name in names:
        for index in placement.indexes[name]:
            if placement.functions[index].movable:
                found.setdefault(placement.functions[index].group, index)
    return list(found.values())


def _merged(placement: Placement, spoken: dict[int, tuple[str, ...]]) -> list[list[int]]:
    """Groups that share a name, together; each and all by address."""
    parent: dict[int, int] = {}

    def root(group: int) -> int:
        while parent.setdefault(group, group) != group:
            group = parent[group]
        return group

    for group, names in spoken.items():
        for name in names:
            for index in placement.indexes[name]:
                function = placement.functions[index]
                if function.movable:
                    one, other = sorted((root(group), root(function.group)))
                    parent[other] = one
    return list(by_key((root(group), group) for group in sorted(parent)).values())


def _small(placement: Placement, running: set[int], nameless: set[int]) -> tuple[Placement, I64]:
    """The placement with only these groups, what stays, what is aligned to more than others or runs
    without a name, and between those the rest of each range, a run of groups as one; and the index
    of each of its functions in the whole one.
    """
    keeps = np.array([not f.movable or f.group in running for f in placement.functions], dtype=bool)
    rests, splits = [], []
    for part in placement.ranges:
        is_special = part.alignments > part.alignments.min()
        for at, member in enumerate(part.first.tolist()):
            is_special[at] |= placement.functions[member].group in nameless
        is_rest = np.ones(len(part.keys), dtype=bool)
        is_rest[part.groups[keeps[part.members]]] = False
        splits.append(middle_of(part, is_rest) if placement.middle else 0)
        keeps[part.members[is_special[part.groups]]] = True
        rests.append(_rests(part, keeps, is_special, splits[-1]))
    kept = np.flatnonzero(keeps)
    stand_ins = [rest.member for found in rests for rest in found]
    kept = np.sort(np.concatenate([kept, stand_ins])).astype(np.int64)
    place = np.full(len(placement.functions), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    parts = zip(placement.ranges, rests, splits, strict=True)
    small = Placement(
        functions=tuple(placement.functions[index] for index in kept.tolist()),
        placed=tuple(
            PlacedBlocks(place[found.function].astype(np.uint32), found.offset)
            for found in placement.placed
        ),
        text=placement.text,
        ranges=tuple(_part(part, place, found, split) for part, found, split in parts),
        indexes={},
        executed=placement.executed[kept],
        middle=placement.middle,
    )
    return small, kept


class _Rest(msgspec.Struct, frozen=True):
    """Groups of a range that are not executed, packed in their order.

    group: the last of them, which stands for all, and its last function.
    """

    group: int
    member: int
    bytes: int


def _rests(part: TextRange, keeps: Flags, is_special: Flags, split: int) -> list[_Rest]:
    """A run each of what is not kept, from one special group to the next; none goes over the split,
    where an order may come to lie.
    """
    is_rest = np.ones(len(part.keys), dtype=bool)
    is_rest[part.groups[keeps[part.members]]] = False
    run = np.cumsum(is_special) * 2 + (np.arange(len(part.keys)) >= split)
    found = []
    for number in np.unique(run[is_rest]).tolist():
        groups = np.flatnonzero(is_rest & (run == number))
        sizes, alignments = part.bytes[groups], part.alignments[groups]
        whole = -(-sizes.astype(np.int64) // alignments.astype(np.int64)) * alignments.astype(
            np.int64
        )
        last = int(groups[-1])
        member = int(part.members[np.flatnonzero(part.groups == last)[-1]])
        found.append(_Rest(last, member, int(whole[:-1].sum()) + int(sizes[-1])))
    return found


def _part(part: TextRange, place: I64, rests: Sequence[_Rest], split: int) -> TextRange:
    """A range of only those functions that have a place."""
    is_kept = place[part.members] >= 0
    groups = np.unique(part.groups[is_kept])
    sizes, first = part.bytes.copy(), place[part.first]
    for rest in rests:
        sizes[rest.group], first[rest.group] = rest.bytes, place[rest.member]
    return msgspec.structs.replace(
        part,
        keys=part.keys[groups],
        bytes=sizes[groups],
        alignments=part.alignments[groups],
        first=first[groups],
        members=place[part.members[is_kept]],
        groups=np.searchsorted(groups, part.groups[is_kept]),
        offsets=part.offsets[is_kept],
        is_compiled=part.is_compiled[groups],
        split=int(np.searchsorted(groups, split)),
    )
