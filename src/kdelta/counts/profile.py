# SPDX-License-Identifier: GPL-2.0-or-later
"""The profile of a region: what each function executed on each path of calls, down to the address.

A profile is made of rows: what one group of instructions (docs/formats.md) did as part of one node
of the tree of calls. All else is a sum of rows, so whatever is printed adds up to the region.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import I32, I64, U8, U16, U64, Flags, run_offsets, sums_at
from kdelta.counts.by_key import by_key
from kdelta.counts.model import CONTEXTS, Cost, FunctionCost, is_kernel, total_cost


class NodeEntry(IntEnum):
    """How control came to a node of the tree."""

    ROOT = 0  # where a task was when it was first seen, or where it starts
    CALL = 1
    TAIL = 2  # by a jump out of another function, with whose return it ends
    SYSCALL = 3
    EXCEPTION = 4
    INTERRUPT = 5  # a root of its own: it is on the task's time, and none of its work
    SIGNAL = 6  # a handler, on the way back from the kernel
    FOLDED = 7  # all that was called below a node when the tree had as many as it may


class ProfiledFunction(msgspec.Struct, frozen=True, array_like=True):
    """`origin` as in FunctionCost: "kernel", "[module]", "[vdso]" or the user's binary. `address`
    is where it starts; in a user's program, in its file; 0 if unknown.
    """

    origin: str
    name: str
    address: int = 0


class Task(msgspec.Struct, frozen=True, array_like=True):
    """The tasks that execute one program, each from its begin, or its last exec, on. `program` is a
    binary, or "kernel" for the kernel's own threads, or "[unknown]".
    """

    program: str


class CallTree(msgspec.Struct, frozen=True, eq=False):
    """Arrays of shape (n,) for n nodes; a parent comes before its children.

    parent: index of the caller's node, -1 for a root. function, task: indexes into the profile's.
    entry: an Entry. context: index into CONTEXTS. site: address of the instruction in the parent
    that called; 0 where there is none. entered: how often control came to it from its parent; of
    what was under way when the region began, the first time does not count.
    """

    parent: I32
    function: I32
    task: I32
    entry: U8
    context: U8
    site: U64
    entered: I64

    def __len__(self) -> int:
        return len(self.parent)

    def inclusive(self, own: I64) -> I64:
        """Of a figure of each node, the sum over the node and all below it: (n,)."""
        total = own.astype(np.int64, copy=True)
        for node in range(len(total) - 1, -1, -1):
            if self.parent[node] >= 0:
                total[self.parent[node]] += total[node]
        return total

    def path(self, node: int) -> list[int]:
        """The nodes from the root down to this one."""
        found = []
        while node >= 0:
            found.append(node)
            node = int(self.parent[node])
        return found[::-1]


class ExecutedCode(msgspec.Struct, frozen=True, eq=False):
    """The executed code: b blocks of g groups of k instructions, each in the order of the next.

    block_address (b,): virtual address, as it was executed. block_function (b,): index into the
    profile's functions. block_offset (b,): what to take from a virtual address for the one in the
    binary's file (0 in the kernel). text, text_start: the bytes of block i are
    text[text_start[i]:text_start[i + 1]]. group_block (g,): index of its block; the other columns
    of groups are those of docs/formats.md (`string` is is_string there). insn_* (k,): of each
    instruction its group, address, size in bytes, loads and stores (memory operands).
    """

    block_address: U64
    block_function: I32
    block_offset: U64
    text: bytes
    text_start: I64
    group_block: I32
    group_insns: U16
    group_inner_loads: U16
    group_inner_stores: U16
    group_special: U8
    group_string: U8
    group_element_bytes: U8
    group_loads: U8
    group_stores: U8
    insn_group: I32
    insn_address: U64
    insn_size: U8
    insn_loads: U8
    insn_stores: U8


class Rows(msgspec.Struct, frozen=True, eq=False):
    """What groups did as part of nodes: arrays of shape (m,), no (node, group) twice.

    entered, lost, elements, mmio: as of a region's rows in docs/formats.md.
    """

    node: I32
    group: I32
    entered: I64
    lost: I64
    elements: I64
    mmio: I64


_SUMS = ("insns", "string_iterations", "loads", "stores", "string_bytes")


class CostColumns(msgspec.Struct, frozen=True, eq=False):
    """A Cost for each of n things, as columns of shape (n,). No kind of `specials` is all 0."""

    insns: I64
    string_iterations: I64
    loads: I64
    stores: I64
    string_bytes: I64
    specials: Mapping[str, I64] = {}

    def __len__(self) -> int:
        return len(self.insns)

    def cost(self, index: int) -> Cost:
        """One of them."""
        kinds = {kind: int(row[index]) for kind, row in sorted(self.specials.items())}
        sums: dict[str, Any] = {name: int(getattr(self, name)[index]) for name in _SUMS}
        return Cost(**sums, specials={kind: count for kind, count in kinds.items() if count})

    def total(self) -> Cost:
        """The sum of all."""
        return self.summed(np.zeros(len(self), np.int64), 1).cost(0)

    def summed(self, key: npt.NDArray[np.integer], n: int) -> "CostColumns":
        """The sums by key, which is (n_old,) of values below n."""
        return self._each(lambda column: sums_at(key, column, n))

    def taken(self, index: npt.NDArray[np.integer] | Flags) -> "CostColumns":
        """Those of these indexes, or for which a mask holds."""
        return self._each(lambda column: column[index])

    def _each(self, change: Callable[[I64], I64]) -> "CostColumns":
        specials = {kind: change(column) for kind, column in self.specials.items()}
        sums: dict[str, Any] = {name: change(getattr(self, name)) for name in _SUMS}
        return CostColumns(**sums, specials={kind: c for kind, c in specials.items() if c.any()})


TALLY = ("entered", "lost", "elements", "mmio")
"""What is counted of a group, and of what it has (docs/formats.md)."""

GROUP_COLUMNS = (
    *("insns", "inner_loads", "inner_stores", "special"),
    *("string", "element_bytes", "loads", "stores"),
)

_REPEATED = 2  # of a string operation: with a repeat prefix
_COMPARED = 2  # operands of cmps
MMIO = "mmio"


def row_costs(
    group: Mapping[str, npt.NDArray[np.integer]] | npt.NDArray[np.void],
    tally: Mapping[str, I64],
    specials: Sequence[str],
) -> CostColumns:
    """The cost of rows; docs/formats.md has the arithmetic.

    group: columns as in its table of groups, of the group of each row. tally: what was counted of
    it, as of a region's rows there. specials: names of special instructions; 0 is none.
    """
    entered, elements = tally["entered"], tally["elements"]
    executed = entered - tally["lost"]
    loads, stores = group["loads"].astype(np.int64), group["stores"].astype(np.int64)
    # cmps reads two operands, and both were counted.
    elements = elements // np.where(loads == _COMPARED, _COMPARED, 1)
    again = np.where(group["string"] == _REPEATED, elements, 0)
    times = np.where(group["string"] != 0, elements, executed)
    ticks = group["insns"].astype(np.int64) * entered - tally["lost"]
    by_kind = {
        specials[kind]: np.where(group["special"] == kind, executed - again, 0)
        for kind in np.unique(group["special"])
        if kind
    }
    by_kind[MMIO] = tally["mmio"]
    return CostColumns(
        insns=ticks - again,
        string_iterations=again,
        loads=loads * times + group["inner_loads"] * entered,
        stores=stores * times + group["inner_stores"] * entered,
        string_bytes=elements * group["element_bytes"].astype(np.int64),
        specials={kind: column for kind, column in by_kind.items() if column.any()},
    )


class AddressCosts(msgspec.Struct, frozen=True, eq=False):
    """What single instructions cost: n of them, by node (if asked for), function and address.

    node, function (n,): indexes; node is -1 where nodes are summed up. address (n,): in the
    kernel's virtual memory, or in the user's binary. size (n,): in bytes. block (n,): one that
    holds it.
    """

    node: I32
    function: I32
    address: U64
    size: U8
    block: I32
    costs: CostColumns


class Profile(msgspec.Struct, frozen=True, eq=False):
    """One region of one run, all times that it ran together.

    specials: names of special instructions by the groups' index; 0 is none. `calls` says what was
    followed: "all", "kernel" (of user code a root alone is known), or "none" (roots only).
    """

    region: str
    iterations: int
    calls: str
    specials: tuple[str, ...]
    functions: tuple[ProfiledFunction, ...]
    tasks: tuple[Task, ...]
    tree: CallTree
    code: ExecutedCode
    rows: Rows

    def row_costs(self) -> CostColumns:
        """The cost of each row."""
        code, rows = self.code, self.rows
        group = {name: getattr(code, f"group_{name}")[rows.group] for name in GROUP_COLUMNS}
        return row_costs(group, {name: getattr(rows, name) for name in TALLY}, self.specials)

    def node_costs(self) -> CostColumns:
        """What each node executed itself: (n_nodes,)."""
        return self.row_costs().summed(self.rows.node, len(self.tree))

    def row_function(self) -> I32:
        """The function of each row's code."""
        return self.code.block_function[self.code.group_block[self.rows.group]]

    def function_costs(self) -> tuple[FunctionCost, ...]:
        """What each function executed in each context, as RegionCounts has it: in its order."""
        n = len(self.functions)
        context = self.tree.context[self.rows.node].astype(np.int64)
        costs = self.row_costs().summed(context * n + self.row_function(), len(CONTEXTS) * n)
        found = by_key(
            ((key // n, one.origin, one.name), costs.cost(key))
            for key in np.unique(context * n + self.row_function()).tolist()
            for one in [self.functions[key % n]]
        )
        whole = {label: total_cost(parts) for label, parts in found.items()}
        ranked = sorted(whole.items(), key=lambda i: (i[0][0], -i[1].insns, i[0][1:]))
        return tuple(
            FunctionCost(CONTEXTS[context], origin, name, cost)
            for (context, origin, name), cost in ranked
        )

    def in_kernel(self) -> Flags:
        """Of each function whether it is the kernel's or a module's: (n_functions,)."""
        return np.array([is_kernel(function.origin) for function in self.functions], bool)

    def address_costs(self, *, by_node: bool = False) -> AddressCosts:
        """Return what each instruction cost, by address, and by node if wanted.

        A group's rows are spread over its instructions: those before its last were executed each
        time that it was entered, the last one less what was lost; special, string and device
        accesses are the last one's.
        """
        code, rows = self.code, self.rows
        whole, entered, of = self.row_costs(), rows.entered, rows.group
        if not by_node:
            # A group is spread alike whatever the node: once then, and not for each of its rows.
            of, place = np.unique(rows.group, return_inverse=True)
            whole, entered = whole.summed(place, len(of)), sums_at(place, entered, len(of))
        ends = np.searchsorted(code.insn_group, np.arange(len(code.group_insns)), side="right")
        # A kind has no instructions: it is one of the last instruction's before it.
        per_row = np.maximum(code.group_insns.astype(np.int64), 1)[of]
        row = np.repeat(np.arange(len(of)), per_row)
        insn = (ends[of] - per_row)[row] + run_offsets(per_row)
        is_last = insn == ends[of][row] - 1
        whole, entered = whole.taken(row), entered[row]

        def spread(last: I64, inner: U8 | int) -> I64:
            """The row's figure less the inner ones' to the last, to each of the others its own."""
            return np.where(is_last, last, inner * entered).astype(np.int64)

        inner_insns = np.repeat(per_row - 1, per_row) * entered
        group = of[row]
        costs = CostColumns(
            insns=spread(whole.insns - inner_insns, 1),
            string_iterations=spread(whole.string_iterations, 0),
            loads=spread(
                whole.loads - code.group_inner_loads[group] * entered, code.insn_loads[insn]
            ),
            stores=spread(
                whole.stores - code.group_inner_stores[group] * entered, code.insn_stores[insn]
            ),
            string_bytes=spread(whole.string_bytes, 0),
            specials={kind: spread(column, 0) for kind, column in whole.specials.items()},
        )
        node = rows.node[row].astype(np.int64) if by_node else np.full(len(row), -1, np.int64)
        return self._by_address(node, insn, costs)

    def _by_address(
        self, node: I64, insn: npt.NDArray[np.integer], costs: CostColumns
    ) -> AddressCosts:
        """Costs of nodes' instructions summed up by node, function and address."""
        code = self.code
        block = code.group_block[code.insn_group[insn]]
        address = code.insn_address[insn] - code.block_offset[block]
        key = np.empty(len(insn), [("node", "i8"), ("function", "i8"), ("address", "u8")])
        key["node"], key["function"], key["address"] = node, code.block_function[block], address
        _, at, place = np.unique(key, return_index=True, return_inverse=True)
        return AddressCosts(
            node=node[at].astype(np.int32),
            function=code.block_function[block][at],
            address=address[at],
            size=code.insn_size[insn][at],
            block=block[at],
            costs=costs.summed(place.reshape(-1), len(at)),
        )
