# SPDX-License-Identifier: GPL-2.0-or-later
"""Which piece of an object refers to which: from relocations, and from calls that need none."""

import re

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.kernels.objects.elf import (
    EXECUTABLE,
    FUNCTION,
    INDIRECT_FUNCTION,
    LOCAL_BINDING,
    MERGE,
    NO_RELOCATIONS,
    NOBITS,
    OBJECT,
    RESERVED,
    SECTION,
    STRINGS,
    UNDEFINED,
    Array,
    Bytes,
    Elf,
    Relocations,
    little_endian,
    with_sign,
)
from kdelta.kernels.objects.elf_machines import ElfMachine, FilledBranch

RECORD = np.dtype([("offset", "<u4"), ("type", "<u4"), ("key", "<u8"), ("target_offset", "<i8")])
"""A reference as it is hashed."""

_NO_RELOCATION = 0x100
"""The type, in records, of a jump or call that the assembler resolved."""

_MASK_BYTES = 8
_RELATIVE_MODRM, _OPERAND_SIZE, _ESCAPE = 0x05, 0x66, 0x0F
_IMMEDIATE_1 = (0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6)
_IMMEDIATE_4 = (0x69, 0x81, 0xC7)
_LONG_IMMEDIATE_1 = (0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6)


def _any_of(values: npt.NDArray[np.integer], wanted: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """np.isin for a few small numbers, many times as fast on short arrays."""
    found: npt.NDArray[np.bool_] = values == wanted[0]
    for number in wanted[1:]:
        found |= values == number
    return found


class SectionPiece(msgspec.Struct):
    """A stretch of a section: what a symbol covers, or the nameless rest between two.

    `has_label`: an unsized symbol points into it.
    """

    section: int
    start: int
    end: int
    names: list[str]
    global_names: list[str]
    has_label: bool = False


class Layout:
    """An object's pieces. Together those of a section cover it, in order."""

    def __init__(self, elf: Elf, numbers: list[int]) -> None:
        self.pieces: list[SectionPiece] = []
        self.of_section: dict[int, range] = {}
        self._cuts = _cuts(elf, numbers)
        self._starts: dict[int, Array] = {}
        wanted = set(numbers)
        symbols: dict[int, list[tuple[int, int, bool, str]]] = {}
        columns = (elf.symbols.section, elf.symbols.value, elf.symbols.size, elf.symbols.kind)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for index, (section, value, size, kind) in enumerate(rows):
            if section in wanted and kind != SECTION and elf.symbols.names[index]:
                sized = size if kind in (OBJECT, FUNCTION, INDIRECT_FUNCTION) else 0
                is_local = int(elf.symbols.binding[index]) == LOCAL_BINDING
                row = (value, -sized, is_local, elf.symbols.names[index])
                symbols.setdefault(section, []).append(row)
        for number in numbers:
            first = len(self.pieces)
            self._cut(number, elf.sections[number].size, sorted(symbols.get(number, ())))
            self.of_section[number] = range(first, len(self.pieces))
            starts = [piece.start for piece in self.pieces[first:]]
            self._starts[number] = np.array(starts, dtype=np.int64)
        self._all_starts = np.array([piece.start for piece in self.pieces], dtype=np.int64)
        self.n_named_targets = len(self.pieces) + len(elf.symbols.names)

    def _cut(self, number: int, size: int, symbols: list[tuple[int, int, bool, str]]) -> None:
        """Cuts one section at its sized symbols; what overlaps one belongs to it."""
        at = 0
        labels: list[int] = []
        for start, minus_size, is_local, name in symbols:
            end = min(start - minus_size, size)
            last = self.pieces[-1] if self.pieces and self.pieces[-1].section == number else None
            if start >= end:
                labels.append(min(start, size))
            elif last and last.names and start < last.end:
                last.names.append(name)
                last.end = at = max(last.end, end)
                if not is_local:
                    last.global_names.append(name)
            else:
                self._add_nameless(number, at, start, labels)
                self.pieces.append(
                    SectionPiece(number, start, end, [name], [] if is_local else [name])
                )
                at = end
        self._add_nameless(number, at, size, labels)

    def _add_nameless(self, number: int, start: int, end: int, labels: list[int]) -> None:
        for cut in self._cuts.get(number, ()):
            if start < cut < end:
                self.pieces.append(SectionPiece(number, start, cut, [], []))
                start = cut
        if start < end:
            has_label = any(start <= label < end for label in labels)
            self.pieces.append(SectionPiece(number, start, end, [], [], has_label))
        labels.clear()

    def find(self, number: int, offsets: Array) -> Array:
        """The piece that each offset of a section lies in: the nearest for one outside of it."""
        pieces = self.of_section[number]
        found = np.searchsorted(self._starts[number], offsets, side="right") - 1
        return np.minimum(np.maximum(found, 0), len(pieces) - 1) + pieces.start

    def has(self, number: int) -> bool:
        """Whether anything of that section is in pieces."""
        return len(self.of_section.get(number, ())) > 0

    def starts(self, indexes: Array) -> Array:
        """The offsets in their sections at which pieces start."""
        return self._all_starts[indexes]


def _cuts(elf: Elf, numbers: list[int]) -> dict[int, list[int]]:
    """Where sections of nameless bits of code are to be cut: wherever something refers to."""
    wanted = [number for number in numbers if is_snippets(elf.sections[number].name)]
    found: dict[int, set[int]] = {number: set() for number in wanted}
    symbols = elf.symbols
    for number, relocations in elf.relocations.items() if wanted else ():
        defined = symbols.section[relocations.symbol]
        at = symbols.value[relocations.symbol] + relocations.addend
        if elf.sections[number].flags & EXECUTABLE:
            at = at + _origins(elf.machine, relocations.type)
        for target in wanted:
            found[target].update(at[defined == target].tolist())
    return {number: sorted(offsets) for number, offsets in found.items()}


def _origins(machine: ElfMachine, types: Array) -> Array:
    """How far behind its place a relative operand of code counts from, by type."""
    found = np.zeros(len(types), dtype=np.int64)
    for kind, origin in machine.origins.items():
        found[types == kind] = origin
    return found


def is_snippets(section: str) -> bool:
    """Whether a section holds bits of code for functions of other sections."""
    return section.startswith(".altinstr_")


class References(msgspec.Struct):
    """Columns of shape (n,), ordered by source and offset.

    A target is the index of a piece; beyond these, of a symbol; beyond these, of a text.
    `content` is each section's bytes, with what a reference fills in put to zero. `nearby`: of
    sources that refer to an anchor, all pieces that they may reach by its address.
    """

    source: Array
    offset: Array
    type: Array
    target: Array
    target_offset: Array
    texts: list[bytes]
    content: dict[int, Bytes]
    nearby: dict[int, set[int]] = {}


class _Finder:
    def __init__(self, elf: Elf, layout: Layout) -> None:
        self.elf = elf
        self.layout = layout
        self.texts: dict[bytes, int] = {}
        self.rows: list[npt.NDArray[np.int64]] = []  # (source, offset, type, target, its offset)
        self.content: dict[int, Bytes] = {}
        self.nearby: dict[int, set[int]] = {}

    def add_section(self, number: int) -> None:
        section = self.elf.sections[number]
        content = section.content.copy()
        relocations = self.elf.relocations.get(number, NO_RELOCATIONS)
        if section.kind != NOBITS and len(relocations.offset):
            self._add_relocations(number, relocations)
            for kind in np.unique(relocations.type).tolist():
                filled = self.elf.machine.filled.get(kind, self.elf.machine.usual)
                _clear(content, relocations.offset[relocations.type == kind], filled)
        if section.flags & EXECUTABLE:
            self._add_calls(number, content, relocations)
        self.content[number] = content

    def _append(
        self, number: int, places: Array, types: Array, targets: Array, target_offsets: Array
    ) -> None:
        sources = self.layout.find(number, places)
        offsets = places - self.layout.starts(sources)
        self.rows.append(np.stack([sources, offsets, types, targets, target_offsets], axis=1))

    def _add_relocations(self, number: int, relocations: Relocations) -> None:
        """Resolves those that name a section, or a local symbol, to the piece that is meant."""
        symbols = self.elf.symbols
        symbol = relocations.symbol
        defined = symbols.section[symbol]
        is_local = (symbols.binding[symbol] == LOCAL_BINDING) & (defined != UNDEFINED)
        resolved = is_local & (defined < RESERVED)
        by_name = np.flatnonzero(~resolved)
        n_pieces = len(self.layout.pieces)
        self._append(
            number,
            relocations.offset[by_name],
            relocations.type[by_name],
            symbol[by_name] + n_pieces,
            relocations.addend[by_name],
        )
        for target in np.unique(defined[resolved]).tolist():
            chosen = np.flatnonzero(resolved & (defined == target))
            if not self.layout.has(target):
                # Of a section that is left out, or empty: its symbol's name has to do.
                targets = symbol[chosen] + n_pieces
                addends = relocations.addend[chosen]
                places = relocations.offset[chosen]
                self._append(number, places, relocations.type[chosen], targets, addends)
                continue
            self._add_local(number, relocations, chosen, target)

    def _add_local(self, number: int, relocations: Relocations, chosen: Array, target: int) -> None:
        symbols = self.elf.symbols
        symbol = relocations.symbol[chosen]
        places, types = relocations.offset[chosen], relocations.type[chosen]
        at = symbols.value[symbol] + relocations.addend[chosen]
        is_code = bool(self.elf.sections[number].flags & EXECUTABLE)
        # On x86 an instruction's relative operand counts from its end: 4 bytes on, where no
        # immediate follows the operand.
        origins = _origins(self.elf.machine, types) if is_code else 0 * types
        at = at + origins
        if self.elf.sections[target].flags & (STRINGS | MERGE):
            self._append(number, places, types, self._text_targets(target, at), 0 * at)
            return
        if is_code and self.elf.machine.anchor_bytes and target != number:
            self._add_nearby(number, target, symbol, places, at)
        may_have_tail = (origins > 0) & self.elf.machine.has_tails
        relative = np.flatnonzero(may_have_tail & (symbols.kind[symbol] == SECTION))
        content = self.elf.sections[number].content
        immediates = immediate_bytes(content, places[relative])
        least, most = at.copy(), at.copy()
        least[relative] += immediates[0]
        most[relative] += immediates[1]
        pieces, others = self.layout.find(target, least), self.layout.find(target, most)
        self._append(number, places, types, pieces, least - self.layout.starts(pieces))
        # Where two instructions are possible, both targets are taken for referred to.
        differ = np.flatnonzero(others != pieces)
        offsets = most[differ] - self.layout.starts(others[differ])
        self._append(number, places[differ], types[differ], others[differ], offsets)

    def _add_nearby(
        self, number: int, target: int, symbol: Array, places: Array, at: Array
    ) -> None:
        """Compilers reach several variables by the address of one place among them (an anchor), and
        no relocation says which.
        """
        anchors = re.compile(self.elf.machine.anchors)
        is_anchor = [
            bool(anchors.fullmatch(self.elf.symbols.names[one])) for one in symbol.tolist()
        ]
        at, sources = at[is_anchor], self.layout.find(number, places[is_anchor])
        reach = self.elf.machine.anchor_bytes
        first = self.layout.find(target, at - reach)
        last = self.layout.find(target, at + reach)
        for source, low, high in zip(sources.tolist(), first.tolist(), last.tolist(), strict=True):
            self.nearby.setdefault(source, set()).update(range(low, high + 1))

    def _text_targets(self, number: int, offsets: Array) -> Array:
        """Strings and constants that the linker merges are what they say, not where they are."""
        section = self.elf.sections[number]
        held = section.content.tobytes()
        found = []
        for offset in offsets.tolist():
            start = min(max(offset, 0), len(held))
            if section.flags & STRINGS:
                end = held.find(b"\0", start)
                text = held[start : end if end >= 0 else len(held)]
            else:
                text = b"\0" + held[start : start + max(section.entry_bytes, 1)]
            index = self.texts.setdefault(text, len(self.texts))
            found.append(self.layout.n_named_targets + index)
        return np.array(found, dtype=np.int64)

    def _add_calls(self, number: int, content: Bytes, relocations: Relocations) -> None:
        """Finds calls and jumps from one function of a section to the start of another, which the
        assembler resolves itself: their bytes change whenever something between the two does.

        A byte that only looks like such an opcode would have to be followed by just the distance to
        a function's start, in both of two builds in which that distance differs.
        """
        pieces = self.layout.of_section[number]
        named = [index for index in pieces if self.layout.pieces[index].names]
        if not named:
            return
        indexes = np.array(named, dtype=np.int64)
        starts = self.layout.starts(indexes)
        original = self.elf.sections[number].content
        for branch in self.elf.machine.branches:
            at, targets = _branches(original, branch, relocations.offset)
            nearest = np.clip(np.searchsorted(starts, targets), 0, len(starts) - 1)
            sources = self.layout.find(number, at)
            hit = (starts[nearest] == targets) & (sources != indexes[nearest])
            at, found = at[hit], indexes[nearest[hit]]
            self._append(number, at, np.full(len(at), _NO_RELOCATION), found, 0 * at)
            _clear(content, at, (1 << branch.bits) - 1)

    def references(self) -> References:
        rows = np.concatenate(self.rows) if self.rows else np.zeros((0, 5), dtype=np.int64)
        rows = rows[np.lexsort((rows[:, 4], rows[:, 3], rows[:, 2], rows[:, 1], rows[:, 0]))]
        source, offset, kind, target, target_offset = np.ascontiguousarray(rows.T)
        return References(
            source, offset, kind, target, target_offset, list(self.texts), self.content, self.nearby
        )


def immediate_bytes(content: Bytes, at: Array) -> tuple[Array, Array]:
    """How many bytes of an immediate follow each relative operand, the least and the most they may
    be: the bytes before alone do not always tell.

    Intel SDM volume 2, appendix A: the opcodes that have both a ModR/M byte and an immediate.
    """
    before = [content[np.maximum(at - back, 0)] for back in range(1, 5)]
    modrm, opcode, escape, first = before
    is_operand = (modrm & 0xC7) == _RELATIVE_MODRM
    is_test = (modrm & 0x30) == 0
    one = _any_of(opcode, _IMMEDIATE_1) | ((opcode == 0xF6) & is_test)
    four = _any_of(opcode, _IMMEDIATE_4) | ((opcode == 0xF7) & is_test)
    is_rex = (escape & 0xF0) == 0x40
    narrow = (escape == _OPERAND_SIZE) | ((first == _OPERAND_SIZE) & is_rex)
    plain_least = np.where(one, 1, np.where(four, np.where(narrow, 2, 4), 0))
    plain_most = np.where(one, 1, np.where(four, 4, 0))
    long = _any_of(opcode, _LONG_IMMEDIATE_1).astype(np.int64)
    is_long = escape == _ESCAPE
    least = np.where(is_long, np.minimum(plain_least, long), plain_least)
    most = np.where(is_long, np.maximum(plain_most, long), plain_most)
    most = np.where((escape == 0x3A) & (first == _ESCAPE), np.maximum(most, 1), most)
    return np.where(is_operand, least, 0), np.where(is_operand, most, 0)


def _branches(content: Bytes, branch: FilledBranch, relocated: Array) -> tuple[Array, Array]:
    """Where distances of such branches stand without a relocation, and where they lead."""
    places = np.arange(0, len(content) - branch.at - branch.width + 1, branch.step)
    opcodes = little_endian(content, places, branch.step) & branch.mask
    at = places[_any_of(opcodes, branch.opcodes)] + branch.at
    at = at[~np.isin(at, relocated)]
    distance = with_sign(little_endian(content, at, branch.width), branch.bits) << branch.shift
    return at, at - branch.at + branch.origin + distance


def _clear(content: Bytes, at: Array, mask: int) -> None:
    """Puts the bits of a mask to zero in the bytes at those offsets."""
    for byte in range(_MASK_BYTES):
        if held := mask >> (8 * byte) & 0xFF:
            content[at + byte] &= 0xFF ^ held


def find_references(elf: Elf, layout: Layout) -> References:
    """All references between an object's pieces, and to what others define."""
    finder = _Finder(elf, layout)
    for number in layout.of_section:
        finder.add_section(number)
    return finder.references()
