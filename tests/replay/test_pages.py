# SPDX-License-Identifier: GPL-2.0-or-later
"""Orders as linked, with the borders of pages at random places."""

import numpy as np

from kdelta.counts.symbols import parse_symbols
from kdelta.cpus.model import Cache
from kdelta.replay.functions import Placement, placement_of
from kdelta.replay.layouts import at_borders, in_text, layout_in_order_of
from tests.replay.made_kernel import START, kallsyms, text_rows, trace_of

PAGE = 4096
MODULE = 0xFFFFFFFFC0000000


def kernel(*names: str, bytes_each: int = 64) -> Placement:
    """Functions in that order, with a module's function that is executed."""
    rows = text_rows(dict.fromkeys(names, bytes_each), 64)
    symbols = parse_symbols(kallsyms(rows, [(MODULE, "in_module", "nft")]))
    return placement_of([trace_of([(MODULE, 8)], [[0]], [0])], symbols)


def lines(placement: Placement, layout: np.ndarray) -> dict[str, int]:
    """Where functions of .text are, in lines from its start."""
    return {
        function.name: (int(address) - START) // 64
        for function, address, inside in zip(
            placement.functions, layout, in_text(placement), strict=True
        )
        if inside and function.name != "do_syscall_64"
    }


def test_shared_functions_lie_where_the_other_kernel_has_them() -> None:
    ours, theirs = kernel("a", "b", "c"), kernel("c", "x", "a", "b")
    assert lines(ours, layout_in_order_of(ours, ours)) == {"a": 0, "b": 1, "c": 2}
    assert lines(ours, layout_in_order_of(ours, theirs)) == {"a": 2, "b": 3, "c": 0}


def test_what_one_kernel_alone_has_stays_behind_the_function_before_it() -> None:
    ours, theirs = kernel("new", "a", "b", "more", "c"), kernel("c", "b", "a")
    assert lines(ours, layout_in_order_of(ours, theirs)) == {
        "new": 1,  # before all that are shared: as far from the first of these
        "a": 2,
        "b": 1,
        "more": 2,
        "c": 0,
    }


def test_code_that_is_not_executed_does_not_move_the_rest() -> None:
    ours, grown = kernel("a", "b"), kernel("dead", "a", "b")
    both = [layout_in_order_of(one, ours) for one in (ours, grown)]
    assert lines(ours, both[0])["b"] == lines(grown, both[1])["b"] == 1


def test_kernels_without_a_function_in_common_keep_their_own_order() -> None:
    rows = [(START, "T", "_stext"), (START, "t", "z"), (START + PAGE, "T", "_etext")]
    other = placement_of([trace_of([(START, 8)], [[0]], [0])], parse_symbols(kallsyms(rows)))
    ours = kernel("a", "b")
    assert layout_in_order_of(ours, other).tolist() == ours.addresses().tolist()


def test_all_of_the_text_is_moved_by_one_distance_and_nothing_else() -> None:
    one = kernel("a", "b", "c")
    order, moves = one.addresses(), in_text(one)
    tlb = Cache(sets=4, ways=2, line_bytes=PAGE)
    found = at_borders([order], moves, range(200), tlb)
    by = found - order
    assert (by[:, ~moves] == 0).all()
    assert (~moves).any()
    assert (by[:, moves] == by[:, :1]).all()
    assert (by % 64 == 0).all()
    assert 0 <= by.min() < by.max() < tlb.sets * PAGE
    assert len(np.unique(by[:, 0] // PAGE)) == tlb.sets
    again = at_borders([order], moves, range(100, 200), tlb)
    assert found[100:].tolist() == again.tolist()


def test_orders_take_turns() -> None:
    one = kernel("a", "b", "c")
    orders = [one.addresses(), layout_in_order_of(one, kernel("c", "b", "a"))]
    found = at_borders(orders, in_text(one), range(6), Cache(1, 8, PAGE))
    for number, layout in enumerate(found):
        relative = layout[:3] - layout[1]
        expected = orders[number % 2][:3] - orders[number % 2][1]
        assert relative.tolist() == expected.tolist()
