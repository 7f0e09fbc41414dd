# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file, parsed: blocks, groups and rows, and the function of each block."""

import functools
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import I64, U64
from kdelta.counts.binaries import Binary, attribute, load_binary
from kdelta.counts.model import UNKNOWN, VDSO
from kdelta.counts.profile import TALLY
from kdelta.counts.symbols import NO_SYMBOL, SymbolTable, kallsyms_table
from kdelta.machines.chunks import read_chunks
from kdelta.spec.errors import LabError

FORMAT = 1
_ADDRESS_BYTES = 8  # of the vDSO in the agent, before its bytes in the message
_BLOCK = struct.Struct("<IIQII")
_REGION = struct.Struct("<QQ")
ROW = np.dtype([("block", "<u4"), ("place", "<u4"), *((name, "<u8") for name in TALLY)])
_GROUPS, _CONTEXT_AT, _CONTEXTS = 0xFFFF, 16, 0xFF  # what a row's place consists of, and a kind
_KIND_AT, _KIND_BITS, _KINDS = 24, 8, 0xFF
GROUP = np.dtype(
    [("insns", "<u2"), ("inner_loads", "<u2"), ("inner_stores", "<u2"), ("special", "u1"),
     ("string", "u1"), ("element_bytes", "u1"), ("loads", "u1"), ("stores", "u1"), ("unused", "u1")]
)  # fmt: skip


class Sources(msgspec.Struct, frozen=True):
    """What a run's addresses are explained by.

    symbols: the guest's /proc/kallsyms; modules: the lines that modules added to it since.
    binaries: name -> content of the user programs that could have run; symbol_files: name -> files
    with more symbols of these. vdso: the agent's message.
    """

    symbols: Path
    modules: bytes = b""
    binaries: Mapping[str, bytes] = {}
    vdso: bytes = b""
    symbol_files: Mapping[str, bytes] = {}


class RawRegion(msgspec.Struct):
    """One time that a region ran. iterations (n, 4): own user, own kernel, interrupts, other; whole
    (4,) the same of all of it; rows: of ROW; cpus (n, 5): the same as whole by CPU, where there are
    several, first that which began the region.
    """

    name: str
    iterations_lost: int
    iterations: U64
    whole: U64
    rows: npt.NDArray[np.void]
    cpus: U64 = msgspec.field(default_factory=lambda: np.zeros((0, 5), np.uint64))


class RawCounts:
    """The file's chunks. `vaddr`, `code` and `first_group` are by a block's number; `user` holds
    those of user code; `calls` has, of each region of which calls were followed, its payload.
    `groups`: after a group one without instructions for each kind that its last one was.
    """

    def __init__(self, path: Path) -> None:
        """LabError for a file of another format."""
        self.specials: list[str] = []
        self.warnings: list[str] = []
        self.regions: list[RawRegion] = []
        self.calls: list[tuple[RawRegion, memoryview]] = []
        self.vaddr: dict[int, int] = {}
        self.code: dict[int, bytes] = {}
        self.user: set[int] = set()
        self.first_group: dict[int, int] = {}
        self._groups: list[bytes] = []
        self._n_groups = 0
        for tag, payload in read_chunks(path):
            if tag == b"HEAD":
                self._head(bytes(payload))
            elif tag == b"WARN":
                self.warnings.append(bytes(payload).decode("utf-8", "replace"))
            elif tag == b"BLKS":
                self._blocks(payload)
            elif tag == b"REGN":
                self.regions.append(read_region(payload))
            elif tag == b"CPUS":
                self.regions[-1].cpus = np.frombuffer(payload, "<u8").reshape(-1, 5)
            elif tag == b"CALL":
                self.calls.append((self.regions[-1], payload))
            elif tag == b"KIND":
                self.specials.append(bytes(payload).decode())
        self._number_groups(np.frombuffer(b"".join(self._groups), dtype=GROUP))

    def _head(self, payload: bytes) -> None:
        version = int.from_bytes(payload[:4], "little")
        if version != FORMAT:
            raise LabError(
                f"the counts have format {version}, and this kdelta knows {FORMAT}", "run again"
            )
        self.specials = payload[4:].decode().split("\0")[:-1]

    def _blocks(self, payload: memoryview) -> None:
        at = 0
        while at < len(payload):
            block, n_bytes, vaddr, user, n_groups = _BLOCK.unpack_from(payload, at)
            at += _BLOCK.size
            size = n_groups * GROUP.itemsize
            self.vaddr[block] = vaddr
            self.first_group[block] = self._n_groups
            self._groups.append(bytes(payload[at : at + size]))
            self._n_groups += n_groups
            at += size
            self.code[block] = bytes(payload[at : at + n_bytes])
            if user:
                self.user.add(block)
            at += n_bytes

    def _number_groups(self, groups: npt.NDArray[np.void]) -> None:
        self._first = self.first_groups()
        rows = [region.rows for region in self.regions]
        numbers = [np.arange(len(groups)) << _KIND_BITS]
        numbers += [self._number(one["block"], one["place"]) for one in rows]
        self._numbers: I64 = np.unique(np.concatenate(numbers))
        kind = self._numbers & _KINDS
        self.groups = groups[self._numbers >> _KIND_BITS]
        self.groups[kind > 0] = np.zeros((), GROUP)
        self.groups["special"][kind > 0] = kind[kind > 0]
        first = np.searchsorted(self._numbers, self._first << _KIND_BITS)
        self.first_group = {block: int(first[block]) for block in self.first_group}

    def _number(self, block: npt.NDArray[np.integer], place: npt.NDArray[np.integer]) -> I64:
        """A number of each group and kind, in the order of `groups`."""
        group: I64 = self._first[block] + (place & _GROUPS)
        return group << _KIND_BITS | place.astype(np.int64) >> _KIND_AT

    def group_of(self, block: npt.NDArray[np.integer], place: npt.NDArray[np.integer]) -> I64:
        """Return indexes into `groups`; LabError for a kind that no row of a region has."""
        number = self._number(block, place)
        found = np.searchsorted(self._numbers, number)
        if not np.isin(number, self._numbers).all():
            raise LabError("the counts name kinds of instructions that no region has", "run again")
        return found

    def first_groups(self) -> I64:
        """By a block's number, the index into `groups` of its first one."""
        found = np.zeros(max(self.vaddr, default=0) + 1, dtype=np.int64)
        for block, first in self.first_group.items():
            found[block] = first
        return found

    def group_ends(self, blocks: Sequence[int], insns: Sequence[int]) -> I64:
        """Return by block the index after its last group: of so many instructions, which are less
        than were defined if the emulator left the last one out.
        """
        before = np.concatenate([[0], np.cumsum(self.groups["insns"], dtype=np.int64)])
        first = np.array([self.first_group[block] for block in blocks], np.int64)
        return np.searchsorted(before, before[first] + np.array(insns, np.int64), side="right") - 1


class ChunkColumns:
    """Arrays that follow each other in a chunk."""

    def __init__(self, payload: memoryview, at: int) -> None:
        self._payload = payload
        self._at = at

    def name(self, length: int) -> str:
        """What stands before the first array."""
        return bytes(self._payload[self._at - length : self._at]).decode("utf-8", "replace")

    def next(self, kind: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """The next array; ValueError when the chunk ends before it does."""
        found = np.frombuffer(self._payload, kind, count, self._at)
        self._at += found.nbytes
        return found

    @property
    def at(self) -> int:
        """Return where the next array begins in the chunk."""
        return self._at

    def require_end(self) -> None:
        """ValueError when more follows."""
        if self._at != len(self._payload):
            raise ValueError(f"it has {len(self._payload) - self._at} bytes more than it says")


def contexts_of(rows: npt.NDArray[np.void]) -> I64:
    """Return indexes into CONTEXTS, of rows of ROW."""
    return (rows["place"] >> _CONTEXT_AT & _CONTEXTS).astype(np.int64)


def read_region(payload: memoryview) -> RawRegion:
    """A region's chunk."""
    length = int.from_bytes(payload[:4], "little")
    name = bytes(payload[4 : 4 + length]).decode("utf-8", "replace")
    at = 4 + length
    lost, count = _REGION.unpack_from(payload, at)
    at += _REGION.size
    iterations = np.frombuffer(payload, "<u8", count * 4, at).reshape(count, 4)
    at += iterations.nbytes
    whole = np.frombuffer(payload, "<u8", 4, at)
    return RawRegion(name, lost, iterations, whole, np.frombuffer(payload, ROW, offset=at + 32))


Place = tuple[str, str, int]
"""Of a function: its origin, its name, and where it starts (in a user's program, in its file)."""

NOWHERE: Place = (UNKNOWN, UNKNOWN, 0)


class CodeMap:
    """The function of every block. Arrays are by a block's number: `of_block` are indexes into
    `places`, of which the first is the code that nothing is known of; `offset` is what to take from
    a virtual address for the one in the binary's file. `owners`: the binary of each block of user
    code that is in one.
    """

    def __init__(self, raw: RawCounts, sources: Sources) -> None:
        self.places: list[Place] = [NOWHERE]
        self._index: dict[Place, int] = {NOWHERE: 0}
        n = max(raw.vaddr, default=0) + 1
        self.of_block: I64 = np.zeros(n, dtype=np.int64)
        self.offset: U64 = np.zeros(n, dtype=np.uint64)
        in_kernel = [block for block in raw.vaddr if block not in raw.user]
        kernel = kallsyms_table(sources.symbols, sources.modules)
        self._name(in_kernel, [raw.vaddr[block] for block in in_kernel], kernel)
        binaries = _binaries(sources)
        owners = _owners(binaries, raw)
        self.owners = {block: owner for block, (owner, _) in owners.items()}
        for binary in binaries:
            held = {block: base for block, (owner, base) in owners.items() if owner is binary}
            addresses = [raw.vaddr[block] - base for block, base in held.items()]
            self._name(list(held), addresses, _table(binary), binary.name)
            bases = np.array(list(held.values()), dtype=np.int64)
            self.offset[list(held)] = bases.astype(np.uint64)

    def _name(
        self,
        blocks: Sequence[int],
        addresses: Sequence[int],
        table: SymbolTable,
        origin: str = "kernel",
    ) -> None:
        found = table.indexes(np.array(addresses, dtype=np.uint64))
        for block, index in zip(blocks, found, strict=True):
            place: Place = (origin, NO_SYMBOL, 0)
            if index >= 0:
                place = (*table.labels[index], int(table.starts[index]))
            if place[1] == NO_SYMBOL:
                place = (*place[:2], 0)
            self.of_block[block] = self._index.setdefault(place, len(self.places))
            if self.of_block[block] == len(self.places):
                self.places.append(place)


@functools.lru_cache(maxsize=64)  # as many as `load_binary` keeps
def _table(binary: Binary) -> SymbolTable:
    return SymbolTable((a, kind, name, binary.name) for a, kind, name in binary.symbols)


def _owners(binaries: Sequence[Binary], raw: RawCounts) -> dict[int, tuple[Binary, int]]:
    """The binary of each block of user code, and where it was loaded. Those that did nothing in a
    region are known only if calls were followed; they decide nothing about the others.
    """
    user = {block: (raw.vaddr[block], raw.code[block]) for block in sorted(raw.user)}
    rows = [np.unique(region.rows["block"]) for region in raw.regions]
    counted = set(np.unique(np.concatenate(rows)).tolist()) if rows else set()
    owners = attribute(binaries, {block: user[block] for block in user if block in counted})
    loads = {(binary.name, base): (binary, base) for binary, base in owners.values()}
    rest = {block: user[block] for block in user if block not in counted}
    for block, place in rest.items():
        for binary, base in map(loads.__getitem__, sorted(loads)):
            if binary.holds(base, *place):
                owners[block] = binary, base
                break
    left = {block: place for block, place in rest.items() if block not in owners}
    return {**owners, **attribute(binaries, left)}


def _binaries(sources: Sources) -> list[Binary]:
    files = {**sources.binaries, VDSO: sources.vdso[_ADDRESS_BYTES:]}
    loaded = [
        load_binary(name, content, sources.symbol_files.get(name, b""))
        for name, content in files.items()
    ]
    return [binary for binary in loaded if binary]
