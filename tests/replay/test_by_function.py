# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses by function and context are those of the whole trace, broken down."""

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import Cache
from kdelta.replay.as_executed import (
    by_context,
    data_misses,
    data_misses_by_function,
    misses_by_function,
)
from kdelta.replay.simulate import PlacedBlocks, PreparedTrace

CACHE = Cache(sets=8, ways=2, line_bytes=64)
BLOCKS = 40


def trace(seed: int) -> Trace:
    """Blocks of a few lines at random, executed in all contexts."""
    random = np.random.default_rng(seed)
    pieces = [random.integers(0, BLOCKS, random.integers(1, 6)) for _ in range(12)]
    sequence = random.integers(0, len(pieces), 300)
    return Trace(
        region="r",
        addresses=np.uint64(0xFFFF_FFFF_8100_0000) + np.arange(BLOCKS, dtype=np.uint64) * 200,
        sizes=random.integers(1, 150, BLOCKS).astype(np.uint32),
        insns=np.full(BLOCKS, 5, np.uint32),
        physical=None,
        items=np.concatenate(pieces).astype(np.uint32),
        starts=np.concatenate([[0], np.cumsum([len(one) for one in pieces])]).astype(np.uint64),
        sequence=sequence.astype(np.uint32),
        contexts=random.integers(0, 3, 300).astype(np.uint8),
        truncated=False,
        iterations=1,
    )


def labels(addresses: np.ndarray) -> list[tuple[str, str]]:
    """Five blocks a function."""
    return [("kernel", f"f{int(one - addresses.min()) // 1000}") for one in addresses]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_broken_down_is_the_same_trace(seed: int) -> None:
    whole = trace(seed)
    apart = by_context(whole)
    assert apart.executions().sum() == whole.executions().sum()
    for context in range(len(CONTEXTS)):
        of_context = apart.executions().reshape(BLOCKS, len(CONTEXTS))[:, context]
        assert np.array_equal(of_context, whole.executions(context))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["lines", "branches"])
def test_misses_are_those_of_the_whole(seed: int, kind: str) -> None:
    whole = trace(seed)
    placed = PlacedBlocks(np.zeros(BLOCKS, np.uint32), whole.addresses)
    wanted = PreparedTrace(whole, placed).replay(np.zeros((1, 1), np.uint64), CACHE, kind=kind)  # type: ignore[arg-type]
    found = misses_by_function(whole, labels, {"l1i": (kind, CACHE)})  # type: ignore[dict-item]
    assert sum(row["l1i"] for row in found.values()) == int(wanted.total.sum())
    for context in range(len(CONTEXTS)):
        mine = sum(row["l1i"] for (of, _, _), row in found.items() if of == context)
        # Where a context ends with a branch, the miss is that of the branch here.
        assert kind == "branches" or mine == int(wanted.total[0, context])
    by_block = PlacedBlocks((np.arange(BLOCKS) // 5).astype(np.uint32), whole.addresses)
    functions = PreparedTrace(whole, by_block).replay(
        np.zeros((1, 8), np.uint64),
        CACHE,
        kind=kind,  # type: ignore[arg-type]
    )
    assert functions.by_function is not None
    for index in range(8):
        mine = sum(row["l1i"] for (_, _, name), row in found.items() if name == f"f{index}")
        assert mine == int(functions.by_function[0, index])


@pytest.mark.parametrize("seed", range(3))
def test_misses_of_data_are_of_the_functions_that_make_the_accesses(seed: int) -> None:
    """Each block makes an access to a line of its own, which nothing else does."""
    whole, cpu = trace(seed), load_cpu("zen3")
    cpu = msgspec.structs.replace(cpu, l1d=CACHE)
    lengths = np.diff(whole.starts.astype(np.int64))
    lines = np.arange(BLOCKS, dtype=np.uint64) * np.uint64(64)
    whole = msgspec.structs.replace(
        whole,
        physical=whole.addresses,
        items=np.stack([whole.items, whole.items | np.uint32(DATA)], 1).reshape(-1),
        starts=np.concatenate([[0], np.cumsum(2 * lengths)]).astype(np.uint64),
        data_virtual=lines,
        data_physical=lines,
        data_stores=np.arange(BLOCKS) % 3 == 0,
    )
    found = data_misses_by_function(whole, labels, cpu)
    rows = np.arange(BLOCKS, dtype=np.uint32)
    counts = data_misses(whole, cpu, rows=rows, n_rows=BLOCKS).counts
    assert counts[:, :, :2].sum() > 0
    for function in range(BLOCKS // 5):
        mine = counts[function * 5 : function * 5 + 5].sum(axis=0)
        for context in range(len(CONTEXTS)):
            row = found.get((context, "kernel", f"f{function}"), {})
            assert [row.get("l1d", 0), row.get("l1d-store", 0)] == mine[context, :2].tolist()
