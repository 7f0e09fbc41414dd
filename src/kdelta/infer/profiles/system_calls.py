# SPDX-License-Identifier: GPL-2.0-or-later
"""A region's work in the kernel by system call: how many of each, and what each cost."""

import enum
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import sums_at
from kdelta.counts.model import CONTEXTS, KERNEL, RegionCounts
from kdelta.counts.profile import NodeEntry, Profile
from kdelta.spec.errors import LabError

_OWN, _INTERRUPTS = CONTEXTS.index("own"), CONTEXTS.index("interrupts")
_COMPAT = ("ia32", "x32", "compat")
"""What the names of functions have that serve programs of another word size."""


class PartKind(enum.StrEnum):
    """Why the kernel executed something for a program."""

    SYSTEM_CALL = "system call"
    EXCEPTION = "exception"
    ENTRY = "entry and exit"
    NEW_TASK = "new task"
    INTERRUPT = "interrupt"


class KernelCost(msgspec.Struct, frozen=True):
    """A part of a region's instructions in the kernel. name: of the system call, or of the kind of
    exception. count: how often; None where there is nothing to count.
    """

    kind: PartKind
    name: str
    count: int | None
    insns: int

    @property
    def key(self) -> tuple[PartKind, str]:
        """What distinguishes it from the other parts of its region."""
        return self.kind, self.name


class CallNames(msgspec.Struct, frozen=True):
    """How an architecture names what enters its kernel. prefixes: of the functions of system calls.
    names: of system calls, by the rest of such a function's name, where they differ. page_faults,
    starts: functions that a page fault enters by, and that a new task begins with.
    """

    prefixes: tuple[str, ...]
    names: Mapping[str, str] = {}
    page_faults: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()

    def system_call(self, function: str) -> str:
        """Return the name of the system call that a function is of; empty if it is of none."""
        for prefix in sorted(self.prefixes, key=len, reverse=True):
            if function.startswith(prefix) and function != prefix:
                rest = function.removeprefix(prefix).partition(".")[0]
                name = self.names.get(rest, rest)
                return f"{name} (compat)" if any(word in prefix for word in _COMPAT) else name
        return ""


_ENTRY = (PartKind.ENTRY, "entry and exit")
_NEW_TASK = (PartKind.NEW_TASK, "start of new tasks")
_INTERRUPT = (PartKind.INTERRUPT, "interrupts")
_PAGE_FAULTS = (PartKind.EXCEPTION, "page faults")
_EXCEPTIONS = (PartKind.EXCEPTION, "other exceptions")
_Key = tuple[PartKind, str]


def kernel_parts(
    profile: Profile, counts: RegionCounts, names: CallNames
) -> tuple[KernelCost, ...]:
    """Return what the kernel executed for the region's tasks, and what interrupts executed on their
    time: system calls first, of these the most expensive first.

    A fault that a system call takes on its way is a part of that call. LabError unless all of it
    adds up to what was counted, and for a tree of calls that had too many nodes to be whole.
    """
    found = _Parts(profile, names)
    insns = profile.row_costs().insns
    in_kernel = profile.in_kernel()[profile.row_function()]
    each = sums_at(profile.rows.node, np.where(in_kernel, insns, 0), len(profile.tree))
    sums: dict[_Key, int] = {}
    for node, key in enumerate(found.keys):
        if key is not None and (each[node] or key in found.counts):
            sums[key] = sums.get(key, 0) + int(each[node])
    parts = tuple(KernelCost(*key, found.counts.get(key), total) for key, total in sums.items())
    _must_add_up(parts, counts)
    order = list(PartKind)
    return tuple(sorted(parts, key=lambda one: (order.index(one.kind), -one.insns, one.name)))


class _Parts:
    """Of each node of the tree the part that it belongs to, if any; and how often parts began."""

    def __init__(self, profile: Profile, names: CallNames) -> None:
        self.keys: list[_Key | None] = []
        self.counts: dict[_Key, int] = {}
        self._calls = [
            names.system_call(one.name) if one.origin == KERNEL else "" for one in profile.functions
        ]
        self._functions = [one.name for one in profile.functions]
        self._names = names
        self._region = profile.region
        tree = profile.tree
        columns = (tree.parent, tree.function, tree.entry, tree.context, tree.entered)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            self._add(*row)

    def _add(self, parent: int, function: int, entry: int, context: int, entered: int) -> None:
        above = self.keys[parent] if parent >= 0 else None
        if context == _INTERRUPTS:
            key: _Key | None = _INTERRUPT
            begins = entry == NodeEntry.INTERRUPT and parent < 0
        elif context != _OWN:
            key, begins = None, False
        elif above is not None and above[0] in {PartKind.SYSTEM_CALL, PartKind.EXCEPTION}:
            key, begins = above, False
        else:
            key, begins = self._began(function, entry, above)
        if key is not None and entry == NodeEntry.FOLDED and key[0] is PartKind.ENTRY:
            raise LabError(
                f"region {self._region}: there are too many paths of calls to count system calls",
                "measure a shorter run of the program",
            )
        if key is not None and begins:
            self.counts[key] = self.counts.get(key, 0) + entered
        self.keys.append(key)

    def _began(self, function: int, entry: int, above: _Key | None) -> tuple[_Key, bool]:
        """The part that begins with a node of a task's own work, or goes on in it."""
        if call := self._calls[function]:
            return (PartKind.SYSTEM_CALL, call), True
        if entry == NodeEntry.EXCEPTION:
            is_page_fault = self._functions[function] in self._names.page_faults
            return (_PAGE_FAULTS if is_page_fault else _EXCEPTIONS), True
        if self._functions[function] in self._names.starts:
            return _NEW_TASK, above != _NEW_TASK
        return above or _ENTRY, False


def _must_add_up(parts: Sequence[KernelCost], counts: RegionCounts) -> None:
    """The sums against the counts of the region."""
    interrupts = sum(one.insns for one in parts if one.kind is PartKind.INTERRUPT)
    own = sum(one.insns for one in parts) - interrupts
    wanted = counts.cost("own", kernel=True).insns, counts.cost("interrupts").insns
    if (own, interrupts) != wanted:
        raise LabError(
            f"region {counts.name}: system calls and the rest add up to {own} instructions of the "
            f"kernel and {interrupts} of interrupts, not {wanted[0]} and {wanted[1]}",
            "this is a fault of kdelta's; please report it with the kernel and the program",
        )


class KernelCostChange(msgspec.Struct, frozen=True):
    """A part on both sides: how often, and instructions. A side that has it not has zeros."""

    kind: PartKind
    name: str
    old_count: int | None
    new_count: int | None
    old_insns: int
    new_insns: int

    @property
    def added(self) -> int:
        """Instructions that the new side has more."""
        return self.new_insns - self.old_insns


def part_changes(
    old: Sequence[KernelCost], new: Sequence[KernelCost]
) -> tuple[KernelCostChange, ...]:
    """Return the parts of two runs side by side: system calls first, the largest change first."""
    ours, theirs = ({one.key: one for one in side} for side in (old, new))
    found = []
    for key in {**ours, **theirs}:
        counted = any(one.count is not None for one in (ours.get(key), theirs.get(key)) if one)
        none = KernelCost(*key, 0 if counted else None, 0)
        a, b = ours.get(key, none), theirs.get(key, none)
        found.append(KernelCostChange(*key, a.count, b.count, a.insns, b.insns))
    order = list(PartKind)
    return tuple(
        sorted(
            found,
            key=lambda one: (order.index(one.kind), -abs(one.added), -one.new_insns, one.name),
        )
    )
