# SPDX-License-Identifier: GPL-2.0-or-later
"""What a study needs to rule changes to a tree out: kernels with all that their builds were made
from, and what their runs executed.
"""

from collections.abc import Sequence

from kdelta.counts.executed import decode_executed
from kdelta.counts.model import is_kernel
from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.touched import Tree, tree_of
from kdelta.kernels.build.built import DEPENDENCIES, DIGEST, BuiltKernel, forget, load_built
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.dependencies import load_dependencies
from kdelta.kernels.objects.digest_file import is_current, load_digest
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.lab.lab import EXECUTED, Done, Lab
from kdelta.studies.lab.requests import Progress


def is_complete(built: BuiltKernel) -> bool:
    """Whether a built kernel says what it holds and what it was made from; one that an earlier
    kdelta built may not.
    """
    return is_current(built.path / DIGEST) and (built.path / DEPENDENCIES).is_file()


def complete_kernel(spec: str, lab: Lab, progress: Progress) -> Kernel | NoKernel:
    """The kernel of a spec that names a source, built again if it is not complete."""
    found = lab.kernel(spec)
    if isinstance(found, NoKernel):
        return found
    built = load_built(found.built or "")
    if built is None or is_complete(built):
        return found
    progress.say("an earlier kdelta did not keep what this kernel was made from: built again")
    forget(built)
    return lab.kernel(spec)


def executed_names(done: Sequence[Done], store: Store) -> frozenset[str]:
    """The functions that runs executed since power-on, by name. LabError for a run that does not
    say.
    """
    names: frozenset[str] = frozenset()
    for one in done:
        blob = one.run.attachments.get(EXECUTED)
        if one.counts is not None and blob is None:
            raise LabError(
                f"run {one.run.id} does not say what was executed", "make it again: --again"
            )
        if blob is not None:
            names |= decode_executed(store.get(blob)).names()
    return names


def built_side(built: BuiltKernel, done: Sequence[Done], store: Store) -> BuiltSide:
    """A kernel's objects, and what its runs, of all workloads together, executed."""
    in_regions = {
        row.name
        for one in done
        if one.counts is not None
        for region in one.counts.regions
        for row in region.functions
        if is_kernel(row.origin)
    }
    return BuiltSide(
        digest=load_digest(built.path / DIGEST),
        executed=executed_names(done, store),
        measured=frozenset(in_regions),
    )


def measured_tree(built: BuiltKernel, done: Sequence[Done], store: Store) -> Tree:
    """A complete kernel with the same, and what it was made from."""
    side = built_side(built, done, store)
    return tree_of(side, load_dependencies(built.path / DEPENDENCIES))
