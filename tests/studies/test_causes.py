# SPDX-License-Identifier: GPL-2.0-or-later
"""The largest part of a change is the net of what was renamed, and no part that others undo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost
from kdelta.infer.effects.effects import OperationEffect, Word, compare_runs
from kdelta.studies.compare.causes import cause_of, causes
from tests.synthetic import own, region, run

FUNCTIONS = st.dictionaries(
    st.sampled_from(
        ["fdget", "__fget_light", "__fdget", "kmem_cache_alloc", "kmem_cache_alloc_noprof",
         "kmem_cache_free", "page_remove_rmap", "folio_remove_rmap_ptes", "memset", "a", "b"]
    ),
    st.integers(0, 5000),
)  # fmt: skip


def effect(base: dict[str, int], other: dict[str, int]) -> OperationEffect:
    sides = [
        [run(region("op", {own(name): Cost(insns) for name, insns in one.items()}, 1))] * 4
        for one in (base | {"same": 100_000}, other | {"same": 100_000})
    ]
    (found,) = compare_runs(*sides).operations
    return found


@pytest.mark.parametrize(
    ("base", "other", "cause"),
    [
        ({"f": 500}, {"f": 2000}, "+1500 f"),
        ({"f": 100}, {"f": 2000, "g": 900}, "+1900 f"),
        (
            {"__fget_light": 34_000, "__fdget": 3_000},
            {"fdget": 29_000},
            "-8000 fdget (was __fget_light)",
        ),
        (
            {"kmem_cache_alloc": 3_685, "set": 0},
            {"kmem_cache_alloc_noprof": 4_112, "set": 3_000},
            "+3000 set",
        ),
        (
            {"page_remove_rmap": 9_000},
            {"folio_remove_rmap_ptes": 5_000},
            "-4000 folio_remove_rmap_ptes (was page_remove_rmap)",
        ),
        ({"kmem_cache_alloc": 3_000}, {"kmem_cache_free": 1_500}, "-3000 kmem_cache_alloc"),
        ({"gone": 10_000}, {"inlined_here": 9_000}, "+9000 and -10000 in 2 functions"),
        ({"f": 10}, {"f": 10}, ""),
    ],
)
def test_the_largest_part_is_what_is_left_of_functions_that_belong_together(
    base: dict[str, int], other: dict[str, int], cause: str
) -> None:
    assert cause_of(effect(base, other)) == cause


@given(FUNCTIONS, FUNCTIONS)
def test_causes_add_up_to_the_change_and_have_each_function_once(
    base: dict[str, int], other: dict[str, int]
) -> None:
    found = effect(base, other)
    assert found.costs
    parts = causes(found.functions)
    assert sum(part.value for part in parts) == found.costs.insns.effect.value
    names = [one.name for part in parts for one in part.functions]
    assert len(names) == len(set(names))
    assert set(names) == {one.name for one in found.functions if one.cost.effect.value}


@pytest.mark.parametrize(
    ("calls", "cause"),
    [
        ((None, (1, "alloc")), "+724 memset, called by alloc"),
        (((2, "alloc"), (3, "alloc.isra.0")), "+724 memset, called by alloc"),
        (((3, "alloc"), (3, "alloc")), "+724 memset"),
        (((2, "alloc"), (3, "")), "+724 memset"),
        (((2, "alloc"), (3, "copy")), "+724 memset"),
        ((None, (1, "memset.part.0")), "+724 memset"),
        (((0, ""), (1, "alloc")), "+724 memset"),
    ],
)
def test_a_cause_is_with_who_alone_calls_it_more_often(
    calls: tuple[tuple[int, str] | None, ...], cause: str
) -> None:
    before = 100 if calls[0] else 0
    sides = [
        [run(region("op", {own("same"): 9, **functions}, 1, calls={"memset": one or ()}))] * 4
        for insns, one in zip((before, before + 724), calls, strict=True)
        for functions in [{own("memset"): insns} if insns else {}]
    ]
    (found,) = compare_runs(*sides).operations
    assert cause_of(found) == cause


def test_a_caller_of_the_same_name_says_nothing() -> None:
    names = {"__alloc": "alloc", "alloc_one": "do_alloc_one", "clear": "alloc"}
    for name, caller in names.items():
        sides = [
            [run(region("op", {own(name): insns}, 1, calls={name: (insns, caller)}))] * 4
            for insns in (100, 300)
        ]
        (found,) = compare_runs(*sides).operations
        assert cause_of(found) == f"+200 {name}" + (", called by alloc" if name == "clear" else "")


ALONE = {"check": (100, "do_open"), "do_open": (300, "")}
DEEP = ALONE | {"deep": (100, "check")}


@pytest.mark.parametrize(
    ("base", "other", "cause"),
    [
        ({"do_open": 500, "check": 60}, {"do_open": 572}, "+12 do_open (with inlined check)"),
        ({"do_open": 72}, {"do_open": 20, "check": 40}, "-12 do_open (with check, inlined before)"),
        (
            {"do_open": 500, "check": 60, "deep": 40},
            {"do_open": 620},
            "+20 do_open (with inlined check and 1 more)",
        ),
        ({"do_open": 500, "check": 60}, {"do_open": 700}, "+200 do_open"),  # and more than that
        ({"do_open": 500, "check": 60}, {"do_open": 480}, "-60 check, called by do_open"),
        ({"do_open": 500, "check": 60}, {"do_open_one": 460}, "-60 check, called by do_open"),
    ],
)
def test_what_was_inlined_is_one_with_its_only_caller(
    base: dict[str, int], other: dict[str, int], cause: str
) -> None:
    assert cause_of(called(base, other, DEEP)) == cause


@pytest.mark.parametrize("by", ["", "unknown", "deep", "check"])
def test_what_several_call_or_none_that_is_known_is_not_inlined(by: str) -> None:
    calls = ALONE | {"check": (100, by)}
    found = called({"do_open": 500, "check": 600}, {"do_open": 1000}, calls)
    assert len(causes(found.functions)) == 2


def called(
    base: dict[str, int], other: dict[str, int], calls: dict[str, tuple[int, str]]
) -> OperationEffect:
    """The effect where functions are called by these alone."""
    sides = [
        [run(region("op", {own(name): insns for name, insns in one.items()}, 1, calls=calls))] * 4
        for one in (base, other)
    ]
    (found,) = compare_runs(*sides).operations
    return found


@pytest.mark.parametrize(
    ("base", "other", "cause"),
    [
        (Cost(100, string_bytes=4096), Cost(9_000), "+8900 f, -4096 string bytes"),
        (Cost(9_000), Cost(100, string_bytes=4096), "-8900 f, +4096 string bytes"),
        (Cost(100, specials={"lock": 2}), Cost(9_000, specials={"lock": 1}), "+8900 f"),
        (Cost(100, specials={"lock": 9}), Cost(900, specials={"lock": 7}), "+800 f, -2 lock"),
        (Cost(100, specials={"lock": 1}), Cost(9_000, specials={"lock": 2}), "+8900 f"),
        (Cost(100), Cost(9_000, string_bytes=4096), "+8900 f"),
    ],
)
def test_what_goes_the_other_way_than_the_word_is_in_its_row(
    base: Cost, other: Cost, cause: str
) -> None:
    sides = [[run(region("op", {own("f"): one}, 1))] * 4 for one in (base, other)]
    (found,) = compare_runs(*sides).operations
    assert found.verdict.word in (Word.SLOWER, Word.FASTER)
    assert cause_of(found) == cause
