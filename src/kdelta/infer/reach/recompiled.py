# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether objects that were compiled again with a unit flipped hold anything new that runs.

The second level of reach.py: what a unit reaches is compiled with it flipped, not linked.
Where the executed functions of the alive objects, the data that they can get at, and the records
that somebody walks are the same, execution is the same, step by step. Dead objects need not be
compiled: nothing executed looks at them; but new ones are, to see whether they are.
"""

from collections.abc import Collection

import msgspec

from kdelta.infer.reach.alive import Alive, BuiltSide, find_alive
from kdelta.infer.reach.reach import Kept
from kdelta.kernels.objects.digest import LINKER_SCRIPTS, Digest, ObjectDigest
from kdelta.kernels.objects.objects import LOCAL
from kdelta.kernels.objects.sections import SectionRole, walk_of


class ObjectDifference(msgspec.Struct, frozen=True):
    """What differs in one object. `what` is "function", "data", "section", "generated" or "object";
    `how` is "changed", "added" or "removed"; `matters` unless nothing executed depends on it.
    """

    path: str
    what: str
    name: str
    how: str
    matters: bool = True


def objects_to_recompile(kept: Kept, digest: Digest) -> list[str] | None:
    """The make targets, generated files first, that decide whether the unit matters.

    Some headers have the target "prepare". None when recompiling cannot decide: objects come or go,
    or Makefiles or scripts change more than objects. `kept.only_b` are decided apart, by compiling
    them as B has them but for the unit.
    """
    if kept.undecided:
        return None
    targets = [digest.generated[file].target for file in kept.generated if file in digest.generated]
    alive = (thing.path for thing in kept.alive if thing.path not in kept.only_b)
    objects = [*alive, *kept.unseen]
    return [*dict.fromkeys(targets), *objects]


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
