# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of the store, as far as they are still in the cache: what is known of their code."""

import functools
from collections.abc import Sequence

from kdelta.kernels.built import built_kernels
from kdelta.kernels.cache import cached_kernels
from kdelta.kernels.model import Kernel
from kdelta.studies.compare import Side
from kdelta.studies.history.lineage import Lineage
from kdelta.studies.lab import Done


class Kernels:
    """The cache's kernels by identity, read once."""

    @functools.cached_property
    def _found(self) -> dict[str, Kernel]:
        found = {one.identity: one.kernel() for one in cached_kernels()}
        return found | {one.identity: one.kernel(one.spec) for one in built_kernels()}

    def find(self, identity: str) -> Kernel | None:
        """The kernel of that identity; None if the cache has it no more."""
        return self._found.get(identity)

    def side(self, one: Lineage, done: Sequence[Done]) -> Side:
        """A kernel and its runs, as comparisons have them."""
        return Side(one.spec, self.find(one.identity), tuple(done))
