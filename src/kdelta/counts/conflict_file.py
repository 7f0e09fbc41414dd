# SPDX-License-Identifier: GPL-2.0-or-later
"""Conflicts from the plugin's file: accesses by line, instruction and CPU become named lines."""

import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.btf import KernelTypes
from kdelta.counts.by_key import by_key
from kdelta.counts.conflicts import (
    LINE_BYTES,
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
    Place,
    sum_by_cpu,
)
from kdelta.counts.memory_names import Address, MemoryMap, MemoryNames, SlabCache
from kdelta.counts.raw import ChunkColumns, RawRegion, Sources, read_region
from kdelta.counts.symbols import NO_SYMBOL, SymbolTable, code_table, parse_symbols
from kdelta.machines.chunks import read_chunks, require_complete
from kdelta.spec.errors import LabError

_HEAD = struct.Struct("<IIQQ")
_CACHE = np.dtype([("name", "S32"), ("object_bytes", "<u4"), ("users", "<u4")])
_LINE = np.dtype([("number", "<u4"), ("cache", "<u4"), ("vaddr", "<u8"), ("start", "<u8")])
_ACCESS = np.dtype(
    [("line", "<u4"), ("cpu", "u1"), ("context", "u1"), ("special", "u1"), ("unused", "u1")]
    + [(name, "<u8") for name in ("insn", "reads", "writes", "bytes_read", "bytes_written")]
)
_LOCKED = "lock"
_LINKED = frozenset({"variable", "per-CPU"})
_STACK = 0xFFFFFFFF
"""In place of a cache: a kernel stack."""


class RawConflicts(msgspec.Struct):
    """A region's chunk: arrays of _CACHE, _LINE and _ACCESS."""

    began_on: int
    is_cut: bool
    memory: MemoryMap
    caches: npt.NDArray[np.void]
    lines: npt.NDArray[np.void]
    accesses: npt.NDArray[np.void]


def read_raw(payload: memoryview) -> RawConflicts:
    """Return a region's chunk; LabError for a damaged one."""
    try:
        began_on, is_cut, direct_map, pages = _HEAD.unpack_from(payload)
        columns = ChunkColumns(payload, _HEAD.size)
        caches = columns.next(_CACHE, int(columns.next("<u4", 1)[0]))
        per_cpu = columns.next("<u8", int(columns.next("<u4", 1)[0]))
        lines = columns.next(_LINE, int(columns.next("<u4", 1)[0]))
        accesses = np.frombuffer(payload, _ACCESS, offset=columns.at)
    except (ValueError, struct.error) as error:
        raise LabError(f"the counts' conflicts are damaged: {error}", "run again") from error
    memory = MemoryMap(tuple(map(int, per_cpu)), direct_map, pages)
    return RawConflicts(began_on, bool(is_cut), memory, caches, lines, accesses)


def read_conflicts(file: Path, sources: Sources) -> tuple[Conflicts, ...]:
    """Return what CPUs contended for in each region of a run's file; LabError for a damaged one."""
    require_complete(file)
    found, region, specials = [], None, []
    symbols = parse_symbols(sources.symbols.read_bytes()) + parse_symbols(sources.modules)
    code, names = code_table(symbols), MemoryNames(symbols, None)
    for tag, payload in read_chunks(file):
        if tag == b"HEAD":
            specials = bytes(payload[4:]).decode().split("\0")
        elif tag == b"BTF ":
            names = MemoryNames(symbols, KernelTypes(bytes(payload)))
        elif tag == b"REGN":
            region = read_region(payload)
        elif tag == b"CNFL" and region:
            raw = read_raw(payload)
            reader = _Reader(raw, names, code, specials.index(_LOCKED))
            found.append(reader.conflicts(region))
    return tuple(found)


class _Access(msgspec.Struct, frozen=True):
    """A row of the file, named. place: see FieldUse; is_named: it is a variable or has a field.
    of: the variable or object, by name and address.
    """

    line: int
    cpu: int
    where: Place
    of: tuple[str, int]
    place: str
    is_named: bool
    function: str
    done: CpuAccesses
    bytes_read: int
    bytes_written: int

    @property
    def bytes(self) -> int:
        return self.bytes_read | self.bytes_written


class _Reader:
    """A region's rows, with what names them."""

    def __init__(
        self, raw: RawConflicts, names: MemoryNames, code: SymbolTable, locked: int
    ) -> None:
        self._raw = raw
        self._names = names
        self._code = code
        self._locked = locked
        self._caches = [
            SlabCache(bytes(row["name"]).decode("ascii", "replace"), *map(int, row.tolist()[1:]))
            for row in raw.caches
        ]
        self._lines = {int(row["number"]): row for row in raw.lines}
        cpus = range(len(raw.memory.per_cpu))
        order = [raw.began_on, *(cpu for cpu in cpus if cpu != raw.began_on)]
        self._order = {cpu: place for place, cpu in enumerate(order)}

    def conflicts(self, region: RawRegion) -> Conflicts:
        """Return the region's lines, named. All of a stack are one, the last: where in it something
        is, may differ from one system call to the next.
        """
        iterations = max(1, len(region.iterations))
        rows = by_key((int(row["line"]), row) for row in self._raw.accesses)
        named = [one for number in rows for one in self._accesses(number, rows[number])]
        units = by_key((self._unit(one.line), one) for one in named)
        keyed = by_key(self._contended(unit, iterations) for unit in units.values())
        lines = [_joined(same) for same in keyed.values()]
        lines.sort(
            key=lambda line: (not line.is_steady, line.where == "stack", -line.accesses, line.name)
        )
        return Conflicts(region.name, iterations, len(self._order), self._raw.is_cut, tuple(lines))

    def _unit(self, line: int) -> tuple[bool, int]:
        row = self._lines[line]
        is_stack = int(row["cache"]) == _STACK
        return is_stack, int(row["start"]) if is_stack else line

    def _accesses(self, number: int, rows: Sequence[np.void]) -> list[_Access]:
        line = self._lines[number]
        number_of_cache = int(line["cache"])
        is_stack = number_of_cache == _STACK
        cache = self._caches[number_of_cache - 1] if number_of_cache and not is_stack else None
        indexes = self._code.indexes(np.array([row["insn"] for row in rows], np.uint64))
        functions = [self._code.labels[one][1] if one >= 0 else NO_SYMBOL for one in indexes]
        guess = self._guess(cache, line, rows) if cache else None
        widest = _widest(rows)
        found = []
        for row, function in zip(rows, functions, strict=True):
            _, cpu, _, special, _, _, reads, writes, read, written = row.tolist()
            bits = read | written
            first = int(line["vaddr"]) + _first_bit(bits)
            address = Address(first, cache, int(line["start"]), is_stack)
            named = self._names.at(address, self._raw.memory)
            if cache and named.type is None and guess is not None:
                named = self._names.as_struct(named, cache, guess)
            done = CpuAccesses(reads, writes, writes if special == self._locked else 0)
            widths = bits.bit_count(), widest[_first_bit(bits)]
            place, is_named = self._names.place(named, widths)
            cpu = self._order[cpu]
            of = named.name, first - named.offset_bytes
            at = (number, cpu, named.place, of)
            found.append(_Access(*at, place, is_named, function, done, read, written))
        return found

    def _guess(self, cache: SlabCache, line: np.void, rows: Sequence[np.void]) -> int | None:
        before = int(line["vaddr"]) - int(line["start"])
        bits = {int(row[name]) for row in rows for name in ("bytes_read", "bytes_written")}
        accesses = {
            ((before + _first_bit(one)) % cache.object_bytes, one.bit_count())
            for one in bits
            if one
        }
        return self._names.guessed(cache, accesses)

    def _contended(
        self, unit: Sequence[_Access], iterations: int
    ) -> tuple[tuple[str, bool, bool], ContendedLine]:
        """A line, and by what others are like it."""
        contested = {
            line: contested_bytes((one.cpu, one.bytes_read, one.bytes_written) for one in same)
            for line, same in by_key((one.line, one) for one in unit).items()
        }
        is_true = any(contested.values())
        shared = [one for one in unit if one.bytes & contested[one.line]]
        by_place = by_key((one.place, one) for one in (shared or unit))
        steady = {
            place: same for place, same in by_place.items() if self._is_steady(same, iterations)
        }
        contended = steady if is_true and steady else self._written(by_place, iterations)
        fields = [_field(same) for same in contended.values()]
        fields.sort(key=lambda one: (-one.writes, -one.accesses, one.place))
        fields += self._neighbors(unit, contended, iterations)
        used = by_key(((one.place, one.function), one) for one in unit)
        uses = [FieldUse(*key, self._by_cpu(done)) for key, done in used.items()]
        uses.sort(key=lambda use: (-sum(one.total for one in use.cpus), use.function, use.place))
        where = next(one.where for one in unit if one.place == fields[0].place)
        is_steady = self._is_steady(unit, iterations)
        is_placed = not is_true and self._is_placed(unit, iterations)
        line = ContendedLine(
            where, tuple(fields), is_true, is_steady, 1, tuple(uses), is_placed=is_placed
        )
        return (line.name, is_true or where == "stack", is_steady), line

    def _written(
        self, places: Mapping[str, Sequence[_Access]], iterations: int
    ) -> Mapping[str, Sequence[_Access]]:
        """Those that a CPU writes in half of the iterations, or else all that are written."""
        written = {
            place: max(one.writes for one in self._by_cpu(same)) for place, same in places.items()
        }
        least = 1 if 2 * max(written.values()) < iterations else Fraction(iterations, 2)
        return {place: same for place, same in places.items() if written[place] >= least}

    def _neighbors(
        self, unit: Sequence[_Access], contended: Container[str], iterations: int
    ) -> list[ContestedField]:
        """What else is accessed in a line in each iteration, the most accessed first. A stack has
        no fields.
        """
        others = by_key((one.place, one) for one in unit if one.place not in contended)
        found = []
        for same in others.values():
            if same[0].where != "stack" and self._meet(same, unit, iterations):
                owner = [one for one in unit if one.of == same[0].of]
                field = _field(same)
                is_placed = bool(field.skew_bytes) or not self._meet(same, owner, iterations)
                found.append(msgspec.structs.replace(field, is_neighbor=True, is_placed=is_placed))
        return sorted(found, key=lambda one: (-one.accesses, one.place))

    def _is_placed(self, unit: Sequence[_Access], iterations: int) -> bool:
        """See ContendedLine. Where an object is in memory, the linker does not decide."""
        variables = by_key((one.of, one) for one in unit)
        return all(one.where in _LINKED for one in unit) and not any(
            self._is_steady(same, iterations) for same in variables.values()
        )

    def _is_steady(self, unit: Sequence[_Access], iterations: int) -> bool:
        return self._meet(unit, unit, iterations)

    def _meet(self, some: Iterable[_Access], others: Iterable[_Access], iterations: int) -> bool:
        """Whether in half of the iterations a CPU does some of the accesses and another one does
        others, and one of the two writes.
        """
        done, theirs = self._by_cpu(some), self._by_cpu(others)
        return any(
            (2 * one.writes >= iterations and 2 * other.total >= iterations)
            or (2 * one.total >= iterations and 2 * other.writes >= iterations)
            for at, one in enumerate(done)
            for other in (*theirs[:at], *theirs[at + 1 :])
        )

    def _by_cpu(self, accesses: Iterable[_Access]) -> tuple[CpuAccesses, ...]:
        found = [CpuAccesses()] * len(self._order)
        for one in accesses:
            found[one.cpu] += one.done
        return tuple(found)


def _field(same: Sequence[_Access]) -> ContestedField:
    done = by_key((one.function, one.done) for one in same)
    sums = {name: sum(each, CpuAccesses()) for name, each in done.items()}
    function = max(sums, key=lambda name: (sums[name].writes, sums[name].total, name))
    accesses, writes = (
        sum(getattr(one.done, name) for one in same) for name in ("total", "writes")
    )
    skew_bytes = same[0].of[1] % LINE_BYTES
    return ContestedField(
        same[0].place, same[0].is_named, function, accesses, writes, skew_bytes=skew_bytes
    )


def _joined(lines: Sequence[ContendedLine]) -> ContendedLine:
    """Lines that hold the same, as one."""
    first = lines[0]
    uses = by_key(((use.place, use.function), use.cpus) for line in lines for use in line.uses)
    by_place = by_key((one.place, one) for line in lines for one in line.fields)
    fields = [
        msgspec.structs.replace(
            same[0],
            accesses=sum(one.accesses for one in same),
            writes=sum(one.writes for one in same),
            is_neighbor=all(one.is_neighbor for one in same),
            is_placed=all(one.is_placed for one in same),
            skew_bytes=max(one.skew_bytes for one in same),
        )
        for same in by_place.values()
    ]
    return ContendedLine(
        first.where,
        tuple(sorted(fields, key=lambda one: one.is_neighbor)),
        any(line.is_true for line in lines),
        first.is_steady,
        sum(line.count for line in lines),
        tuple(FieldUse(*key, sum_by_cpu(rows)) for key, rows in uses.items()),
        is_placed=all(line.is_placed for line in lines),
    )


def contested_bytes(accesses: Iterable[tuple[int, int, int]]) -> int:
    """Return which bytes of a line one CPU writes and another one accesses, as bits, of accesses
    (CPU, bytes read, bytes written).
    """
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    for cpu, bytes_read, bytes_written in accesses:
        read[cpu] = read.get(cpu, 0) | bytes_read
        written[cpu] = written.get(cpu, 0) | bytes_written
    found = 0
    for one, bits in written.items():
        for other in (cpu for cpu in read if cpu != one):
            found |= bits & (read[other] | written[other])
    return found


def _widest(rows: Iterable[np.void]) -> dict[int, int]:
    """Of the accesses that begin at a byte of a line, how many bytes the widest has."""
    bits = [int(row["bytes_read"]) | int(row["bytes_written"]) for row in rows]
    return {_first_bit(one): one.bit_count() for one in sorted(bits, key=int.bit_count)}


def _first_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
