# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as one tree of frames, for the formats that have one figure a stack.

Above the functions are three frames: the region, the context, and the program that the task
executes. Calls of the same function from different places are one frame.
"""

from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec
import numpy as np

from kdelta.counts.model import CONTEXTS
from kdelta.counts.profile import Profile, ProfiledFunction
from kdelta.report.exports.model import Naming, clean, figures, function_label
from kdelta.report.exports.nodes import function_places, nodes_of


class FrameKind(Enum):
    """What a frame is."""

    REGION = "region"
    CONTEXT = "context"
    PROGRAM = "program"
    FUNCTION = "function"


class ForestFrame(msgspec.Struct, frozen=True):
    """One frame; `function` is None above the functions, `place` its first line, if known."""

    kind: FrameKind
    label: str
    function: ProfiledFunction | None = None
    place: tuple[str, int] | None = None


class Forest(msgspec.Struct, frozen=True):
    """Nodes by their index, a parent before its children; roots, whose parent is -1, are regions.

    frame: index into frames. own: of the column. children: by node, most inclusive first; what
    has nothing of the column at or below it is left out, except for regions.
    """

    frames: tuple[ForestFrame, ...]
    parent: tuple[int, ...]
    frame: tuple[int, ...]
    own: tuple[int, ...]
    inclusive: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]

    @property
    def roots(self) -> tuple[int, ...]:
        """The regions."""
        return tuple(node for node, parent in enumerate(self.parent) if parent < 0)

    def label(self, node: int) -> str:
        return self.frames[self.frame[node]].label

    def programs(self, region: int) -> list[int]:
        return [top for context in self.children[region] for top in self.children[context]]

    def below(self, top: int) -> Iterator[int]:
        """A node and all below it, each before its children, in their order."""
        left = [top]
        while left:
            node = left.pop()
            yield node
            left.extend(reversed(self.children[node]))

    def path(self, node: int) -> list[int]:
        """The nodes from the root down to this one."""
        found = []
        while node >= 0:
            found.append(node)
            node = self.parent[node]
        return found[::-1]


def forest(profiles: Sequence[Profile], naming: Naming) -> Forest:
    """The tree of these regions with the column that `naming` asks for."""
    maker = _ForestMaker(naming)
    for profile in profiles:
        maker.add(profile)
    return maker.finished()


class _ForestMaker:
    """Nodes with the same frame below the same parent become one."""

    def __init__(self, naming: Naming) -> None:
        self.naming = naming
        self.frames: dict[ForestFrame, int] = {}
        self.nodes: dict[tuple[int, int], int] = {}
        self.own: list[int] = []

    def node(self, parent: int, kind: FrameKind, label: str) -> int:
        """The child with such a frame, which may be new."""
        return self.child(parent, self.index(ForestFrame(kind, label)))

    def child(self, parent: int, frame: int) -> int:
        """The child with that frame, which may be new."""
        found = self.nodes.setdefault((parent, frame), len(self.own))
        if found == len(self.own):
            self.own.append(0)
        return found

    def index(self, frame: ForestFrame) -> int:
        return self.frames.setdefault(frame, len(self.frames))

    def add(self, profile: Profile) -> None:
        tree = nodes_of(profile)
        own = figures(tree.costs).get(self.naming.column, np.zeros(len(tree), np.int64))
        places = function_places(profile, self.naming.lines)
        of_function = [
            self.index(ForestFrame(FrameKind.FUNCTION, function_label(function), function, place))
            for function, place in zip(profile.functions, places, strict=True)
        ]
        region = self.node(-1, FrameKind.REGION, clean(profile.region))
        tops: dict[tuple[int, int], int] = {}
        found: list[int] = []
        rows = (tree.parent, tree.function, tree.context, tree.task)
        for parent, function, context, task in zip(*(row.tolist() for row in rows), strict=True):
            if parent >= 0:
                found.append(self.child(found[parent], of_function[function]))
                continue
            if (context, task) not in tops:
                above = self.node(region, FrameKind.CONTEXT, CONTEXTS[context])
                program = clean(profile.tasks[task].program)
                tops[context, task] = self.node(above, FrameKind.PROGRAM, program)
            found.append(self.child(tops[context, task], of_function[function]))
        for node, value in zip(found, own.tolist(), strict=True):
            self.own[node] += value

    def finished(self) -> Forest:
        parent, frame = ([key[at] for key in self.nodes] for at in (0, 1))
        inclusive = list(self.own)
        for node in range(len(parent) - 1, -1, -1):
            if parent[node] >= 0:
                inclusive[parent[node]] += inclusive[node]
        children: list[list[int]] = [[] for _ in parent]
        for node, above in enumerate(parent):
            if above >= 0 and inclusive[node]:
                children[above].append(node)
        frames = tuple(self.frames)
        for row in children:
            row.sort(key=lambda node: (-inclusive[node], frames[frame[node]].label))
        return Forest(
            frames=frames,
            parent=tuple(parent),
            frame=tuple(frame),
            own=tuple(self.own),
            inclusive=tuple(inclusive),
            children=tuple(tuple(row) for row in children),
        )
