# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run's accesses to data miss on a CPU: in the L1D, the L2 and the TLBs of data.

Layouts of code do not move data, so this is known once and for all of a trace, with the code where
it was executed. (The L2 holds code, too: which lines of data it still has, another layout may
change; replay/hierarchy.py counts that.) A miss belongs to the block that made the access.

docs/replay.md, "Data", says what is exact of it and what is not.
"""

import ctypes

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U8, U32, U64
from kdelta.counts.model import CONTEXTS, Context
from kdelta.counts.trace import Trace
from kdelta.cpus.cache import Cache
from kdelta.cpus.model import CPU, DATA_MISS_KINDS, DataMissKind
from kdelta.machines.arch import arch_machine
from kdelta.replay import native
from kdelta.replay.simulate import check_cache, check_trace, native_columns, native_trace
from kdelta.spec.errors import UserError

SMALL_PAGE_BYTES = 4096


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


def data_events(trace: Trace, cpu: CPU, context: Context = "own") -> dict[str, int]:
    """How often what a region did itself (or what `context` says) missed, by kind: all that the
    CPU's file lets know. Raises what `data_misses` does.
    """
    return {str(kind): count for kind, count in data_misses(trace, cpu).total(context).items()}


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
    native.check(native.library().replay_data(ctypes.byref(given), ctypes.byref(asked)))
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
    if trace.data_virtual is None or trace.data_physical is None:
        raise UserError(
            f"the trace of region {trace.region} has no accesses to data",
            "make the run again with data lines traced",
        )
    # Where code lies physically is not needed for first levels; the check wants it.
    whole = trace if trace.physical is not None else _with_physical(trace)
    check_trace(whole, data=True)
    for cache in _caches(cpu, l2=True):
        if cache is not None:
            check_cache(cache)
    if cpu.l1d.line_bytes < trace.data_line_bytes:
        raise UserError(
            f"a cache of data with lines of {cpu.l1d.line_bytes} bytes cannot be replayed",
            f"data is traced in lines of {trace.data_line_bytes} bytes",
        )


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
    columns = native_columns(trace if physical else _with_physical(trace), data=True)
    return columns | {
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
