# SPDX-License-Identifier: GPL-2.0-or-later
"""Code and data through first-level caches of their own into a second-level cache.

First-level caches are indexed by virtual and tagged by physical addresses, the second one knows
physical addresses alone, evicts what was least recently missed in the first level, and keeps what
that evicts. A store is as a load, and a line that goes back to memory costs nothing. A function
that moves takes its physical address along: what a kernel's linear mapping of its text does.
"""

import ctypes

import msgspec
import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import Trace
from kdelta.cpus.model import Cache
from kdelta.replay import native
from kdelta.replay.simulate import (
    Misses,
    PlacedBlocks,
    PreparedTrace,
    ReplayWork,
    check_cache_size,
    check_trace,
    native_columns,
    native_trace,
)
from kdelta.spec.errors import UserError


class HierarchyMisses(msgspec.Struct, frozen=True, eq=False):
    """What a replay found. l1i: misses of code; l2_code: those of them that the second level missed
    too. l1d (3,): misses of data by context, which no layout changes; l2_data (n_layouts, 3): those
    of them that the second level missed too.
    """

    l1i: Misses
    l2_code: Misses
    l1d: U64
    l2_data: U64


class PreparedHierarchy:
    """A trace with data, from which what hits in the data's first-level cache is gone: made once,
    replayed as often as wanted.

    warm: the data's first level is as a pass over the trace leaves it, the other caches as one more
    pass does; else all begin empty. Raises UserError for a trace without data and for lines shorter
    than those in which data was traced; else what PreparedTrace raises.
    """

    def __init__(
        self, trace: Trace, placed: PlacedBlocks, l1d: Cache, *, warm: bool = True
    ) -> None:
        check_cache_size(l1d)
        check_trace(trace, data=True)
        check_lines(l1d, trace.data_line_bytes)
        left, self._l1d_misses = _filtered(trace, l1d, warm=warm)
        self._prepared = PreparedTrace(left, placed, data=True)
        self._line_bytes = l1d.line_bytes
        self._warm = warm

    def work(self) -> ReplayWork:
        """What all replays have cost."""
        return self._prepared.work()

    def replay(
        self,
        layouts: U64,
        *,
        l1i: Cache,
        l2: Cache,
        by_function: bool = True,
        threads: int | None = None,
        memo: bool = True,
    ) -> HierarchyMisses:
        """The misses under each of `layouts` (n_layouts, n_functions).

        Raises UserError for caches whose lines differ in size; else what PreparedTrace.replay
        raises.
        """
        layouts = self._prepared.checked(layouts, l1i, l2)
        _check_sizes(self._line_bytes, l1i.line_bytes, l2.line_bytes)
        n_layouts, n_functions = layouts.shape
        total = np.zeros((n_layouts, 3, len(CONTEXTS)), dtype=np.uint64)
        rows = np.zeros((n_layouts, 2, n_functions), dtype=np.uint64) if by_function else None
        job = native.NativeJob(
            kind=native.HIERARCHY,
            flags=self._warm * native.WARM | memo * native.MEMO,
            caches=native.caches(l1i, l2),
        )
        self._prepared.run(job, layouts, total, rows, threads)
        # In the order of the library's enum: L1I_MISSES, L2_CODE, L2_DATA.
        return HierarchyMisses(
            l1i=Misses(total[:, 0], None if rows is None else rows[:, 0]),
            l2_code=Misses(total[:, 1], None if rows is None else rows[:, 1]),
            l1d=self._l1d_misses,
            l2_data=total[:, 2],
        )


def check_levels(l1i: Cache, l1d: Cache, l2: Cache, *, data_line_bytes: int) -> None:
    """Raises UserError unless these can be replayed together, with data that is traced in such
    lines: known before anything is run.
    """
    for cache in (l1i, l1d, l2):
        check_cache_size(cache)
    check_lines(l1d, data_line_bytes)
    _check_sizes(l1i.line_bytes, l1d.line_bytes, l2.line_bytes)


def check_lines(l1d: Cache, traced_bytes: int) -> None:
    """Raises UserError for a cache of data whose lines are shorter than those that are traced."""
    if l1d.line_bytes < traced_bytes:
        raise UserError(
            f"a cache of data with lines of {l1d.line_bytes} bytes cannot be replayed",
            f"data is traced in lines of {traced_bytes} bytes",
        )


def _check_sizes(*line_bytes: int) -> None:
    sizes = sorted(set(line_bytes))
    if len(sizes) > 1:
        raise UserError(
            f"caches with lines of {' and '.join(map(str, sizes))} bytes cannot be replayed"
            " together",
            "the lines of both levels have to be of one size",
        )


def _filtered(trace: Trace, l1d: Cache, *, warm: bool) -> tuple[Trace, U64]:
    """The trace without accesses to data that hit, and how many missed by context."""
    columns = native_columns(trace, data=True)
    cache = native.caches(l1d)[0]
    found = native.NativeFiltered()
    library = native.library()
    given = native_trace(columns)
    native.check_status(
        library.replay_filter(
            ctypes.byref(given), ctypes.byref(cache), warm * native.WARM, ctypes.byref(found)
        )
    )
    try:
        left = msgspec.structs.replace(
            trace,
            items=native.copied(found.items, found.n_items, np.uint32),
            starts=native.copied(found.starts, found.n_pieces + 1, np.uint64),
            sequence=native.copied(found.sequence, len(trace.sequence), np.uint32),
        )
        return left, np.array(found.misses, dtype=np.uint64)
    finally:
        library.replay_filter_free(ctypes.byref(found))
