# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of layouts: each could be linked, and what two kernels share lies at the same places."""

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kdelta.replay.functions import Placement
from kdelta.replay.layouts import as_linked, shuffles
from kdelta.replay.pairs import paired_shuffles, share_slots
from tests.replay.made_kernel import text_rows
from tests.replay.possible import AFTER, assert_possible, by_name, kernels, placement

MANY = {f"function{number}": 40 + 7 * number % 150 for number in range(200)}


def _kernel(sizes: Mapping[str, int], alignment: int = 16) -> Placement:
    return placement(text_rows(sizes, alignment, after=AFTER))


@given(kernels(), kernels(), st.integers(0, 2**64))
def test_each_of_a_pair_could_be_linked(one: Placement, other: Placement, seed: int) -> None:
    for layouts, found in zip(paired_shuffles(one, other, 3, seed), (one, other), strict=True):
        for layout in layouts:
            assert_possible(found, layout)


@given(kernels(), kernels(), st.integers(0, 2**64))
def test_what_two_kernels_share_lies_at_the_same_addresses(
    one: Placement, other: Placement, seed: int
) -> None:
    if not share_slots(one, other):
        return
    heads = [_heads(found) for found in (one, other)]
    common = sorted(heads[0].keys() & heads[1].keys())
    ours, theirs = paired_shuffles(one, other, 3, seed)
    left = ours[:, [heads[0][head] for head in common]]
    right = theirs[:, [heads[1][head] for head in common]]
    assert left.tolist() == right.tolist()


def _heads(found: Placement) -> dict[tuple[str, str], int]:
    """The first function of each group that moves."""
    return {
        (part.kind, found.functions[index].name): index
        for part in found.ranges
        for index in part.first.tolist()
    }


@given(kernels(), st.integers(0, 2**64), st.integers(0, 100))
def test_a_kernel_and_itself_are_the_same_in_each_pair(
    found: Placement, seed: int, first: int
) -> None:
    ours, theirs = paired_shuffles(found, found, 2, seed, first=first)
    assert ours.tolist() == theirs.tolist()
    assert (
        ours[1].tolist() == paired_shuffles(found, found, 1, seed, first=first + 1)[0][0].tolist()
    )


def test_another_order_of_the_same_functions_is_the_same_in_each_pair() -> None:
    one, other = _kernel(MANY), _kernel(dict(reversed(MANY.items())))
    assert share_slots(one, other)
    ours, theirs = paired_shuffles(one, other, 4, 9)
    for left, right in zip(ours, theirs, strict=True):
        at = by_name(one, left), by_name(other, right)
        assert at[0] == at[1]
    assert len({by_name(one, layout)["function7"] for layout in ours}) == 4


def test_a_function_that_grew_moves_no_other_and_one_that_is_new_leaves_a_gap() -> None:
    one, other = _kernel(MANY), _kernel({**MANY, "function50": 700, "new": 90})
    ours, theirs = paired_shuffles(one, other, 20, 3)
    apart = [
        np.count_nonzero([a[name] != b[name] for name in a])
        for a, b in zip(
            (by_name(one, layout) for layout in ours),
            (by_name(other, layout) for layout in theirs),
            strict=True,
        )
    ]
    assert apart == [0] * 20
    alone = by_name(one, shuffles(one, 1, 3)[0]), by_name(other, shuffles(other, 1, 3)[0])
    assert np.count_nonzero([alone[0][name] != alone[1][name] for name in alone[0]]) > 20


def test_another_alignment_is_not_hidden_by_slots() -> None:
    one, other = _kernel(MANY, 16), _kernel(MANY, 64)
    assert not share_slots(one, other)
    ours, theirs = paired_shuffles(one, other, 5, 1)
    moving = [i for i, function in enumerate(one.functions) if function.movable]
    assert (ours[:, moving] % 64 != 0).any()
    assert (theirs[:, moving] % 64 == 0).all()


def test_kernels_that_have_little_in_common_are_packed_each_alone() -> None:
    one = _kernel(MANY)
    other = _kernel({f"other{number}": size for number, size in enumerate(MANY.values())})
    assert not share_slots(one, other)
    ours, _ = paired_shuffles(one, other, 3, 1)
    assert ours.tolist() == shuffles(one, 3, 1, slide=True).tolist()
    assert ours.max() < as_linked(one).max() + (1 << 17)
