# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays made traces in all ways by the library at argv[1], which was built with sanitizers.

A program of its own: their runtime has to be loaded before Python. Prints a line when all is well.
"""

import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import Cache, Replacement
from kdelta.replay import native
from kdelta.replay.as_executed import data_misses
from kdelta.replay.collisions import collisions
from kdelta.replay.hierarchy import PreparedHierarchy
from kdelta.replay.phases import PhasedTrace
from kdelta.replay.simulate import PlacedBlocks, PreparedTrace
from kdelta.spec.phase import PhaseRule
from tests.replay.traces import Block, Made, looping, make_trace

SMALL = Cache(16, 4, 64)
CPU = msgspec.structs.replace(
    load_cpu("zen4"),
    dtlb=Cache(4, 2, 4096),
    dtlb_large=Cache(1, 3, 2 << 20),
    dtlb_store=Cache(1, 20, 4096, "round-robin"),
    stlb=Cache(4, 4, 4096),
)


def with_data(trace: Trace) -> Trace:
    """Each third block is followed by an access to one of 300 lines."""
    lengths = np.diff(trace.starts).astype(np.int64)
    items, starts = [], [0]
    for start, length in zip(trace.starts[:-1].astype(np.int64), lengths, strict=True):
        for item in trace.items[start : start + length].tolist():
            items += [item] if item % 3 else [item, DATA | (item * 7 % 300)]
        starts.append(len(items))
    lines = np.arange(300, dtype=np.uint64) * np.uint64(64 * 5)
    return msgspec.structs.replace(
        trace,
        items=np.array(items, dtype=np.uint32),
        starts=np.array(starts, dtype=np.uint64),
        physical=trace.addresses,
        data_virtual=lines,
        data_physical=lines,
        data_stores=np.zeros(300, dtype=np.bool_),
    )


def replay_all(made: Made) -> None:
    """By all ways through the library."""
    trace, placed, layouts = made
    prepared = PreparedTrace(trace, placed)
    ways: list[dict[str, Any]] = [{"threads": 3}, {"memo": False}, {"portable": True}]
    for how in [*ways, {"warm": False}, {"by_function": False}]:
        for policy in get_args(Replacement):
            for sizes in ((16, 4, 64), (2, 13, 64), (4, 40, 16), (1, 1, 4096)):
                prepared.replay(layouts, Cache(*sizes, policy), **how)
            prepared.replay(layouts, Cache(8, 4, 1, policy), kind="branches", **how)
    pages = np.resize([4096, 2 << 20, 0], layouts.shape[1])
    prepared.replay(layouts, Cache(1, 8, 4096), line_bytes=pages)
    for policy in get_args(Replacement):
        collisions(prepared, layouts[0], Cache(16, 4, 64, policy))
    rules = [
        PhaseRule(f"p{n}", (f"f{n}", f"f{n + 7}"), ("f3",) if n % 2 else ()) for n in range(20)
    ]
    symbols = [(0x10000 * n, "t", f"f{n}", "kernel") for n in range(40)]
    PhasedTrace(with_data(trace), symbols, rules).prepared(placed).replay(layouts, SMALL)
    for warm in (True, False):
        l1d, l2 = Cache(4, 2, 64, "random"), Cache(32, 8, 64, "round-robin")
        hierarchy = PreparedHierarchy(with_data(trace), placed, l1d, warm=warm)
        hierarchy.replay(layouts, l1i=SMALL, l2=l2, threads=2)
        for portable in (True, False):
            cpu = msgspec.structs.replace(CPU, l1i=SMALL, l1d=l1d, l2=l2)
            rows = placed.function
            n_rows = int(rows.max()) + 1
            how = {"rows": rows, "n_rows": n_rows, "warm": warm, "portable": portable}
            data_misses(with_data(trace), cpu, **how)
            data_misses(msgspec.structs.replace(with_data(trace), physical=None), cpu)


def nothing() -> Made:
    """No block and no layout."""
    trace, placed = make_trace([], [], [])
    return trace, placed, np.zeros((0, 0), dtype=np.uint64)


def sprawling() -> Made:
    """Blocks as large as they may be, at the very end of all addresses."""
    trace, placed = make_trace([Block(0, 0, 1 << 16), Block(1, 8, 1)], [[0, 1], [1], []], [(0, 0)])
    return trace, placed, np.array([[2**64 - (1 << 17), 2**64 - 16]], dtype=np.uint64)


def main() -> None:
    """Everything; a sanitizer ends the program where something is wrong."""
    native.build = lambda *_: Path(sys.argv[1])  # type: ignore[attr-defined]
    for made in (looping(40, noise=7), sprawling()):
        replay_all(made)
    trace, placed, layouts = nothing()
    PreparedTrace(trace, PlacedBlocks(placed.function, placed.offset)).replay(layouts, SMALL)
    print("all is well")


if __name__ == "__main__":
    main()
