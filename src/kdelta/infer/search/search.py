# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels between A and B to build next, and what their runs say of each unit.

A build takes minutes and a run seconds, so builds are what is saved:

1. The proof: all units that were not ruled out, flipped together, must give B's path. If they do,
   the others are settled; if not, all are searched.
2. Each unit is decided one at a time (one_at_a_time.py) or by halves (infer/search/screening.py),
   whichever is expected to take fewer builds, given how likely units are to matter and what was
   seen so far. One at a time is never left again.
3. After halving a few builds check that effects are the same without the units they were seen
   with. One at a time, the sum against the whole is that check.
4. Where effects do not add up, the units that interact are found (interactions.py).

Plackett-Burman and other balanced designs are not used: with n units they take more than n builds,
no fewer than one at a time. What they save is spread, and that is had for less by more runs.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from kdelta.infer.search.closed_sets import NOTHING, Needs
from kdelta.infer.search.search_answer import answer_of, strategy_of
from kdelta.infer.search.search_model import (
    Failed,
    FlipSet,
    Limits,
    Measured,
    Observation,
    Outcome,
    PlannedBuild,
    SearchAnswer,
    SearchUnit,
)
from kdelta.infer.search.search_plan import Plan
from kdelta.spec.run import RunStatus

Distance = Callable[[FlipSet, FlipSet], float]
"""What building one set right after another costs, such as the objects that both differ by."""


class Search(msgspec.Struct, frozen=True, dict=True):
    """The state of a search: what it was given, and what was observed, in order, A and B first.
    Never changed: `observe` gives the next one, and equal observations give equal decisions.
    """

    units: tuple[SearchUnit, ...]
    observed: tuple[Observation, ...]
    limits: Limits = Limits()

    def observe(self, flips: FlipSet, outcome: Outcome, built: FlipSet | None = None) -> "Search":
        """The search after a kernel, asked for or not. `built` is what was flipped in truth, where
        the tree grants the flips only with more of them. Raises ValueError for sets that are not
        closed under needs.
        """
        needs = Needs(self.units)
        for names in (flips, built or flips):
            if not (names <= frozenset(needs.names) and needs.is_closed(names)):
                raise ValueError(f"no set of flips that can be built: {sorted(names)}")
        steps = {build.flips: build.step for build in self._plan.builds}
        step = steps.get(flips)
        new = [Observation(flips, outcome, step)]
        if built is not None and built != flips:
            more = ", ".join(sorted(built - flips))
            refused = Failed(RunStatus.CONFIG_REFUSED, f"granted only with {more}")
            new = [Observation(flips, refused, step), Observation(built, outcome)]
        return msgspec.structs.replace(self, observed=(*self.observed, *new))

    def next_builds(self, distance: Distance | None = None) -> tuple[PlannedBuild, ...]:
        """Kernels that are needed, the next one first, neighbours close to each other; empty when
        finished. Only the first is certain: each outcome may change the rest.

        `distance` is what building one set right after another costs; without it, how many units
        they differ by.
        """
        builds = list(self._plan.builds)
        last = self.observed[-1].flips if len(self.observed) > 2 else NOTHING
        ordered = []
        while builds:
            nearest = min(builds, key=lambda build: (distance or _units_apart)(last, build.flips))
            builds.remove(nearest)
            ordered.append(nearest)
            last = nearest.flips
        return tuple(ordered)

    @property
    def doubted(self) -> frozenset[FlipSet]:
        """The kernels of which more runs would show which differences are chance."""
        self.answer()
        return frozenset(self._plan.kernels.doubted)

    @property
    def finished(self) -> bool:
        """Whether no more builds are wanted, or none are left."""
        return not self._plan.builds

    @property
    def strategy(self) -> str:
        """How it searches and why, in a sentence."""
        return strategy_of(self._plan)

    def answer(self) -> SearchAnswer:
        """What is known so far."""
        return answer_of(self._plan)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(self.units, self.observed, self.limits)


def begin(
    units: Sequence[SearchUnit], a: Measured, b: Measured, limits: Limits | None = None
) -> Search:
    """A search from A, where nothing is flipped, to B, where all units are, the pruned among them.

    Units that share objects should stand close to each other. Raises ValueError for needs that
    name no unit or go in a circle.
    """
    everything = frozenset(Needs(units).names)
    observed = [Observation(NOTHING, a)]
    if everything:
        observed.append(Observation(everything, b))
    return Search(tuple(units), tuple(observed), limits or Limits())


def _units_apart(one: FlipSet, other: FlipSet) -> float:
    return len(one ^ other)
