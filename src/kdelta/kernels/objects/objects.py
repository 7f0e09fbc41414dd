# SPDX-License-Identifier: GPL-2.0-or-later
"""An object file, by symbol: hashes that are equal if and only if the code is, and who refers."""

import hashlib
import re

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.kernels.objects.elf import (
    ALLOC,
    EXECUTABLE,
    MERGE,
    NOBITS,
    RELOCATABLE,
    Elf,
    ElfSection,
    parse_elf,
)
from kdelta.kernels.objects.records import fold_records
from kdelta.kernels.objects.references import (
    RECORD,
    Layout,
    References,
    SectionPiece,
    find_references,
    is_snippets,
)

LOCAL = ":"
"""Starts a reference to a symbol or a section of the same object; other references are names that
any object, or the linker, may define."""

_PLAIN = (
    ".data", ".bss", ".rodata", ".init.data", ".init.rodata", ".ref.data", ".exit.data",
)  # fmt: skip
_PER_CPU = ".data..percpu"
_LEFT_OUT = (
    *(".discard.", ".note", ".modinfo", ".comment", ".eh_frame", ".exitcall.exit"),
    ".ARM.ex",
)
"""Sections that no kernel keeps or no kernel reads; those of ARM's unwinder, one a function, say no
more than what follows from the function.
"""

_NUMBERED = re.compile(r"(.+)\.\d+")
_HASH_BYTES = 8


class CodePiece(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A function, a variable, or the nameless rest of a section.

    `hash` covers its bytes with each relocation replaced by what it refers to, so moving it or what
    it refers to changes nothing; strings count as their text. `refs` are names, sorted; those that
    start with ":" are of the same object.
    """

    hash: int
    size: int
    section: str
    refs: tuple[str, ...]


class ObjectContent(msgspec.Struct, frozen=True):
    """An object file.

    `functions` are by name, aliases apart. `data` are by the name that references use: ":" and more
    for static ones. Static variables that the compiler numbered are named by the function that uses
    them first (":buffer@do_it"), since the number changes with what comes before. `collected` has
    the sections whose records the linker puts side by side for somebody who walks from one boundary
    to the other: __ex_table, .initcall6.init, __param, ... `alignments`: of sections with code.
    """

    functions: dict[str, CodePiece]
    data: dict[str, CodePiece]
    collected: dict[str, CodePiece]
    alignments: dict[str, int] = {}


def read_object(content: bytes) -> ObjectContent | None:
    """What a relocatable object holds; None for any other file (LTO's bitcode, say)."""
    elf = parse_elf(content)
    if elf is None or elf.type != RELOCATABLE:
        return None
    return _Reader(elf).content()


def is_collected(section: str) -> bool:
    """Whether a data section's records are read by walking it, not (only) by name."""
    return section.startswith(_PER_CPU) or not section.startswith(_PLAIN)


def _is_read(section: ElfSection) -> bool:
    return bool(section.flags & ALLOC) and not section.name.startswith(_LEFT_OUT)


def _hash(*parts: bytes | memoryview) -> int:
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for part in parts:
        digest.update(part)
    return int.from_bytes(digest.digest(), "little")


class _Reader:
    """One object's pieces named, hashed and distinguished."""

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        numbers = [number for number, section in enumerate(elf.sections) if _is_read(section)]
        self.layout = Layout(elf, numbers)
        self.references: References = find_references(elf, self.layout)
        self.keys = self._keys()
        self.records = self._records()
        self._name_snippets()
        self.refs = self._refs()
        self.folded = fold_records(elf, self.layout, self.references, self.records)

    def content(self) -> ObjectContent:
        functions: dict[str, CodePiece] = {}
        data: dict[str, CodePiece] = {}
        referred = set(self.references.target.tolist())
        bounds = self._bounds(len(self.layout.pieces))
        for index, piece in enumerate(self.layout.pieces):
            records = self.records[bounds[index] : bounds[index + 1]]
            if not piece.names and not self._is_kept(index, piece, records, referred):
                continue
            code = self._code(index, piece, records)
            if piece.names and self._is_code(piece):
                functions.update(dict.fromkeys(piece.names, code))
            else:
                data[self.keys[index]] = code
                data.update(dict.fromkeys(piece.global_names, code))
        return ObjectContent(functions, data, self._collected(), self._alignments())

    def _alignments(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number in self.layout.of_section:
            section = self.elf.sections[number]
            if section.flags & EXECUTABLE and section.size:
                found[section.name] = max(found.get(section.name, 1), section.alignment)
        return found

    def _is_code(self, piece: SectionPiece) -> bool:
        return bool(self.elf.sections[piece.section].flags & EXECUTABLE)

    def _is_kept(
        self, index: int, piece: SectionPiece, records: npt.NDArray[np.void], referred: set[int]
    ) -> bool:
        """Whether a nameless piece is more than the padding between two named ones."""
        section = self.elf.sections[piece.section]
        if section.flags & MERGE or (not self._is_code(piece) and is_collected(section.name)):
            return False
        if index in referred or len(records) or piece.has_label:
            return True
        held = section.content[piece.start : piece.end]
        return (
            bool(np.any(~np.isin(held, self.elf.machine.nops)))
            if self._is_code(piece)
            else bool(held.any())
        )

    def _code(self, index: int, piece: SectionPiece, records: npt.NDArray[np.void]) -> CodePiece:
        section = self.elf.sections[piece.section]
        parts, targets = self.folded.get(index, ((), ()))
        hashed = self._hash_piece(piece, records, *parts)
        refs = self.refs.get(index, ())
        more = {self.keys[target] for target in targets} - {"", self.keys[index], *piece.names}
        if not more.issubset(refs):
            refs = tuple(sorted({*refs, *more}))
        return CodePiece(hashed, piece.end - piece.start, section.name, refs)

    def _is_padding(self, piece: SectionPiece, records: npt.NDArray[np.void]) -> bool:
        """Whether a piece is the space behind a function, which grows and shrinks with that. What
        refers to it means the end of the function: of a call that does not return, say.
        """
        section = self.elf.sections[piece.section]
        is_other = piece.names or piece.has_label or len(records) or is_snippets(section.name)
        if is_other or not self._is_code(piece):
            return False
        return not np.any(~np.isin(section.content[piece.start : piece.end], self.elf.machine.nops))

    def _hash_piece(self, piece: SectionPiece, records: npt.NDArray[np.void], *more: bytes) -> int:
        if self._is_padding(piece, records):
            return _hash(b"padding")
        held = self.references.content[piece.section][piece.start : piece.end]
        size = piece.end - piece.start
        return _hash(size.to_bytes(8, "little"), held.tobytes(), records.tobytes(), *more)

    def _name_snippets(self) -> None:
        """Names bits of code in .altinstr_replacement and the like by what they hold."""
        bounds = self._bounds(len(self.layout.pieces))
        renamed = False
        for number, indexes in self.layout.of_section.items():
            if is_snippets(self.elf.sections[number].name):
                for index in indexes:
                    records = self.records[bounds[index] : bounds[index + 1]]
                    hashed = self._hash_piece(self.layout.pieces[index], records)
                    self.keys[index] = f"{LOCAL}{self.elf.sections[number].name}={hashed:x}"
                    renamed = True
        if renamed:
            self.records = self._records()

    def _bounds(self, n: int) -> list[int]:
        found: list[int] = np.searchsorted(self.references.source, np.arange(n + 1)).tolist()
        return found

    def _keys(self) -> list[str]:
        """The name of each piece, then of each other target, as in `refs`; strings have ""."""
        keys = [self._key(piece) for piece in self.layout.pieces]
        self._rename_numbered(keys)
        self._name_nameless(keys)
        seen: dict[str, int] = {}
        for index, key in enumerate(keys):
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1 and key.startswith(LOCAL):
                keys[index] = f"{key}~{seen[key]}"
        return [*keys, *self.elf.symbols.names, *("" for _ in self.references.texts)]

    def _key(self, piece: SectionPiece) -> str:
        if piece.names:
            return piece.global_names[0] if piece.global_names else LOCAL + piece.names[0]
        return LOCAL + self.elf.sections[piece.section].name

    def _name_nameless(self, keys: list[str]) -> None:
        """Names nameless pieces by the one before, which moves with them."""
        for index, piece in enumerate(self.layout.pieces):
            before = self.layout.pieces[index - 1] if index else piece
            if not piece.names and before.section == piece.section and before.names:
                keys[index] += f"#{keys[index - 1].removeprefix(LOCAL)}"

    def _rename_numbered(self, keys: list[str]) -> None:
        """Names static variables such as __func__.7 by the first function that refers to them."""
        numbered = {
            index: found[1]
            for index, piece in enumerate(self.layout.pieces)
            if piece.names
            and not piece.global_names
            and not self._is_code(piece)
            and (found := _NUMBERED.fullmatch(piece.names[0]))
        }
        if not numbered:
            return
        uses: dict[int, tuple[str, int]] = {}
        references = self.references
        of_interest = np.isin(references.target, np.fromiter(numbered, dtype=np.int64))
        for at in np.flatnonzero(of_interest).tolist():
            source, target = int(references.source[at]), int(references.target[at])
            if self._is_code(self.layout.pieces[source]):
                use = (keys[source], int(references.offset[at]))
                uses[target] = min(uses.get(target, use), use)
        no_use = ("", 0)
        counts: dict[str, int] = {}
        for index in sorted(numbered, key=lambda index: (uses.get(index, no_use), index)):
            user = uses.get(index, no_use)[0]
            name = f"{LOCAL}{numbered[index]}@{user.removeprefix(LOCAL)}"
            counts[name] = counts.get(name, 0) + 1
            keys[index] = name if counts[name] == 1 else f"{name}.{counts[name]}"

    def _records(self) -> npt.NDArray[np.void]:
        """The references as hashed, ordered by piece and offset."""
        references = self.references
        hashes = np.array(
            [
                *(_hash(key.encode()) for key in self.keys[: self.layout.n_named_targets]),
                *(_hash(b"text", text) for text in references.texts),
            ],
            dtype=np.uint64,
        )
        records = np.zeros(len(references.target), RECORD)
        records["offset"] = references.offset
        records["type"] = references.type
        records["key"] = hashes[references.target] if len(references.target) else 0
        records["target_offset"] = references.target_offset
        return records

    def _refs(self) -> dict[int, tuple[str, ...]]:
        references = self.references
        is_named = (references.target < self.layout.n_named_targets) & (
            references.target != references.source
        )
        pairs = np.unique(
            references.source[is_named] * len(self.keys) + references.target[is_named]
        )
        found: dict[int, set[str]] = {}
        for pair in pairs.tolist():
            source, target = divmod(pair, len(self.keys))
            if self.keys[target]:
                found.setdefault(source, set()).add(self.keys[target])
        for source, targets in references.nearby.items():
            keys = {self.keys[target] for target in targets if target != source}
            found.setdefault(source, set()).update(keys - {""})
        return {source: tuple(sorted(names)) for source, names in found.items()}

    def _collected(self) -> dict[str, CodePiece]:
        """Each collected section as a whole; those of one name together."""
        found: dict[str, CodePiece] = {}
        bounds = self._bounds(len(self.layout.pieces))
        for number, pieces in self.layout.of_section.items():
            section = self.elf.sections[number]
            is_code = bool(section.flags & EXECUTABLE) and not section.name.startswith(".altinstr")
            if is_code or not is_collected(section.name) or not section.size:
                continue
            held = self.references.content[number].tobytes() if section.kind != NOBITS else b""
            parts = [held]
            refs: set[str] = set()
            for index in pieces:
                start = self.layout.pieces[index].start
                parts.append(start.to_bytes(8, "little"))
                parts.append(self.records[bounds[index] : bounds[index + 1]].tobytes())
                refs.update(self.refs.get(index, ()))
            code = CodePiece(_hash(*parts), section.size, section.name, tuple(sorted(refs)))
            found[section.name] = _together(found.get(section.name), code)
        return found


def _together(known: CodePiece | None, code: CodePiece) -> CodePiece:
    if known is None:
        return code
    hashed = _hash(known.hash.to_bytes(8, "little"), code.hash.to_bytes(8, "little"))
    refs = tuple(sorted({*known.refs, *code.refs}))
    return CodePiece(hashed, known.size + code.size, code.section, refs)
