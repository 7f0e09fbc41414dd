# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels between A and B to build next, and what their runs say of each unit."""

from collections.abc import Callable, Sequence

import msgspec

from kdelta.infer.search_model import (
    Answer,
    FlipSet,
    Limits,
    Measured,
    Outcome,
    PlannedBuild,
    SearchUnit,
)

Distance = Callable[[FlipSet, FlipSet], float]
"""What building one set right after another costs, such as the objects that both differ by."""


class Search(msgspec.Struct, frozen=True):
    """The state of a search: what it was given, and what was observed, in order. Never changed:
    `observe` gives the next one, and equal observations give equal decisions.
    """

    units: tuple[SearchUnit, ...]
    observed: tuple[tuple[FlipSet, Outcome], ...]
    limits: Limits = Limits()

    def observe(self, flips: FlipSet, outcome: Outcome, built: FlipSet | None = None) -> "Search":
        """The search after a kernel. `built` is what was flipped in truth, where the tree grants
        the flips only with more of them.
        """
        raise NotImplementedError

    def next_builds(self, distance: Distance | None = None) -> tuple[PlannedBuild, ...]:
        """Kernels that are needed, the next one first, neighbours close to each other; empty when
        finished. Only the first is certain: each outcome may change the rest.
        """
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether no more builds are wanted, or none are left."""
        raise NotImplementedError

    @property
    def strategy(self) -> str:
        """How it searches and why, in a sentence."""
        raise NotImplementedError

    def answer(self) -> Answer:
        """What is known so far."""
        raise NotImplementedError


def begin(
    units: Sequence[SearchUnit], a: Measured, b: Measured, limits: Limits | None = None
) -> Search:
    """A search from A, where nothing is flipped, to B, where all units are, the pruned among them.

    Raises ValueError for needs that name no unit or go in a circle.
    """
    raise NotImplementedError
