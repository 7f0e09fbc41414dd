# SPDX-License-Identifier: GPL-2.0-or-later
"""The C library of the replay, by ctypes: its structs and functions as native/replay has them."""

import ctypes
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kdelta.cpus.model import Cache, Replacement
from kdelta.host.native import build_part
from kdelta.spec.errors import LabError

LINES, BRANCHES, HIERARCHY = 0, 1, 2
WARM, MEMO, PORTABLE = 1, 2, 4
NO_MEMORY, TOO_MANY_LINES = 1, 2
NOT_HERE = 255
STATS = 4
REPLACEMENTS: tuple[Replacement, ...] = ("lru", "round-robin", "random")

_U8 = ctypes.POINTER(ctypes.c_uint8)
_U32 = ctypes.POINTER(ctypes.c_uint32)
_U64 = ctypes.POINTER(ctypes.c_uint64)


def fields(kind: Any, *names: str) -> tuple[tuple[str, Any], ...]:
    """Fields of a struct that are of one type."""
    return tuple((name, kind) for name in names)


class NativeTrace(ctypes.Structure):
    """struct replay_trace."""

    _fields_ = (
        *fields(ctypes.c_uint64, "n_blocks", "n_pieces", "n_executed", "n_data"),
        *fields(_U32, "sizes", "functions"),
        ("offsets", _U64),
        ("items", _U32),
        ("starts", _U64),
        ("sequence", _U32),
        ("contexts", _U8),
        *fields(_U64, "physical", "data_virtual", "data_physical"),
    )


class NativeCache(ctypes.Structure):
    """struct replay_cache."""

    _fields_ = fields(ctypes.c_uint32, "sets", "ways", "line_shift", "replacement")


class NativeJob(ctypes.Structure):
    """struct replay_job."""

    _fields_ = (
        *fields(ctypes.c_uint32, "kind", "flags", "threads"),
        ("caches", NativeCache * 2),
        *fields(ctypes.c_uint64, "n_layouts", "n_functions"),
        ("layouts", _U64),
        ("shifts", _U8),
        *fields(_U64, "total", "by_function", "stats"),
    )


class NativeCollision(ctypes.Structure):
    """struct replay_collision."""

    _fields_ = (("misses", ctypes.c_uint64), *fields(ctypes.c_uint32, "set", "function", "evictor"))


class NativeFiltered(ctypes.Structure):
    """struct replay_filtered."""

    _fields_ = (
        ("items", _U32),
        ("starts", _U64),
        ("sequence", _U32),
        *fields(ctypes.c_uint64, "n_items", "n_pieces"),
        ("misses", ctypes.c_uint64 * 3),
    )


class NativeData(ctypes.Structure):
    """struct replay_data."""

    _fields_ = (
        *fields(ctypes.c_uint64, "flags", "n_rows"),
        ("caches", NativeCache * 7),
        *fields(_U8, "stores", "page_shifts"),
        ("counts", _U64),
    )


class NativePhases(ctypes.Structure):
    """struct replay_phases."""

    _fields_ = (
        ("trace", ctypes.POINTER(NativeTrace)),
        ("addresses", _U64),
        ("functions", _U32),
        ("entries", _U8),
        *fields(_U64, "rules", "through"),
        ("always", ctypes.c_uint64),
    )


class NativeSplit(ctypes.Structure):
    """struct replay_split; `changes` points to structs replay_change."""

    _fields_ = (
        ("changes", ctypes.c_void_p),
        ("rules", _U8),
        *fields(ctypes.c_uint64, "n_changes", "n_calls"),
    )


_TRACE = ctypes.POINTER(NativeTrace)
_JOB = ctypes.POINTER(NativeJob)
_COLLISIONS = ctypes.POINTER(NativeCollision)
_FILTERED = ctypes.POINTER(NativeFiltered)
_SPLIT = ctypes.POINTER(NativeSplit)
_PLAN = ctypes.c_void_p
_STATUS = ctypes.c_int

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "replay_plan": (_PLAN, _TRACE),
    "replay_free": (None, _PLAN),
    "replay_run": (_STATUS, _PLAN, _JOB),
    "replay_collisions": (_STATUS, _PLAN, _JOB, ctypes.POINTER(_COLLISIONS), _U64),
    "replay_forget": (None, _COLLISIONS),
    "replay_filter": (
        _STATUS, _TRACE, ctypes.POINTER(NativeCache), ctypes.c_uint32, _FILTERED,
    ),
    "replay_filter_free": (None, _FILTERED),
    "replay_data": (_STATUS, _TRACE, ctypes.POINTER(NativeData)),
    "replay_split": (_STATUS, ctypes.POINTER(NativePhases), _SPLIT),
    "replay_split_free": (None, _SPLIT),
}  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL:
    """The library, compiled at its first use."""
    return declared(ctypes.CDLL(str(build_part("replay"))), _FUNCTIONS)


def declared(loaded: ctypes.CDLL, functions: Mapping[str, tuple[Any, ...]]) -> ctypes.CDLL:
    """The library with the types of its functions: of the result, then of the arguments."""
    for name, (result, *arguments) in functions.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def pointer(array: npt.NDArray[Any] | None) -> Any:
    """The address of a contiguous array of the type that the field wants; None is NULL."""
    if array is None:
        return None
    kinds: dict[Any, Any] = {np.dtype(np.uint8): _U8, np.dtype(np.uint32): _U32}
    return array.ctypes.data_as(kinds.get(array.dtype, _U64))


def copied(field: Any, n: int, kind: Any) -> npt.NDArray[Any]:
    """A copy of the n numbers, or structs, that a field of the library's points to."""
    size = n * np.dtype(kind).itemsize
    return np.frombuffer(ctypes.string_at(field, size) if n else b"", dtype=kind)


def caches(*given: Cache) -> Any:
    """The caches of a job."""
    return (NativeCache * 2)(*map(cache_of, given))


def cache_of(cache: Cache | None) -> NativeCache:
    """One cache; without any, one of no sets."""
    if cache is None:
        return NativeCache()
    policy = REPLACEMENTS.index(cache.replacement)
    return NativeCache(cache.sets, cache.ways, log2(cache.line_bytes), policy)


def log2(power: int) -> int:
    """Of a power of two."""
    return power.bit_length() - 1


def check_status(status: int) -> None:
    """Raises LabError for what the library reports."""
    if status == TOO_MANY_LINES:
        raise LabError(
            "the trace touches too many lines for this cache", "take fewer sets or a shorter region"
        )
    if status:
        raise LabError("memory is short for the replay", "take fewer threads or a shorter region")
