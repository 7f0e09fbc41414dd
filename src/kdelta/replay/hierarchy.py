# SPDX-License-Identifier: GPL-2.0-or-later
"""Code and data through first-level caches of their own into a second-level cache.

First-level caches are indexed by virtual and tagged by physical addresses, the second one knows
physical addresses alone, evicts what was least recently missed in the first level, and keeps what
that evicts. A store is as a load, and a line that goes back to memory costs nothing. A function
that moves takes its physical address along: what a kernel's linear mapping of its text does.
"""

import msgspec
import numpy as np

from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import U64, Trace
from kdelta.cpus.model import Cache
from kdelta.replay import native
from kdelta.replay.simulate import Misses, Placed, PreparedTrace
from kdelta.spec.errors import UserError

_DATA_LINE_BYTES = 64  # in which the trace has accesses to data


class HierarchyMisses(msgspec.Struct, frozen=True, eq=False):
    """What a replay found. l1i: misses of code; l2_code: those of them that the second level missed
    too. l1d, l2_data (n_layouts, 3): the same of data, by context.
    """

    l1i: Misses
    l2_code: Misses
    l1d: U64
    l2_data: U64

    def l2_total(self) -> U64:
        """Misses of the second level: (n_layouts, 3), by context."""
        found: U64 = self.l2_code.total + self.l2_data
        return found


def replay_hierarchy(
    trace: Trace | PreparedTrace,
    placed: Placed | None,
    layouts: U64,
    *,
    l1i: Cache,
    l1d: Cache,
    l2: Cache,
    by_function: bool = True,
    threads: int | None = None,
    warm: bool = True,
    memo: bool = True,
) -> HierarchyMisses:
    """The misses of a trace with data under each layout (n_layouts, n_functions).

    A PreparedTrace (with data) needs no `placed`. Raises UserError for a trace without data and for
    caches whose lines differ in size or are shorter than 64 bytes, in which data is traced; else
    what PreparedTrace.replay raises.
    """
    if isinstance(trace, Trace):
        if placed is None:
            raise ValueError("a trace needs to be placed")
        trace = PreparedTrace(trace, placed, data=True)
    if not trace.data:
        raise ValueError("the trace was prepared without data")
    layouts = trace.checked(layouts, l1i, l1d, l2)
    sizes = {l1i.line_bytes, l1d.line_bytes, l2.line_bytes}
    if len(sizes) > 1 or min(sizes) < _DATA_LINE_BYTES:
        raise UserError(
            f"caches with lines of {', '.join(map(str, sorted(sizes)))} bytes cannot be replayed"
            " with data",
            f"all have to be of one size, of {_DATA_LINE_BYTES} bytes at least",
        )
    n_layouts, n_functions = layouts.shape
    total = np.zeros((n_layouts, 4, len(CONTEXTS)), dtype=np.uint64)
    rows = np.zeros((n_layouts, 2, n_functions), dtype=np.uint64) if by_function else None
    job = native.NativeJob(
        kind=native.HIERARCHY,
        flags=warm * native.WARM | memo * native.MEMO,
        caches=native.caches(l1i, l1d, l2),
    )
    trace.run(job, layouts, total, rows, threads)
    # In the order of the library's enum: L1I_MISSES, L2_CODE, L1D_MISSES, L2_DATA.
    return HierarchyMisses(
        l1i=Misses(total[:, 0], None if rows is None else rows[:, 0]),
        l2_code=Misses(total[:, 1], None if rows is None else rows[:, 1]),
        l1d=total[:, 2],
        l2_data=total[:, 3],
    )
