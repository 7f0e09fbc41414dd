# SPDX-License-Identifier: GPL-2.0-or-later
"""What two kernels share: the regions whose code is the same in both."""

import functools
from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.infer.effects.chance import DifferingCode
from kdelta.kernels.kbuild.built import DIGEST, built_folder, load_built
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.digest import Digest
from kdelta.kernels.objects.digest_file import is_current, load_digest
from kdelta.measures.model import RunSide
from kdelta.measures.path.judges import SharedCode
from kdelta.measures.path.same_code import KernelCode, codes_of, differing_code
from kdelta.measures.path.unchanged import unchanged_regions


def kept_digest(kernel: Kernel) -> Digest | None:
    """Return the digest of a kernel that was built, if it is still there and made by today's
    rules.
    """
    if kernel.built is None:
        return None
    path = built_folder(kernel.built) / DIGEST
    return _digest_at(path) if path.is_file() and is_current(path) else None


@functools.lru_cache(maxsize=2)
def _digest_at(path: Path) -> Digest:
    """Return the digest, which takes half a second to read: a kernel has several neighbours."""
    return load_digest(path)


def was_relinked(kernel: Kernel) -> bool:
    """Return whether a kernel was made of the objects of another one, relinked."""
    built = load_built(kernel.built) if kernel.built is not None else None
    return built is not None and built.linked is not None


def relinked_regions(base: RunSide, other: RunSide, *, ask: bool = False) -> tuple[str, ...]:
    """Return the regions of which both kernels execute the same code, only relinked. It is looked
    into where one of them is a relink, or where that is asked for.
    """
    kernels = [side.kernel for side in (base, other) if side.kernel]
    known = [*_known(base), *_known(other)]
    if len(known) < 2 or not (ask or any(was_relinked(kernel) for kernel in kernels)):
        return ()
    return tuple(name for name, code in codes_of(*known).items() if code is CodeChange.RELINKED)


def shared_code(base: RunSide, other: RunSide, *, ask: bool = False) -> SharedCode:
    """Return what both kernels share; ask: see `relinked_regions`."""
    return SharedCode(
        relinked_regions(base, other, ask=ask),
        functools.partial(differing_functions, base, other),
        functools.partial(regions_without_change, base, other),
        are_alike(base.kernel, other.kernel),
    )


def are_alike(base: Kernel | None, other: Kernel | None) -> bool:
    """Return whether two kernels are of one version, as with a patch, an option or a parameter
    between them: then most of what a run depends on is the same under one perturbation.
    """
    versions = [one.version if one else "" for one in (base, other)]
    return bool(versions[0]) and versions[0] == versions[1]


def differing_functions(base: RunSide, other: RunSide) -> DifferingCode:
    """Return by region which functions that it executes differ between both kernels: none where
    they have the same image; else those that digests of their objects say this of. A region of
    which that is not known is not in it.
    """
    images = [side.kernel.image if side.kernel else side.spec for side in (base, other)]
    if images[0] == images[1]:
        return {one.name: () for runs in base.counts for one in runs.regions}
    known = [*_known(base), *_known(other)]
    return differing_code(*known) if len(known) > 1 else {}


def regions_without_change(base: RunSide, other: RunSide) -> tuple[str, ...]:
    """Return the regions of which no run of either kernel executes code, or refers to data, that
    differs from the other's.
    """
    known = [*_known(base), *_known(other)]
    if len(known) < 2:
        return ()
    every = (
        msgspec.structs.replace(
            one, counts=RunCounts(tuple(region for run in side.counts for region in run.regions))
        )
        for one, side in zip(known, (base, other), strict=True)
    )
    return unchanged_regions(*every)


def _known(side: RunSide) -> list[KernelCode]:
    """Return what is known of the code that a side executed, if it has a run that went well."""
    done = next((one for one in side.done if one.counts is not None), None)
    if side.kernel is None or done is None or done.counts is None:
        return []
    digest = kept_digest(side.kernel)
    program = done.run.workload_identity
    return [KernelCode(side.kernel.identity, digest, done.counts, program, side.kernel.parameters)]
