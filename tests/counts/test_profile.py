# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums of a profile: by node, inclusive, by function and by address."""

import numpy as np

from kdelta.counts.model import Cost, FunctionCost
from tests.profiles import profile_of

STACKS = {
    ("work:main",): 10,
    ("work:main", "work:call"): 5,
    ("work:main", "work:call", "do_syscall_64"): 7,
    ("work:main", "do_syscall_64"): 3,
    ("asm_interrupt",): 2,
}


def test_inclusive_sums_reach_the_root() -> None:
    profile = profile_of(STACKS, contexts={("asm_interrupt",): 1})
    own = profile.node_costs().insns
    assert own.tolist() == [10, 5, 7, 3, 2]
    assert profile.tree.inclusive(own).tolist() == [25, 12, 7, 3, 2]
    assert profile.tree.path(2) == [0, 1, 2]


def test_functions_add_up_over_their_nodes() -> None:
    profile = profile_of(STACKS, contexts={("asm_interrupt",): 1})
    assert profile.function_costs() == (
        FunctionCost("own", "kernel", "do_syscall_64", Cost(10)),
        FunctionCost("own", "work", "main", Cost(10)),
        FunctionCost("own", "work", "call", Cost(5, loads=5)),
        FunctionCost("interrupts", "kernel", "asm_interrupt", Cost(2)),
    )
    assert profile.in_kernel().tolist() == [False, False, True, True]


def test_addresses_add_up_to_the_rows() -> None:
    profile = profile_of(STACKS)
    flat, by_node = profile.address_costs(), profile.address_costs(by_node=True)
    assert flat.costs.insns.tolist() == [10, 5, 10, 2]
    assert flat.address.tolist() == [0x1000, 0x2000, 0x3000, 0x4000]
    assert np.all(flat.node == -1)
    assert by_node.costs.insns.tolist() == [10, 5, 7, 3, 2]
    assert by_node.node.tolist() == [0, 1, 2, 3, 4]
    assert flat.costs.total() == by_node.costs.total() == profile.row_costs().total()
