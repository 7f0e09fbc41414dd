# SPDX-License-Identifier: GPL-2.0-or-later
"""The tree of calls in which each node executed code of its own function alone.

In a profile a node may hold other functions' code as well: where the tree had as many nodes as it
may have, one stands for all that was called below it. Here these are its children.
"""

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import I32, I64, U64
from kdelta.counts.profile import CostColumns, Profile
from kdelta.counts.source_lines import SourceLines


class Nodes(msgspec.Struct, frozen=True, eq=False):
    """Arrays of shape (n,), as in CallTree; the first `kept` nodes are the profile's own.

    costs: what each executed itself. keys: of further nodes, sorted, what they were made of.
    """

    parent: I32
    function: I32
    context: npt.NDArray[np.uint8]
    task: I32
    site: U64
    entered: I64
    costs: CostColumns
    kept: int
    functions: int
    keys: I64

    def __len__(self) -> int:
        return len(self.parent)

    def of(self, node: npt.NDArray[Any], function: npt.NDArray[Any]) -> I64:
        """Of each pair of the profile's node and a function with code in it, the node here."""
        node = node.astype(np.int64)
        further = self.kept + np.searchsorted(self.keys, node * self.functions + function)
        return np.where(self.function[node] == function, node, further).astype(np.int64)


def nodes_of(profile: Profile) -> Nodes:
    """The nodes of a profile, with further ones after them where functions share one."""
    tree, row = profile.tree, profile.row_function()
    n = max(1, len(profile.functions))
    foreign = tree.function[profile.rows.node] != row
    keys = np.unique(profile.rows.node[foreign].astype(np.int64) * n + row[foreign])
    parent = (keys // n).astype(np.int32)
    none = np.zeros(len(keys), np.int64)
    nodes = Nodes(
        parent=np.concatenate([tree.parent, parent]).astype(np.int32),
        function=np.concatenate([tree.function, keys % n]).astype(np.int32),
        context=np.concatenate([tree.context, tree.context[parent]]),
        task=np.concatenate([tree.task, tree.task[parent]]),
        site=np.concatenate([tree.site, none.astype(np.uint64)]),
        entered=np.concatenate([tree.entered, none]),
        costs=CostColumns(*(none,) * 5),
        kept=len(tree),
        functions=n,
        keys=keys,
    )
    at = nodes.of(profile.rows.node, row)
    return msgspec.structs.replace(nodes, costs=profile.row_costs().summed(at, len(nodes)))


def function_places(profile: Profile, lines: SourceLines) -> list[tuple[str, int] | None]:
    """Where in the source each function begins: its file and line, or that of its first code that
    was executed, or None if unknown.
    """
    starts = [(function.origin, function.address) for function in profile.functions]
    if not lines:
        return [None] * len(starts)
    found = [lines.at(*start) for start in starts]
    costs = profile.address_costs()
    for index, address in zip(costs.function.tolist(), costs.address.tolist(), strict=True):
        found[index] = found[index] or lines.at(profile.functions[index].origin, address)
    # The last frame is of the function itself, those before it were inlined.
    return [(frames[-1].file, frames[-1].line) if frames else None for frames in found]
