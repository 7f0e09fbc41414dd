# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of the store, as far as they are still in the cache: what is known of their code."""

import functools
from collections.abc import Sequence

from kdelta.kernels.build.built import built_kernels
from kdelta.kernels.model import Kernel, booted_identity
from kdelta.kernels.obtain import booted_as
from kdelta.kernels.packages.deb import cached_kernels
from kdelta.spec.kernel import parameters_of
from kdelta.studies.compare.study import RunSide
from kdelta.studies.lab.lab import Done
from kdelta.studies.log.lineage import Lineage, parsed_spec


class CachedKernels:
    """The cache's kernels by identity, read once."""

    @functools.cached_property
    def _found(self) -> dict[str, Kernel]:
        found = {one.identity: one.kernel() for one in cached_kernels()}
        return found | {one.identity: one.kernel(one.spec) for one in built_kernels()}

    def find(self, one: Lineage) -> Kernel | None:
        """That kernel; None if the cache has it no more."""
        spec = parsed_spec(one.spec)
        if spec is None or not (parameters := parameters_of(spec)):
            return self._found.get(one.identity)
        for identity, kernel in self._found.items():
            if booted_identity(identity, parameters) == one.identity:
                return booted_as(kernel, spec)
        return None

    def side(self, one: Lineage, done: Sequence[Done]) -> RunSide:
        """A kernel and its runs, as comparisons have them."""
        return RunSide(one.spec, self.find(one), tuple(done))
