# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as flame graphs: trees of calls of one kernel or of two, cut to what can be seen.

A frame is a function on one path of calls, whatever the sites of these calls. What is cut is summed
up in a frame of its own below its caller, so that each frame is the sum of what is above it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, sums_at
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


class _FlameFrame(NamedTuple):
    """A merged frame: below which it is (-1: none), what it is called, and how it was entered."""

    parent: int
    label: Name
    kind: int
    entry: int = int(NodeEntry.ROOT)


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


class _FlameTree:
    """A tree that profiles are merged into: frames by their index, parents first."""

    def __init__(self, region: str) -> None:
        self.frames = {_FlameFrame(-1, ("", region), GROUP): 0}

    def index(self, frame: _FlameFrame) -> int:
        """The frame's index; it is added if it is not there."""
        return self.frames.setdefault(frame, len(self.frames))

    def add(self, profile: Profile, labels: Mapping[Name, Name]) -> I64:
        """Merge a profile in; labels: what each of its functions is called. Return of each of its
        nodes the index of its frame.
        """
        tree = profile.tree
        functions = [labels[one.origin, one.name] for one in profile.functions]
        rows = (tree.parent, tree.function, tree.entry, tree.context, tree.task)
        to: list[int] = []
        for parent, function, entry, context, task in zip(*(r.tolist() for r in rows), strict=True):
            if parent >= 0:
                above = to[parent]
            else:  # whose time it was: the task's, interrupts', others'
                name = _TASKS.get(CONTEXTS[context], profile.tasks[task].program)
                above = self.index(_FlameFrame(0, ("", name), GROUP))
            label = functions[function]
            to.append(self.index(_FlameFrame(above, label, _kind(label[0]), entry)))
        return np.array(to, np.int64)


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
    """Return the flame graph of a profile, or of two of one region compared.

    smallest: the part of the region, on the side where it is more, that a frame needs to be kept.
    Which functions are the same is what `kdelta diff` says, without debug info.
    """
    profiles = [base] if other is None else [base, other]
    tree = _FlameTree(base.region)
    labelled = zip(profiles, _labels(profiles), strict=True)
    found = [(tree.add(one, labels), one.node_costs()) for one, labels in labelled]
    own = {
        figure: [sums_at(to, getattr(costs, figure), len(tree.frames)) for to, costs in found]
        for figure in FIGURES
    }
    return _cut(list(tree.frames), own, profiles, tuple(sides[: len(profiles)]), smallest)


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
    frames: Sequence[_FlameFrame],
    own: Mapping[str, Sequence[I64]],
    profiles: Sequence[Profile],
    sides: tuple[str, ...],
    smallest: float,
) -> Flame:
    """The tree without what is too small to be seen."""
    insns = own["insns"]
    wholes = [_inclusive(frames, column) for column in insns]
    kept = np.max([whole / max(1, int(whole[0])) for whole in wholes], axis=0) >= smallest
    kept[0] = True
    # A frame whose caller was cut is in no more than its caller is; so it was cut as well.
    left, to = _kept(frames, kept.tolist())
    names: dict[Name, int] = {}
    share = max(float(one[~kept].sum()) / max(1, int(one.sum())) for one in insns)
    return Flame(
        region=profiles[0].region,
        sides=sides,
        name=tuple(names.setdefault(one.label, len(names)) for one in left),
        names=tuple(names),
        parent=tuple(one.parent for one in left),
        kind=tuple(one.kind for one in left),
        entry=tuple(one.entry for one in left),
        own={
            figure: tuple(tuple(sums_at(to, column, len(left)).tolist()) for column in columns)
            for figure, columns in own.items()
            if any(column.any() for column in columns)
        },
        iterations=tuple(max(1, profile.iterations) for profile in profiles),
        cut=(int((~kept).sum()), share),
    )


def _kept(frames: Sequence[_FlameFrame], kept: Sequence[bool]) -> tuple[list[_FlameFrame], I64]:
    """What is kept, in its order, and then below each frame what was cut there; and of each of the
    tree's frames the index of the one that it is in.
    """
    found: list[_FlameFrame] = []
    to = [-1] * len(frames)
    for index, frame in enumerate(frames):
        if kept[index]:
            found.append(frame._replace(parent=to[frame.parent]))
            to[index] = len(found) - 1
    fewer = Counter(frame.parent for index, frame in enumerate(frames) if not kept[index])
    rest: dict[int, int] = {}
    for index, (above, *_) in enumerate(frames):
        if kept[index]:
            continue
        if kept[above] and above not in rest:
            rest[above] = len(found)
            found.append(_FlameFrame(to[above], ("", f"{fewer[above]} smaller"), REST, 0))
        to[index] = rest[above] if kept[above] else to[above]
    return found, np.array(to, np.int64)


def _inclusive(frames: Sequence[_FlameFrame], own: I64) -> I64:
    total = own.copy()
    for node in range(len(total) - 1, 0, -1):
        total[frames[node].parent] += total[node]
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
    found, after = [], 0
    for index, value in enumerate(column):
        if value:
            found += [index - after, value]
            after = index + 1
    return found
