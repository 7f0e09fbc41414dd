# SPDX-License-Identifier: GPL-2.0-or-later
"""Option groups that need no kernel of their own: by what was executed, and by recompiling."""

from collections.abc import Sequence

import msgspec

from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.reach import (
    Excluded,
    NotExcluded,
    ObjectDifference,
    Reach,
    differences_that_matter,
    objects_to_recompile,
    reach_of_units,
)
from kdelta.kernels.config.kconfig import Config, render_config
from kdelta.kernels.config.option_groups import OptionGroup, flipped
from kdelta.kernels.kbuild.workbench import Workbench
from kdelta.lab.progress import Progress
from kdelta.studies.ablate.model import GroupOutcome
from kdelta.studies.search.closer import batches

_MANY_OBJECTS = 20


class GroupDecision(msgspec.Struct, frozen=True):
    """What is known of an option group before any kernel is built for it; outcome None: it has to
    be searched.

    `objects`: how many it reaches; `alive`: how many of them executed code depends on; `chance`:
    how likely it is to have an effect in any region, a guess that only decides what is tried first.
    """

    unit: str
    outcome: GroupOutcome | None
    why: str
    objects: int
    alive: int
    chance: float = 0.5


def by_execution(
    sides: tuple[BuiltSide, BuiltSide], units: Sequence[OptionGroup], workbench: Workbench
) -> dict[str, Reach]:
    """What each option group can reach, by what both kernels executed."""
    options = {unit.name: [flip.option for flip in (*unit.options, *unit.shared)] for unit in units}
    return reach_of_units(sides[0], sides[1], options, workbench.mentions())


def decided(found: Reach, sides: tuple[BuiltSide, BuiltSide]) -> GroupDecision:
    """The same as a decision."""
    if isinstance(found, Excluded):
        return GroupDecision(found.unit, GroupOutcome.DEAD, found.why, found.objects, 0)
    return GroupDecision(
        found.unit, None, found.why, found.objects, len(found.alive), _chance(found, sides)
    )


def _chance(found: NotExcluded, sides: tuple[BuiltSide, BuiltSide]) -> float:
    """By where the functions that it may change were executed: most of what only ran at boot does
    not matter to what runs later.
    """
    if len(found.alive) >= _MANY_OBJECTS:
        return 0.6
    return 0.5 if any(_runs_in_regions(thing.path, sides) for thing in found.alive) else 0.05


def _runs_in_regions(path: str, sides: tuple[BuiltSide, BuiltSide]) -> bool:
    return any(
        not side.digest.objects[path].functions.keys().isdisjoint(side.measured or side.executed)
        for side in sides
        if path in side.digest.objects
    )


def _chance_of(difference: ObjectDifference | None, sides: tuple[BuiltSide, BuiltSide]) -> float:
    """The same when it is known that something executed comes out otherwise; None: it does not
    compile alone.
    """
    if difference is None or difference.what != "function":
        return 0.4
    in_regions = (side.measured or side.executed for side in sides)
    return 0.9 if any(difference.name in names for names in in_regions) else 0.1


class _Changed(msgspec.Struct, frozen=True):
    """Why recompiled objects do not show that an option group has no effect."""

    why: str
    first: ObjectDifference | None = None


class Recompiler:
    """Compiles executed objects with one option group flipped, and compares them with those of an
    end.
    """

    def __init__(
        self,
        ends: tuple[Config, Config],
        units: Sequence[OptionGroup],
        sides: tuple[BuiltSide, BuiltSide],
        workbench: Workbench,
        progress: Progress,
    ) -> None:
        self._ends = ends
        self._units = units
        self._sides = sides
        self._workbench = workbench
        self._progress = progress
        self._normalize = workbench.normalize()

    def decide(self, found: NotExcluded) -> GroupDecision:
        """Whether the objects that the option group reaches come out the same with it flipped."""
        undecided = decided(found, self._sides)
        targets = objects_to_recompile(found, self._sides[0].digest)
        unit = next(one for one in self._units if one.name == found.unit)
        needed = any(found.unit in other.needs for other in self._units)
        if targets is None or unit.needs or (found.only_b and needed):
            # With others flipped as well, the objects would differ by those.
            return undecided
        step = f"recompile {found.unit}"
        self._progress.begin(step)
        targets = self._most_likely_first(unit, targets)
        changed = self._difference(self._sides[0], {found.unit}, targets, set(found.generated))
        if changed is None and found.only_b:
            others = {one.name for one in self._units} - {found.unit}
            changed = self._difference(self._sides[1], others, found.only_b, set())
        self._progress.end(step, "identical" if changed is None else changed.why)
        if changed is not None:
            chance = _chance_of(changed.first, self._sides)
            return msgspec.structs.replace(undecided, why=changed.why, chance=chance)
        return msgspec.structs.replace(
            undecided,
            outcome=GroupOutcome.IDENTICAL,
            why=f"{undecided.alive} executed objects come out the same with it",
        )

    def _most_likely_first(self, unit: OptionGroup, targets: Sequence[str]) -> list[str]:
        """The targets, those first whose own source names an option of the option group: most
        objects are reached by a header, and come out the same.
        """
        names = [flip.option.encode() for flip in (*unit.options, *unit.shared)]
        objects = self._sides[0].digest.objects

        def is_header_only(target: str) -> bool:
            source = self._workbench.tree / objects[target].source
            text = source.read_bytes() if source.is_file() else b""
            return not any(name in text for name in names)

        made = [target for target in targets if target not in objects]
        return made + sorted((one for one in targets if one in objects), key=is_header_only)

    def _difference(
        self, side: BuiltSide, chosen: set[str], targets: Sequence[str], remade: set[str]
    ) -> "_Changed | None":
        """The first difference that matters between an end's objects and those of A with the
        chosen option groups flipped. A few objects first: most option groups that matter show it in
        any of them.

        remade: the generated files that are among the targets; others, such as a linker script,
        are as whatever was built last left them.
        """
        if not targets:
            return None
        config = render_config(flipped(*self._ends, self._units, chosen, self._normalize))
        for batch in batches(targets):
            compiled = self._workbench.compile(config, batch)
            if isinstance(compiled, str):
                return _Changed(f"does not compile: {compiled}")
            paths = [path for path in batch if path in side.digest.objects]
            for found in differences_that_matter(side, compiled, paths):
                if found.matters and (found.what != "generated" or found.path in remade):
                    return _Changed(f"{found.what} {found.name} in {found.path} {found.how}", found)
        return None
