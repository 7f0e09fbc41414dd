# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as flame graphs: trees of calls of one kernel or of two, cut to what can be seen.

A frame is a function on one path of calls, whatever the sites of these calls. What is cut is summed
up in a frame of its own below its caller, so that each frame is the sum of what is above it.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import I64
from kdelta.counts.model import CONTEXTS, KERNEL, VDSO, is_kernel
from kdelta.counts.profile import NodeEntry, Profile
from kdelta.infer.profiles.matching import match_functions

SMALLEST = 1 / 2000
"""The part of a region from which on a frame is kept: half a pixel of a screen, so that something
is left to be zoomed into.
"""

FIGURES = ("insns", "loads", "stores", "string_bytes")
"""The columns of a cost that a flame graph can be as wide as."""

KERNEL_CODE, MODULE_CODE, USER_CODE, VDSO_CODE, GROUP, REST = range(6)
"""What a frame is, which its colour says: code by its origin, or none: the region itself, a task,
interrupts; or what was cut.
"""

_TASKS = {"interrupts": "interrupts", "other": "other tasks"}

Name = tuple[str, str]
_Key = tuple[int, str, str, int]
"""A merged parent, an origin, a name, and how it was entered."""


class Flame(msgspec.Struct, frozen=True):
    """A flame graph. `sides` name the profiles: one, or base and other. `names` are (origin, name)
    of frames, the origin empty where a frame is no function. Of each of the n frames, parents
    first: `parent` (-1 for the root), `name` (an index into names), `kind` and `entry` (an Entry).
    `own`: by figure and side, what each frame executed itself, in the whole region. `iterations`:
    of each side, 1 where a region marked none. `cut`: how many frames were cut, and what part of
    the instructions they have. `about`: which kernels it is of, where a page has several.
    """

    region: str
    sides: tuple[str, ...]
    names: tuple[Name, ...]
    parent: tuple[int, ...]
    name: tuple[int, ...]
    kind: tuple[int, ...]
    entry: tuple[int, ...]
    own: dict[str, tuple[tuple[int, ...], ...]]
    iterations: tuple[int, ...]
    cut: tuple[int, float]
    about: str = ""

    def total(self, figure: str, side: int) -> int:
        """The sum over all frames: the region's own."""
        return sum(self.own[figure][side]) if figure in self.own else 0


class _Tree:
    """A tree that profiles are merged into."""

    def __init__(self, region: str, sides: int) -> None:
        self.parent = [-1]
        self.label: list[Name] = [("", region)]
        self.kind = [GROUP]
        self.entry = [int(NodeEntry.ROOT)]
        self.own: dict[str, list[list[int]]] = {
            figure: [[0] for _ in range(sides)] for figure in FIGURES
        }
        self._at: dict[_Key, int] = {}

    def node(self, parent: int, label: Name, kind: int, entry: int) -> int:
        """That child of a node, made if it is not there."""
        key = (parent, *label, entry)
        found = self._at.get(key)
        if found is None:
            found = self._at[key] = len(self.parent)
            self.parent.append(parent)
            self.label.append(label)
            self.kind.append(kind)
            self.entry.append(entry)
            for sides in self.own.values():
                for column in sides:
                    column.append(0)
        return found

    def add(self, profile: Profile, side: int, labels: Mapping[Name, Name]) -> None:
        """Merges a profile's nodes in as one side; labels: what each of its functions is called."""
        tree, costs = profile.tree, profile.node_costs()
        columns = {figure: getattr(costs, figure).tolist() for figure in FIGURES}
        functions = [labels[one.origin, one.name] for one in profile.functions]
        kinds = [_kind(origin) for origin, _ in functions]
        to: list[int] = []
        for index in range(len(tree)):
            parent = int(tree.parent[index])
            above = to[parent] if parent >= 0 else self._root(profile, index)
            function = int(tree.function[index])
            to.append(
                self.node(above, functions[function], kinds[function], int(tree.entry[index]))
            )
            for figure, column in columns.items():
                self.own[figure][side][to[index]] += column[index]

    def _root(self, profile: Profile, index: int) -> int:
        """The frame of whose time it was: the task's, interrupts', others'."""
        context = CONTEXTS[int(profile.tree.context[index])]
        program = profile.tasks[int(profile.tree.task[index])].program
        name = _TASKS.get(context, program)
        return self.node(0, ("", name), GROUP, int(NodeEntry.ROOT))


def _labels(profiles: Sequence[Profile]) -> list[dict[Name, Name]]:
    """By side, what each function is called on both."""
    keys = [{(one.origin, one.name) for one in profile.functions} for profile in profiles]
    labels: list[dict[Name, Name]] = [{} for _ in profiles]
    for match in match_functions(keys[0], keys[-1]):
        for found, same in zip(labels, (match.a, match.b), strict=False):
            found.update(dict.fromkeys(same, (match.origin, match.name)))
    return labels


def _kind(origin: str) -> int:
    if origin == KERNEL:
        return KERNEL_CODE
    if is_kernel(origin):
        return MODULE_CODE
    return VDSO_CODE if origin == VDSO else USER_CODE


def flame(
    base: Profile,
    other: Profile | None = None,
    sides: Sequence[str] = ("base", "other"),
    smallest: float = SMALLEST,
) -> Flame:
    """The flame graph of a profile, or of two of one region compared.

    smallest: the part of the region, on the side where it is more, that a frame needs to be kept.
    Which functions are the same is what `kdelta diff` says, without debug info.
    """
    profiles = [base] if other is None else [base, other]
    tree = _Tree(base.region, len(profiles))
    for side, (profile, labels) in enumerate(zip(profiles, _labels(profiles), strict=True)):
        tree.add(profile, side, labels)
    return _cut(tree, profiles, tuple(sides[: len(profiles)]), smallest)


def flames(
    base: Sequence[Profile],
    other: Sequence[Profile] = (),
    sides: Sequence[str] = ("base", "other"),
    smallest: float = SMALLEST,
    about: str = "",
) -> tuple[Flame, ...]:
    """The flame graphs of a run's regions, or of those that two runs have both."""
    pairs: list[tuple[Profile, Profile | None]] = [(one, None) for one in base]
    if other:
        found = {one.region: one for one in other}
        pairs = [(one, found[one.region]) for one in base if one.region in found]
    drawn = (flame(one, its, sides, smallest) for one, its in pairs)
    return tuple(msgspec.structs.replace(one, about=about) for one in drawn)


def _cut(
    tree: _Tree, profiles: Sequence[Profile], sides: tuple[str, ...], smallest: float
) -> Flame:
    """The tree without what is too small to be seen."""
    parent = np.array(tree.parent)
    parts = np.zeros(len(parent))
    for side in range(len(profiles)):
        whole = _inclusive(parent, np.array(tree.own["insns"][side], np.int64))
        parts = np.maximum(parts, whole / max(1, int(whole[0])))
    kept = parts >= smallest
    kept[0] = True
    # A frame whose caller was cut is in no more than its caller is; so it was cut as well.
    own = {
        figure: [np.array(column, np.int64) for column in columns]
        for figure, columns in tree.own.items()
        if any(any(column) for column in columns)
    }
    made = _Kept(tree, kept)
    columns = {
        figure: tuple(tuple(made.moved(column).tolist()) for column in found)
        for figure, found in own.items()
    }
    lost = int((~kept).sum())
    insns = [np.array(column) for column in tree.own["insns"]]
    share = max(float(one[~kept].sum()) / max(1, int(one.sum())) for one in insns)
    return Flame(
        region=profiles[0].region,
        sides=sides,
        names=tuple(made.names),
        parent=tuple(made.parent),
        name=tuple(made.name),
        kind=tuple(made.kind),
        entry=tuple(made.entry),
        own=columns,
        iterations=tuple(max(1, profile.iterations) for profile in profiles),
        cut=(lost, share),
    )


class _Kept:
    """What is kept of a tree, in its order, and below each frame what was cut there."""

    def __init__(self, tree: _Tree, kept: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        self.names: dict[Name, int] = {}
        self.parent: list[int] = []
        self.name: list[int] = []
        self.kind: list[int] = []
        self.entry: list[int] = []
        self._to = np.full(len(kept), -1, np.int64)
        rest: dict[int, int] = {}
        fewer = np.bincount(
            np.array(tree.parent)[~kept] + 1, minlength=len(kept) + 1
        )  # by what was cut right below each frame; without the root's -1
        for index in range(len(kept)):
            if kept[index]:
                above = -1 if index == 0 else int(self._to[tree.parent[index]])
                self._to[index] = self._add(
                    above, tree.label[index], tree.kind[index], tree.entry[index]
                )
        for index in range(len(kept)):
            if kept[index]:
                continue
            above = tree.parent[index]
            if not kept[above]:
                self._to[index] = self._to[above]
                continue
            if above not in rest:
                label = ("", f"{fewer[above + 1]} smaller")
                rest[above] = self._add(int(self._to[above]), label, REST, 0)
            self._to[index] = rest[above]

    def _add(self, parent: int, label: Name, kind: int, entry: int) -> int:
        self.parent.append(parent)
        self.name.append(self.names.setdefault(label, len(self.names)))
        self.kind.append(kind)
        self.entry.append(entry)
        return len(self.parent) - 1

    def moved(self, column: I64) -> I64:
        """A figure of each of the tree's nodes as one of each frame."""
        found = np.zeros(len(self.parent), np.int64)
        np.add.at(found, self._to, column)
        return found


def _inclusive(parent: "np.ndarray[tuple[int], np.dtype[np.int64]]", own: I64) -> I64:
    total = own.copy()
    for node in range(len(total) - 1, 0, -1):
        total[parent[node]] += total[node]
    return total


def flame_data(flames: Sequence[Flame]) -> dict[str, object]:
    """Flame graphs as the page's script takes them: one table of names for all, parents as how far
    back they are, sparse columns.
    """
    names: dict[Name, int] = {}
    graphs = []
    for one in flames:
        to = [names.setdefault(label, len(names)) for label in one.names]
        graphs.append(
            {
                "region": f"{one.region} ({one.about})" if one.about else one.region,
                "sides": one.sides,
                "iterations": one.iterations,
                "cut": [one.cut[0], round(one.cut[1], 6)],
                "up": [index - parent for index, parent in enumerate(one.parent)],
                "name": [to[index] for index in one.name],
                "kind": one.kind,
                "entry": one.entry,
                "own": {
                    figure: [_sparse(column) for column in columns]
                    for figure, columns in one.own.items()
                },
            }
        )
    return {"names": [[origin, name] for origin, name in names], "graphs": graphs}


def _sparse(column: Sequence[int]) -> list[int]:
    """What is not zero, each after the number of zeros before it."""
    found, zeros = [], 0
    for value in column:
        if value:
            found += [zeros, value]
            zeros = 0
        else:
            zeros += 1
    return found
