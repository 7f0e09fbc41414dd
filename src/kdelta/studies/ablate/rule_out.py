# SPDX-License-Identifier: GPL-2.0-or-later
"""Units ruled out without a kernel of their own: by what was executed, and by recompiling."""

from collections.abc import Sequence

import msgspec

from kdelta.counts.model import is_kernel
from kdelta.infer.alive import Side
from kdelta.infer.reach import Kept, Reach, RuledOut, reach
from kdelta.infer.recompiled import differences_that_matter, objects_to_recompile
from kdelta.kernels.built import DIGEST
from kdelta.kernels.digest_file import load_digest
from kdelta.kernels.kconfig import Config, render_config
from kdelta.kernels.units import Unit, flipped
from kdelta.kernels.workbench import Workbench
from kdelta.report.ablation_model import Fate
from kdelta.studies.ablate.measure import Bench, Measured
from kdelta.studies.requests import Progress

_FIRST_BATCH = 6
_GROWTH = 6


class Decision(msgspec.Struct, frozen=True):
    """What is known of a unit before any kernel is built for it; fate None: it has to be searched.

    `objects`: how many it reaches; `alive`: how many of them executed code depends on.
    """

    unit: str
    fate: Fate | None
    why: str
    objects: int
    alive: int


def side_of(bench: Bench, measured: Measured) -> Side:
    """A kernel's objects, and what its runs executed."""
    in_regions = {
        row.name
        for done in measured.done
        if done.counts is not None
        for region in done.counts.regions
        for row in region.functions
        if is_kernel(row.origin)
    }
    return Side(
        digest=load_digest(measured.built.path / DIGEST),
        executed=bench.executed(measured),
        measured=frozenset(in_regions),
    )


def by_execution(
    sides: tuple[Side, Side], units: Sequence[Unit], workbench: Workbench
) -> dict[str, Reach]:
    """What each unit can reach, by what both kernels executed."""
    options = {unit.name: [flip.option for flip in (*unit.options, *unit.shared)] for unit in units}
    return reach(sides[0], sides[1], options, workbench.mentions())


def decided(found: Reach) -> Decision:
    """The same as a decision."""
    if isinstance(found, RuledOut):
        return Decision(found.unit, Fate.DEAD, found.why, found.objects, 0)
    return Decision(found.unit, None, found.why, found.objects, len(found.alive))


class Recompiler:
    """Compiles executed objects with one unit flipped, and compares them with A's."""

    def __init__(
        self,
        ends: tuple[Config, Config],
        units: Sequence[Unit],
        side: Side,
        workbench: Workbench,
        progress: Progress,
    ) -> None:
        self._ends = ends
        self._units = units
        self._side = side
        self._workbench = workbench
        self._progress = progress
        self._normalize = workbench.normalize()

    def decide(self, found: Kept) -> Decision:
        """Whether the objects that the unit reaches come out the same with it flipped."""
        undecided = decided(found)
        targets = objects_to_recompile(found, self._side.digest)
        unit = next(one for one in self._units if one.name == found.unit)
        if targets is None or unit.needs:
            # With needs flipped as well, the objects would differ by those.
            return undecided
        config = render_config(flipped(*self._ends, self._units, [found.unit], self._normalize))
        step = f"recompile {found.unit}"
        self._progress.begin(step)
        why = self._difference(config, targets)
        self._progress.end(step, "identical" if why is None else why)
        if why is not None:
            return msgspec.structs.replace(undecided, why=why)
        return msgspec.structs.replace(
            undecided,
            fate=Fate.IDENTICAL,
            why=f"{undecided.alive} executed objects come out the same with it",
        )

    def _difference(self, config: str, targets: list[str]) -> str | None:
        """The first difference that matters. A few objects first: most units that matter show it
        in any of them.
        """
        at, size = 0, _FIRST_BATCH
        while at < len(targets):
            batch = targets[at : at + size]
            compiled = self._workbench.compile(config, batch)
            if isinstance(compiled, str):
                return f"does not compile: {compiled}"
            paths = [path for path in batch if path in self._side.digest.objects]
            for difference in differences_that_matter(self._side, compiled, paths):
                if difference.matters:
                    return (
                        f"{difference.what} {difference.name} in {difference.path} {difference.how}"
                    )
            at, size = at + size, size * _GROWTH
        return None
