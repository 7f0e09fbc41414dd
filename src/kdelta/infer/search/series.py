# SPDX-License-Identifier: GPL-2.0-or-later
"""Which trees of a series of patches to build next, and what their kernels say of each patch.

A build takes minutes and a run seconds, so builds are what is saved:

1. The proof: the patches that were not ruled out, and those that they need to apply, must give the
   path of all. If they do, the others are settled; if not, all are searched.
2. In order: the patches up to some point always apply, and what each adds to those before it adds
   up to the whole, exactly. The series is halved, and a stretch is not split if the same is
   executed before and after it, in every region and every function. So two patches of one stretch
   that cancel in each function would not be seen; and few builds are needed where few matter.
   A point at which the tree does not build or boot is passed over: what stands between two points
   that do is a group, and why is kept.
3. Left out and alone: asked for each patch that does something, together with what needs it and
   what it needs. Where such a tree fails, those that may be why come or go with it.
4. What a patch does left out or alone and not in order is an interaction with later or earlier
   ones; two whose leftovers are the same are named, and a kernel with these two alone decides.
"""

from collections.abc import Collection, Sequence
from functools import cached_property

import msgspec

from kdelta.infer.search.search_model import Measured, Outcome
from kdelta.infer.search.series_answer import answer_of
from kdelta.infer.search.series_model import (
    PatchSet,
    SeriesAnswer,
    SeriesBuild,
    SeriesLimits,
    SeriesObservation,
    SeriesPatch,
    View,
)
from kdelta.infer.search.series_plan import SeriesPlan


class SeriesSearch(msgspec.Struct, frozen=True, dict=True):
    """The state of a search: what it was given, and what was observed, in order, the tree without
    and that with all patches first. Never changed: `observe` gives the next one, and equal
    observations give equal decisions.
    """

    patches: tuple[SeriesPatch, ...]
    observed: tuple[SeriesObservation, ...]
    views: frozenset[View]
    limits: SeriesLimits

    def observe(self, patches: PatchSet, outcome: Outcome, *, built: bool = True) -> "SeriesSearch":
        """The search after a set of patches, asked for or not. Raises ValueError for names that
        are no patch's.
        """
        if not patches <= {patch.name for patch in self.patches}:
            raise ValueError(f"no patches of the series: {sorted(patches)}")
        new = SeriesObservation(patches, outcome, built)
        return msgspec.structs.replace(self, observed=(*self.observed, new))

    def next_builds(self) -> tuple[SeriesBuild, ...]:
        """Kernels that are needed, the next one first; empty when finished. Only the first is
        certain: each outcome may change the rest.
        """
        return self._plan.builds

    def answer(self) -> SeriesAnswer:
        """What is known so far."""
        return answer_of(self._plan)

    @property
    def doubted(self) -> frozenset[PatchSet]:
        """The kernels of which more runs would show which differences are chance."""
        self.answer()
        return frozenset(self._plan.kernels.doubted)

    @cached_property
    def _plan(self) -> SeriesPlan:
        return SeriesPlan(self.patches, self.observed, self.views, self.limits)


def begin_series(
    patches: Sequence[SeriesPatch],
    without: Measured,
    everything: Measured,
    views: Collection[View] = (View.ORDER,),
    limits: SeriesLimits | None = None,
) -> SeriesSearch:
    """A search from the tree without patches to that with all of them. Raises ValueError for needs
    that name no earlier patch, and for two patches of one name.
    """
    earlier: set[str] = set()
    for patch in patches:
        if patch.name in earlier or not earlier.issuperset(patch.needs):
            raise ValueError(f"{patch.name}: a name that is taken, or a need that is not earlier")
        earlier.add(patch.name)
    observed = [SeriesObservation(frozenset(), without)]
    if patches:
        observed.append(SeriesObservation(frozenset(earlier), everything))
    return SeriesSearch(tuple(patches), tuple(observed), frozenset(views), limits or SeriesLimits())
