# SPDX-License-Identifier: GPL-2.0-or-later
"""Which paths of calls brought what was added or removed from one run to another."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from kdelta.counts.profile import Profile, ProfiledFunction
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.profiles.calls import Calls, merged_calls
from kdelta.infer.profiles.matching import Key, Match
from kdelta.infer.profiles.profile import Selection
from kdelta.spec.errors import LabError


class CallChange(msgspec.Struct, frozen=True):
    """A path of calls on both sides: what its last function executed itself, what it did with all
    that it called, and how often it was called on that path.
    """

    key: Key
    parent: int
    a_own: int
    b_own: int
    a_inclusive: int
    b_inclusive: int
    a_calls: int
    b_calls: int

    @property
    def added(self) -> int:
        """B's less A's, inclusive."""
        return self.b_inclusive - self.a_inclusive

    @property
    def added_own(self) -> int:
        """B's less A's, alone."""
        return self.b_own - self.a_own


def matched_calls(
    profiles: tuple[Sequence[Profile], Sequence[Profile]],
    selection: Selection,
    matches: Sequence[Match],
    jumps_on: frozenset[Key] = frozenset(),
) -> tuple[CallChange, ...]:
    """The paths of both sides, a parent before its children, by what functions are matched to.

    A function that is on one side only is on a path of its own: what it called is below its caller,
    where the other side has it when the function was inlined there. So are those of `jumps_on`.
    """
    names = [_names(matches, side) for side in range(2)]
    lone = jumps_on.union((m.origin, m.name) for m in matches if not m.a or not m.b)
    a, b = (merged_calls(profiles[side], selection, names[side], leaves=lone) for side in range(2))
    return calls_diff(a, b)


def _names(matches: Sequence[Match], side: int) -> Callable[[ProfiledFunction], Key]:
    """What a function of that side is called on both."""
    known: Mapping[Key, Key] = {
        key: (match.origin, match.name)
        for match in matches
        for key in (match.b if side else match.a)
    }

    def name(function: ProfiledFunction) -> Key:
        plain = (function.origin, strip_suffixes(function.name))
        return known.get((function.origin, function.name), plain)

    return name


def calls_diff(a: Calls, b: Calls) -> tuple[CallChange, ...]:
    """Two trees as one: nodes of one path are one."""
    index: dict[tuple[int, Key], int] = {}
    rows: list[list[int]] = []
    for side, calls in enumerate((a, b)):
        found: list[int] = []
        for node, key in enumerate(calls.key):
            parent = found[calls.parent[node]] if calls.parent[node] >= 0 else -1
            at = index.setdefault((parent, key), len(rows))
            if at == len(rows):
                rows.append([0] * 6)
            found.append(at)
            for place, column in enumerate((calls.own, calls.inclusive, calls.calls)):
                rows[at][2 * place + side] += column[node]
    made = tuple(
        CallChange(key, parent, *row) for (parent, key), row in zip(index, rows, strict=True)
    )
    if sum(one.added_own for one in made) != b.total - a.total:
        raise LabError("paths of calls do not add up", "this is an error of kdelta")
    return made


class ShownChange(msgspec.Struct, frozen=True):
    """A line of the tree that is shown: a path, or what was cut below one (`cut` nodes); `depth`
    and `is_branch` as in calls.Shown.
    """

    depth: int
    is_branch: bool
    key: Key
    added: int
    added_own: int
    a_calls: int
    b_calls: int
    cut: int = 0


def shown_changes(changes: Sequence[CallChange], part: float) -> Iterator[ShownChange]:
    """The tree from its roots down, what added most first, without that at and below which nothing
    changed by that part of all changes (of either sign). What is cut below a node is one line.
    """
    moved = [abs(one.added_own) for one in changes]
    for node in range(len(changes) - 1, -1, -1):
        if changes[node].parent >= 0:
            moved[changes[node].parent] += moved[node]
    roots = [node for node, one in enumerate(changes) if one.parent < 0]
    least = max(1, part * sum(moved[root] for root in roots))
    children: list[list[int]] = [[] for _ in changes]
    for node, one in enumerate(changes):
        if one.parent >= 0:
            children[one.parent].append(node)

    def order(node: int) -> tuple[int, Key]:
        return -changes[node].added, changes[node].key

    roots = [root for root in sorted(roots, key=order, reverse=True) if moved[root] >= least]
    left: list[tuple[int, int, bool] | ShownChange] = [(node, 0, len(roots) > 1) for node in roots]
    while left:
        top = left.pop()
        if isinstance(top, ShownChange):
            yield top
            continue
        node, depth, branch = top
        one = changes[node]
        figures = one.added, one.added_own, one.a_calls, one.b_calls
        yield ShownChange(depth, branch, one.key, *figures)
        kept = [child for child in children[node] if moved[child] >= least]
        cut = [child for child in children[node] if moved[child] < least and moved[child]]
        rest = sum(changes[child].added for child in cut)
        if one.added_own + rest + sum(changes[child].added for child in kept) != one.added:
            raise LabError("paths of calls do not add up", "this is an error of kdelta")
        branches = len(kept) + bool(rest) > 1
        below = depth + branches
        if rest:
            left.append(ShownChange(below, branches, ("", ""), rest, 0, 0, 0, len(cut)))
        left += [(child, below, branches) for child in sorted(kept, key=order, reverse=True)]
