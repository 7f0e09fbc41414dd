# SPDX-License-Identifier: GPL-2.0-or-later
"""Small caches, and traces with accesses to data."""

import msgspec
import numpy as np
from hypothesis import strategies as st

from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache

from .traces import replacements

PAGES = 0x1000
LINE = np.uint64(64)

small = st.builds(
    Cache,
    sets=st.sampled_from([1, 2, 8]),
    ways=st.integers(1, 5),
    line_bytes=st.just(64),
    replacement=replacements,
)


def with_data(trace: Trace, virtual: list[int], every: int, pages: int) -> Trace:
    """The trace with an access to one of the lines after each `every`-th block. `pages` says where
    pages of data and lines of code lie, some of them in one place.
    """
    items: list[int] = []
    starts = [0]
    for piece in range(len(trace.starts) - 1):
        for block in trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]:
            items.append(int(block))
            if virtual and len(items) % every == 0:
                items.append(DATA | (len(items) * 7 // 2 % len(virtual)))
        starts.append(len(items))
    apart = trace.addresses // np.uint64(48) % np.uint64(3 * pages + 1) * LINE
    lines = np.array(virtual, dtype=np.uint64)
    where = [line % PAGES + line // PAGES % 4 * pages * PAGES for line in virtual]
    return msgspec.structs.replace(
        trace,
        items=np.array(items, dtype=np.uint32),
        starts=np.array(starts, dtype=np.uint64),
        physical=trace.addresses + apart,
        data_virtual=lines,
        data_physical=np.array(where, dtype=np.uint64),
        data_stores=np.zeros(len(virtual), dtype=np.bool_),
    )
