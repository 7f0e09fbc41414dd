# SPDX-License-Identifier: GPL-2.0-or-later
"""Flame graphs as data: every sum is kept, whatever is merged and cut."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.profile import Profile
from kdelta.report.flame import (
    GROUP,
    KERNEL_CODE,
    MODULE_CODE,
    REST,
    USER_CODE,
    VDSO_CODE,
    Flame,
    flame,
    flame_data,
    flames,
)
from kdelta.report.html.page import script_json
from tests.profiles import Stack, profile_of
from tests.report.html.pages import two_flames, two_profiles


def paths(found: Flame, figure: str = "insns") -> dict[tuple[str, ...], tuple[int, ...]]:
    """What each frame executed itself, by side, by the names from the region down."""
    sides = found.own.get(figure, ())
    named: dict[tuple[str, ...], tuple[int, ...]] = {}
    every: list[tuple[str, ...]] = []
    for index, parent in enumerate(found.parent):
        above = every[parent] if parent >= 0 else ()
        every.append((*above, found.names[found.name[index]][1]))
        assert parent < index
        assert every[-1] not in named, "a frame is there twice"
        named[every[-1]] = tuple(side[index] for side in sides)
    return named


def test_frames_are_functions_on_a_path_below_the_task() -> None:
    base, _ = two_profiles()
    found = paths(flame(base))
    assert found["open-close",] == (0,)
    assert found["open-close", "work", "main", "do_syscall_64", "do_sys_openat2"] == (2_000,)
    assert found["open-close", "interrupts", "timer"] == (150,)
    loads = base.node_costs().loads.sum()
    assert sum(own for (own,) in paths(flame(base), "loads").values()) == loads


def test_two_kernels_are_compared_with_each_other_by_source_name() -> None:
    found = paths(flame(*two_profiles()))
    below = ("open-close", "work", "main", "do_syscall_64", "do_sys_openat2")
    assert found[*below, "alloc_fd"] == (400, 300)
    assert found[*below, "gone"] == (250, 0)
    assert found[*below, "added"] == (0, 700)


def test_a_function_that_went_from_a_module_into_the_image_is_one() -> None:
    base = profile_of({("work:main",): 5, ("work:main", "[nf_nat]:nf_nat_setup.isra.0"): 70})
    other = profile_of({("work:main",): 5, ("work:main", "nf_nat_setup"): 90})
    found = flame(base, other)
    assert paths(found)[base.region, "work", "main", "nf_nat_setup"] == (70, 90)
    assert ("kernel", "nf_nat_setup") in found.names
    assert found.kind[-1] == KERNEL_CODE


def test_a_function_of_a_program_is_not_the_kernels_of_the_same_name() -> None:
    base = profile_of({("work:main",): 5, ("work:main", "copy"): 70})
    other = profile_of({("work:main",): 5, ("work:main", "work:copy"): 90})
    found = flame(base, other)
    assert sorted(zip(*found.own["insns"], strict=True)) == [
        (0, 0),
        (0, 0),
        (0, 90),
        (5, 5),
        (70, 0),
    ]


def test_the_kind_says_whose_code_it_is() -> None:
    found = flame(two_profiles()[0])
    kinds = {found.names[name][1]: kind for name, kind in zip(found.name, found.kind, strict=True)}
    assert kinds["main"] == USER_CODE
    assert kinds["do_syscall_64"] == KERNEL_CODE
    assert kinds["ext4_file_open"] == MODULE_CODE
    assert kinds["__vdso_time"] == VDSO_CODE
    assert kinds["open-close"] == kinds["work"] == kinds["interrupts"] == GROUP


def test_what_is_too_small_is_summed_up_below_its_caller() -> None:
    base, other = two_profiles()
    found = flame(base, other, smallest=0.1)
    named = paths(found)
    below = ("open-close", "work", "main", "do_syscall_64", "do_sys_openat2")
    assert named[*below, "added"] == (0, 700)
    assert named[*below, "1 smaller"] == (250, 0)
    assert [found.kind[at] for at, name in enumerate(found.name)
            if found.names[name][1].endswith("smaller")] == [REST] * 3  # fmt: skip
    lost = ["gone", "__vdso_time", "interrupts", "timer"]
    assert found.cut[0] == len(lost)
    assert found.cut[1] == pytest.approx((250 + 50 + 150) / 3_750)
    for side, profile in enumerate((base, other)):
        assert found.total("insns", side) == profile.row_costs().insns.sum()


NAMES = st.sampled_from(["a", "b.part.0", "b", "[m]:c", "user:d", "e"])
STACKS = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=6).map(tuple),
    st.integers(1, 1_000),
    min_size=1,
    max_size=25,
)


@given(STACKS, STACKS, st.sampled_from([0.0, 0.001, 0.05, 0.5, 2.0]))
def test_every_sum_is_kept(base: dict[Stack, int], other: dict[Stack, int], least: float) -> None:
    profiles = profile_of(base), profile_of(other)
    found = flame(*profiles, smallest=least)
    paths(found)
    for side, profile in enumerate(profiles):
        costs = profile.node_costs()
        for figure in ("insns", "loads", "stores", "string_bytes"):
            assert found.total(figure, side) == getattr(costs, figure).sum()
    if least == 0:
        assert found.cut == (0, 0.0)


def test_regions_that_both_have_are_shown() -> None:
    base, other = two_profiles()
    alone = profile_of({("f",): 1}, region="alone")
    assert [one.region for one in flames([base, alone], [other])] == ["open-close"]
    assert [one.region for one in flames([base, alone])] == ["open-close", "alone"]
    assert flames([base])[0].sides == ("base",)


def unpacked(graph: dict[str, list[int]], sparse: list[int]) -> list[int]:
    column = [0] * len(graph["up"])
    at = 0
    for zeros, value in zip(sparse[::2], sparse[1::2], strict=True):
        at += zeros
        column[at] = value
        at += 1
    return column


def test_the_pages_data_has_it_all() -> None:
    wanted = two_flames()
    data = json.loads(script_json(flame_data(wanted)))
    assert [graph["region"] for graph in data["graphs"]] == ["open-close", "getppid"]
    for graph, one in zip(data["graphs"], wanted, strict=True):
        assert [index - up for index, up in enumerate(graph["up"])] == list(one.parent)
        assert [tuple(data["names"][name]) for name in graph["name"]] == [
            one.names[name] for name in one.name
        ]
        for figure, sides in one.own.items():
            assert [unpacked(graph, column) for column in graph["own"][figure]] == [
                list(side) for side in sides
            ]


def test_a_profile_without_anything_is_a_graph_too() -> None:
    found = flame(profile_of({("f",): 0}))
    assert isinstance(found, Flame)
    assert found.total("insns", 0) == 0
    assert np.sum(Profile.node_costs(profile_of({("f",): 0})).insns) == 0


def test_a_region_without_iterations_is_one() -> None:
    assert flame(profile_of({("f",): 5}, iterations=0)).iterations == (1,)
