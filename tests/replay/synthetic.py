# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of any size that look like a system call in a loop."""

import itertools

import numpy as np
import numpy.typing as npt

from kdelta.counts.trace import Trace
from kdelta.replay.simulate import PlacedBlocks

Blocks = npt.NDArray[np.int64]


def walk(rng: np.random.Generator, n_functions: int, calls: int) -> list[Blocks]:
    """Calls of functions, each a list of block indexes; block 16 * f + k is the k-th of f."""
    made = []
    for function in rng.integers(0, n_functions, calls):
        length = int(rng.integers(3, 16))
        path = np.flatnonzero(rng.random(16) < length / 16)
        if rng.random() < 0.2 and len(path) > 2:  # a loop
            path = np.concatenate([path[:1], np.tile(path[1:3], int(rng.integers(1, 9))), path[2:]])
        made.append(16 * function + path)
    return made


def cut(sequence: Blocks) -> Blocks:
    """Starts of pieces: where the hash of the last two blocks says so, 32 to 1024 blocks apart."""
    before = np.concatenate([sequence[:1], sequence[:-1]]).astype(np.uint64)
    mixed = (sequence.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        before * np.uint64(0xBF58476D1CE4E5B9)
    )
    starts = [0]
    for end in np.flatnonzero((mixed >> np.uint64(40)) % np.uint64(64) == 0) + 1:
        while end - starts[-1] > 1024:
            starts.append(starts[-1] + 1024)
        if end - starts[-1] >= 32:
            starts.append(int(end))
    return np.unique([*starts, len(sequence)])


def loop_trace(
    *, iterations: int, calls: int, functions: int, variants: int, changed: float, seed: int = 1
) -> tuple[Trace, PlacedBlocks]:
    """`iterations` of a path of `calls` calls over `functions` functions of about 220 bytes.

    Each iteration is one of `variants` of the path at random, in which each call is replaced
    independently in the share `changed` of all calls: with changed = 0 all are alike.
    """
    rng = np.random.default_rng(seed)
    base = walk(rng, functions, calls)
    sequence = []
    paths = []
    for _ in range(variants):
        others = walk(rng, functions, calls)
        paths.append(
            [o if rng.random() < changed else b for b, o in zip(base, others, strict=True)]
        )
    for _ in range(iterations):
        sequence += paths[int(rng.integers(0, variants))]
    executed = np.concatenate(sequence)
    starts = cut(executed)
    pieces: dict[bytes, int] = {}
    order = []
    kept = []
    for a, b in itertools.pairwise(starts):
        content = executed[a:b].tobytes()
        if content not in pieces:
            pieces[content] = len(pieces)
            kept.append(executed[a:b])
        order.append(pieces[content])
    sizes = rng.integers(4, 25, 16 * functions).astype(np.uint32)
    by_function = sizes.reshape(functions, 16)
    offset = np.cumsum(by_function, axis=1) - by_function
    placed = PlacedBlocks(
        function=np.repeat(np.arange(functions, dtype=np.uint32), 16),
        offset=offset.ravel().astype(np.uint64),
    )
    trace = Trace(
        region="synthetic",
        addresses=np.arange(16 * functions, dtype=np.uint64),
        sizes=sizes,
        insns=np.maximum(1, sizes // 4).astype(np.uint32),
        physical=None,
        items=np.concatenate(kept).astype(np.uint32),
        starts=np.cumsum([0, *map(len, kept)], dtype=np.uint64),
        sequence=np.array(order, dtype=np.uint32),
        contexts=np.zeros(len(order), dtype=np.uint8),
        truncated=False,
        iterations=iterations,
    )
    return trace, placed
