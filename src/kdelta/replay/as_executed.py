# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run misses on a CPU with all code where it lay when it was executed: of accesses to data,
in the L1D, the L2 and the TLBs of data; and by function and whose work it was, of code as well.

Layouts of code do not move data, so what data misses is known once and for all of a trace. (The L2
holds code, too: which lines of data it still has, another layout may change; replay/hierarchy.py
counts that.) A miss belongs to the block that made the access.

docs/replay.md, "Data", says what is exact of it and what is not.
"""

import ctypes
from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U8, U32, U64
from kdelta.counts.model import CONTEXTS, Context
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import CPU, DATA_MISS_KINDS, Cache, DataMissKind
from kdelta.machines.arch import arch_machine
from kdelta.replay import native
from kdelta.replay.hierarchy import check_lines
from kdelta.replay.simulate import (
    Kind,
    PlacedBlocks,
    PreparedTrace,
    check_cache_size,
    check_trace,
    native_columns,
    native_trace,
)
from kdelta.spec.errors import LabError

SMALL_PAGE_BYTES = 4096
Label = tuple[int, str, str]
"""Index into CONTEXTS, origin and name of a function."""
LabelOf = Callable[[U64], list[tuple[str, str]]]
"""Of addresses of blocks the origin and name of the function of each."""


class DataMisses(msgspec.Struct, frozen=True, eq=False):
    """What accesses to data missed. counts (n_rows + 1, 3, 8): by row of the block that made the
    access, context as in counts.model.CONTEXTS, and kind as in DATA_MISS_KINDS; the last row is of
    accesses that no block of the trace made. kinds: those that are known; the others are 0.
    """

    counts: U64
    kinds: tuple[DataMissKind, ...]

    def total(self, context: Context = "own") -> dict[DataMissKind, int]:
        """By known kind, those of all rows."""
        sums = self.counts[:, CONTEXTS.index(context)].sum(axis=0)
        return {kind: int(sums[DATA_MISS_KINDS.index(kind)]) for kind in self.kinds}


def data_misses(
    trace: Trace,
    cpu: CPU,
    *,
    rows: U32 | None = None,
    n_rows: int = 1,
    warm: bool = True,
    portable: bool = False,
) -> DataMisses:
    """What a trace with data misses on a CPU, with its code where it was executed.

    rows (n_blocks,): to which of `n_rows` what a block misses is added; all to one, if not given.
    warm: caches are as the same pass leaves them, as for PreparedHierarchy; else they are empty.
    portable: no vectors; the result is the same.
    The L2 is left out where the trace has no physical addresses of code, and where the lines of the
    CPU's caches differ in size.

    Raises UserError for a trace without data and for a cache that cannot be replayed, LabError for
    a damaged trace, ValueError for rows that do not fit.
    """
    _check(trace, cpu)
    rows = np.zeros(len(trace.addresses), np.uint32) if rows is None else rows
    if rows.shape != trace.addresses.shape or (len(rows) and int(rows.max()) >= n_rows):
        raise ValueError(f"rows of shape {rows.shape}, up to {n_rows}, do not fit the trace")
    has_l2 = _has_l2(trace, cpu)
    caches = _caches(cpu, l2=has_l2)
    columns = _columns(trace, rows, physical=has_l2)
    shifts = _page_shifts(trace, cpu.arch)
    counts = np.zeros((n_rows + 1, len(CONTEXTS), len(DATA_MISS_KINDS)), np.uint64)
    stores = _stores(trace)
    asked = native.NativeData(
        flags=warm * native.WARM | portable * native.PORTABLE,
        n_rows=n_rows,
        caches=(native.NativeCache * len(caches))(*map(native.cache_of, caches)),
        stores=native.pointer(stores),
        page_shifts=native.pointer(shifts),
        counts=native.pointer(counts),
    )
    given = native_trace(columns)
    native.check_status(native.library().replay_data(ctypes.byref(given), ctypes.byref(asked)))
    return DataMisses(counts, known_kinds(cpu, trace))


def known_kinds(cpu: CPU, trace: Trace | None = None) -> tuple[DataMissKind, ...]:
    """The kinds of misses that a CPU's file lets know, and a trace, if one is given."""
    there = {
        "l1d": True,
        "l2": _has_l2(trace, cpu),
        "dtlb": cpu.dtlb is not None,
        "stlb": cpu.stlb is not None,
    }
    return tuple(kind for kind in DATA_MISS_KINDS if there[kind.partition("-")[0]])


def page_bytes(virtual: U64, arch: str) -> U64:
    """Of what size the pages are that a kernel usually maps these addresses by: (n,)."""
    found = np.full(len(virtual), SMALL_PAGE_BYTES, np.uint64)
    for mapped in arch_machine(arch).mapped:
        inside = (virtual >= np.uint64(mapped.start)) & (virtual < np.uint64(mapped.end))
        found[inside] = mapped.page_bytes
    return found


def _check(trace: Trace, cpu: CPU) -> None:
    # Where code lies physically is not needed for first levels; the check wants it.
    check_trace(trace if trace.physical is not None else _with_physical(trace), data=True)
    for cache in _caches(cpu, l2=True):
        if cache is not None:
            check_cache_size(cache)
    check_lines(cpu.l1d, trace.data_line_bytes)


def _with_physical(trace: Trace) -> Trace:
    return msgspec.structs.replace(trace, physical=trace.addresses)


def _has_l2(trace: Trace | None, cpu: CPU) -> bool:
    sizes = {cache.line_bytes for cache in (cpu.l1i, cpu.l1d, cpu.l2)}
    return len(sizes) == 1 and (trace is None or trace.physical is not None)


def _caches(cpu: CPU, *, l2: bool) -> tuple[Cache | None, ...]:
    """In the order of the library's enum."""
    second = cpu.stlb if cpu.dtlb is not None else None
    lines = (cpu.l1i, cpu.l1d, cpu.l2 if l2 else None)
    return (*lines, cpu.dtlb, cpu.dtlb_large, cpu.dtlb_store, second)


def _columns(trace: Trace, rows: U32, *, physical: bool) -> dict[str, npt.NDArray[np.generic]]:
    return native_columns(trace if physical else _with_physical(trace), data=True) | {
        "sizes": np.ascontiguousarray(trace.sizes, np.uint32),
        "functions": np.ascontiguousarray(rows, np.uint32),
        "offsets": np.ascontiguousarray(trace.addresses, np.uint64),
    }


def _page_shifts(trace: Trace, arch: str) -> U8:
    assert trace.data_virtual is not None
    return np.log2(page_bytes(trace.data_virtual, arch)).astype(np.uint8)


def _stores(trace: Trace) -> U8:
    assert trace.data_virtual is not None
    if trace.data_stores is None:
        return np.zeros(len(trace.data_virtual), np.uint8)
    return np.ascontiguousarray(trace.data_stores, np.uint8)


def misses_by_function(
    trace: Trace, label_of: LabelOf, caches: Mapping[str, tuple[Kind, Cache]]
) -> dict[Label, dict[str, int]]:
    """Of each function in each context the misses by kind, in all that the trace has. A miss is
    that of the function which touched the line. Raises what PreparedTrace does, and LabError unless
    the misses add up to those of the whole trace.
    """
    apart = by_context(trace)
    labels, function = _functions(trace, label_of)
    n = len(CONTEXTS)
    # Block b in context c is b * n + c, and so is its function.
    spread = (function[:, None] * n + np.arange(n, dtype=np.uint32)).reshape(-1)
    prepared = PreparedTrace(apart, PlacedBlocks(spread.astype(np.uint32), apart.addresses))
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
    labels, rows = _functions(trace, label_of)
    counts = data_misses(trace, cpu, rows=rows, n_rows=max(1, len(labels))).counts
    found: dict[Label, dict[str, int]] = {}
    for row, context, kind in zip(*np.nonzero(counts[:-1]), strict=True):
        of = found.setdefault((int(context), *labels[row]), {})
        of[DATA_MISS_KINDS[kind]] = int(counts[row, context, kind])
    return found


def _functions(trace: Trace, label_of: LabelOf) -> tuple[list[tuple[str, str]], U32]:
    """All functions, and of each block an index of them."""
    names = label_of(trace.addresses)
    at = {label: index for index, label in enumerate(dict.fromkeys(names))}
    return list(at), np.array([at[name] for name in names], np.uint32)


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
