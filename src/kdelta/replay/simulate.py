# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace replayed under many layouts: the exact misses of each, by context and by function.

The cache is set-associative and evicts what was least recently used. Misses are those of a pass
that finds the cache as the same pass leaves it (warm), or empty. Lines are those of virtual
addresses; a block that was left early is taken whole.
"""

import ctypes
import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U8, U32, U64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache
from kdelta.host.machine import cores
from kdelta.replay import native
from kdelta.spec.errors import LabError, UserError

Kind = Literal["lines", "pages", "branches"]
"""What an entry of the cache is: a line of code, a page of code, or a taken branch."""

_KINDS: dict[Kind, int] = {
    "lines": native.LINES,
    "pages": native.LINES,
    "branches": native.BRANCHES,
}
MOST_SETS = 1 << 20
MOST_WAYS = 1 << 12
_MOST_BLOCK_BYTES = 1 << 16
_LAST_ADDRESS = 2**64 - 1
_MOST_PIECES = 1 << 30
_LEAST_LINE, _MOST_LINE = 1 << 8, 1 << 40  # of lines whose size is each function's own
LAYOUTS_A_CALL = 8  # a thread, at most: between calls an interrupt (Ctrl-C) gets through
_ITEMS_A_CALL = 1 << 28  # executed, a thread: about a second where nothing repeats

Number = TypeVar("Number", bound=np.generic)


class PlacedBlocks(msgspec.Struct, frozen=True):
    """Where the blocks of a trace lie, whatever the layout.

    function (n_blocks,): U32, an index of the function, or of any unit that moves as one.
    offset (n_blocks,): U32 or U64, bytes from that function's start.
    """

    function: U32
    offset: U32 | U64


class Misses(msgspec.Struct, frozen=True):
    """What a replay found.

    total: (n_layouts, 3), by context as in counts.model.CONTEXTS.
    by_function: (n_layouts, n_functions), of all contexts; None if it was not asked for. A miss
    belongs to the function that touched the line, a branch's to the one that it is in.
    """

    total: U64
    by_function: U64 | None


class ReplayWork(msgspec.Struct, frozen=True):
    """What replays have cost so far, for a bench: touches of lines (or branches) that were
    simulated, units of the trace that were passed and how many of them were simulated, and cache
    states that were kept to recognise repetitions.
    """

    touches: int
    units: int
    simulated: int
    states: int


def _as(array: npt.NDArray[Any], kind: type[Number], name: str) -> npt.NDArray[Number]:
    """The array as the library wants it; refuses what is no vector of whole numbers."""
    if array.ndim != 1 or array.dtype.kind not in "ui":
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not a vector of numbers")
    return np.ascontiguousarray(array, dtype=kind)


def _damaged(trace: Trace, what: str) -> LabError:
    return LabError(
        f"the trace of region {trace.region} is damaged: {what}", "make the run again with --rerun"
    )


def check_trace(trace: Trace, *, data: bool = False) -> None:
    """Raises LabError unless all indexes point into their tables; UserError if data is wanted and
    there is none.
    """
    _check_code(trace)
    if data:
        _check_data(trace)


def _check_code(trace: Trace) -> None:
    n_blocks, n_pieces = len(trace.addresses), len(trace.starts) - 1
    if len(trace.sizes) != n_blocks or len(trace.insns) != n_blocks:
        raise _damaged(trace, "its tables of blocks differ in length")
    if n_blocks and not 1 <= trace.sizes.min() <= trace.sizes.max() <= _MOST_BLOCK_BYTES:
        raise _damaged(trace, "a block has an impossible size")
    if n_pieces < 0 or trace.starts[0] != 0 or trace.starts[-1] != len(trace.items):
        raise _damaged(trace, "its pieces are not its items")
    if n_pieces and (trace.starts[1:] < trace.starts[:-1]).any():
        raise _damaged(trace, "a piece ends before it starts")
    if n_pieces >= _MOST_PIECES:
        raise _damaged(trace, "it has too many pieces")
    code = trace.items[trace.items < DATA]
    if len(code) and code.max() >= n_blocks:
        raise _damaged(trace, "a piece has a block that is not there")
    if len(trace.sequence) != len(trace.contexts):
        raise _damaged(trace, "its sequence and its contexts differ in length")
    if len(trace.sequence) and trace.sequence.max() >= n_pieces:
        raise _damaged(trace, "its sequence has a piece that is not there")
    if len(trace.contexts) and trace.contexts.max() >= len(CONTEXTS):
        raise _damaged(trace, "its sequence has a context that is not there")


def check_cache_size(cache: Cache) -> None:
    """Raises UserError for a cache that is too large to be replayed."""
    if cache.sets > MOST_SETS or cache.ways > MOST_WAYS:
        raise UserError(
            f"a cache of {cache.sets} sets and {cache.ways} ways cannot be replayed",
            f"it has at most {MOST_SETS} sets and {MOST_WAYS} ways",
        )


def _check_data(trace: Trace) -> None:
    """Raises UserError for a trace without data, LabError for damaged data."""
    lines = (trace.data_virtual, trace.data_physical)
    if trace.physical is None or lines[0] is None or lines[1] is None:
        raise UserError(
            f"the trace of region {trace.region} has no accesses to data",
            "make the run again with data lines traced",
        )
    if len(trace.physical) != len(trace.addresses) or len(lines[0]) != len(lines[1]):
        raise _damaged(trace, "its tables of physical addresses differ in length from the others")
    if trace.data_stores is not None and len(trace.data_stores) != len(lines[0]):
        raise _damaged(trace, "its tables of data differ in length")
    items = trace.items[trace.items >= DATA]
    if len(items) and int(items.max()) - DATA >= len(lines[0]):
        raise _damaged(trace, "a piece has a line of data that is not there")


def native_columns(trace: Trace, *, data: bool) -> dict[str, npt.NDArray[Any]]:
    """A checked trace's columns as the library wants them, without those of the placement."""
    columns: dict[str, npt.NDArray[Any]] = {
        "items": _as(trace.items, np.uint32, "trace.items"),
        "starts": _as(trace.starts, np.uint64, "trace.starts"),
        "sequence": _as(trace.sequence, np.uint32, "trace.sequence"),
        "contexts": _as(trace.contexts, np.uint8, "trace.contexts"),
    }
    if data:
        # How far it is from the virtual address; the sum of both wraps around at 2^64.
        physical = cast(U64, trace.physical) - trace.addresses
        columns["physical"] = _as(physical, np.uint64, "trace.physical")
        for name in ("data_virtual", "data_physical"):
            columns[name] = _as(getattr(trace, name), np.uint64, f"trace.{name}")
    return columns


def native_trace(columns: Mapping[str, npt.NDArray[Any]]) -> native.NativeTrace:
    """The library's struct. It points into the columns, which have to stay."""
    return native.NativeTrace(
        n_blocks=len(columns.get("sizes", ())),
        n_pieces=len(columns["starts"]) - 1,
        n_executed=len(columns["sequence"]),
        n_data=len(columns.get("data_virtual", ())),
        **{name: native.pointer(column) for name, column in columns.items()},
    )


class Extents:
    """The functions that blocks lie in: `n_functions`, the least number that a layout has, and how
    far each reaches.
    """

    def __init__(self, function: U32, offset: U64, sizes: U32) -> None:
        """ValueError for an offset past the end of all addresses."""
        if len(offset) and int(offset.max()) > _LAST_ADDRESS - _MOST_BLOCK_BYTES:
            raise ValueError("placed has an offset past the end of all addresses")
        self.n_functions = int(function.max()) + 1 if len(function) else 0
        extent = np.zeros(self.n_functions, dtype=np.uint64)
        np.maximum.at(extent, function, offset + sizes)
        # Layouts have all functions of a kernel, and a trace executes few of them.
        self._used = np.flatnonzero(extent)
        self._extent = extent[self._used]

    def checked(self, layouts: U64) -> U64:
        """The layouts as the library wants them; ValueError for what does not fit."""
        if layouts.ndim != 2 or layouts.dtype != np.uint64:
            raise ValueError(
                f"layouts are {layouts.dtype} of shape {layouts.shape}, not (n, m) U64"
            )
        if layouts.shape[1] < self.n_functions:
            raise ValueError(
                f"layouts have {layouts.shape[1]} functions, and the blocks are in"
                f" {self.n_functions}"
            )
        if (layouts[:, self._used] > np.uint64(_LAST_ADDRESS) - self._extent).any():
            raise ValueError("a layout has a function that goes past the end of all addresses")
        return np.ascontiguousarray(layouts)


class ReplayHow(TypedDict, total=False):
    """How a trace is replayed; but for `warm`, the result is the same.

    threads   how many; all cores by default
    warm      from the state that the trace leaves, by default
    memo      repetitions from the same state are not simulated again, by default
    portable  without vectors
    """

    threads: int | None
    warm: bool
    memo: bool
    portable: bool


class PreparedTrace:
    """A trace with what holds of it for all layouts: made once, replayed as often as wanted.

    data: keep the accesses to data, as a PreparedHierarchy wants it; else they are passed over.
    Raises LabError for a damaged trace, ValueError for a `placed` that does not fit it, UserError
    for one without data where that is wanted. Threads may share it.
    """

    def __init__(self, trace: Trace, placed: PlacedBlocks, *, data: bool = False) -> None:
        check_trace(trace, data=data)
        self.data = data
        self._layouts_a_call = _layouts_a_call(trace)
        self._work = np.zeros(native.STATS, dtype=np.uint64)
        function = _as(placed.function, np.uint32, "placed.function")
        offset = _as(placed.offset, np.uint64, "placed.offset")
        if not len(function) == len(offset) == len(trace.addresses):
            raise ValueError(
                f"placed has {len(function)} functions and {len(offset)} offsets"
                f" for {len(trace.addresses)} blocks"
            )
        sizes = _as(trace.sizes, np.uint32, "trace.sizes")
        self._extents = Extents(function, offset, sizes)
        self.plan = self._prepared(trace, function, offset, sizes)
        """The library's own."""
        weakref.finalize(self, native.library().replay_free, self.plan)

    def _prepared(self, trace: Trace, function: U32, offset: U64, sizes: U32) -> int:
        columns = native_columns(trace, data=self.data)
        columns |= {"sizes": sizes, "functions": function, "offsets": offset}
        plan: int | None = native.library().replay_plan(ctypes.byref(native_trace(columns)))
        if not plan:
            native.check_status(native.NO_MEMORY)
        return plan or 0

    def work(self) -> ReplayWork:
        """What all replays of this trace have cost."""
        return ReplayWork(*(int(n) for n in self._work))

    def checked(self, layouts: U64, *caches: Cache) -> U64:
        """The layouts as the library wants them. UserError and ValueError as of `replay`."""
        for cache in caches:
            check_cache_size(cache)
        return self._extents.checked(layouts)

    def replay(
        self,
        layouts: U64,
        cache: Cache,
        *,
        kind: Kind = "lines",
        by_function: bool = True,
        line_bytes: npt.NDArray[Any] | None = None,
        **how: Unpack[ReplayHow],
    ) -> Misses:
        """Return the misses under each of `layouts` (n_layouts, n_functions), U64: the addresses at
        which the functions start.

        kind "branches": an entry is the address of the last byte of a block after which execution
        did not go on at the next byte, its value is where it went; both have to be there for a hit.
        An interrupt's entry is no branch. `cache.line_bytes` is what separates the sets there.
        line_bytes (n_functions,): sizes of each function's own lines instead of the cache's; 0 for
        functions that do not go through it. A TLB that holds pages of several sizes is such one.
        Raises UserError for a cache that is too large, ValueError for what does not fit.
        """
        layouts = self.checked(layouts, cache)
        if self.data:
            raise ValueError("a trace that was prepared with data goes through a hierarchy")
        shifts = None
        if line_bytes is not None:
            if kind == "branches":
                raise ValueError("branches have no lines of several sizes")
            shifts = _shifts(line_bytes, layouts.shape[1])
        flags = how.get("memo", True) * native.MEMO | how.get("portable", False) * native.PORTABLE
        total = np.zeros((len(layouts), len(CONTEXTS)), dtype=np.uint64)
        rows = np.zeros(layouts.shape, dtype=np.uint64) if by_function else None
        job = native.NativeJob(
            kind=_KINDS[kind],
            flags=flags | how.get("warm", True) * native.WARM,
            caches=native.caches(cache),
            shifts=native.pointer(shifts),
        )
        self.run(job, layouts, total, rows, how.get("threads"))
        return Misses(total, rows)

    def run(
        self,
        job: native.NativeJob,
        layouts: U64,
        total: U64,
        by_function: U64 | None,
        threads: int | None,
    ) -> None:
        """Does a job for all layouts, as `checked` gave them; fills `total` and `by_function`,
        which have a row for each.
        """
        stats = np.zeros_like(self._work)
        job.stats = native.pointer(stats)
        run = functools.partial(native.library().replay_run, self.plan)
        run_in_parts(run, job, (layouts, total, by_function), self._layouts_a_call, threads)
        self._work += stats


def _layouts_a_call(trace: Trace) -> int:
    """How many layouts a thread replays before others are heard; at least one."""
    lengths = np.diff(trace.starts)
    executed = int(lengths[trace.sequence].sum()) if len(lengths) else 0
    return max(1, min(LAYOUTS_A_CALL, _ITEMS_A_CALL // max(1, executed)))


def _shifts(line_bytes: npt.NDArray[Any], n_functions: int) -> U8:
    """Sizes of lines as the library wants them: their logarithms."""
    sizes = _as(line_bytes, np.uint64, "line_bytes")
    if len(sizes) != n_functions:
        raise ValueError(f"line_bytes has {len(sizes)} functions, and the layouts {n_functions}")
    shifts = np.full(n_functions, native.NOT_HERE, dtype=np.uint8)
    for size in np.unique(sizes[sizes > 0]):
        if not _LEAST_LINE <= size <= _MOST_LINE or int(size) & (int(size) - 1):
            raise ValueError(
                f"line_bytes has {size}, and not a power of two from {_LEAST_LINE} to {_MOST_LINE}"
            )
        shifts[sizes == size] = native.log2(int(size))
    return shifts


def run_in_parts(
    run: Callable[[Any], int],
    job: Any,
    arrays: tuple[U64, U64, U64 | None],
    layouts_a_call: int,
    threads: int | None,
) -> None:
    """Runs a job of the library's for all layouts, so many of them at a time on each thread.

    arrays: the layouts, and what the job fills: totals, and counts by function if they are wanted,
    with a row for each layout.
    """
    layouts, total, by_function = arrays
    threads = max(1, threads or cores())
    job.n_functions = layouts.shape[1]
    for start in range(0, len(layouts), layouts_a_call * threads):
        part = slice(start, min(start + layouts_a_call * threads, len(layouts)))
        job.n_layouts = part.stop - part.start
        job.threads = min(threads, part.stop - part.start)
        job.layouts = native.pointer(layouts[part])
        job.total = native.pointer(total[part])
        job.by_function = native.pointer(None if by_function is None else by_function[part])
        native.check_status(run(ctypes.byref(job)))
