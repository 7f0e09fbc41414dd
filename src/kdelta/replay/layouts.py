# SPDX-License-Identifier: GPL-2.0-or-later
"""Layouts: where each function of a kernel would lie if it were linked in another order.

A layout is an array of start addresses, uint64 of shape (n_functions,), in the order of
`Placement.functions`; many are (n_layouts, n_functions). docs/placement.md says what is moved, how
a linker is followed, and where not.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kdelta.counts.arrays import I64, U64, Flags
from kdelta.cpus.model import Cache
from kdelta.replay.functions import PlacedFunction, Placement, TextRange
from kdelta.spec.errors import UserError

_DRAW_BITS = 32
_AT_ONCE = 16  # rows of orders that are packed together: they stay in the CPU's caches
_LINE_BYTES = 64
_PAGE_BYTES = 4096
_HUGE_PAGE_BYTES = 2 << 20
_ANCHOR_BYTES = 1 << 16  # nothing comes to lie at such an address by accident
_LARGEST_LAST_BYTES = 1 << 14
_LARGEST = 4096
_SLIDE_BYTES = 1 << 16  # as many as any first-level cache has in a way

# The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
# OOPSLA 2014, variant 13 of Stafford's): good bits from any distinct numbers.
_GOLDEN = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_ALL_BITS = (1 << 64) - 1


def as_linked(placement: Placement) -> U64:
    """The layout that the kernel has: shape (n_functions,)."""
    return placement.addresses()


def shuffles(
    placement: Placement,
    n: int,
    seed: int,
    *,
    slide: bool = False,
    first: int = 0,
    alignment: int | None = None,
) -> U64:
    """n random layouts, from the one numbered `first`: shape (n, n_functions).

    The groups of each range in random order, each aligned as it was. Layout i depends on seed and
    i alone, not on n. The order comes from the functions' names: two kernels that have the same
    functions get the same orders for one seed, so their ensembles can be compared in pairs.

    slide: what stays but lies behind the ranges also begins at a random line, as it would after any
    change in the size of what is before it. A relink of the very same functions does not do that;
    it is for ensembles of two kernels, whose difference should not have that one draw in it.
    alignment: of functions, as in `aligned`, which says when it raises UserError.
    """
    found = _linked(placement, n)
    alignments = None if alignment is None else _aligned_kinds(alignment)
    for begin in range(0, n, _AT_ONCE):
        rows = range(begin, min(n, begin + _AT_ONCE))
        streams = np.array([_stream(seed, first + row) for row in rows], dtype=np.uint64)
        orders = [_random_orders(part, streams) for part in placement.ranges]
        slides = _mix(streams ^ np.uint64(_GOLDEN)) % np.uint64(_SLIDE_BYTES) if slide else None
        part = found[begin : begin + len(rows)]
        _lay_out(placement, part, orders, alignments=alignments, slides=slides)
    return found


def draws_of(n: int, seed: int) -> tuple[int, ...]:
    """What names each of n layouts of a seed."""
    return tuple((seed << _DRAW_BITS) + index for index in range(n))


def aligned(placement: Placement, n: int) -> U64:
    """The same order with each movable function at a multiple of n bytes: shape (n_functions,).

    Functions of .text.unlikely keep theirs, as gcc before 14 does not align them, and so do those
    of assembler. What no relink moves is aligned too, where it is known to be compiled. UserError
    when n is no power of two up to 4096.
    """
    alignments = _aligned_kinds(n)
    found = _linked(placement, 1)
    orders = [np.arange(len(part.keys))[np.newaxis] for part in placement.ranges]
    _lay_out(placement, found, orders, alignments=alignments)
    layout: U64 = found[0]
    return layout


def _aligned_kinds(n: int) -> dict[str, int]:
    if not 0 < n <= _LARGEST or n & (n - 1):
        raise UserError(
            f"functions cannot be aligned to {n} bytes", f"a power of two up to {_LARGEST} can be"
        )
    return {"hot": n, "main": n}


def ordered(placement: Placement, names: Iterable[str]) -> tuple[U64, tuple[str, ...]]:
    """The layout that a linker makes of a symbol ordering file, and the names that it cannot use.

    The named functions come first, each in its own range, then the others in the order they had,
    as lld's --symbol-ordering-file does; or in the middle of them, see Placement.
    A name that several functions have orders all of them, as
    there; name#2 is only the second. Names of functions that do not move are among the unusable.
    """
    chosen: dict[int, None] = {}
    unusable: dict[str, None] = {}
    for name in names:
        movable = [
            index for index in placement.indexes.get(name, ()) if placement.functions[index].movable
        ]
        chosen.update(dict.fromkeys(movable))
        unusable.update({} if movable else {name: None})
    return chosen_first(placement, list(chosen)), tuple(unusable)


def chosen_first(placement: Placement, chosen: Sequence[int]) -> U64:
    """These functions (indexes) first, each in its range, then the others in the order they had.

    A group moves with that of its functions which comes first. Functions that do not move are
    passed over.
    """
    found: U64 = in_orders(placement, [chosen])[0]
    return found


def in_orders(placement: Placement, chosen: Sequence[Sequence[int]]) -> U64:
    """A layout for each of several orders: shape (n_orders, n_functions).

    It is that of a relink of the same objects: what lay without a gap behind a range does so again,
    wherever that ends now.
    """
    found = _linked(placement, len(chosen))
    for begin in range(0, len(chosen), _AT_ONCE):
        rows = chosen[begin : begin + _AT_ONCE]
        orders = [
            np.stack([_given_order(placement, part, row) for row in rows])
            for part in placement.ranges
        ]
        _lay_out(placement, found[begin : begin + len(rows)], orders, relinked=True)
    return found


def _linked(placement: Placement, n: int) -> U64:
    return np.tile(placement.addresses(), (n, 1))


def _mix(numbers: U64) -> U64:
    for bits, factor in _STEPS:
        numbers = (numbers ^ (numbers >> np.uint64(bits))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _stream(seed: int, row: int) -> int:
    """What the numbers of one row start from: another one for each seed and row."""
    start = _mix(np.array([seed * _GOLDEN & _ALL_BITS], dtype=np.uint64))
    return int(start[0]) + (row + 1) * _GOLDEN & _ALL_BITS


def _random_orders(part: TextRange, streams: U64) -> I64:
    """Orders of the groups, of shape (n_streams, n_groups): sorted by a random number each."""
    n_groups = len(part.keys)
    bits = np.uint64(n_groups.bit_length())
    numbers = _mix(part.keys[np.newaxis] ^ _mix(streams)[:, np.newaxis])
    tagged = (numbers >> bits << bits) | np.arange(n_groups, dtype=np.uint64)
    tagged.sort(axis=1)
    return (tagged & np.uint64((1 << int(bits)) - 1)).astype(np.int64)


def _given_order(placement: Placement, part: TextRange, chosen: Sequence[int]) -> I64:
    group_of = np.full(len(placement.functions), -1, dtype=np.int64)
    group_of[part.members] = part.groups
    wanted = group_of[np.array(chosen, dtype=np.int64)]
    wanted = wanted[wanted >= 0]
    _, first = np.unique(wanted, return_index=True)
    head = wanted[np.sort(first)]
    is_rest = np.ones(len(part.keys), dtype=bool)
    is_rest[head] = False
    rest = np.flatnonzero(is_rest)
    split = 0
    if placement.middle and len(head):
        split = middle_of(part, is_rest) if part.split is None else part.split
    return np.concatenate([rest[rest < split], head, rest[rest >= split]])


def middle_of(part: TextRange, is_rest: Flags) -> int:
    """Before which group an order lies in the middle of the others, is_rest (n_groups,): that with
    which they pass half of their bytes. (sortISDBySectionOrder in ELF/Writer.cpp of lld 14.)
    """
    passed = np.cumsum(np.where(is_rest, part.bytes, np.uint64(0)))
    return int(np.searchsorted(passed, passed[-1] // np.uint64(2), side="right"))


def _slid(slides: U64, at: U64, step: int) -> U64:
    """How far code moves from `at` to begin at `slides`, modulo _SLIDE_BYTES, in whole steps."""
    more = (slides - at % np.uint64(_SLIDE_BYTES)) % np.uint64(_SLIDE_BYTES)  # wraps at 2**64
    slid: U64 = more & ~np.uint64(step - 1)
    return slid


def _lay_out(
    placement: Placement,
    layouts: U64,
    orders: Sequence[I64],
    *,
    alignments: Mapping[str, int] | None = None,
    slides: U64 | None = None,
    relinked: bool = False,
) -> None:
    """Fills layouts, (n, n_functions), by orders of each range, (n, n_groups).

    Goes through .text by address. A range begins where it did, unless what comes before grew. So
    does code that stays; where it cannot, it moves by whole lines, what follows with it, until a
    gap takes that up. slides (n,): what it is to begin at, modulo _SLIDE_BYTES, where it may slide.
    relinked: what lay behind the end of the one before does so again, also where that moved down.
    """
    ends = np.zeros(len(layouts), dtype=np.uint64)
    linked_end = 0
    usual = _usual_alignment(placement)
    parts = {
        int(part.members[0]): (part, order)
        for part, order in zip(placement.ranges, orders, strict=True)
    }
    passed = 0
    for first, last, step in _stretches(placement):
        if first in parts:
            part, order = parts[first]
            passed += 1
            forced = (alignments or {}).get(part.kind)
            sizes = part.alignments
            if forced is not None:  # of assembler it stays
                sizes = np.where(part.is_compiled, np.uint64(forced), part.alignments)
            if relinked and 0 <= part.start - linked_end < _LINE_BYTES:
                begins = np.uint64(part.start) + _moved(ends, linked_end, int(sizes.min()))
            elif relinked and _asks_for_page(part, linked_end):
                begins = _up(ends, int(sizes.min()))
            else:
                begins = np.maximum(np.uint64(part.start), _up(ends, int(sizes[order[0, 0]])))
            linked_end = part.end
            starts, ends = _packed(part, order, begins, sizes)
            layouts[:, first:last] += (begins - np.uint64(part.start))[:, np.newaxis]  # holes
            layouts[:, part.members] = starts[:, part.groups] + part.offsets
            continue
        start = placement.functions[first].address
        if relinked and step <= _LINE_BYTES and 0 <= start - linked_end < _LINE_BYTES:
            pushed = _moved(ends, linked_end, min(step, usual))
        else:
            pushed = _up(np.maximum(ends, np.uint64(start)) - np.uint64(start), step)
        if slides is not None and passed == len(parts) and step <= _LINE_BYTES:
            pushed += _slid(slides, pushed + np.uint64(start), step)
        linked_end = _end_of_run(placement.functions[last - 1])
        ends = pushed + np.uint64(linked_end)
        if alignments:
            more = _apart(placement.functions[first:last], pushed, alignments["main"])
            layouts[:, first:last] += more
            ends += more[:, -1]
        layouts[:, first:last] += pushed[:, np.newaxis]


def _apart(run: Sequence[PlacedFunction], pushed: U64, alignment: int) -> U64:
    """How far each function of a run that stays moves up if compiled ones are at multiples of that:
    (n, n_functions).
    """
    found = np.zeros((len(pushed), len(run)), dtype=np.uint64)
    more = np.zeros(len(pushed), dtype=np.uint64)
    for index, function in enumerate(run):
        if function.is_compiled and function.kind != "unlikely":
            at = np.uint64(function.address) + pushed + more
            more += _up(at, alignment) - at
        found[:, index] = more
    return found


def _asks_for_page(part: TextRange, linked_end: int) -> bool:
    """Whether a range begins where its first group has to, behind what ends there."""
    alignment = int(part.alignments[0])
    padding = part.start - linked_end
    return linked_end > 0 and part.start % alignment == 0 and 0 <= padding < alignment


def _moved(ends: U64, linked_end: int, alignment: int) -> U64:
    """How far what is aligned so moves when what is before it ends there; down is up by nearly
    2**64.
    """
    return _up(ends, alignment) - _up(np.array(linked_end, dtype=np.uint64), alignment)


def _usual_alignment(placement: Placement) -> int:
    """What functions are aligned to, and the sections of them in a linker script, too."""
    main = [int(part.alignments.min()) for part in placement.ranges if part.kind == "main"]
    return min(main, default=_LINE_BYTES)


def _stretches(placement: Placement) -> list[tuple[int, int, int]]:
    """Ranges, and runs of code that stays between them, by address: [first, last) indexes of
    functions, and by multiples of how many bytes a run moves if it must.
    """
    found: list[tuple[int, int, int]] = []
    at = 0
    for part in placement.ranges:
        found += _runs(placement.functions, at, int(part.members[0]))
        found.append((int(part.members[0]), int(part.members[-1]) + 1, 0))
        at = int(part.members[-1]) + 1
    return found + _runs(placement.functions, at, _in_text(placement))


def _runs(functions: Sequence[PlacedFunction], first: int, last: int) -> list[tuple[int, int, int]]:
    """Each but the first begins at a page after a gap: where a linker script says, whatever the
    size of what comes before. All keep the alignment that they may need.
    """
    begins = [
        index
        for index in range(first, last)
        if index == first
        or (
            functions[index].address % _PAGE_BYTES == 0
            and functions[index].address > _end_of_run(functions[index - 1])
        )
    ]
    found = []
    for begin, end in zip(begins, [*begins[1:], last], strict=False):
        alignment = functions[begin].address & -functions[begin].address
        is_anchored = begin != first or alignment >= _ANCHOR_BYTES
        found.append((begin, end, min(alignment, _HUGE_PAGE_BYTES if is_anchored else _LINE_BYTES)))
    return found


def _end_of_run(last: PlacedFunction) -> int:
    """The last function of a run may reach, by its symbol, over a gap to the next page."""
    return last.address + min(last.bytes, _LARGEST_LAST_BYTES)


def _up(numbers: U64, alignment: int) -> U64:
    mask = np.uint64(alignment - 1)
    return (numbers + mask) & ~mask


def _packed(part: TextRange, orders: I64, begins: U64, alignments: U64) -> tuple[U64, U64]:
    """Start of each group, (n, n_groups), and where the range ends, (n,), if packed in orders."""
    least = int(alignments.min())
    filled = _up(part.bytes, least)[orders]
    starts = np.cumsum(filled, axis=1) - filled + _up(begins, least)[:, np.newaxis]
    _align_more(starts, orders, alignments)
    _pass_holes(starts, part, orders, begins - np.uint64(part.start), int(alignments.max()))
    by_group = np.empty_like(starts)
    np.put_along_axis(by_group, orders, starts, axis=1)
    return by_group, starts[:, -1] + part.bytes[orders[:, -1]]


def _align_more(starts: U64, orders: I64, alignments: U64) -> None:
    """Moves up the groups that are aligned to more than the least, and all that follow them."""
    special = alignments > alignments.min()
    if not special.any():
        return
    rows = np.arange(len(orders))
    where = special[orders]
    places = np.argsort(~where, axis=1, kind="stable")[:, : int(special.sum())]
    pushed = np.zeros(len(orders), dtype=np.uint64)
    steps = np.zeros_like(starts)
    for place in places.T:
        at = starts[rows, place] + pushed
        mask = alignments[orders[rows, place]] - np.uint64(1)
        more = ((at + mask) & ~mask) - at
        steps[rows, place] = more
        pushed += more
    starts += np.cumsum(steps, axis=1)


def _pass_holes(starts: U64, part: TextRange, orders: I64, moved: U64, alignment: int) -> None:
    """Moves up what lies in a hole, and all that follows it."""
    for low, high in part.holes:
        for row, order in enumerate(orders):
            ends = starts[row] + part.bytes[order]
            at = int(np.searchsorted(ends, np.uint64(low) + moved[row], side="right"))
            if at < len(order) and starts[row, at] < np.uint64(high) + moved[row]:
                inside = np.uint64(high) + moved[row] - starts[row, at]
                starts[row, at:] += _up(np.array(inside), alignment)


def layout_in_order_of(one: Placement, other: Placement) -> U64:
    """Where the functions of one kernel would lie in the order of another: shape (n_functions,).

    Functions of .text that both have, by name, lie where the other has them; what only the one has
    keeps its distance to the one before it that both have. So neither touches more pages because
    other code grew. What is not in .text stays.
    """
    found = one.addresses()
    theirs = {function.name: function.address for function in other.functions[: _in_text(other)]}
    ours = one.functions[: _in_text(one)]
    shared = [index for index, function in enumerate(ours) if function.name in theirs]
    if shared:
        there = np.array([theirs[ours[index].name] for index in shared], dtype=np.uint64)
        moved = there - found[shared]  # wraps around at 2^64, and so does the sum below
        last = np.searchsorted(shared, np.arange(len(ours)), side="right") - 1
        found[: len(ours)] += moved[np.maximum(last, 0)]
    return found


def in_text(placement: Placement) -> Flags:
    """Whether a function lies in .text: shape (n_functions,)."""
    return np.arange(len(placement.functions)) < _in_text(placement)


def at_borders(orders: Sequence[U64], moves: Flags, draws: Sequence[int], tlb: Cache) -> U64:
    """A layout a draw, (n_draws, n), from orders of (n,) in turn; moves (n,): what is in .text.

    All of that is moved by one number of lines, which the draw stands for: less than the pages that
    go once through the TLB's sets. What else is executed stays.

    A random order of all functions spreads what is executed over all pages of a kernel, which no
    link does that keeps the functions of a file together. What varies from one such link to the
    next is where in that order a page ends.
    """
    lines = max(1, tlb.sets * tlb.line_bytes // _LINE_BYTES)
    hashes = [hashlib.sha256(b"border %d" % draw).digest() for draw in draws]
    places = [int.from_bytes(hashed[:8], "little") % lines for hashed in hashes]
    shifts = np.array(places, dtype=np.uint64) * np.uint64(_LINE_BYTES)
    found: U64 = np.stack([orders[number % len(orders)] for number in range(len(draws))])
    found += shifts[:, np.newaxis] * moves
    return found


def _in_text(placement: Placement) -> int:
    """How many functions are in .text; they are the first."""
    low, high = placement.text
    return sum(low <= function.address < high for function in placement.functions)
