# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether two kernels execute the same code in a region, by the digests of their objects."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

import msgspec

from kdelta.counts.model import KERNEL, UNKNOWN, VDSO, RunCounts, is_kernel, merged_regions
from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import CodePiece as ObjectCode

Bodies = dict[tuple[str, str], list[int]]
"""(origin, name) -> the hashes of all functions of that name."""

Parts = dict[str, tuple[dict[str, int], dict[str, int], dict[str, int]]]
"""Object -> name -> hash of its functions, its data, and what is collected of it."""


class KernelCode(msgspec.Struct, frozen=True):
    """What is known of one kernel's code: its identity, the digest of its objects if it was built,
    what a run of it counted, the identity of the workload's own programs, and what the kernel was
    booted with.
    """

    identity: str
    digest: Digest | None
    counts: RunCounts
    workload: str
    parameters: tuple[str, ...] = ()


def codes_of(base: KernelCode, other: KernelCode) -> dict[str, CodeChange]:
    """Return how the code of each region that both have differs; different where that is not known
    (see `differing_code`).
    """
    regions = [name for name in merged_regions(base.counts) if name in merged_regions(other.counts)]
    if base.parameters == other.parameters and _is_relink(base, other):
        return dict.fromkeys(regions, CodeChange.RELINKED)
    differing = differing_code(base, other)
    return {
        name: CodeChange.DIFFERENT if differing.get(name, {name}) else CodeChange.SAME
        for name in regions
    }


def differing_code(base: KernelCode, other: KernelCode) -> dict[str, frozenset[tuple[str, str]]]:
    """Return by region that both have which functions that it executes differ, as (origin, name);
    nothing where that is not known.

    Equal are functions whose bodies are, after relocation; of several with one name, all must be.
    What has no body of its own is a label in assembler code: equal if all of that is. A kernel of
    which no digest is kept may be anything, and so may one that was booted with other parameters:
    the same code then takes other ways, and some of it is patched at boot.
    """
    if base.parameters != other.parameters:
        return {}
    executed = [executed_by_region(base.counts), executed_by_region(other.counts)]
    regions = [name for name in executed[0] if name in executed[1]]
    if _is_relink(base, other):
        return dict.fromkeys(regions, frozenset())
    if base.digest is None or other.digest is None:
        return {}
    same = _SameCode(base.digest, other.digest, same_programs=base.workload == other.workload)
    return {name: same.without(executed[0][name] | executed[1][name]) for name in regions}


def _is_relink(base: KernelCode, other: KernelCode) -> bool:
    """Return whether both kernels are of the same objects."""
    digests = base.digest, other.digest
    return base.identity == other.identity or bool(
        digests[0]
        and digests[1]
        and _parts(digests[0], _is_linked) == _parts(digests[1], _is_linked)
    )


class _SameCode:
    """What two digests say of functions."""

    def __init__(self, base: Digest, other: Digest, *, same_programs: bool) -> None:
        self._bodies = _bodies(base), _bodies(other)
        self._programs = same_programs
        self._assembler = _parts(base, _is_assembler) == _parts(other, _is_assembler)
        self._vdso = _parts(base, _is_vdso) == _parts(other, _is_vdso)

    def without(self, functions: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those of these that are not the same in both kernels."""
        return frozenset(one for one in functions if not self._one(*one))

    def _one(self, origin: str, name: str) -> bool:
        if origin == VDSO:
            return self._vdso
        if not is_kernel(origin):
            return self._programs and origin != UNKNOWN
        base, other = (bodies.get((origin, name)) for bodies in self._bodies)
        is_label = base is None and other is None
        return origin == KERNEL and self._assembler if is_label else base == other


def executed_by_region(counts: RunCounts) -> dict[str, set[tuple[str, str]]]:
    """Return by region (origin, name) of what its own work executes."""
    return {
        name: {(row.origin, row.name) for row in region.functions if row.context == "own"}
        for name, region in merged_regions(counts).items()
    }


def _bodies(digest: Digest) -> Bodies:
    found: Bodies = {}
    for thing in digest.objects.values():
        for name, code in thing.functions.items():
            found.setdefault((_origin(thing), name), []).append(code.hash)
    for hashes in found.values():
        hashes.sort()
    return found


def _origin(thing: ObjectDigest) -> str:
    """The origin that counts have: a module is named as the kernel lists it."""
    if not thing.module:
        return KERNEL
    return f"[{PurePosixPath(thing.module).name.partition('.')[0].replace('-', '_')}]"


def _parts(digest: Digest, wanted: Callable[[ObjectDigest], bool]) -> Parts:
    return {
        path: (_hashes(thing.functions), _hashes(thing.data), _hashes(thing.collected))
        for path, thing in digest.objects.items()
        if wanted(thing)
    }


def _hashes(codes: Mapping[str, ObjectCode]) -> dict[str, int]:
    return {name: code.hash for name, code in codes.items()}


def _is_linked(thing: ObjectDigest) -> bool:
    return not thing.module


def _is_assembler(thing: ObjectDigest) -> bool:
    return thing.is_assembler and not thing.module


def _is_vdso(thing: ObjectDigest) -> bool:
    return "/vdso/" in thing.path
