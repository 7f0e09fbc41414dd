# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's nodes become a tree of functions: what is alike is one, and jumps out of a function
are nodes of their own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, U64, Flags, run_offsets, sums_at
from kdelta.counts.by_key import by_key
from kdelta.counts.model import CONTEXTS, KERNEL, UNKNOWN
from kdelta.counts.profile import TALLY, CallTree, NodeEntry, Task
from kdelta.counts.raw import CodeMap, Place, RawCounts

USER_CODE = "[user code]"
"""The function of a task's user code where that was not followed."""


_INTERRUPTS = CONTEXTS.index("interrupts")
_IN_SAME_CODE = frozenset({NodeEntry.CALL, NodeEntry.TAIL, NodeEntry.SIGNAL})


class GroupRows(msgspec.Struct, frozen=True, eq=False):
    """What groups did: columns of n rows. node and group are indexes, context into CONTEXTS."""

    node: I64
    context: I64
    group: I64
    entered: I64
    lost: I64
    elements: I64
    mmio: I64

    def __len__(self) -> int:
        return len(self.node)

    def joined(self, other: "GroupRows", node: int | None = None) -> "GroupRows":
        """These and the others; with `node` all of that one."""
        columns = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in self.__struct_fields__
        }
        if node is not None:
            columns["node"] = np.full(len(columns["node"]), node, np.int64)
        return GroupRows(**columns)

    def summed(self) -> "GroupRows":
        """One row of each node, context and group, in that order; those of zero are left out."""
        n_groups = 1 + int(self.group.max(initial=0))
        key = (self.node * len(CONTEXTS) + self.context) * n_groups + self.group
        keys, place = np.unique(key, return_inverse=True)
        sums = {name: sums_at(place.reshape(-1), getattr(self, name), len(keys)) for name in TALLY}
        kept = np.logical_or.reduce([column != 0 for column in sums.values()])
        keys = keys[kept]
        rest, group = np.divmod(keys, n_groups)
        node, context = np.divmod(rest, len(CONTEXTS))
        return GroupRows(node, context, group, *(sums[name][kept] for name in TALLY))

    def shown(self, row: int) -> str:
        """One of them, for a message."""
        words = [f"{name} {int(getattr(self, name)[row]):+d}" for name in TALLY]
        context = CONTEXTS[int(self.context[row])]
        return f"group {int(self.group[row])}, {context}: {', '.join(words)}"


class RawTree(msgspec.Struct, frozen=True, eq=False):
    """Nodes as the plugin has them: columns of n rows. `block` and `site_block` are numbers of
    blocks or -1, `task` the number of a root's. `is_return`: the site is where the call returns to.
    entered: (n, contexts).
    """

    parent: I64
    task: I64
    block: I64
    site_block: I64
    entry: I64
    site: U64
    is_return: Flags
    entered: I64
    rows: GroupRows


class Key(NamedTuple):
    """What distinguishes a node from others. parent: a number; function: an index into places."""

    parent: int
    function: int
    entry: int
    site: int
    context: int
    task: int


class Grown:
    """The tree of a profile while it grows. Nodes have numbers in the order in which they came
    about; `rows` are by these. user_code: the function of user code that was not followed.
    calls_before: where the call is that returns to an address.
    """

    def __init__(self, calls: str, code: CodeMap) -> None:
        self.calls = calls
        self.places: list[Place] = list(code.places)
        self.keys: list[Key] = []
        self.entered: list[int] = []
        self.tasks: tuple[Task, ...] = ()
        self.rows: list[GroupRows] = []
        self._numbers: dict[Key, int] = {}
        self._whole: set[int] = set()
        self.user_code = len(self.places)
        self.calls_before: dict[int, int] = {}
        if calls == "kernel":
            self.places.append((UNKNOWN, USER_CODE, 0))

    def node(self, key: Key, entered: int = 0, *, whole: bool = False) -> int:
        """The node's number; whole: code of other functions is no node of its own in it."""
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.entered.append(0)
            if whole:
                self._whole.add(number)
        self.entered[number] += entered
        return number

    def within(self, node: int, function: int, entered: int = 0, *, began: bool = True) -> int:
        """Where code of that function is when it is executed as part of the node. If it did not
        begin there, it may be that of a caller, to which control came back by a long jump.
        """
        key = self.keys[node]
        if function == key.function or node in self._whole:
            return node
        caller = -1 if began else self._caller(node, function)
        if caller >= 0:
            return caller
        return self.node(Key(node, function, NodeEntry.TAIL, 0, key.context, key.task), entered)

    def _caller(self, node: int, function: int) -> int:
        """The nearest caller that is that function, in the same code; -1 if there is none."""
        while self.keys[node].entry in _IN_SAME_CODE:
            node = self.keys[node].parent
            if self.keys[node].function == function:
                return node
        return -1

    def order(self) -> I64:
        """Numbers, a parent before its children; what is alike in each run in the same order."""
        rank = np.empty(len(self.places), np.int64)
        rank[sorted(range(len(self.places)), key=self.places.__getitem__)] = np.arange(
            len(self.places)
        )
        children = by_key((key.parent, number) for number, key in enumerate(self.keys))
        found: list[int] = []
        todo = [-1]
        while todo:
            node = todo.pop()
            if node >= 0:
                found.append(node)
            below = children.get(node, [])
            below.sort(key=lambda n: (rank[self.keys[n].function], self.keys[n][2:]), reverse=True)
            todo += below
        return np.array(found, np.int64)

    def numbered(self) -> CallTree:
        """With the numbers that `order` gives."""
        order = self.order()
        index = np.full(len(order) + 1, -1, np.int64)  # the last is that of no parent
        index[order] = np.arange(len(order))
        columns = np.array([self.keys[n][:3] + self.keys[n][4:] for n in order], np.int64)
        columns = columns.reshape(-1, 5)
        return CallTree(
            parent=index[columns[:, 0]].astype(np.int32),
            function=columns[:, 1].astype(np.int32),
            task=columns[:, 4].astype(np.int32),
            entry=columns[:, 2].astype(np.uint8),
            context=columns[:, 3].astype(np.uint8),
            site=np.array([self.keys[n].site for n in order], np.uint64),
            entered=np.array([self.entered[n] for n in order], np.int64),
        )


def grown(found: Grown, trees: Sequence[RawTree], raw: RawCounts, code: CodeMap) -> None:
    """Makes the tree of all times that a region ran."""
    growths = [_Growth(found, tree, raw, code) for tree in trees]
    tasks = [_tasks(growth.tree, growth.levels) for growth in growths]
    numbers, programs = _programs(trees, tasks, raw, code)
    names, index = np.unique(np.array(programs), return_inverse=True)
    found.tasks = tuple(Task(str(name)) for name in names)
    for growth, task in zip(growths, tasks, strict=True):
        growth.grow(index[np.searchsorted(numbers, task)])


def _levels(parent: I64) -> list[I64]:
    """Roots, what they call, what that calls, ..."""
    by_parent = np.argsort(parent, kind="stable")
    sorted_parent = parent[by_parent]
    found = []
    level = np.flatnonzero(parent < 0)
    while len(level):
        found.append(level)
        first = np.searchsorted(sorted_parent, level)
        n = np.searchsorted(sorted_parent, level, side="right") - first
        level = by_parent[np.repeat(first, n) + run_offsets(n)]
    return found


def _tasks(tree: RawTree, levels: list[I64]) -> I64:
    """The number of each node's task."""
    task = tree.task.copy()
    for level in levels[1:]:
        task[level] = task[tree.parent[level]]
    return task


def _programs(
    trees: Sequence[RawTree], tasks: Sequence[I64], raw: RawCounts, code: CodeMap
) -> tuple[I64, list[str]]:
    """The numbers of tasks, and of each the program that it executes: of the binaries in which it
    was, the one that is a program, not a library.
    """
    numbers = np.unique(np.concatenate(tasks))
    weights: list[dict[str, int]] = [{} for _ in numbers]
    is_user = np.zeros(len(numbers), bool)
    block_of_group = np.repeat(
        np.fromiter(raw.first_group, np.int64, len(raw.first_group)),
        np.diff([*raw.first_group.values(), len(raw.groups)]),
    )
    user = np.zeros(len(code.of_block), bool)
    user[list(raw.user)] = True
    for tree, task in zip(trees, tasks, strict=True):
        rows = tree.rows
        block = np.concatenate([block_of_group[rows.group], tree.block])
        insns = np.concatenate(
            [raw.groups["insns"][rows.group] * rows.entered, np.zeros(len(tree.block), np.int64)]
        )
        of_task = np.searchsorted(numbers, np.concatenate([task[rows.node], task]))
        chosen = (block >= 0) & user[block]
        keys, place = np.unique(of_task[chosen] * len(user) + block[chosen], return_inverse=True)
        sums = sums_at(place.reshape(-1), insns[chosen], len(keys))
        for k, weight in zip(keys, sums, strict=True):
            index, number = divmod(int(k), len(user))
            is_user[index] = True
            owner = code.owners.get(number)
            if owner and owner.is_program:
                known = weights[index]
                known[owner.name] = known.get(owner.name, 0) + int(weight)
    found = []
    for names, executes in zip(weights, is_user, strict=True):
        best = min(names, key=lambda name: (-names[name], name)) if names else UNKNOWN
        found.append(best if executes else KERNEL)
    return numbers, found


def _interrupting(tree: RawTree, levels: list[I64]) -> tuple[Flags, Flags]:
    """Nodes that are below an interrupt's entry; and entries of what may be one, which are the
    first on their path: where an architecture has one entry for all, what is executed before it is
    known to be an interrupt.
    """
    below = tree.entry == NodeEntry.INTERRUPT
    seen = np.isin(tree.entry, (NodeEntry.INTERRUPT, NodeEntry.EXCEPTION))
    first = seen & ~below
    for level in levels[1:]:
        parent = tree.parent[level]
        below[level] |= below[parent]
        first[level] &= ~seen[parent]
        seen[level] |= seen[parent]
    return below, first


class _Growth:
    """One time that the region ran, which goes into the tree."""

    def __init__(self, found: Grown, tree: RawTree, raw: RawCounts, code: CodeMap) -> None:
        self.found, self.tree, self.raw, self.code = found, tree, raw, code
        self.levels = _levels(tree.parent)
        below, first = _interrupting(tree, self.levels)
        self.cut: Flags = first & ~below
        self.number: I64 = np.full(tree.entered.shape, -1, np.int64)  # by node and context
        self.began = self._beginnings()
        self.function: I64 = np.where(tree.block >= 0, code.of_block[tree.block], 0)

    def grow(self, task: I64) -> None:
        """All nodes and rows; task: of each node, an index."""
        needed = self._needed()
        for level in self.levels:
            for node in level.tolist():
                for context in np.flatnonzero(needed[node]).tolist():
                    self._add(node, context, int(task[node]))
        self.found.rows.append(self._split())

    def _needed(self) -> Flags:
        """In which contexts there is something of each node, or of what it called: (n, contexts).
        Of interrupts that ends where they cut.
        """
        tree = self.tree
        needed: Flags = tree.entered != 0
        needed[tree.rows.node, tree.rows.context] = True
        for level in reversed(self.levels[1:]):
            above = needed[level]
            above[:, _INTERRUPTS] &= ~self.cut[level]
            np.logical_or.at(needed, tree.parent[level], above)
        return needed

    def _add(self, node: int, context: int, task: int) -> None:
        tree = self.tree
        entry, site = int(tree.entry[node]), int(tree.site[node])
        function, whole = int(self.function[node]), entry == NodeEntry.FOLDED
        if self.found.calls == "kernel" and int(tree.block[node]) in self.raw.user:
            function, whole = self.found.user_code, True
        if tree.is_return[node]:
            site = self.found.calls_before.get(site, 0)
        parent = int(tree.parent[node])
        if context == _INTERRUPTS and self.cut[node]:
            parent, entry, site = -1, int(NodeEntry.INTERRUPT), 0
        elif parent >= 0:
            parent = int(self.number[parent, context])
            if tree.site_block[node] >= 0:
                of_site = int(self.code.of_block[tree.site_block[node]])
                began = (int(tree.parent[node]), of_site) in self.began
                parent = self.found.within(parent, of_site, began=began)
        self.number[node, context] = self.found.node(
            Key(parent, function, entry, site, context, task),
            int(tree.entered[node, context]),
            whole=whole,
        )

    def _blocks_of_rows(self) -> tuple[I64, U64]:
        """The block of each row, and its address."""
        raw = self.raw
        first = np.fromiter(raw.first_group.values(), np.int64, len(raw.first_group))
        which = np.searchsorted(first, self.tree.rows.group, side="right") - 1
        blocks = np.fromiter(raw.first_group, np.int64, len(raw.first_group))
        return blocks[which], np.fromiter(raw.vaddr.values(), np.uint64, len(raw.vaddr))[which]

    def _beginnings(self) -> set[tuple[int, int]]:
        """Nodes, and functions (as places) that were executed in them from their begin on."""
        block, vaddr = self._blocks_of_rows()
        function = self.code.of_block[block]
        starts = np.array([place[2] for place in self.code.places], np.uint64)
        begins = vaddr - self.code.offset[block] == starts[function]
        return set(
            zip(self.tree.rows.node[begins].tolist(), function[begins].tolist(), strict=True)
        )

    def _split(self) -> GroupRows:
        """The rows by the numbers of nodes; code of another function goes to a node of its own."""
        rows = self.tree.rows
        block, vaddr = self._blocks_of_rows()
        function = self.code.of_block[block]
        # Of each node of the plugin's, since several may be one here: those of alike tasks.
        key = (rows.node * len(CONTEXTS) + rows.context) * len(self.found.places) + function
        keys, at, place = np.unique(key, return_index=True, return_inverse=True)
        # As often as its first block that is executed there, of which there may be several
        # translations: the jumps are not recorded.
        lowest = np.full(len(keys), np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(lowest, place, vaddr)
        first = (vaddr == lowest[place]) & (rows.group == self.raw.first_groups()[block])
        entered = sums_at(place[first], rows.entered[first], len(keys))
        moved = [
            self.found.within(
                int(self.number[rows.node[row], rows.context[row]]),
                int(function[row]),
                int(times),
                began=(int(rows.node[row]), int(function[row])) in self.began,
            )
            for row, times in zip(at, entered, strict=True)
        ]
        return msgspec.structs.replace(rows, node=np.array(moved, np.int64)[place])
