# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of one tree with any of a series' patches; what there is of them is not built again."""

import functools
import itertools
from collections.abc import Collection, Sequence

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import expanded, write_atomic
from kdelta.infer.search.search_model import FlipSet
from kdelta.kernels.kbuild.build import build_question
from kdelta.kernels.kbuild.built import load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.patches import Patch, PatchFailure, with_fuzz
from kdelta.kernels.sources.series import PatchSeries, read_series
from kdelta.kernels.sources.source import Source, source_of, store_of
from kdelta.kernels.sources.stack import Need, Stack, stacked
from kdelta.lab.lab import Lab, no_kernel_key
from kdelta.spec.change import FileChange, KernelModeChange, RelinkChange, fuzz_of
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import DebSrcSpec, SourceSpec, with_changes
from kdelta.studies.search.measure import Builds, complete_kernel

_LACK_OF_MEMORY = "the compiler was killed"


def _must_be_its_own(spec: SourceSpec) -> None:
    """UserError for changes with which kdelta patches a tree itself: its kernels are not those of
    the tree that patches are stacked on.
    """
    own = [one for one in spec.changes if isinstance(one, RelinkChange | KernelModeChange)]
    if own:
        raise UserError(
            f"a series cannot be of a tree with {own[0]}",
            "leave it out: where functions are does not change what a patch executes",
        )


class Trees:
    """The trees that a series makes of a source, and their kernels. `builds` has them in order.

    UserError for patches that cannot be read, or do not apply one after the other.
    """

    def __init__(self, spec: SourceSpec, words: Sequence[str], lab: Lab) -> None:
        self.spec = spec
        self._lab, progress = lab, lab.progress
        _must_be_its_own(spec)
        source = source_of(spec, progress.log)
        if isinstance(source, PatchFailure):
            raise UserError(f"{source.patch} does not apply to the tree: {source.detail}")
        self.source: Source = source
        folder = None if isinstance(spec, DebSrcSpec) else expanded(spec.path)
        series = read_series(words, folder, progress.log)
        patches = with_fuzz(series.patches, fuzz_of(spec.changes))
        self.builds = Builds(progress)
        with stacked(source, patches, progress.log) as stack:
            self._stack: Stack = stack
            names = [patch.name for patch in patches]
            if failure := stack.failure(names):
                raise _does_not_apply(failure, names)
            for note in (notes := tuple(stack.notes)):
                progress.log(note)
            self.series: PatchSeries = PatchSeries(tuple(patches), (*series.notes, *notes))
            self.needs: dict[str, tuple[Need, ...]] = stack.needs()

    @property
    def patches(self) -> tuple[Patch, ...]:
        return self.series.patches

    @property
    def names(self) -> list[str]:
        return [patch.name for patch in self.series.patches]

    @property
    def files(self) -> dict[str, tuple[str, ...]]:
        return self._stack.files

    def kernel(
        self, label: str, chosen: FlipSet, *, complete: bool = False
    ) -> Kernel | NoKernel | PatchFailure:
        """Return the kernel of the tree with these patches; PatchFailure where one does not apply,
        which costs nothing. `complete`: with all that says what it was made from.
        """
        made = self._patched(chosen)
        if isinstance(made, PatchFailure):
            return made
        tree, spec = made
        self.builds.announce(label)
        found = self._failed_before(spec, tree) or self._obtained(spec, complete=complete)
        self.builds.add(label, found)
        built = None if isinstance(found, NoKernel) else load_built(found.built or "")
        if built is not None and built.tree != tree:
            raise LabError(
                f"{self.source.name} changed while its kernels were built",
                "begin again: what is as it was is not built again",
            )
        return found

    @functools.cache  # noqa: B019  (it lives as long as the study)
    def around(self, name: str) -> tuple[Source, Source] | None:
        """The source with all patches before one, and with it; None where one does not apply."""
        place = self.names.index(name)
        with store_of(self.source.folder, self._lab.progress.log):
            trees = [self._stack.tree(self.names[: place + more]) for more in (0, 1)]
        if any(isinstance(tree, PatchFailure) for tree in trees):
            return None
        found = [msgspec.structs.replace(self.source, tree=str(tree)) for tree in trees]
        return found[0], found[1]

    def exact(self, names: Collection[str]) -> list[Patch]:
        """These patches, in the order of the series, each as the diff that it was applied as."""
        found = [patch for patch in self.patches if patch.name in names]
        if not fuzz_of(self.spec.changes):
            return found
        with store_of(self.source.folder, self._lab.progress.log):
            sets = [[one.name for one in found[:count]] for count in range(len(found) + 1)]
            trees = [self._stack.tree(one) for one in sets]
            diffs = [self._stack.diff(str(a), str(b)) for a, b in itertools.pairwise(trees)]
        return [
            msgspec.structs.replace(patch, content=diff or patch.content)
            for patch, diff in zip(found, diffs, strict=True)
        ]

    def _patched(self, chosen: FlipSet) -> tuple[str, SourceSpec] | PatchFailure:
        """Git's hash of the tree, and the spec of its kernel: all patches are one file there."""
        with store_of(self.source.folder, self._lab.progress.log):
            tree = self._stack.tree(chosen)
            if isinstance(tree, PatchFailure):
                return tree
            if tree == self.source.tree:
                return tree, self.spec
            diff = self._stack.diff(self.source.tree, tree)
        named = "".join(f"  {name}\n" for name in self.names if name in chosen)
        head = f"These patches of a series, as one:\n{named}\n".encode("ascii", "replace")
        path = cache_dir("series") / f"{identity([self.source.tree, tree])[:16]}.patch"
        write_atomic(path, head + diff)
        spec = with_changes(self.spec, [FileChange(str(path))])
        assert isinstance(spec, SourceSpec)
        return tree, spec

    def _failed_before(self, spec: SourceSpec, tree: str) -> NoKernel | None:
        """How the build of that kernel failed, if it did, and is not to be tried again."""
        if self._lab.request.rerun:
            return None
        question = build_question(spec, msgspec.structs.replace(self.source, tree=tree))
        run = self._lab.store.find_failure(no_kernel_key(question))
        if run is None or run.status is None or _LACK_OF_MEMORY in run.detail:
            return None
        self._lab.progress.log(f"it failed before ({run.status.value}); --again tries it again")
        return NoKernel(str(spec), run.status, question, run.detail)

    def _obtained(self, spec: SourceSpec, *, complete: bool) -> Kernel | NoKernel:
        wanted = str(spec)
        return complete_kernel(wanted, self._lab) if complete else self._lab.kernel(wanted)


def _does_not_apply(failure: PatchFailure, names: Sequence[str]) -> UserError:
    place = f"{names.index(failure.patch) + 1} of {len(names)}"
    return UserError(
        f"{failure.patch} ({place}) does not apply on top of those before it: {failure.detail}",
        "a series is measured as it stands: refresh the patch, or leave it out",
    )
