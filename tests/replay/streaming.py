# SPDX-License-Identifier: GPL-2.0-or-later
"""A loop that reads one array after the other."""

import msgspec
import numpy as np

from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.cache import Cache
from kdelta.cpus.catalog import load_cpu

from .traces import Block, make_trace

LARGE, SMALL = 0xFFFF888000000000, 0xFFFFC90000000000
BASE = load_cpu("zen4")
PAGE, LARGE_PAGE = 4096, 2 << 20


def streaming(n_lines: int, times: int, *, stores: bool = False, stride: int = 64) -> Trace:
    """Passes over an array: a block, an access, and so on, twice in each iteration."""
    trace, _ = make_trace([Block(0, 0, 16)], [range(1)], [(0, 0)] * times)
    items = [item for line in range(n_lines) for item in (0, DATA | line)]
    lines = LARGE + np.arange(n_lines, dtype=np.uint64) * np.uint64(stride)
    return msgspec.structs.replace(
        trace,
        items=np.array(items, dtype=np.uint32),
        starts=np.array([0, len(items)], dtype=np.uint64),
        physical=trace.addresses,
        data_virtual=lines,
        data_physical=lines - np.uint64(LARGE),
        data_stores=np.full(n_lines, stores),
    )


CORE = msgspec.structs.replace(
    BASE,
    l1d=Cache(64, 12, 64),
    l2=Cache(2048, 16, 64),
    dtlb=Cache(16, 6, PAGE),
    dtlb_large=Cache(8, 4, LARGE_PAGE),
    dtlb_store=None,
    stlb=Cache(128, 16, PAGE),
)
