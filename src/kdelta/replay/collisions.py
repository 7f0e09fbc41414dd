# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions put out whose lines, in which sets, and how many misses that costs."""

import ctypes
from typing import NamedTuple

import msgspec
import numpy as np

from kdelta.counts.arrays import U32, U64
from kdelta.counts.by_key import by_key
from kdelta.cpus.model import Cache
from kdelta.replay import native
from kdelta.replay.simulate import PreparedTrace

_ROW = np.dtype(
    [("misses", "<u8"), ("set", "<u4"), ("function", "<u4"), ("evictor", "<u4")], align=True
)
_NOTHING = 2**32 - 1


class CollidingPair(NamedTuple):
    """Misses of `function` on lines that `evictor` had put out, in all sets, and in which."""

    function: int
    evictor: int
    misses: int
    sets: tuple[int, ...]


class Collisions(msgspec.Struct, frozen=True, eq=False):
    """All misses of one layout, by what they are laid to: the function whose touch evicted that
    line the last time. In a set that is too small for all its lines it is the last straw; every
    function with lines there has its share.

    sets, functions, evictors (n,) U32 and misses (n,) U64: one row a combination, most misses
    first. by_set (sets of the cache,) U64: misses in each set. first: misses on lines that nothing
    had put out, which a warm cache has only of what fits; they are in by_set and in no row.
    """

    sets: U32
    functions: U32
    evictors: U32
    misses: U64
    by_set: U64
    first: int

    def pairs(self, most: int | None = None) -> tuple[CollidingPair, ...]:
        """The pairs of functions with the most misses, summed over sets."""
        rows = zip(self.functions, self.evictors, self.sets, self.misses, strict=True)
        found = by_key(
            ((int(function), int(evictor)), (int(where), int(misses)))
            for function, evictor, where, misses in rows
        )
        pairs = (
            CollidingPair(*pair, sum(n for _, n in held), tuple(sorted(where for where, _ in held)))
            for pair, held in found.items()
        )
        return tuple(sorted(pairs, key=lambda p: (-p.misses, p.function, p.evictor))[:most])


def collisions(
    trace: PreparedTrace,
    layout: U64,
    cache: Cache,
    *,
    warm: bool = True,
) -> Collisions:
    """What the misses of lines under one layout (n_functions,) are laid to.

    Raises what PreparedTrace.replay raises.
    """
    layouts = trace.checked(layout[np.newaxis], cache)
    job = native.NativeJob(
        caches=native.caches(cache),
        kind=native.LINES,
        flags=warm * native.WARM | native.PORTABLE,
        threads=1,
        n_layouts=1,
        n_functions=layouts.shape[1],
        layouts=native.pointer(layouts),
    )
    rows = _rows(trace, job)
    by_set = np.zeros(cache.sets, dtype=np.uint64)
    np.add.at(by_set, rows["set"], rows["misses"])
    known = rows[rows["evictor"] != _NOTHING]
    keys = (known["set"], known["evictor"], known["function"], -known["misses"].astype(np.int64))
    known = known[np.lexsort(keys)]
    columns = {name: np.ascontiguousarray(known[name]) for name in _ROW.names or ()}
    return Collisions(
        sets=columns["set"],
        functions=columns["function"],
        evictors=columns["evictor"],
        misses=columns["misses"],
        by_set=by_set,
        first=int(by_set.sum() - known["misses"].sum()),
    )


def _rows(trace: PreparedTrace, job: native.NativeJob) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    found = ctypes.POINTER(native.NativeCollision)()
    n = ctypes.c_uint64()
    library = native.library()
    native.check_status(
        library.replay_collisions(
            trace.plan, ctypes.byref(job), ctypes.byref(found), ctypes.byref(n)
        )
    )
    try:
        size = n.value * ctypes.sizeof(native.NativeCollision)
        return np.frombuffer(ctypes.string_at(found, size) if size else b"", dtype=_ROW)
    finally:
        library.replay_forget(found)
