# SPDX-License-Identifier: GPL-2.0-or-later
"""What an ordering file can move, and that its layouts are those that a linker is asked to make."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.replay.units import units_of
from tests.replay.kernels import lines, paged, placed, region
from tests.replay.made_kernel import START, Row, text_rows, trace_of
from tests.replay.same_layout import assert_same_layout


def test_only_executed_functions_that_can_move_are_units() -> None:
    rows = lines(alpha=1, beta=2, gamma=3)
    units = units_of(placed(rows, region(rows, ["gamma", "do_syscall_64", "alpha"])))
    assert units.names == (("alpha",), ("gamma",))
    assert units.bytes.tolist() == [64, 192]
    assert units.of_function.tolist() == [0, -1, 1, -1, -1]
    # beta stands for all that is not executed.
    small = [function.name for function in units.small.functions]
    assert small == ["alpha", "beta", "gamma", "do_syscall_64", "[rest]"]
    assert units.small.ranges[0].bytes.tolist() == [64, 128, 192]


def test_functions_that_share_a_name_cannot_be_parted() -> None:
    rows = text_rows({"one": 64, "two": 64, "three": 64, "four": 64}, alignment=64)
    rows = [(at, kind, "init" if name in ("one", "three") else name) for at, kind, name in rows]
    trace = trace_of([(START, 8), (START + 64, 8)], [[0, 1]], [0])
    placement = placed(rows, trace)
    units = units_of(placement)
    assert units.names == (("init",), ("two",))
    assert units.bytes.tolist() == [128, 64]
    assert_same_layout(placement, units, np.array([1, 0]))
    small = [function.name for function in units.small.functions]
    assert small[:4] == ["init", "two", "init#2", "four"]


def test_what_falls_into_the_next_function_is_one_unit() -> None:
    rows = text_rows({"alpha": 64, "beta": 64, "gamma": 64}, alignment=64)
    trace = trace_of([(START, 64), (START + 64, 8), (START + 128, 8)], [[0, 1, 2]], [0])
    assert units_of(placed(rows, trace)).names == (("alpha", "beta"), ("gamma",))


@st.composite
def kernels(draw: st.DrawFn) -> tuple[list[Row], list[str]]:
    sizes = draw(st.lists(st.integers(1, 300), min_size=2, max_size=9))
    rows = text_rows({f"f{i}": size for i, size in enumerate(sizes)})
    executed = draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1))
    return rows, [f"f{index}" for index in executed if sizes[index] > 1] or ["do_syscall_64"]


@settings(max_examples=80, deadline=None)
@given(kernels(), st.integers(0, 99))
def test_layouts_of_units_are_those_of_the_whole_kernel(
    kernel: tuple[list[Row], list[str]], seed: int
) -> None:
    rows, executed = kernel
    placement = placed(rows, region(rows, executed))
    units = units_of(placement)
    assert_same_layout(placement, units, np.random.default_rng(seed).permutation(len(units.names)))


def test_what_fills_is_a_unit_behind_the_executed_ones() -> None:
    rows = lines(alpha=1, beta=2, gamma=3, delta=1, omega=1)
    placement = placed(rows, region(rows, ["gamma", "alpha"]))
    index = {function.name: at for at, function in enumerate(placement.functions)}
    units = units_of(placement, [[index["delta"], index["beta"]], [index["omega"]]])
    assert units.names == (("alpha",), ("gamma",), ("delta", "beta"), ("omega",))
    assert (units.executed, units.bytes.tolist()) == (2, [64, 192, 192, 64])
    assert units.order([0, 2, 1]) == ("alpha", "delta", "beta", "gamma")
    for order in ([2, 0, 3, 1], [3, 2, 1, 0], [1, 0, 2, 3]):
        assert_same_layout(placement, units, np.array(order))


def test_what_asks_for_more_alignment_is_not_one_with_the_rest() -> None:
    executed = paged("a", "c")
    units = units_of(executed)
    filled = units_of(executed, [[executed.indexes["b"][0]]])
    assert filled.order([0, 1, 2]) == ("a", "c", "b")
    assert_same_layout(executed, filled, np.array([0, 1, 2]))
    assert units.names == (("a",), ("c",))
    small = [function.name for function in units.small.functions]
    assert small == ["a", "b", "page", "c", "do_syscall_64", "[rest]"]
    for order in ([0, 1], [1, 0]):
        assert_same_layout(executed, units, np.array(order))
