# SPDX-License-Identifier: GPL-2.0-or-later
"""Which units of a config diff can reach executed code at all; the others are ruled out unbuilt.

Why that is sound: flipping a unit changes the objects that it reaches and no others. If all of
them are dead (alive.py), then what was executed, and all it read, is as it was, step by step
from power-on, so nothing else is executed either. An object is reached

- if fixdep found one of the unit's options in its source or in any header that it includes, in A's
  or in B's build. That is more than depends on it: most headers mention options that matter to few.
- if it includes a header that the build generates from something reached (bounds.h); where nothing
  tells what a file was generated from, it counts as reached by all units if it differs between A
  and B, and by none if it is the same though all of them were flipped, or if A has neither it nor
  any object that includes it: then whatever brings these objects reaches them anyway;
- if a Makefile's line on it, or on all of its folder, looks at one of the options;
- if it exists on one side only, and nothing explains that by another unit.

The linker script counts as reached like a generated header, and everything depends on it.

An object that one side alone has, and that other units reach too, was never seen as it is with
this unit alone flipped: FTRACE on in A may give one that only B has trace events that it lacks in
B. Such a unit is kept until the object is compiled that way, unless the flip
removes the object.

What is kept is compiled again with the unit flipped, not linked. Where the executed functions of
the alive objects, the data that they can get at, and the records that somebody walks are the same,
execution is the same, step by step. Dead objects need not be compiled: nothing executed looks at
them; but new ones are, to see whether they are.

What is left to the proof build: records that an object which A and B both have would get from one
unit and lose by another; the mixture that the proof build itself is, of objects that only A has;
and what depends on the size of dead code, such as how many pages are free. The last moves
addresses, as the perturbed runs do.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from kdelta.infer.reach.alive import Alive, BuiltSide, find_alive
from kdelta.kernels.config.mentions import EVERYTHING, Mention, Mentions
from kdelta.kernels.objects.digest import ANY_OPTION, LINKER_SCRIPTS, Digest, ObjectDigest
from kdelta.kernels.objects.objects import LOCAL
from kdelta.kernels.objects.sections import SectionRole, walk_of

NOT_EXECUTED = "no executed code depends on it"
_SHOWN = 3


class AliveObject(msgspec.Struct, frozen=True):
    """An object that executed code depends on, and by what."""

    path: str
    why: str


class Excluded(msgspec.Struct, frozen=True, tag=True):
    """No executed code depends on the unit. `objects`: how many it reaches, all of them dead."""

    unit: str
    objects: int
    why: str = NOT_EXECUTED


class NotExcluded(msgspec.Struct, frozen=True, tag=True):
    """What could not be shown to be without effect.

    objects    how many it reaches
    alive      which of them are alive
    generated  the generated files that it reaches, by path
    unseen     dead objects that one side alone has; A with the unit flipped may have others
    only_b     objects, alive or unseen, that A lacks with the unit flipped too: others bring them
    undecided  why no recompiled object can tell whether it has an effect; empty if they can
    """

    unit: str
    objects: int
    alive: tuple[AliveObject, ...]
    generated: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The same in a line."""
        shown = [f"{thing.path} ({thing.why})" for thing in self.alive[:_SHOWN]]
        more = len(self.alive) - len(shown)
        parts = [f"reaches {len(self.alive)} objects that executed code depends on"]
        parts[0] += f": {', '.join(shown)}" + (f" and {more} more" if more else "") if shown else ""
        parts += [f"changes what {file} is made from" for file in self.generated]
        parts += [f"{path} was not seen with it alone" for path in self.unseen]
        return "; ".join([*parts, *self.undecided])


Reach = Excluded | NotExcluded


def reach_of_units(
    a: BuiltSide, b: BuiltSide, units: Mapping[str, Collection[str]], mentions: Mentions
) -> dict[str, Reach]:
    """For each unit (name -> its options, "CONFIG_X") whether executed code can depend on it when
    it is flipped from its value in A.
    """
    sides = (a.digest, b.digest)
    one_sided = a.digest.objects.keys() ^ b.digest.objects.keys()
    unexplained = one_sided - _explained(one_sided, units.values(), mentions)
    known = {name: _Unit(frozenset(options), sides, mentions) for name, options in units.items()}
    reached = {name: unit.reached() | unexplained for name, unit in known.items()}
    times = Counter(path for paths in reached.values() for path in paths)
    state = _ReachState(
        alive=find_alive(b).objects | find_alive(a).objects,
        one_sided=frozenset(path for path in one_sided if times[path] > 1),
        unexplained=frozenset(unexplained),
    )
    return {name: unit.verdict(name, reached[name], state) for name, unit in known.items()}


class _ReachState(msgspec.Struct, frozen=True):
    """alive: path -> why, on either side. one_sided: objects that one side alone has, and that
    several units reach; unexplained: such that no unit is known to bring or to take away.
    """

    alive: dict[str, str]
    one_sided: frozenset[str]
    unexplained: frozenset[str]


def _mentions_of(options: Collection[str], mentions: Mentions) -> list[Mention]:
    return [mention for option in sorted(options) for mention in mentions.by_option.get(option, ())]


def _explained(
    paths: Collection[str], units: Collection[Collection[str]], mentions: Mentions
) -> set[str]:
    """Those objects that some unit's mention makes come or go."""
    places = [
        mention for options in units for mention in _mentions_of(options, mentions) if mention.lists
    ]
    return {path for path in paths if any(mention.covers(path) for mention in places)}


def came_out_otherwise(path: str, builds: Iterable[Digest]) -> bool:
    """Whether a generated file came out otherwise in some of the builds."""
    held = [digest.generated.get(path) for digest in builds]
    return any(file is None for file in held) or len({file.sha256 for file in held if file}) > 1


def _is_news(path: str, sides: tuple[Digest, Digest]) -> bool:
    """Whether A has neither a generated file nor any of the objects of B that include it."""
    users = {user for user, thing in sides[1].objects.items() if path in thing.generated}
    known = path in sides[0].generated or path.endswith(LINKER_SCRIPTS)
    return bool(users) and not known and users.isdisjoint(sides[0].objects)


class _Unit:
    """What one unit's options get at."""

    def __init__(
        self, options: frozenset[str], sides: tuple[Digest, Digest], mentions: Mentions
    ) -> None:
        self.options = options
        self.sides = sides
        self.generated = {
            path
            for digest in sides
            for path, file in digest.generated.items()
            if file.options & options
            or (
                ANY_OPTION in file.options
                and came_out_otherwise(path, sides)
                and not _is_news(path, sides)
            )
        }
        self.places = _mentions_of(options, mentions)
        self.named = {mention.reaches for mention in self.places}
        self.folders = [mention for mention in self.places if mention.reaches.endswith("/")]
        self.everything = [mention for mention in self.places if mention.reaches == EVERYTHING]

    def reached(self) -> set[str]:
        """The objects of both sides that it can change."""
        return {
            path
            for digest in self.sides
            for path, thing in digest.objects.items()
            if self._reaches(thing)
        }

    def verdict(self, name: str, reached: set[str], state: _ReachState) -> Reach:
        """What is known of the unit."""
        alive = state.alive
        living = [AliveObject(path, alive[path]) for path in sorted(reached & alive.keys())]
        unseen = {
            path
            for path in (reached & state.one_sided) - state.alive.keys()
            if not self._removes(path)
        }
        scripts = {file for file in self.generated if file.endswith(LINKER_SCRIPTS)}
        if not living and not unseen and not scripts and not self.everything:
            return Excluded(name, len(reached))
        undecided = [f"{mention.place} looks at it" for mention in self.everything]
        used = set(scripts)
        only_b: list[str] = []
        for path in (*(thing.path for thing in living), *sorted(unseen)):
            held = [digest.objects[path] for digest in self.sides if path in digest.objects]
            used.update(*(self.generated & thing.generated for thing in held))
            if len(held) == len(self.sides):
                continue
            if not self._lists(path) and path not in state.unexplained:
                if path not in self.sides[0].objects:
                    only_b.append(path)
            elif path not in unseen:
                undecided.append(f"{path} comes or goes")
        return NotExcluded(
            unit=name,
            objects=len(reached),
            alive=tuple(living),
            generated=tuple(sorted(used)),
            unseen=tuple(sorted(unseen.difference(only_b))),
            only_b=tuple(only_b),
            undecided=tuple(undecided),
        )

    def _removes(self, path: str) -> bool:
        """Whether flipping it in A takes an object away: then nothing new can come of it."""
        return path in self.sides[0].objects and self._lists(path)

    def _lists(self, path: str) -> bool:
        """Whether a Makefile makes an object come or go by it."""
        return any(mention.lists and mention.covers(path) for mention in self.places)

    def _reaches(self, thing: ObjectDigest) -> bool:
        return bool(
            self.everything
            or not self.options.isdisjoint(thing.options)
            or not self.generated.isdisjoint(thing.generated)
            or thing.path in self.named
            or any(mention.covers(thing.path) for mention in self.folders)
        )


class ObjectDifference(msgspec.Struct, frozen=True):
    """What differs in one object. `what` is "function", "data", "section", "generated" or "object";
    `how` is "changed", "added" or "removed"; `matters` unless nothing executed depends on it.
    """

    path: str
    what: str
    name: str
    how: str
    matters: bool = True


def objects_to_recompile(kept: NotExcluded, digest: Digest) -> list[str] | None:
    """The make targets, generated files first, that decide whether the unit matters.

    Some headers have the target "prepare". None when recompiling cannot decide: objects come or go,
    or Makefiles or scripts change more than objects. `kept.only_b` are decided apart, by compiling
    them as B has them but for the unit.
    """
    if kept.undecided:
        return None
    targets = [digest.generated[file].target for file in kept.generated if file in digest.generated]
    alive = (thing.path for thing in kept.alive if thing.path not in kept.only_b)
    return [*dict.fromkeys(targets), *alive, *kept.unseen]


def compare_objects(a: Digest, b: Digest, paths: Collection[str]) -> list[ObjectDifference]:
    """What differs between two digests' objects of these paths, and between generated files that
    are in both; every difference counts as one that matters.
    """
    found = [
        ObjectDifference(path, "generated", path, "changed")
        for path in sorted(a.generated.keys() & b.generated.keys())
        if a.generated[path].sha256 != b.generated[path].sha256
    ]
    for path in sorted(paths):
        before, after = a.objects.get(path), b.objects.get(path)
        if before is None or after is None:
            if before is not after:
                how = "added" if before is None else "removed"
                found.append(ObjectDifference(path, "object", path, how))
            continue
        found += _differences(path, before, after)
    return found


def _differences(path: str, before: ObjectDigest, after: ObjectDigest) -> list[ObjectDifference]:
    found = []
    for what, old, new in (
        ("function", before.functions, after.functions),
        ("data", before.data, after.data),
        ("section", before.collected, after.collected),
    ):
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new:
                how = "removed" if name in old else "added"
                found.append(ObjectDifference(path, what, name, how))
            elif (old[name].hash, old[name].section) != (new[name].hash, new[name].section):
                found.append(ObjectDifference(path, what, name, "changed"))
    return found


def differences_that_matter(
    side: BuiltSide, flipped: Digest, paths: Collection[str]
) -> list[ObjectDifference]:
    """`compare_objects` from a side to its objects recompiled with a unit flipped, with `matters`
    decided by what the side executed. If none matters, the unit has no effect on the path.
    """
    alive = find_alive(side)
    return [
        msgspec.structs.replace(difference, matters=_matters(difference, side, flipped, alive))
        for difference in compare_objects(side.digest, flipped, paths)
    ]


def _matters(difference: ObjectDifference, side: BuiltSide, flipped: Digest, alive: Alive) -> bool:
    path, name = difference.path, difference.name
    if difference.what == "generated":
        # Of other files the effect is in the objects that include them.
        return path.endswith(LINKER_SCRIPTS)
    if difference.what == "object":
        new = flipped.objects.get(path)
        return path in alive.objects if new is None else _is_alive_new(new, side, alive)
    if side.digest.objects[path].is_assembler:
        return True
    if difference.what == "section":
        walk = walk_of(name)
        return walk.role is SectionRole.KEEP or (
            walk.role is SectionRole.OWN and bool(side.walks(walk.walkers))
        )
    # A name that somebody refers to may from now on mean another function or variable, in another
    # object even: weak definitions give way to others.
    renamed = difference.how != "changed" and name in alive.names
    if difference.what == "function":
        return renamed or name in side.executed
    return renamed or (path, name) in alive.data or _is_nameless_code(name)


def _is_alive_new(thing: ObjectDigest, side: BuiltSide, alive: Alive) -> bool:
    """Whether an object that was not there before would be alive among what was executed."""
    names = thing.functions.keys() | thing.data.keys()
    alone = msgspec.structs.replace(side, digest=Digest({thing.path: thing}, {}))
    return not names.isdisjoint(alive.names) or bool(find_alive(alone).objects)


def _is_nameless_code(name: str) -> bool:
    """Whether it is code that no symbol covers, whose execution is not visible."""
    section = name.removeprefix(LOCAL).partition("#")[0]
    return ".text" in section and "@" not in section
