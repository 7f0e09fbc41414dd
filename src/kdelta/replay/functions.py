# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions that a run's blocks belong to, and which of them a relink can move."""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, U64, Flags
from kdelta.counts.by_key import by_key
from kdelta.counts.model import KERNEL
from kdelta.counts.symbols import CODE_TYPES, Symbol, without_padding
from kdelta.counts.trace import DATA, Trace
from kdelta.kernels.objects.digest import Digest
from kdelta.replay.input_sections import details_of, input_sections, sections_and_sizes
from kdelta.replay.kernel_text import (
    Details,
    KernelText,
    TextPiece,
    after_what,
    kernel_text,
    linker_name,
)
from kdelta.replay.simulate import PlacedBlocks
from kdelta.spec.errors import UserError

REST = "[rest]"
"""Code of no known function: user programs, the vDSO, what was compiled at run time."""

FIXED = -1
"""The group of a function that no relink moves."""

# __ALIGN of arch/x86/include/asm/linkage.h, where -Os aligns nothing; if a digest says no more.
_ASSEMBLER_ALIGNMENT = 16
_FAR_BYTES = 1 << 20  # after the last symbol before a gap: no function is that long
_MAY_CROSS = 4
# Of 30,000 to 60,000 blocks of a boot, with its own symbols, at most 3 cross (6.1 and 6.12, all in
# the entry code), with another kernel's 5 to 47 %; of 3,000 to 6,600 functions all but 24 are
# entered at their start, with another kernel's 3 to 20 %. In a region, those of tasks that slept
# before it are not entered either: at most 5.
_CROSSING_SHARE = 0.005
_ENTERED_SHARE = 0.7
_MAY_BE_FEW = 8


class PlacedFunction(msgspec.Struct, frozen=True, gc=False):
    """What moves as one, or does not move.

    name: unique; of several functions of one name the second by address is name#2. origin:
    "kernel", "[module]", or REST. address: as linked, with the padding before the entry; entry:
    bytes of that padding. bytes: to the next function, so with what the linker filled up, unless a
    digest tells its size. alignment: in bytes. group: functions of one group keep their distance,
    since one goes on into the next; FIXED for those that do not move, and then why_not says why.
    is_assembler: its object was not compiled, so no compiler aligns it. is_compiled: it was, as far
    as is known.
    kind: "hot", "main" or "unlikely", the part of .text that it can move in; "" if it does not.
    """

    name: str
    origin: str
    address: int
    entry: int
    bytes: int
    alignment: int
    movable: bool
    group: int
    kind: str
    why_not: str
    is_assembler: bool = False
    is_compiled: bool = False


class TextRange(msgspec.Struct, frozen=True):
    """A stretch [start, end) of .text in which a linker orders groups of functions freely.

    By group, in order of address: `keys` (hash of the first function's name), `bytes`,
    `alignments`, `first` (its first function) and `is_compiled` (whether a compiler aligns it),
    each of shape (n_groups,). By function in it:
    `members` (index of the function), `groups` (index of its group here), `offsets` (bytes from its
    group's start), each of shape (n_members,). `holes` are stretches with code that stays, by
    address. `split`: of one that stands for a larger one, how many of its groups lie before those
    that are put into an order; None where that is found out, see `Placement.middle`.
    """

    kind: str
    start: int
    end: int
    keys: U64
    bytes: U64
    alignments: U64
    first: I64
    members: I64
    groups: I64
    offsets: U64
    holes: tuple[tuple[int, int], ...]
    is_compiled: Flags
    split: int | None = None


class Placement(msgspec.Struct, frozen=True):
    """The functions of one kernel and of what ran on it, shared by all regions of a run.

    functions: those of .text by address, then others of the kernel that were executed, then REST.
    placed: for each trace, where its blocks lie in these functions. text: start and end of .text.
    ranges: by address. indexes: all names that a symbol gives -> indexes of functions; a name may
    stand for several. executed: for each function whether any trace executes it. middle: functions
    that are put into an order lie in the middle of their range, and not before all others: as lld
    has it where branches do not reach everywhere.
    """

    functions: tuple[PlacedFunction, ...]
    placed: tuple[PlacedBlocks, ...]
    text: tuple[int, int]
    ranges: tuple[TextRange, ...]
    indexes: dict[str, tuple[int, ...]]
    executed: Flags
    middle: bool = False

    def addresses(self) -> U64:
        """Of each function as linked, of shape (n_functions,); that of REST is 0."""
        return np.array([function.address for function in self.functions], dtype=np.uint64)


def placement_of(
    traces: Sequence[Trace],
    symbols: Iterable[Symbol],
    *,
    digest: Digest | None = None,
    alignment: int | None = None,
    merged: bool = False,
    middle: bool = False,
) -> Placement:
    """The functions that can move, and where the blocks of each trace lie.

    symbols: as `parse_symbols` gives them, of the kernel and its modules. digest: of the built
    kernel, if there is one: it has sections, and assembler objects, which move as one. alignment:
    the kernel's CONFIG_FUNCTION_ALIGNMENT, where known: the most that its addresses can say.
    merged: its objects were made one object before that was linked, so that all sections of one
    name move as one: all assembler's .text, and all functions of one name. middle: see Placement.
    UserError for a kernel without symbols, and for symbols of another kernel than was traced.
    """
    symbols = list(symbols)
    details = details_of(digest)
    own = details.alignments
    text = kernel_text(symbols, *sections_and_sizes(digest, symbols), alignment, details)
    pieces = text.pieces
    starts = np.array([piece.start for piece in pieces], dtype=np.uint64)
    ends = np.array([piece.end for piece in pieces], dtype=np.uint64)
    blocks = [_Blocks(trace, starts, ends, text) for trace in traces]
    _require_same_kernel(blocks, pieces)
    linked = np.array([piece.joined for piece in pieces], dtype=bool)
    sections = input_sections(pieces, digest, merged=merged)
    linked |= sections.goes_on
    for of_trace in blocks:
        of_trace.link(linked)
    numbers = _group(pieces, linked)
    least = [
        min(_ASSEMBLER_ALIGNMENT, alignment or _ASSEMBLER_ALIGNMENT) * int(a)
        for a in sections.is_assembler
    ]
    functions = [
        _function(piece, text, int(number), (own.get(linker_name(piece.name), 0), aligned), details)
        for piece, number, aligned in zip(pieces, numbers, least, strict=True)
    ]
    outside = _Outside(symbols, text, functions)
    for of_trace in blocks:
        outside.add(of_trace)
    placed = outside.placed()
    functions += outside.functions()
    return Placement(
        functions=tuple(functions),
        placed=placed,
        text=(text.start, text.end),
        ranges=_ranges(functions),
        indexes=_indexes(pieces, functions),
        executed=_executed(placed, len(functions)),
        middle=middle,
    )


class _Blocks:
    """The blocks of a trace, and the functions of .text that they lie in."""

    def __init__(self, trace: Trace, starts: U64, ends: U64, text: KernelText) -> None:
        self.trace = trace
        self.starts = starts
        self.address = trace.addresses.astype(np.uint64)
        self.end = self.address + np.maximum(trace.sizes, 1).astype(np.uint64)
        self.in_text = (self.address >= np.uint64(text.start)) & (
            self.address < np.uint64(text.end)
        )
        self.piece = _last_at(starts, self.address)
        self.last_piece = _last_at(starts, self.end - np.uint64(1))
        known = np.maximum(self.piece, 0)
        self.outside = self.in_text & ((self.piece < 0) | (self.address >= ends[known]))
        self.crosses = self.in_text & ~self.outside & (self.last_piece > self.piece)

    def link(self, linked: Flags) -> None:
        """Marks each function into which execution goes on from the one before."""
        for first, last in zip(
            self.piece[self.crosses].tolist(), self.last_piece[self.crosses].tolist(), strict=True
        ):
            linked[first + 1 : last + 1] = True
        next_piece = np.searchsorted(self.starts, self.end).astype(np.int64)
        known = np.minimum(next_piece, len(self.starts) - 1)
        at_end = self.in_text & (self.starts[known] == self.end)
        for block, then in _successions(self.trace, at_end):
            linked[known[block[self.address[then] == self.end[block]]]] = True


def _last_at(starts: U64, addresses: U64) -> I64:
    return np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1


def _successions(trace: Trace, of: Flags) -> Iterable[tuple[I64, I64]]:
    """Pairs of blocks (earlier, next) that follow each other, where the earlier is one of `of`."""
    is_code = (trace.items & np.uint32(DATA)) == 0
    items = trace.items[is_code].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(is_code)])[trace.starts.astype(np.int64)]
    if not len(items):
        return
    last_in_piece = np.zeros(len(items) + 1, dtype=bool)
    last_in_piece[starts] = True  # index i: piece starts at i, so i - 1 ended one
    within = np.flatnonzero(of[items[:-1]] & ~last_in_piece[1:-1])
    yield items[within], items[within + 1]
    full = np.flatnonzero(np.diff(starts))
    sequence = trace.sequence[np.isin(trace.sequence, full)].astype(np.int64)
    if len(sequence) > 1:
        ends, begins = items[starts[sequence[:-1] + 1] - 1], items[starts[sequence[1:]]]
        yield ends[of[ends]], begins[of[ends]]


def _require_same_kernel(blocks: Sequence[_Blocks], pieces: Sequence[TextPiece]) -> None:
    """UserError when blocks do not begin and end as functions with these symbols would.

    Looks at what compilers made: entry code goes on from one symbol to the next.
    """
    compiled = np.array([not piece.why_not for piece in pieces], dtype=bool)
    if not blocks or not len(pieces):
        return
    within = [found.in_text & compiled[np.maximum(found.piece, 0)] for found in blocks]
    n_blocks = sum(int(np.count_nonzero(of)) for of in within)
    crossing = sum(
        int(np.count_nonzero(of & (found.crosses | found.outside)))
        for found, of in zip(blocks, within, strict=True)
    )
    if crossing > max(_MAY_CROSS, _CROSSING_SHARE * n_blocks):
        _refuse(f"{crossing} of {n_blocks} executed blocks go beyond the functions they are in")
    begun = np.unique(np.concatenate([found.address for found in blocks]))
    executed = np.unique(
        np.concatenate([found.piece[of] for found, of in zip(blocks, within, strict=True)])
    )
    entries = np.array([pieces[index].entry for index in executed.tolist()], dtype=np.uint64)
    entered = int(np.count_nonzero(np.isin(entries, begun)))
    if len(executed) >= _MAY_BE_FEW and entered < _ENTERED_SHARE * len(executed):
        _refuse(f"of {len(executed)} executed functions only {entered} are entered at their start")


def _refuse(what: str) -> None:
    raise UserError(
        f"these symbols are not of the kernel that was traced: {what}",
        "give the System.map or /proc/kallsyms of that very kernel",
    )


def _group(pieces: Sequence[TextPiece], linked: Flags) -> I64:
    """The group of each piece: runs of linked ones. One that stays holds its whole run."""
    numbers = np.full(len(pieces), FIXED, dtype=np.int64)
    begins = np.flatnonzero(~linked | (np.arange(len(pieces)) == 0))
    number = 0
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(pieces)], strict=True):
        run = pieces[begin:end]
        fixed = next((piece for piece in run if piece.why_not), None)
        for piece in run:
            piece.kind = "" if fixed else run[0].kind
            if fixed and not piece.why_not:
                piece.why_not = f"one with {fixed.name}"
        if fixed is None:
            numbers[begin:end] = number
            number += 1
    return numbers


def _function(
    piece: TextPiece, text: KernelText, group: int, known: tuple[int, int], details: Details
) -> PlacedFunction:
    """known: the alignment of its own section, and at least what an assembler object is aligned to;
    0 where there is none. details: who made it.
    """
    aligned = 1
    own, least = known
    after = after_what(piece.name)
    if own and piece.kind and piece.start % own == 0:
        aligned = own
    elif piece.kind and not piece.joined:
        lowest = piece.start & -piece.start
        usual = text.alignments[piece.kind]
        # Code without a name that lies elsewhere asks for less.
        usual = min(usual, lowest) if after else usual
        aligned = max(usual, min(least, lowest), piece.alignment)
    return PlacedFunction(
        name=piece.name,
        origin=KERNEL,
        address=piece.start,
        entry=piece.entry - piece.start,
        bytes=piece.end - piece.start,
        alignment=aligned,
        movable=group != FIXED,
        group=group,
        kind=piece.kind,
        why_not=piece.why_not,
        is_assembler=least > 0 or (after in details.fixups and after not in details.weak),
        is_compiled=linker_name(piece.name) in details.compiled,
    )


class _Outside:
    """Names what was executed outside of .text: modules, init code; the rest has no names."""

    def __init__(
        self, symbols: Iterable[Symbol], text: KernelText, functions: Sequence[PlacedFunction]
    ) -> None:
        labels: dict[int, tuple[str, str]] = {}
        for address, kind, name, origin in symbols:
            if kind in CODE_TYPES and address and not text.start <= address < text.end:
                labels.setdefault(address, (origin, without_padding(name)))
        self._starts = np.array(sorted(labels), dtype=np.uint64)
        self._labels = [labels[int(start)] for start in self._starts]
        self._n_text = len(functions)
        self._names = {function.name for function in functions}
        self._numbers: dict[int, int] = {}  # index into _starts -> index of the function
        self._ends: dict[int, int] = {}
        self._placed: list[tuple[I64, U64]] = []

    def add(self, blocks: _Blocks) -> None:
        """Finds the functions of a trace's blocks; those of none are -1 until `placed`."""
        function = np.where(blocks.in_text & ~blocks.outside, blocks.piece, -1)
        base = np.zeros(len(function), dtype=np.uint64)
        base[function >= 0] = blocks.starts[function[function >= 0]]
        others = np.flatnonzero((function < 0) & ~blocks.in_text)
        nearest = _last_at(self._starts, blocks.address[others])
        for block, index in zip(others.tolist(), nearest.tolist(), strict=True):
            end = int(blocks.end[block])
            if index < 0 or end - int(self._starts[index]) > _FAR_BYTES:
                continue
            function[block] = self._numbers.setdefault(index, self._n_text + len(self._numbers))
            base[block] = self._starts[index]
            self._ends[index] = max(self._ends.get(index, 0), end)
        self._placed.append((function, blocks.address - base))

    def placed(self) -> tuple[PlacedBlocks, ...]:
        """For each trace where its blocks lie."""
        rest = self._n_text + len(self._numbers)
        return tuple(
            PlacedBlocks(np.where(function < 0, rest, function).astype(np.uint32), offset)
            for function, offset in self._placed
        )

    def functions(self) -> list[PlacedFunction]:
        """Those that were found, and REST."""
        found = [self._function(index) for index in self._numbers]
        return [*found, PlacedFunction(REST, REST, 0, 0, 0, 1, False, FIXED, "", "user code")]

    def _function(self, index: int) -> PlacedFunction:
        origin, name = self._labels[index]
        start = int(self._starts[index])
        why_not = "in a module" if origin != KERNEL else "not in .text"
        size = self._ends[index] - start
        return PlacedFunction(
            self._unique(name), origin, start, 0, size, 1, False, FIXED, "", why_not
        )

    def _unique(self, name: str) -> str:
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}#{number}"
        self._names.add(found)
        return found


def _ranges(functions: Sequence[PlacedFunction]) -> tuple[TextRange, ...]:
    """One for each kind of text that has functions which move, by address."""
    kinds = by_key((f.kind, index) for index, f in enumerate(functions) if f.movable)
    return tuple(_range(kind, members, functions) for kind, members in kinds.items())


def _range(kind: str, members: Sequence[int], functions: Sequence[PlacedFunction]) -> TextRange:
    held = [functions[index] for index in members]
    starts = np.array([function.address for function in held], dtype=np.uint64)
    ends = starts + np.array([function.bytes for function in held], dtype=np.uint64)
    numbers = np.array([function.group for function in held], dtype=np.int64)
    first = np.flatnonzero(np.diff(numbers, prepend=FIXED))
    groups = np.cumsum(np.diff(numbers, prepend=FIXED) != 0) - 1
    last = np.append(first[1:], len(held)) - 1
    between = functions[members[0] : members[-1] + 1]
    return TextRange(
        kind=kind,
        start=int(starts[0]),
        end=int(ends[-1]),
        keys=np.array([_key(held[index].name) for index in first.tolist()], dtype=np.uint64),
        bytes=ends[last] - starts[first],
        alignments=_alignments(held, first, starts),
        is_compiled=np.array([not held[at].is_assembler for at in first.tolist()], dtype=bool),
        first=np.array(members, dtype=np.int64)[first],
        members=np.array(members, dtype=np.int64),
        groups=groups,
        offsets=starts - starts[first][groups],
        holes=tuple((f.address, f.address + f.bytes) for f in between if not f.movable),
    )


def _alignments(held: Sequence[PlacedFunction], first: I64, starts: U64) -> U64:
    """Of each group: the most that any of its functions has which its start is a multiple of."""
    own = np.array([function.alignment for function in held], dtype=np.uint64)
    group = np.searchsorted(first, np.arange(len(held)), side="right") - 1
    found: U64 = own[first].copy()
    counts = (own > found[group]) & (starts[first][group] % own == 0)
    np.maximum.at(found, group[counts], own[counts])
    return found


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _indexes(
    pieces: Sequence[TextPiece], functions: Sequence[PlacedFunction]
) -> dict[str, tuple[int, ...]]:
    aliases = {piece.name: piece.aliases for piece in pieces}
    found = by_key(
        (name, index)
        for index, one in enumerate(functions)
        for name in dict.fromkeys((one.name, linker_name(one.name), *aliases.get(one.name, ())))
    )
    return {name: tuple(indexes) for name, indexes in found.items()}


def _executed(placed: Iterable[PlacedBlocks], n_functions: int) -> Flags:
    found = np.zeros(n_functions, dtype=bool)
    for of_trace in placed:
        found[of_trace.function] = True
    return found
