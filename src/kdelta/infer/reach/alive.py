# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a kernel its runs depended on: the objects that they executed, and all that could be
read from there.

A function is alive if it was executed. What it refers to by name is alive, and so is what that
refers to, and so on: code can reach data only by a reference that the linker fills in, or by way
of other data. Functions are not made alive by references: a call would have executed them. What is
found without a name, between two symbols of the linker, is decided by kernels/objects/sections.py.

It errs towards more: a name stands for all functions that have it, a reference to a variable for
all that it holds, and an object is alive as a whole.
"""

from collections.abc import Iterable

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import LOCAL
from kdelta.kernels.objects.sections import SectionRole, walk_of


class BuiltSide(msgspec.Struct, frozen=True):
    """One built kernel and what its runs did.

    executed: the names of all functions that were executed since power-on, in any run.
    measured: those that were executed in regions; None if unknown, which keeps nearly all.
    """

    digest: Digest
    executed: frozenset[str]
    measured: frozenset[str] | None = None

    def walks(self, walkers: Iterable[str]) -> frozenset[str]:
        """Which of these functions were executed in regions, as far as is known."""
        return frozenset(walkers) & (self.executed if self.measured is None else self.measured)


class Alive(msgspec.Struct, frozen=True):
    """What a side depended on.

    objects: path -> why. data: (path, name) of each alive variable or nameless piece. names: what
    alive code and data refers to that any object may define.
    """

    objects: dict[str, str]
    data: frozenset[tuple[str, str]]
    names: frozenset[str]


def find_alive(side: BuiltSide) -> Alive:
    """All of a kernel that its runs depended on."""
    search = _AliveSearch(side.digest, side.executed)
    objects: dict[str, str] = {}
    for path, thing in side.digest.objects.items():
        if why := _why(thing, side, search.readers.get(path, "")):
            objects[path] = why
    return Alive(objects, frozenset(search.data), frozenset(search.names))


class _AliveSearch:
    """Follows references from executed functions through data."""

    def __init__(self, digest: Digest, executed: frozenset[str]) -> None:
        self.digest = digest
        self.data: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        self.readers: dict[str, str] = {}  # of an object's data: the first function found
        self._owners = by_key(
            (name, path)
            for path, thing in digest.objects.items()
            for name in thing.data
            if not name.startswith(LOCAL)
        )
        pending: list[tuple[str, str, str]] = []
        for path, thing in digest.objects.items():
            for name in thing.functions.keys() & executed:
                pending += self._follow(path, thing.functions[name].refs, name)
        while pending:
            path, name, reader = pending.pop()
            pending += self._follow(path, digest.objects[path].data[name].refs, reader)

    def _follow(self, path: str, refs: Iterable[str], reader: str) -> list[tuple[str, str, str]]:
        """Marks the data that is referred to; gives what was not marked before."""
        found = []
        for ref in refs:
            if ref.startswith(LOCAL):
                holders = [path] if ref in self.digest.objects[path].data else []
            else:
                self.names.add(ref)
                holders = self._owners.get(ref, [])
            for holder in holders:
                if (holder, ref) not in self.data:
                    self.data.add((holder, ref))
                    self.readers.setdefault(holder, f"{reader} reaches {ref.lstrip(LOCAL)}")
                    found.append((holder, ref, reader))
        return found


def _why(thing: ObjectDigest, side: BuiltSide, reader: str) -> str:
    """Why an object is alive; "" for a dead one."""
    if ran := sorted(thing.functions.keys() & side.executed):
        more = f" and {len(ran) - 1} more" if len(ran) > 1 else ""
        return f"{ran[0]}{more} executed"
    if thing.is_assembler:
        return "assembler, whose parts cannot be distinguished"
    return reader or next(filter(None, (_walked(name, side) for name in thing.collected)), "")


def _walked(section: str, side: BuiltSide) -> str:
    """Why records in a section make the code that has them alive; "" if they do not."""
    walk = walk_of(section)
    if walk.role is SectionRole.KEEP:
        return f"{section}: {walk.why}"
    walkers = side.walks(walk.walkers) if walk.role is SectionRole.OWN else ()
    return f"{section}: {min(walkers)} executed in a region" if walkers else ""
