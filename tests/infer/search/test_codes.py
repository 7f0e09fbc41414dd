# SPDX-License-Identifier: GPL-2.0-or-later
"""Codes: units distinguished by few kernels, whatever they need."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.search.coded import LOW, MOST, code_length, code_sets, low_groups
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search_model import NOTHING, Candidate


def alone(names: Iterable[str]) -> list[frozenset[str]]:
    return [frozenset({name}) for name in names]


@st.composite
def worlds(draw: st.DrawFn) -> list[Candidate]:
    count = draw(st.integers(1, 24))
    edges = draw(st.sets(st.tuples(st.integers(0, 23), st.integers(0, 23)), max_size=12))
    return [
        Candidate(f"u{i}", tuple(f"u{low}" for low, high in sorted(edges) if low < high == i))
        for i in range(count)
    ]


@given(worlds())
def test_each_unit_is_in_its_own_choice_of_kernels_that_can_be_built(
    units: list[Candidate],
) -> None:
    needs = Needs(units)
    sets = code_sets(needs, alone(needs.names))
    choices = [tuple(name in flips for flips in sets) for name in needs.names]
    assert len(set(choices)) == len(units)
    assert all(needs.is_closed(flips) and flips for flips in sets)


@given(st.integers(2, 130))
def test_as_few_as_there_are_bits_in_their_number(count: int) -> None:
    units = [Candidate(f"u{i}") for i in range(count)]
    sets = code_sets(Needs(units), alone([unit.name for unit in units]))
    assert len(sets) == code_length(count)
    assert 2 ** (len(sets) - 1) < count <= 2 ** len(sets)


def test_a_chain_takes_a_kernel_a_link() -> None:
    units = [Candidate("u0"), *(Candidate(f"u{i}", (f"u{i - 1}",)) for i in range(1, 5))]
    sets = code_sets(Needs(units), alone([unit.name for unit in units]))
    assert sorted(map(len, sets)) == [1, 2, 3, 4]


def test_the_kernels_of_units_that_need_nothing_have_about_half_of_them() -> None:
    units = [Candidate(f"u{i}") for i in range(32)]
    sets = code_sets(Needs(units), alone([unit.name for unit in units]))
    assert [len(flips) for flips in sets] == [16] * 5


@given(worlds(), st.data())
def test_units_that_hardly_matter_share_a_code(units: list[Candidate], data: st.DataObject) -> None:
    needs = Needs(units)
    chances = st.floats(0.01, 0.99)
    priors = {name: data.draw(chances) for name in needs.names}
    groups = low_groups(needs, needs.in_order(needs.names, {}), priors)
    assert NOTHING.union(*groups) == set(needs.names)
    assert sum(map(len, groups)) == len(units)
    for group in groups:
        assert len(group) == 1 or all(priors[name] <= LOW for name in group)
        assert len(group) == 1 or sum(priors[name] for name in group) <= MOST
    sets = code_sets(needs, groups)
    assert all(needs.is_closed(flips) for flips in sets)
    choices = {tuple(group <= flips for flips in sets) for group in groups}
    assert len(choices) == len(groups)
    assert all(group <= flips or not group & flips for group in groups for flips in sets)


def test_groups_that_need_each_other_have_no_code() -> None:
    units = [Candidate("a"), Candidate("b", ("a",)), Candidate("c", ("b",))]
    with pytest.raises(ValueError, match="each other"):
        code_sets(Needs(units), [frozenset({"a", "c"}), frozenset({"b"})])
    priors = {"a": 0.1, "b": 0.9, "c": 0.1}
    assert low_groups(Needs(units), ("a", "b", "c"), priors) == tuple(alone("abc"))
