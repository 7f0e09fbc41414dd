# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace replayed under many layouts: the exact misses of each, by context and by function.

The cache is set-associative and evicts what was least recently used. Misses are those of a pass
that finds the cache as the same pass leaves it (warm), or empty. Lines are those of virtual
addresses; a block that was left early is taken whole.
"""

import ctypes
import weakref
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import DATA, U8, U32, U64, Trace
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
_MOST_PIECES = 1 << 30
_LAYOUTS_A_CALL = 8  # a thread; between calls an interrupt (Ctrl-C) gets through

Number = TypeVar("Number", bound=np.generic)


class Placed(msgspec.Struct, frozen=True):
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


class Work(msgspec.Struct, frozen=True):
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
        f"the trace of region {trace.region} is damaged: {what}", "make the run again with --again"
    )


def _check_trace(trace: Trace) -> None:
    """Raises LabError unless all indexes point into their tables."""
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


def _check_cache(cache: Cache) -> None:
    if cache.sets > MOST_SETS or cache.ways > MOST_WAYS:
        raise UserError(
            f"a cache of {cache.sets} sets and {cache.ways} ways cannot be replayed",
            f"it has at most {MOST_SETS} sets and {MOST_WAYS} ways",
        )


class PreparedTrace:
    """A trace with what holds of it for all layouts: made once, replayed as often as wanted.

    Raises LabError for a damaged trace, ValueError for a `placed` that does not fit it. Threads may
    share it.
    """

    def __init__(self, trace: Trace, placed: Placed) -> None:
        _check_trace(trace)
        self._work = np.zeros(4, dtype=np.uint64)
        function = _as(placed.function, np.uint32, "placed.function")
        offset = _as(placed.offset, np.uint64, "placed.offset")
        if not len(function) == len(offset) == len(trace.addresses):
            raise ValueError(
                f"placed has {len(function)} functions and {len(offset)} offsets"
                f" for {len(trace.addresses)} blocks"
            )
        sizes = _as(trace.sizes, np.uint32, "trace.sizes")
        if len(offset) and int(offset.max()) > 2**64 - 1 - _MOST_BLOCK_BYTES:
            raise ValueError("placed has an offset past the end of all addresses")
        self.n_functions = int(function.max()) + 1 if len(function) else 0
        """The least number of functions that a layout has."""
        self._extent = np.zeros(self.n_functions, dtype=np.uint64)
        np.maximum.at(self._extent, function, offset + sizes)
        self.plan = self._prepared(trace, function, offset, sizes)
        """The library's own."""
        weakref.finalize(self, native.library().replay_free, self.plan)

    @staticmethod
    def _prepared(trace: Trace, function: U32, offset: U64, sizes: U32) -> int:
        items = _as(trace.items, np.uint32, "trace.items")
        starts = _as(trace.starts, np.uint64, "trace.starts")
        sequence = _as(trace.sequence, np.uint32, "trace.sequence")
        contexts: U8 = _as(trace.contexts, np.uint8, "trace.contexts")
        given = native.NativeTrace(
            n_blocks=len(sizes),
            n_pieces=len(starts) - 1,
            n_executed=len(sequence),
            sizes=native.pointer(sizes),
            functions=native.pointer(function),
            offsets=native.pointer(offset),
            items=native.pointer(items),
            starts=native.pointer(starts),
            sequence=native.pointer(sequence),
            contexts=native.pointer(contexts),
        )
        plan: int | None = native.library().replay_plan(ctypes.byref(given))
        if not plan:
            native.check(native.NO_MEMORY)
        return plan or 0

    def work(self) -> Work:
        """What all replays of this trace have cost."""
        return Work(*(int(n) for n in self._work))

    def checked(self, layouts: U64, cache: Cache) -> U64:
        """The layouts as the library wants them. UserError and ValueError as of `replay`."""
        _check_cache(cache)
        if layouts.ndim != 2 or layouts.dtype != np.uint64:
            raise ValueError(
                f"layouts are {layouts.dtype} of shape {layouts.shape}, not (n, m) U64"
            )
        if layouts.shape[1] < self.n_functions:
            raise ValueError(
                f"layouts have {layouts.shape[1]} functions, and the blocks are in"
                f" {self.n_functions}"
            )
        if (layouts[:, : self.n_functions] > np.uint64(2**64 - 1) - self._extent).any():
            raise ValueError("a layout has a function that goes past the end of all addresses")
        return np.ascontiguousarray(layouts)

    def replay(
        self,
        layouts: U64,
        cache: Cache,
        *,
        kind: Kind = "lines",
        by_function: bool = True,
        threads: int | None = None,
        warm: bool = True,
        memo: bool = True,
        portable: bool = False,
    ) -> Misses:
        """The misses under each of `layouts` (n_layouts, n_functions), U64: the addresses at which
        the functions start.

        kind "branches": an entry is the address of the last byte of a block after which execution
        did not go on at the next byte, its value is where it went; both have to be there for a hit.
        An interrupt's entry is no branch. `cache.line_bytes` is what separates the sets there.
        memo: repetitions from the same state are not simulated again; portable: no vectors. The
        result is the same with and without, and for any number of threads (default: all cores).
        Raises UserError for a cache that is too large, ValueError for layouts that do not fit.
        """
        layouts = self.checked(layouts, cache)
        n_layouts, n_functions = layouts.shape
        total = np.zeros((n_layouts, len(CONTEXTS)), dtype=np.uint64)
        rows = np.zeros((n_layouts, n_functions), dtype=np.uint64) if by_function else None
        flags = warm * native.WARM | memo * native.MEMO | portable * native.PORTABLE
        threads = max(1, threads or cores())
        stats = np.zeros_like(self._work)
        for part in _parts(n_layouts, _LAYOUTS_A_CALL * threads):
            job = native.NativeJob(
                sets=cache.sets,
                ways=cache.ways,
                line_shift=cache.line_bytes.bit_length() - 1,
                kind=_KINDS[kind],
                flags=flags,
                threads=min(threads, part.stop - part.start),
                n_layouts=part.stop - part.start,
                n_functions=n_functions,
                layouts=native.pointer(layouts[part]),
                total=native.pointer(total[part]),
                by_function=None if rows is None else native.pointer(rows[part]),
                stats=native.pointer(stats),
            )
            native.check(native.library().replay_run(self.plan, ctypes.byref(job)))
        self._work += stats
        return Misses(total, rows)


def _parts(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def replay(
    trace: Trace,
    placed: Placed,
    layouts: U64,
    cache: Cache,
    *,
    kind: Kind = "lines",
    by_function: bool = True,
    threads: int | None = None,
    warm: bool = True,
) -> Misses:
    """The misses of one trace under each layout; see PreparedTrace, which saves work if the same
    trace is replayed more than once.
    """
    return PreparedTrace(trace, placed).replay(
        layouts, cache, kind=kind, by_function=by_function, threads=threads, warm=warm
    )
