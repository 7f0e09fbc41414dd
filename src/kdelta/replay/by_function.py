# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses by function and by whose work it was, with all code where it lay when it was executed."""

from collections.abc import Callable, Mapping

import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import CPU, DATA_MISS_KINDS, Cache
from kdelta.replay.data_side import data_misses
from kdelta.replay.simulate import Kind, PlacedBlocks, PreparedTrace
from kdelta.spec.errors import LabError

Label = tuple[int, str, str]
"""Index into CONTEXTS, origin and name of a function."""

LabelOf = Callable[[U64], list[tuple[str, str]]]
"""Of addresses of blocks the origin and name of the function of each."""


def misses_by_function(
    trace: Trace, label_of: LabelOf, caches: Mapping[str, tuple[Kind, Cache]]
) -> dict[Label, dict[str, int]]:
    """Of each function in each context the misses by kind, in all that the trace has. A miss is
    that of the function which touched the line. Raises what PreparedTrace does, and LabError unless
    the misses add up to those of the whole trace.
    """
    apart = by_context(trace)
    names = label_of(trace.addresses)
    labels = list(dict.fromkeys(names))
    at = {label: index for index, label in enumerate(labels)}
    function = np.array([at[name] for name in names], np.uint32)
    n = len(CONTEXTS)
    # Block b in context c is b * n + c, and so is its function.
    spread = (function[:, None] * n + np.arange(n, dtype=np.uint32)).reshape(-1)
    placed = PlacedBlocks(spread.astype(np.uint32), apart.addresses)
    prepared = PreparedTrace(apart, placed)
    layout = np.zeros((1, len(labels) * n), np.uint64)
    found: dict[Label, dict[str, int]] = {}
    for name, (kind, cache) in caches.items():
        misses = prepared.replay(layout, cache, kind=kind)
        if misses.by_function is None or int(misses.by_function.sum()) != int(misses.total.sum()):
            raise LabError(
                f"{trace.region}: misses by function do not add up to all",
                "this is a fault of kdelta's; please report it with the kernel and the CPU",
            )
        for index in np.flatnonzero(misses.by_function[0]).tolist():
            label = (index % n, *labels[index // n])
            found.setdefault(label, {})[name] = int(misses.by_function[0][index])
    return found


def data_misses_by_function(
    trace: Trace, label_of: LabelOf, cpu: CPU
) -> dict[Label, dict[str, int]]:
    """The same of accesses to data, by the function that made them: of each kind that the CPU's
    file lets know, if there are any. What no block of the trace made is left out. Raises what
    data_misses does.
    """
    names = label_of(trace.addresses)
    labels = list(dict.fromkeys(names))
    at = {label: index for index, label in enumerate(labels)}
    rows = np.array([at[name] for name in names], np.uint32)
    counts = data_misses(trace, cpu, rows=rows, n_rows=max(1, len(labels))).counts
    found: dict[Label, dict[str, int]] = {}
    for row, context, kind in zip(*np.nonzero(counts[:-1]), strict=True):
        of = found.setdefault((int(context), *labels[row]), {})
        of[DATA_MISS_KINDS[kind]] = int(counts[row, context, kind])
    return found


def by_context(trace: Trace) -> Trace:
    """The same trace, in which each block stands once for each context, in the order of CONTEXTS,
    and a piece has those of the context that it was executed in. Data are left out.
    """
    n, n_pieces = len(CONTEXTS), len(trace.starts) - 1
    is_block = trace.items < DATA
    counts = np.concatenate([[0], np.cumsum(is_block)]).astype(np.uint64)
    starts, items = counts[trace.starts.astype(np.int64)], trace.items[is_block]
    size = np.uint64(len(items))
    return Trace(
        region=trace.region,
        addresses=np.repeat(trace.addresses, n),
        sizes=np.repeat(trace.sizes, n),
        insns=np.repeat(trace.insns, n),
        physical=None,
        items=np.concatenate([items * np.uint32(n) + np.uint32(c) for c in range(n)]),
        starts=np.concatenate(
            [starts[:-1] + size * np.uint64(c) for c in range(n)] + [[size * np.uint64(n)]]
        ).astype(np.uint64),
        sequence=trace.sequence + trace.contexts.astype(np.uint32) * np.uint32(n_pieces),
        contexts=trace.contexts,
        truncated=trace.truncated,
        iterations=trace.iterations,
    )
