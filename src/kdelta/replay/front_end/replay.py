# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace replayed through a CPU's front end under many layouts: what it mispredicts, misses and
does not hide. docs/replay.md, "The front end", describes the model.
"""

import ctypes
import functools
import weakref

import msgspec
import numpy as np

from kdelta.counts.arrays import U8, U64, Flags
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import Trace
from kdelta.cpus.cache import is_power_of_two
from kdelta.cpus.front_end import (
    MOST_AHEAD,
    MOST_CONDITIONAL_TABLES,
    MOST_ENTRIES,
    MOST_HISTORY,
    MOST_INDIRECT_TABLES,
    MOST_RETURNS,
    MOST_TAG_BITS,
    FrontEnd,
    Predictor,
)
from kdelta.cpus.model import CPU, WAITS, Cache
from kdelta.replay import native
from kdelta.replay.simulate import (
    LAYOUTS_A_CALL,
    Extents,
    PlacedBlocks,
    check_cache,
    check_trace,
    native_columns,
    native_trace,
    run_in_parts,
)
from kdelta.spec.errors import LabError, UserError

EVENTS = (
    "conditional",
    "indirect",
    "return",
    "btb-first",
    "btb",
    "l1i",
    "l1i-exposed",
    "itlb",
    "fetch-windows",
    "op-cache",
    "fetch-waits",
)
"""Mispredicted conditional branches, indirect jumps and calls, and returns; taken branches that the
first of two BTBs did not have and the second had; those that the last one did not have; lines that
the L1I did not have, as in the plain replay; cycles of their latency that were left when they were
needed, each miss in whole cycles; pages that the TLB did not have; aligned windows that were
fetched; windows of code that the cache of decoded operations did not have; cycles that execution
would wait for windows and branches to be delivered if no line ever missed."""

MECHANISMS = (*(event for event in EVENTS if event != "l1i"), "run-ahead", "next-line")
"""What can be switched off: what is then 0, or, of the last two, what no longer hides misses."""

_TABLES = 12  # conditional ones; of a predictor's struct
_SIXTEENTHS = 16  # of a cycle: the library's unit of time
_BRANCHES_A_CALL = 1 << 25  # a thread: some seconds
_USER_ADDRESSES = 1 << 63  # below, on a machine of 64 bits


class Events(msgspec.Struct, frozen=True):
    """What a replay found, by EVENTS.

    total: (n_layouts, n_events, 3), by context as in counts.model.CONTEXTS.
    by_function: (n_layouts, n_events, n_functions), of all contexts; None if it was not asked for.
    What branches do belongs to the function that they are in, what lines, pages and windows do to
    the one that was executed.
    """

    total: U64
    by_function: U64 | None

    def of(self, event: str) -> U64:
        """One event under each layout, in all contexts: (n_layouts,)."""
        found: U64 = self.total[:, EVENTS.index(event)].sum(axis=1)
        return found


class _NativePredictor(ctypes.Structure):
    """struct frontend_predictor."""

    _fields_ = (
        *native.fields(ctypes.c_uint32, "base_entries", "entries", "tag_bits", "n_tables"),
        ("histories", ctypes.c_uint32 * _TABLES),
    )


class _CPU(ctypes.Structure):
    """struct frontend_cpu."""

    _fields_ = (
        ("l1i", native.NativeCache),
        ("itlb", native.NativeCache * 2),
        ("btb", native.NativeCache * 2),
        ("op_cache", native.NativeCache),
        ("conditional", _NativePredictor),
        ("indirect", _NativePredictor),
        *native.fields(ctypes.c_uint32, "returns", "window_shift", "next_line", "ahead"),
        *native.fields(ctypes.c_uint32, "window_time", "delivery_time", "second_btb_time"),
        *native.fields(ctypes.c_uint32, "miss_time", "insn_time"),
    )


class _Trace(ctypes.Structure):
    """struct frontend_trace."""

    _fields_ = (
        ("trace", native.NativeTrace),
        ("insns", ctypes.POINTER(ctypes.c_uint32)),
        ("jumps", ctypes.POINTER(ctypes.c_uint8)),
    )


class _Job(ctypes.Structure):
    """struct frontend_job."""

    _fields_ = (
        ("cpu", _CPU),
        *native.fields(ctypes.c_uint32, "flags", "threads"),
        *native.fields(ctypes.c_uint64, "n_layouts", "n_functions"),
        ("layouts", ctypes.POINTER(ctypes.c_uint64)),
        ("small", ctypes.POINTER(ctypes.c_uint8)),
        *native.fields(ctypes.POINTER(ctypes.c_uint64), "total", "by_function"),
    )


_FUNCTIONS = {
    "frontend_plan": (ctypes.c_void_p, ctypes.POINTER(_Trace)),
    "frontend_free": (None, ctypes.c_void_p),
    "frontend_branches": (ctypes.c_uint64, ctypes.c_void_p),
    "frontend_run": (ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Job)),
}


@functools.cache
def _library() -> ctypes.CDLL:
    return native.declared(native.library(), _FUNCTIONS)


class PreparedFrontEnd:
    """A trace with what holds of it for all layouts: made once, replayed as often as wanted.

    Raises LabError for a trace that does not say how its blocks end or is damaged, ValueError for a
    `placed` that does not fit it. Threads may share it.
    """

    def __init__(self, trace: Trace, placed: PlacedBlocks) -> None:
        if trace.jumps is None:
            raise LabError(
                f"the trace of region {trace.region} does not say how its blocks end",
                "it was made by an older kdelta; make the run again with --again",
            )
        check_trace(trace)
        n_blocks = len(trace.addresses)
        if not len(placed.function) == len(placed.offset) == len(trace.jumps) == n_blocks:
            raise ValueError(f"placed has {len(placed.function)} functions for {n_blocks} blocks")
        columns = native_columns(trace, data=False)
        columns |= {
            "sizes": np.ascontiguousarray(trace.sizes, np.uint32),
            "functions": np.ascontiguousarray(placed.function, np.uint32),
            "offsets": np.ascontiguousarray(placed.offset, np.uint64),
        }
        insns = np.ascontiguousarray(trace.insns, np.uint32)
        jumps = np.ascontiguousarray(trace.jumps, np.uint8)
        given = _Trace(native_trace(columns), native.pointer(insns), native.pointer(jumps))
        self._plan: int = _library().frontend_plan(ctypes.byref(given)) or 0
        if not self._plan:
            native.check(native.NO_MEMORY)
        weakref.finalize(self, _library().frontend_free, self._plan)
        self._extents = Extents(columns["functions"], columns["offsets"], columns["sizes"])

    @property
    def branches(self) -> int:
        """How many jumps one pass executes, taken or not, that a predictor is asked about."""
        return int(_library().frontend_branches(self._plan))

    def replay(
        self,
        layouts: U64,
        cpu: CPU,
        *,
        by_function: bool = False,
        threads: int | None = None,
        without: frozenset[str] = frozenset(),
        small_pages: Flags | None = None,
        warm: bool = True,
        portable: bool = False,
    ) -> Events:
        """What happens under each of `layouts` (n_layouts, n_functions), U64: the addresses at
        which the functions start.

        without: some of MECHANISMS, which are switched off. small_pages (n_functions,): whose code
        lies in pages of 4 KiB and goes through `cpu.itlb_small`, where there is one; None: those
        at addresses of user code, on machines of 64 bits. portable: no vectors; the result is the
        same. Raises UserError for a CPU whose front end is not described, ValueError for layouts
        that do not fit and mechanisms that do not exist.
        """
        if unknown := without - set(MECHANISMS):
            raise ValueError(f"no mechanism is called {min(unknown)!r}")
        layouts = self._extents.checked(layouts)
        n_layouts, n_functions = layouts.shape
        shape = (n_layouts, len(EVENTS))
        total = np.zeros((*shape, len(CONTEXTS)), dtype=np.uint64)
        found = np.zeros((*shape, n_functions), dtype=np.uint64) if by_function else None
        small = _small_pages(layouts, cpu, small_pages)
        flags = warm * native.WARM | portable * native.PORTABLE
        job = _Job(cpu=_described(cpu, without), flags=flags, small=native.pointer(small))
        run = functools.partial(_library().frontend_run, self._plan)
        a_call = max(1, min(LAYOUTS_A_CALL, _BRANCHES_A_CALL // max(1, self.branches)))
        run_in_parts(run, job, (layouts, total, found), a_call, threads)
        return Events(total, found)


def _small_pages(layouts: U64, cpu: CPU, given: Flags | None) -> U8:
    n_functions = layouts.shape[1]
    if given is not None and given.shape != (n_functions,):
        raise ValueError(f"small_pages has the shape {given.shape}, not ({n_functions},)")
    if cpu.itlb_small is None or not len(layouts) or (given is None and cpu.arch == "arm"):
        return np.zeros(n_functions, dtype=np.uint8)
    if given is None:
        given = layouts[0] < np.uint64(_USER_ADDRESSES)
    return given.astype(np.uint8)


def _described(cpu: CPU, without: frozenset[str]) -> _CPU:
    """The CPU as the library wants it, without what is switched off."""
    front = cpu.front_end
    if front is None:
        raise UserError(
            f"nothing is known of the front end of the CPU {cpu.name}",
            "take one whose file has a [fetch]; kdelta calibrate describes this host",
        )
    _require_limits(front)
    levels: tuple[Cache, ...] = () if "btb" in without else front.btb
    if "btb-first" in without:  # the last one says what is known at all
        levels = levels[-1:]
    coupled = front.run_ahead is None or "run-ahead" in without
    ahead = None if coupled else front.run_ahead
    hidden = "l1i-exposed" in without
    tlbs = (None, None) if "itlb" in without else (cpu.itlb, cpu.itlb_small or cpu.itlb)
    window = None if "fetch-windows" in without else front.fetch_bytes
    return _CPU(
        l1i=_cache(cpu.l1i),
        itlb=(native.NativeCache * 2)(*map(_cache, tlbs)),
        btb=(native.NativeCache * 2)(*map(_cache, levels)),
        op_cache=_cache(None if "op-cache" in without else front.op_cache),
        conditional=_predictor(None if "conditional" in without else front.conditional),
        indirect=_predictor(None if "indirect" in without else front.indirect),
        returns=0 if "return" in without else front.returns,
        window_shift=native.log2(window) if window else 0,
        next_line=front.next_line and "next-line" not in without,
        ahead=ahead.windows if ahead else 0,
        window_time=_time(ahead.window_cycles) if ahead else 0,
        delivery_time=_time(ahead.delivery_cycles) if ahead and WAITS not in without else 0,
        second_btb_time=_time(ahead.second_btb_cycles) if ahead else 0,
        miss_time=0 if hidden else _time(front.miss_cycles),
        insn_time=_time(front.cycles_per_insn),
    )


def _require_limits(front: FrontEnd) -> None:
    """ValueError for one that a CPU's file could not describe, and that the library has no room
    for.
    """
    tables = ((front.conditional, MOST_CONDITIONAL_TABLES), (front.indirect, MOST_INDIRECT_TABLES))
    for predictor, most in tables:
        lengths = predictor.histories if predictor else ()
        sizes = (predictor.base_entries, predictor.entries) if predictor else ()
        if len(lengths) > most or not all(1 <= n <= MOST_HISTORY for n in lengths):
            raise ValueError(f"a predictor has the histories {lengths}")
        if predictor and not 1 <= predictor.tag_bits <= MOST_TAG_BITS:
            raise ValueError(f"a predictor has tags of {predictor.tag_bits} bits")
        if not all(is_power_of_two(n) and n <= MOST_ENTRIES for n in sizes):
            raise ValueError(f"a predictor has tables of {sizes} entries")
    ahead = front.run_ahead.windows if front.run_ahead else 1
    if front.returns > MOST_RETURNS or not 1 <= ahead <= MOST_AHEAD or len(front.btb) > 2:
        raise ValueError("a front end has more than can be replayed")


def _time(cycles: float) -> int:
    return round(cycles * _SIXTEENTHS)


def _cache(cache: Cache | None) -> native.NativeCache:
    if cache is None:
        return native.NativeCache(0, 1, 0, 0)
    check_cache(cache)
    return native.cache_of(cache)


def _predictor(given: Predictor | None) -> _NativePredictor:
    if given is None:
        return _NativePredictor(0, 1, 1, 0)
    histories = (ctypes.c_uint32 * _TABLES)(*given.histories)
    return _NativePredictor(
        given.base_entries, given.entries, given.tag_bits, len(given.histories), histories
    )
