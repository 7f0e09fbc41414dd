# SPDX-License-Identifier: GPL-2.0-or-later
"""Random layouts of two kernels, drawn alike, so that they can be compared pair by pair.

Packed each alone, the layouts of two kernels drift apart: a function that grew by a line moves
all that come after it. Here both have the same slots, in the same random order: one for each group
of functions that either has, as large as the larger of both. So functions that both have lie at the
same addresses in both, and what is left between two layouts is what the change itself did.
"""

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, U64
from kdelta.replay.functions import Placement, TextRange
from kdelta.replay.layouts import shuffles

_MOST_UNLIKE = 0.01
_MOST_GROWTH = 1.1
_NOTHING = -1
_APART_BYTES = 128


def paired_shuffles(
    a: Placement, b: Placement, n: int, seed: int, *, first: int = 0
) -> tuple[U64, U64]:
    """n random layouts of each of two kernels: shapes (n, functions of a) and (n, those of b).

    Layout i of both is drawn from seed and first + i alone. Groups of the same first function share
    a slot, and what only one kernel has leaves a gap in the other. What stays behind them begins at
    the same random line in both.

    Slots would hide what another alignment does to functions, and spread out two kernels that have
    little in common. So where more than 1 % of the shared groups are aligned otherwise, or the
    slots need over 10 % more than the larger kernel, each is packed alone, in like orders.
    """
    ours, theirs = _shared(a, b) or (a, b)
    return (
        shuffles(ours, n, seed, slide=True, first=first),
        shuffles(theirs, n, seed, slide=True, first=first),
    )


def share_slots(a: Placement, b: Placement) -> bool:
    """Whether the layouts of these two have the same slots."""
    return _shared(a, b) is not None


class _Slots(msgspec.Struct, frozen=True, eq=False):
    """What two ranges of one kind have together, (n_slots,) each."""

    keys: U64
    bytes: U64
    alignments: U64


def _shared(a: Placement, b: Placement) -> tuple[Placement, Placement] | None:
    """Both with ranges of the same slots; None where these would not do."""
    sides = [{part.kind: part for part in one.ranges} for one in (a, b)]
    fewer, more = sorted(sides, key=len)
    kinds = [*more, *(kind for kind in fewer if kind not in more)]
    if any([kind for kind in kinds if kind in side] != list(side) for side in sides):
        return None  # the ranges do not lie in one order
    parts = {kind: [side[kind] for side in sides if kind in side] for kind in kinds}
    if any(_are_unlike(held) for held in parts.values()):
        return None
    slots = {kind: _slots(held) for kind, held in parts.items()}
    packed = [sum(_packed_bytes(part) for part in one.ranges) for one in (a, b)]
    if sum(_packed_bytes(one) for one in slots.values()) > _MOST_GROWTH * max(packed):
        return None
    start = 0
    made: list[list[TextRange]] = [[], []]
    for kind, held in parts.items():
        one = slots[kind]
        holes = _holes(held)
        step = max(64, int(one.alignments.max()))
        start = -(-max(start, *(part.start for part in held)) // step) * step
        for side, ranges in zip(made, sides, strict=True):
            if kind in ranges:
                side.append(_in_slots(ranges[kind], one, start, holes))
        start = _end(one, start, holes) + max(_behind(placement, kind) for placement in (a, b))
    return (
        msgspec.structs.replace(a, ranges=tuple(made[0])),
        msgspec.structs.replace(b, ranges=tuple(made[1])),
    )


def _are_unlike(held: list[TextRange]) -> bool:
    """Whether too many of the groups that two ranges share are aligned otherwise."""
    if len(held) < 2:
        return False
    _, ours, theirs = np.intersect1d(held[0].keys, held[1].keys, return_indices=True)
    unlike = np.count_nonzero(held[0].alignments[ours] != held[1].alignments[theirs])
    return bool(unlike > _MOST_UNLIKE * len(ours))


def _slots(held: list[TextRange]) -> _Slots:
    keys = np.unique(np.concatenate([part.keys for part in held]))
    found = _Slots(keys, np.zeros(len(keys), np.uint64), np.ones(len(keys), np.uint64))
    for part in held:
        at = np.searchsorted(keys, part.keys)
        found.bytes[at] = np.maximum(found.bytes[at], part.bytes)
        found.alignments[at] = np.maximum(found.alignments[at], part.alignments)
    return found


def _packed_bytes(part: TextRange | _Slots) -> int:
    return int((-(-part.bytes.astype(np.int64) // part.alignments.astype(np.int64))
                * part.alignments.astype(np.int64)).sum())  # fmt: skip


def _holes(held: list[TextRange]) -> tuple[tuple[int, int], ...]:
    """Those of both, by address, none of which touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(hole for part in held for hole in part.holes):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return tuple(found)


def _in_slots(
    part: TextRange, slots: _Slots, start: int, holes: tuple[tuple[int, int], ...]
) -> TextRange:
    """The range with its groups in these slots."""
    at: I64 = np.searchsorted(slots.keys, part.keys)
    first = np.full(len(slots.keys), _NOTHING, dtype=np.int64)
    first[at] = part.first
    return msgspec.structs.replace(
        part,
        start=start,
        end=_end(slots, start, holes),
        keys=slots.keys,
        bytes=slots.bytes,
        alignments=slots.alignments,
        first=first,
        groups=at[part.groups],
        holes=holes,
    )


def _end(slots: _Slots, start: int, holes: tuple[tuple[int, int], ...]) -> int:
    """An address that no order of these slots reaches."""
    largest = int(slots.bytes.max()) + int(slots.alignments.max())
    skipped = sum(high - low + largest for low, high in holes)
    return start + _packed_bytes(slots) + skipped + largest * 2


def _behind(placement: Placement, kind: str) -> int:
    """Bytes between a range of that kind and the next one, as linked."""
    for part, after in zip(placement.ranges, placement.ranges[1:], strict=False):
        if part.kind == kind:
            return max(0, after.start - part.end) + _APART_BYTES
    return _APART_BYTES
