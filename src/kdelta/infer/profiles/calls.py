# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of calls: of several regions together, from the top down, and from a function up; and which
paths of calls brought what was added or removed from one run to another.

Nodes of one path of names are one node, whatever the sites of the calls and the tasks: above the
functions is the program that ran them, or that interrupts did. What a path costs is what its
function executed itself there, and inclusive of all that it called.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import I64, sums_at
from kdelta.counts.by_key import by_key
from kdelta.counts.model import CONTEXTS, Context
from kdelta.counts.profile import NodeEntry, Profile, ProfiledFunction
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.profiles.matching import Key, Match
from kdelta.infer.profiles.profile import FunctionLine, RegionProfile, Selection, code_part
from kdelta.spec.errors import LabError

TASK = "[task]"
"""The origin of what stands above functions: a program, interrupts, or another task's program."""

_NO_CALL = (NodeEntry.ROOT, NodeEntry.FOLDED)
_OTHERS = {"own": "", "interrupts": "interrupts", "other": "other task "}


class Calls(msgspec.Struct, frozen=True):
    """A tree of n nodes, a parent before its children; roots have the parent -1.

    key: origin and name. own, inclusive: of what was asked for. calls: how often control came to it
    from its parent.
    """

    key: tuple[Key, ...]
    parent: tuple[int, ...]
    own: tuple[int, ...]
    inclusive: tuple[int, ...]
    calls: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.key)

    @property
    def total(self) -> int:
        """The sum of all nodes."""
        return sum(self.own)

    def children(self) -> list[list[int]]:
        """Of each node those below it, most inclusive first."""
        below = self._below()
        return [below.get(node, []) for node in range(len(self))]

    def roots(self) -> list[int]:
        """Those without a parent, most inclusive first."""
        return self._below().get(-1, [])

    def _below(self) -> dict[int, list[int]]:
        nodes = sorted(range(len(self)), key=lambda node: (-self.inclusive[node], self.key[node]))
        return by_key((self.parent[node], node) for node in nodes)

    def path(self, node: int) -> tuple[Key, ...]:
        """The keys from the root down to this one."""
        found = []
        while node >= 0:
            found.append(self.key[node])
            node = self.parent[node]
        return tuple(found[::-1])


class _CallsMaker:
    def __init__(self) -> None:
        self.index: dict[tuple[int, Key], int] = {}
        self.own: list[int] = []
        self.calls: list[int] = []

    def node(self, parent: int, key: Key) -> int:
        found = self.index.setdefault((parent, key), len(self.own))
        if found == len(self.own):
            self.own.append(0)
            self.calls.append(0)
        return found

    def made(self) -> Calls:
        parents = tuple(parent for parent, _ in self.index)
        keys = tuple(key for _, key in self.index)
        inclusive = _with_below(self.own, parents)
        return Calls(keys, parents, tuple(self.own), tuple(inclusive), tuple(self.calls))


def _with_below(own: Sequence[int], parents: Sequence[int]) -> list[int]:
    """Of a figure of each node, the sum over the node and all below it."""
    found = list(own)
    for node in range(len(found) - 1, -1, -1):
        if parents[node] >= 0:
            found[parents[node]] += found[node]
    return found


def as_it_is(function: ProfiledFunction) -> Key:
    """A function as its symbol names it."""
    return function.origin, function.name


def source_name(function: ProfiledFunction) -> Key:
    """A function as its source names it."""
    return function.origin, strip_suffixes(function.name)


def merged_calls(
    profiles: Sequence[Profile],
    selection: Selection,
    key_of: Callable[[ProfiledFunction], Key] = as_it_is,
    leaves: frozenset[Key] = frozenset(),
) -> Calls:
    """Return the tree of these regions. Code that is not looked at has no cost, and stays in paths;
    what `leaves` call depends on their callers. LabError unless all that is looked at is in it.
    """
    maker = _CallsMaker()
    whole = sum(_add(maker, one, selection, key_of=key_of, leaves=leaves) for one in profiles)
    made = maker.made()
    if made.total != whole:
        raise LabError(
            f"the calls add up to {made.total}, and the regions to {whole}",
            "this is an error of kdelta; please report it",
        )
    return made


def _add(
    maker: _CallsMaker,
    profile: Profile,
    selection: Selection,
    *,
    key_of: Callable[[ProfiledFunction], Key],
    leaves: frozenset[Key],
) -> int:
    """Adds one region; returns what of it was looked at."""
    tree, keys = profile.tree, [key_of(function) for function in profile.functions]
    looked_at = [code_part(function.origin) in selection.parts for function in profile.functions]
    wanted = np.isin(tree.context, [CONTEXTS.index(one) for one in selection.contexts])
    columns = (tree.parent, tree.function, tree.context, tree.task, tree.entry, tree.entered)
    # Of each node the one here, and the one that what it called is below.
    found: list[int] = []
    below: list[int] = []
    rows = zip(wanted.tolist(), *(column.tolist() for column in columns), strict=True)
    for is_wanted, parent, function, context, task, entry, entered in rows:
        if not is_wanted:
            found.append(-1)
            below.append(-1)
            continue
        above = below[parent] if parent >= 0 else -1
        if above < 0:
            above = maker.node(-1, _task(CONTEXTS[context], profile.tasks[task].program))
        node = maker.node(above, keys[function])
        found.append(node)
        below.append(above if keys[function] in leaves else node)
        maker.calls[node] += 0 if entry in _NO_CALL else entered
    whole = 0
    own = zip(
        profile.rows.node.tolist(),
        profile.row_function().tolist(),
        profile.row_costs().insns.tolist(),
        strict=True,
    )
    for at, function, figure in own:
        if found[at] < 0 or not looked_at[function]:
            continue
        node = found[at]
        # Where a node stands for others as well, these are below it.
        if function != tree.function[at]:
            node = maker.node(below[at], keys[function])
        maker.own[node] += figure
        whole += figure
    return whole


def _task(context: Context, program: str) -> Key:
    if context == "interrupts":
        return TASK, "interrupts"
    return TASK, f"{_OTHERS[context]}{program}"


def called_profile(profile: Profile) -> RegionProfile:
    """Return a region whose calls were followed, by function, with what each called."""
    names = list(dict.fromkeys(as_it_is(function) for function in profile.functions))
    at = {key: index for index, key in enumerate(names)}
    label = np.array([at[as_it_is(one)] for one in profile.functions], np.int64)
    tree, rows = profile.tree, profile.rows
    n, insns = len(names), profile.row_costs().insns
    context = tree.context.astype(np.int64)
    node_label, row_label = label[tree.function], label[profile.row_function()]
    key_of_node, size = context * n + node_label, len(CONTEXTS) * n
    own = sums_at(rows.node, insns, len(tree))
    outer = ~_below_its_like(tree.parent, node_label, tree.parent, node_label)
    inclusive = sums_at(key_of_node[outer], tree.inclusive(own)[outer], size)
    # Of code in another function's node, all that it did is what it did itself.
    loose = ~_below_its_like(tree.parent, node_label, rows.node, row_label)
    inclusive += sums_at((context[rows.node] * n + row_label)[loose], insns[loose], size)
    called = ~np.isin(tree.entry, _NO_CALL)
    calls = sums_at(key_of_node[called], tree.entered[called], size)
    lines = []
    for row in profile.function_costs():
        key = CONTEXTS.index(row.context) * n + at[row.origin, row.name]
        lines.append(
            FunctionLine(
                row.context,
                row.origin,
                row.name,
                row.cost,
                calls=int(calls[key]),
                inclusive=int(inclusive[key]),
            )
        )
    # A region without marks for its iterations is one.
    return RegionProfile(profile.region, max(1, profile.iterations), tuple(lines))


def _below_its_like(
    parent: npt.NDArray[np.int32], node_label: I64, start: npt.NDArray[np.int32], label: I64
) -> npt.NDArray[np.bool_]:
    """Of each of n places whether its label is that of `start` or of a node above that: (n,)."""
    found = np.zeros(len(start), bool)
    at = start.astype(np.int64)
    while (alive := at >= 0).any():
        found[alive] |= node_label[at[alive]] == label[alive]
        at[alive] = parent[at[alive]]
    return found


def callers(calls: Calls, key: Key) -> Calls:
    """From a function up: its node is the root, below it are its callers, below them theirs. Each
    has what the function did, with all that it called, when it was called on that path.

    A function that calls itself, directly or not, is counted where it is outermost.
    """
    maker = _CallsMaker()
    for node in range(len(calls)):
        if calls.key[node] != key:
            continue
        path = calls.path(node)
        if key in path[:-1]:
            continue
        above = -1
        for name in reversed(path):
            above = maker.node(above, name)
            maker.calls[above] += calls.calls[node]
        # All of it is the outermost caller's: each node has the sum of what is below it.
        maker.own[above] += calls.inclusive[node]
    return maker.made()


class Shown(msgspec.Struct, frozen=True):
    """A line of a tree that is shown: a node, or what was cut below one (`cut` nodes). `depth`: how
    many branches are above it. `is_branch`: it is one of several below its parent; what is not is
    the only one below the line before it.
    """

    depth: int
    is_branch: bool
    key: Key
    own: int
    inclusive: int
    calls: int
    cut: int = 0


def shown_calls(calls: Calls, part: float) -> Iterator[Shown]:
    """The tree from its roots down, most inclusive first, cut where a node has less than that part
    of the whole; what was cut in one place is a line where it is as much as that. Raises LabError
    unless each node is the sum of its own and what is below it.
    """
    children, least = calls.children(), part * calls.total
    roots = [node for node in calls.roots() if calls.inclusive[node] >= max(1, least)]
    left: list[tuple[int, int, bool] | Shown] = [
        (node, 0, len(roots) > 1) for node in reversed(roots)
    ]
    while left:
        top = left.pop()
        if isinstance(top, Shown):
            yield top
            continue
        node, depth, branch = top
        figures = calls.own[node], calls.inclusive[node], calls.calls[node]
        yield Shown(depth, branch, calls.key[node], *figures)
        below = [child for child in children[node] if calls.inclusive[child] > 0]
        kept = [child for child in below if calls.inclusive[child] >= least]
        cut = below[len(kept) :]
        rest = sum(calls.inclusive[child] for child in cut)
        if calls.own[node] + rest + sum(calls.inclusive[c] for c in kept) != calls.inclusive[node]:
            raise LabError(
                f"what {calls.key[node][1]} called does not add up to what it cost",
                "this is an error of kdelta; please report it",
            )
        is_counted = bool(cut) and rest >= least
        branches = len(kept) + is_counted > 1
        below_it = depth + branches
        if is_counted:
            left.append(Shown(below_it, branches, ("", ""), 0, rest, 0, len(cut)))
        left += [(child, below_it, branches) for child in reversed(kept)]


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

    return lambda function: known.get(as_it_is(function), source_name(function))


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
    and `is_branch` as in Shown.
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
    moved = _with_below([abs(one.added_own) for one in changes], [one.parent for one in changes])
    children = by_key((one.parent, node) for node, one in enumerate(changes))
    roots = children.get(-1, [])
    least = max(1, part * sum(moved[root] for root in roots))

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
        below_it = children.get(node, [])
        kept = [child for child in below_it if moved[child] >= least]
        cut = [child for child in below_it if 0 < moved[child] < least]
        rest = sum(changes[child].added for child in cut)
        if one.added_own + rest + sum(changes[child].added for child in kept) != one.added:
            raise LabError("paths of calls do not add up", "this is an error of kdelta")
        branches = len(kept) + bool(rest) > 1
        below = depth + branches
        if rest:
            left.append(ShownChange(below, branches, ("", ""), rest, 0, 0, 0, len(cut)))
        left += [(child, below, branches) for child in sorted(kept, key=order, reverse=True)]
