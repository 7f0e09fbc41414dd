# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions in which two kernels cannot differ by what they execute: the same functions, and the same
initial contents of the data that these refer to.
"""

from collections.abc import Iterator

from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import LOCAL
from kdelta.measures.path.same_code import KernelCode, codes_of, executed_by_region

Pieces = set[tuple[str, str]]
"""Variables: (object, name as references have it)."""


def unchanged_regions(base: KernelCode, other: KernelCode) -> tuple[str, ...]:
    """Return the regions of which both kernels execute the same code, booted with the same
    parameters, and no function of which refers to data that differs, directly or by way of other
    data; none where that is not known.
    """
    codes = codes_of(base, other)
    same = [name for name, code in codes.items() if code is not CodeChange.DIFFERENT]
    if base.digest is None or other.digest is None:
        return ()
    changed = set(_changed(base.digest, other.digest))
    readers = _readers(base.digest, changed) | _readers(other.digest, changed)
    executed = [executed_by_region(one.counts) for one in (base, other)]
    return tuple(
        name
        for name in same
        if readers.isdisjoint(function for side in executed for _, function in side[name])
    )


def _changed(base: Digest, other: Digest) -> Iterator[tuple[str, str]]:
    """Yield the variables that only one kernel has, or that begin with other contents."""
    for path in base.objects.keys() | other.objects.keys():
        ours, theirs = (_data(digest.objects.get(path)) for digest in (base, other))
        names = ours.keys() | theirs.keys()
        yield from ((path, name) for name in names if ours.get(name) != theirs.get(name))


def _data(thing: ObjectDigest | None) -> dict[str, int]:
    return {name: piece.hash for name, piece in thing.data.items()} if thing else {}


def _readers(digest: Digest, changed: Pieces) -> set[str]:
    """Return the names of the functions that refer to these variables, or to others that do."""
    reached = set(changed)
    names = {name for _, name in changed if not name.startswith(LOCAL)}

    def reaches(path: str, refs: tuple[str, ...]) -> bool:
        return any((path, ref) in reached or ref in names for ref in refs)

    before = -1
    while len(reached) != before:
        before = len(reached)
        for path, thing in digest.objects.items():
            found = [name for name, piece in thing.data.items() if reaches(path, piece.refs)]
            reached.update((path, name) for name in found)
            names.update(name for name in found if not name.startswith(LOCAL))
    return {
        name
        for path, thing in digest.objects.items()
        for name, piece in thing.functions.items()
        if reaches(path, piece.refs)
    }
