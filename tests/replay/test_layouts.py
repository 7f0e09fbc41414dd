# SPDX-License-Identifier: GPL-2.0-or-later
"""Layouts: what a linker could not make is never made, and what it would make is."""

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kdelta.replay import layouts
from kdelta.replay.functions import Placement
from kdelta.replay.layouts import (
    aligned,
    as_linked,
    chosen_first,
    in_orders,
    ordered,
    shuffles,
)
from kdelta.spec.errors import UserError
from tests.replay.kernels import paged, placed
from tests.replay.made_kernel import START, Row, text_rows
from tests.replay.possible import AFTER, SIZES, assert_possible, by_name, kernels, placement


@given(kernels(), st.integers(0, 2**64))
def test_a_shuffled_layout_could_be_linked(found: Placement, seed: int) -> None:
    for layout in shuffles(found, 3, seed):
        assert_possible(found, layout)


@given(kernels(), st.integers(0, 100), st.sampled_from([1, 2, 16, 32, 64, 256, 4096]))
def test_text_grows_by_no_more_than_padding(found: Placement, seed: int, alignment: int) -> None:
    assume(found.ranges)
    n_groups = sum(len(part.keys) for part in found.ranges)
    linked = as_linked(found)
    for layout, padding in (
        (shuffles(found, 1, seed)[0], 16),
        (aligned(found, alignment), alignment),
    ):
        movable = [i for i, f in enumerate(found.functions) if f.movable]
        grown = layout[movable].max() + 300 - linked[movable].max()
        # Two functions of at most 300 bytes, and two thunks that may have to be passed.
        assert int(grown) <= 600 + 2 * (320 + padding) + (padding - 1) * n_groups


@given(kernels(), st.sampled_from([1, 16, 32, 64, 256, 4096]))
def test_an_aligned_layout_could_be_linked(found: Placement, alignment: int) -> None:
    layout = aligned(found, alignment)
    assert_possible(found, layout, alignment)
    main = [i for i, f in enumerate(found.functions) if f.kind == "main"]
    assert (np.diff(layout[main].astype(np.int64)) > 0).all()


@given(kernels(), st.lists(st.integers(0, 50)))
def test_what_is_ordered_comes_first_in_that_order(found: Placement, chosen: list[int]) -> None:
    chosen = [index % len(found.functions) for index in chosen]
    layout = chosen_first(found, chosen)
    assert_possible(found, layout)
    main = {i: f.group for i, f in enumerate(found.functions) if f.kind == "main"}
    head = list(dict.fromkeys(main[i] for i in chosen if i in main))
    expected = [*head, *(group for group in dict.fromkeys(main.values()) if group not in head)]
    in_turn = sorted(main, key=layout.tolist().__getitem__)
    assert list(dict.fromkeys(main[i] for i in in_turn)) == expected


@given(kernels())
def test_the_order_as_linked_is_the_layout_as_linked(found: Placement) -> None:
    linked = as_linked(found)
    assert linked.tolist() == [function.address for function in found.functions]
    assert chosen_first(found, []).tolist() == linked.tolist()
    assert (
        not found.ranges
        or found.ranges[0].alignments[0] != 16
        or (aligned(found, 16).tolist() == linked.tolist())
    )


def test_what_cannot_move_stays_where_there_is_room() -> None:
    found = placement()
    stays = [index for index, function in enumerate(found.functions) if not function.movable]
    assert [found.functions[index].name for index in stays] == [*AFTER, "[rest]"]
    drawn = shuffles(found, 50, 3)
    assert (drawn[:, stays] == as_linked(found)[stays]).all()


def test_a_seed_has_its_order() -> None:
    found = placement()
    expected = ["beta", "delta", "zeta", "gamma", "epsilon", "alpha"]
    drawn = shuffles(found, 20, seed=7)
    at = by_name(found, drawn[0])
    assert sorted(SIZES, key=at.__getitem__) == expected
    assert (shuffles(found, 1, 7)[0] == drawn[0]).all()
    assert (shuffles(found, 37, 7)[:20] == drawn).all()
    assert len({tuple(layout) for layout in drawn.tolist()}) == 20
    assert not (shuffles(found, 1, 8)[0] == drawn[0]).all()


def test_every_order_is_as_likely() -> None:
    found = placement(text_rows({"one": 16, "two": 16, "three": 16}))
    drawn = shuffles(found, 6000, 1)
    counts = np.unique(np.argsort(drawn[:, :3], axis=1), axis=0, return_counts=True)[1]
    assert len(counts) == 6
    # 1000 expected of each; five standard deviations of a binomial are 144.
    assert np.abs(counts - 1000).max() < 144


@given(kernels(), st.sampled_from([16, 64]), st.integers(0, 100))
def test_random_orders_can_be_aligned_too(found: Placement, alignment: int, seed: int) -> None:
    for layout in shuffles(found, 2, seed, alignment=alignment):
        assert_possible(found, layout, alignment)


def test_layouts_go_on_from_any_number() -> None:
    found = placement()
    many = shuffles(found, 40, 3)
    assert shuffles(found, 7, 3, first=33).tolist() == many[33:].tolist()


def test_one_seed_orders_the_functions_of_two_links_alike() -> None:
    one = placement()
    other = placement(text_rows(dict(reversed(SIZES.items())), after=AFTER))
    for seed in range(5):
        at_one, at_other = (by_name(it, shuffles(it, 1, seed)[0]) for it in (one, other))
        assert at_one == at_other


def test_what_stays_follows_the_end_of_an_order_up_and_down() -> None:
    found = paged()
    assert by_name(found, ordered(found, [])[0]) == by_name(found, as_linked(found))
    at = by_name(found, ordered(found, ["page"])[0])
    # Nothing is padded then.
    assert [at[name] - START for name in ("page", "a", "b", "c")] == [0, 64, 128, 192]
    assert at["do_syscall_64"] - START == 240
    at = by_name(found, ordered(found, ["c"])[0])
    assert [at[name] - START for name in ("c", "a", "b", "page")] == [0, 48, 112, 4096]
    assert at["do_syscall_64"] - START == 4160
    # A random layout is not of this very link: there it stays where there is room.
    assert by_name(found, shuffles(found, 1, 1)[0])["do_syscall_64"] - START >= 4208


def test_code_without_a_name_stays_where_what_is_not_ordered_does() -> None:
    rows = text_rows(dict.fromkeys(["a", "b", "c"], 48))
    found = placed(rows, sizes={"a": 10, "b": 48, "c": 48})
    at = by_name(found, ordered(found, ["c", "a"])[0])
    assert {name: at[name] - START for name in ("c", "a", "[after a]", "b")} == {
        "c": 0, "a": 48, "[after a]": 64, "b": 96
    }  # fmt: skip
    assert ordered(found, ["[after b]"])[1] == ("[after b]",)


def test_names_of_an_order_and_those_that_cannot_be_used() -> None:
    found = placement()
    layout, unusable = ordered(found, ["zeta", "nobody", "beta", "do_syscall_64", "zeta"])
    assert unusable == ("nobody", "do_syscall_64")
    at = by_name(found, layout)
    expected = ["zeta", "beta", "alpha", "gamma", "delta", "epsilon"]
    assert sorted(SIZES, key=at.__getitem__) == expected
    assert at["zeta"] == START
    assert at["beta"] == START + 208
    assert at["alpha"] == START + 224


def test_a_name_of_several_functions_orders_all_as_the_linker_does() -> None:
    rows = text_rows(dict.fromkeys(["a", "x", "b", "y", "c"], 16))
    rows = [(at, kind, "dup" if name in "xy" else name) for at, kind, name in rows]
    found = placement(rows)
    at = by_name(found, ordered(found, ["dup", "c"])[0])
    assert sorted(at, key=at.__getitem__)[1:6] == ["dup", "dup#2", "c", "a", "b"]
    at = by_name(found, ordered(found, ["dup#2", "c"])[0])
    assert sorted(at, key=at.__getitem__)[1:6] == ["dup#2", "c", "a", "dup", "b"]


def test_many_orders_are_each_as_alone() -> None:
    found = placement()
    orders = [[i % 6, (i * 5 + 1) % 6] for i in range(40)]
    drawn = in_orders(found, orders)
    for order, layout in zip(orders, drawn, strict=True):
        assert (layout == chosen_first(found, order)).all()


@pytest.mark.parametrize("alignment", [0, -16, 3, 48, 8192])
def test_an_impossible_alignment_is_refused(alignment: int) -> None:
    with pytest.raises(UserError, match="cannot be aligned"):
        aligned(placement(), alignment)


def test_growing_text_moves_what_follows_as_a_linker_would() -> None:
    found = placement()
    layout = by_name(found, aligned(found, 256))
    linked = by_name(found, as_linked(found))
    moved = layout["do_syscall_64"] - linked["do_syscall_64"]
    assert moved > 0
    assert moved % 64 == 0
    assert layout["exc_page_fault"] - linked["exc_page_fault"] == moved
    assert layout["do_syscall_64"] >= layout["zeta"] + SIZES["zeta"]


@given(kernels(), st.integers(0, 100), st.data())
def test_alignments_that_differ_are_packed_as_one_by_one(
    found: Placement, seed: int, data: st.DataObject
) -> None:
    assume(found.ranges)
    part = msgspec.structs.replace(found.ranges[0], holes=())
    n_groups = len(part.keys)
    sizes = st.sampled_from([1, 1, 1, 4, 16, 64])
    alignments = np.array([data.draw(sizes) for _ in range(n_groups)], dtype=np.uint64)
    orders = layouts._random_orders(part, np.array([seed, seed + 1], dtype=np.uint64))
    begins = np.array([part.start, part.start + 160], dtype=np.uint64)
    starts, ends = layouts._packed(part, orders, begins, alignments)
    for row in range(2):
        at = int(begins[row])
        for group in orders[row].tolist():
            at = -(-at // int(alignments[group])) * int(alignments[group])
            assert int(starts[row, group]) == at
            at += int(part.bytes[group])
        assert int(ends[row]) == at


def with_entry(sizes: Mapping[str, int]) -> list[Row]:
    """The rows of a kernel whose entry code begins at a page of its own."""
    rows = text_rows(sizes, after=AFTER)
    end = rows.pop()[0]
    entry = end + 0x20000
    rows += [(entry, "T", "__entry_text_start"), (entry, "T", "entry_SYSCALL_64")]
    return [*rows, (entry + 300, "T", "__entry_text_end"), (entry + 0x1000, "T", "_etext")]


def test_code_that_stays_slides_as_one_where_ensembles_are_compared() -> None:
    found = placement(with_entry(SIZES))
    linked = by_name(found, as_linked(found))
    drawn = shuffles(found, 400, 5, slide=True)
    still = shuffles(found, 400, 5)
    moving = [i for i, function in enumerate(found.functions) if function.movable]
    assert (drawn[:, moving] == still[:, moving]).all()
    at = [by_name(found, layout) for layout in drawn]
    for layout in drawn[:40]:
        assert_possible(found, layout)
    moved = {row["do_syscall_64"] - linked["do_syscall_64"] for row in at}
    assert {row["exc_page_fault"] - row["do_syscall_64"] for row in at} == {70}
    assert {row["entry_SYSCALL_64"] for row in at} == {linked["entry_SYSCALL_64"]}
    assert all(distance % 64 == 0 and 0 <= distance < 1 << 16 for distance in moved)
    # Of the 64 sets of a cache of 64 lines a way, 400 draws miss each with chance 0.002.
    assert len({distance // 64 % 64 for distance in moved}) > 60


def test_two_kernels_slide_to_the_same_lines() -> None:
    one = placement(with_entry(SIZES))
    other = placement(with_entry({**SIZES, "new": 5000}))
    for a, b in zip(*(shuffles(found, 20, 3, slide=True) for found in (one, other)), strict=True):
        at = by_name(one, a)["do_syscall_64"], by_name(other, b)["do_syscall_64"]
        assert (at[1] - at[0]) % (1 << 16) == 0
