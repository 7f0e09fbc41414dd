# SPDX-License-Identifier: GPL-2.0-or-later
"""Codes: units told apart by few kernels, whatever they need."""

from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.closed_sets import Needs
from kdelta.infer.codes import code_length, code_sets
from kdelta.infer.search_model import SearchUnit


@st.composite
def worlds(draw: st.DrawFn) -> list[SearchUnit]:
    count = draw(st.integers(1, 24))
    edges = draw(st.sets(st.tuples(st.integers(0, 23), st.integers(0, 23)), max_size=12))
    return [
        SearchUnit(f"u{i}", tuple(f"u{low}" for low, high in sorted(edges) if low < high == i))
        for i in range(count)
    ]


@given(worlds())
def test_each_unit_is_in_its_own_choice_of_kernels_that_can_be_built(
    units: list[SearchUnit],
) -> None:
    needs = Needs(units)
    sets = code_sets(needs, needs.names)
    choices = [tuple(name in flips for flips in sets) for name in needs.names]
    assert len(set(choices)) == len(units)
    assert all(needs.is_closed(flips) and flips for flips in sets)


@given(st.integers(2, 130))
def test_as_few_as_there_are_bits_in_their_number(count: int) -> None:
    units = [SearchUnit(f"u{i}") for i in range(count)]
    sets = code_sets(Needs(units), [unit.name for unit in units])
    assert len(sets) == code_length(count)
    assert 2 ** (len(sets) - 1) < count <= 2 ** len(sets)


def test_a_chain_takes_a_kernel_a_link() -> None:
    units = [SearchUnit("u0"), *(SearchUnit(f"u{i}", (f"u{i - 1}",)) for i in range(1, 5))]
    sets = code_sets(Needs(units), [unit.name for unit in units])
    assert sorted(map(len, sets)) == [1, 2, 3, 4]


def test_the_kernels_of_units_that_need_nothing_have_about_half_of_them() -> None:
    units = [SearchUnit(f"u{i}") for i in range(32)]
    sets = code_sets(Needs(units), [unit.name for unit in units])
    assert [len(flips) for flips in sets] == [16] * 5
