# SPDX-License-Identifier: GPL-2.0-or-later
"""The trace of a region: the sequence of blocks that it executed, in pieces that repeat."""

import struct
import zlib
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U8, U32, U64, Flags
from kdelta.counts.model import CONTEXTS
from kdelta.spec.errors import LabError

DATA = 1 << 31
"""Set in an item that is an access to data; its other bits are an index into data_*."""

_MAGIC = b"KDTRACE1"
_DATA_MAGIC = b"KDTRACED"  # the same, and all traces have data
_LENGTH = struct.Struct("<Q")
_LEVEL = 6


class Trace(msgspec.Struct, frozen=True, eq=False):
    """What one region executed, in order. All arrays are little-endian and read-only.

    addresses, sizes, insns (n_blocks,): virtual address, bytes and instructions of each block. A
    block that was left early (by a fault, or an access to a device) counts whole; blocks that are
    only a string operation of the kernel that repeats do not appear.
    physical (n_blocks,): physical address of each block; None without data.
    items (n_items,): all distinct pieces, one after the other: indexes of blocks, or, with the bit
    DATA, of data lines. Piece i is items[starts[i]:starts[i + 1]]; starts is (n_pieces + 1,).
    sequence, contexts (n_executed,): the pieces in the order of execution, and of each an index
    into counts.model.CONTEXTS. iterations: of the region.
    data_* (n_data,): virtual and physical addresses of lines of `data_line_bytes`; a line that is
    stored to has an entry of its own for that. None without data.
    truncated: a limit was reached, and what came after is missing.
    """

    region: str
    addresses: U64
    sizes: U32
    insns: U32
    physical: U64 | None
    items: U32
    starts: U64
    sequence: U32
    contexts: U8
    truncated: bool
    iterations: int
    data_virtual: U64 | None = None
    data_physical: U64 | None = None
    data_stores: Flags | None = None
    data_line_bytes: int = 64

    def __eq__(self, other: object) -> bool:
        """Whether the other one holds the same, element by element."""
        if not isinstance(other, Trace):
            return NotImplemented
        return all(
            _is_same(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__
        )

    __hash__ = None  # type: ignore[assignment]

    def executions(self, context: int | None = None) -> U64:
        """How often each block was executed: (n_blocks,), in one context or in all."""
        chosen = self.sequence if context is None else self.sequence[self.contexts == context]
        times = np.bincount(chosen, minlength=len(self.starts) - 1)
        by_item = np.repeat(times, np.diff(self.starts).astype(np.int64))
        is_block = self.items < DATA
        # Sums in double precision are exact up to 2^53.
        found = np.bincount(self.items[is_block], by_item[is_block], minlength=len(self.addresses))
        return found.astype(np.uint64)

    def executed_insns(self, context: int | None = None) -> int:
        """Instructions of the executed blocks, each of them whole."""
        return int((self.executions(context) * self.insns).sum())


def _is_same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


_ARRAYS: dict[str, str] = {
    "addresses": "<u8",
    "sizes": "<u4",
    "insns": "<u4",
    "items": "<u4",
    "starts": "<u8",
    "sequence": "<u4",
    "contexts": "u1",
    "physical": "<u8",
    "data_virtual": "<u8",
    "data_physical": "<u8",
    "data_stores": "?",
}
_OPTIONAL = ("physical", "data_virtual", "data_physical", "data_stores")


class _StoredTrace(msgspec.Struct):
    region: str
    truncated: bool
    iterations: int
    arrays: dict[str, bytes]
    data_line_bytes: int = 64


def read_only(array: npt.NDArray[np.generic], name: str) -> npt.NDArray[np.generic]:
    """The array in the type that field `name` of a Trace has, closed to writing."""
    made = np.ascontiguousarray(array, dtype=_ARRAYS[name])
    made.flags.writeable = False
    return made


def encode_traces(traces: Sequence[Trace]) -> bytes:
    """Traces as one blob: a word that names the format, then each compressed after its length."""
    parts = [_magic(traces)]
    for trace in traces:
        arrays = {name: getattr(trace, name) for name in _ARRAYS}
        stored = _StoredTrace(
            trace.region,
            trace.truncated,
            trace.iterations,
            {n: np.asarray(a, _ARRAYS[n]).tobytes() for n, a in arrays.items() if a is not None},
            trace.data_line_bytes,
        )
        packed = zlib.compress(msgspec.msgpack.encode(stored), _LEVEL)
        parts += [_LENGTH.pack(len(packed)), packed]
    return b"".join(parts)


def have_data(blob: bytes) -> bool:
    """Whether the traces of a blob have their data lines, without decoding it."""
    return blob.startswith(_DATA_MAGIC)


def decode_traces(blob: bytes) -> tuple[Trace, ...]:
    """The traces of a blob; LabError when it is damaged or cut off."""
    if not blob.startswith((_MAGIC, _DATA_MAGIC)):
        raise _damaged("it does not begin like one, or has another format")
    found, at = [], len(_MAGIC)
    while at < len(blob):
        if at + _LENGTH.size > len(blob):
            raise _damaged("it is cut off")
        (size,) = _LENGTH.unpack_from(blob, at)
        at += _LENGTH.size
        if at + size > len(blob):
            raise _damaged("it is cut off")
        found.append(_unpacked(blob[at : at + size]))
        at += size
    if _magic(found) != blob[: len(_MAGIC)]:
        raise _damaged("its head says otherwise about data")
    return tuple(found)


def _magic(traces: Sequence[Trace]) -> bytes:
    return _DATA_MAGIC if all(t.data_virtual is not None for t in traces) else _MAGIC


def _unpacked(packed: bytes) -> Trace:
    try:
        stored = msgspec.msgpack.decode(zlib.decompress(packed), type=_StoredTrace)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise _damaged(str(error)) from error
    arrays: dict[str, npt.NDArray[np.generic] | None] = {}
    for name, kind in _ARRAYS.items():
        held = stored.arrays.get(name)
        if held is None and name not in _OPTIONAL:
            raise _damaged(f"{name} is missing")
        if held is not None and len(held) % np.dtype(kind).itemsize:
            raise _damaged(f"{name} ends within an element")
        arrays[name] = None if held is None else read_only(np.frombuffer(held, kind), name)
    trace = Trace(
        region=stored.region,
        truncated=stored.truncated,
        iterations=stored.iterations,
        data_line_bytes=stored.data_line_bytes,
        **arrays,  # type: ignore[arg-type]  # each of the kind that _ARRAYS says
    )
    require_sound(trace)
    return trace


def require_sound(trace: Trace) -> None:
    """LabError unless every index in the trace is of something that it holds."""
    wrong = next(_faults(trace), None)
    if wrong:
        raise _damaged(f"region {trace.region}: {wrong}")


def _faults(trace: Trace) -> Iterator[str]:
    n_blocks, n_pieces = len(trace.addresses), len(trace.starts) - 1
    data = (trace.data_virtual, trace.data_physical, trace.data_stores)
    n_data = {None if column is None else len(column) for column in data}
    if {len(trace.sizes), len(trace.insns)} != {n_blocks} or (
        trace.physical is not None and len(trace.physical) != n_blocks
    ):
        yield "its columns of blocks differ in length"
    if len(n_data) != 1:
        yield "its columns of data differ in length"
        return
    starts = trace.starts.astype(np.int64)
    covered = n_pieces >= 0 and (starts[0], starts[-1]) == (0, len(trace.items))
    if not covered or (np.diff(starts) < 1).any():
        yield "its pieces do not cover its items"
    items = trace.items
    if (items[items < DATA] >= n_blocks).any():
        yield "a block is missing"
    if ((items[items >= DATA] & np.uint32(DATA - 1)) >= (n_data.pop() or 0)).any():
        yield "a datum is missing"
    if len(trace.contexts) != len(trace.sequence):
        yield "its sequence and its contexts differ in length"
    if (trace.sequence >= max(n_pieces, 0)).any():
        yield "a piece is missing"
    if (trace.contexts >= len(CONTEXTS)).any():
        yield "a context is unknown"


def _damaged(why: str) -> LabError:
    return LabError(f"a trace cannot be read: {why}", "make the run again with --rerun")
