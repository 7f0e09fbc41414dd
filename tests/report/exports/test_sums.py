# SPDX-License-Identifier: GPL-2.0-or-later
"""What every export must obey: it adds up, says so when it does not, and is the same each time."""

import gzip
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.profile import NodeEntry, Profile
from kdelta.report.exports import EXPORTS, Export, Naming, export_of
from kdelta.report.exports.callgrind import call_costs
from kdelta.report.exports.model import clean, columns_of
from kdelta.spec.errors import LabError, UserError
from tests.profiles import Stack, profile_of
from tests.report.exports.example import NAMELESS, NAMING, example

NAMES = st.sampled_from(["a", "b", "c", "work:main", "[mod]:x", "a b; 7", "(1) (", '<"&>', "\n"])
STACKS = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=6).map(tuple), st.integers(0, 10**12), min_size=1
)
ALL = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


def full(profile: Profile) -> Profile:
    """The region with all that a row can have, and a node with other functions' code in it."""
    rows, code = profile.rows, profile.code
    some = np.arange(len(rows.group)) % 2 == 0
    first = profile.tree.entry.copy()
    first[-1] = NodeEntry.FOLDED
    kinds = np.arange(len(code.group_special)) % len(profile.specials)
    return msgspec.structs.replace(
        profile,
        tree=msgspec.structs.replace(profile.tree, entry=first),
        code=msgspec.structs.replace(code, group_special=kinds.astype(np.uint8)),
        rows=msgspec.structs.replace(
            rows, group=rows.group[::-1].copy(), mmio=np.where(some, rows.entered, 0)
        ),
    )


@ALL
@given(regions=st.lists(STACKS, min_size=1, max_size=3), column=st.sampled_from(["insns", "mmio"]))
def test_what_is_written_adds_up_to_the_profile(
    export: Export, regions: Sequence[Mapping[Stack, int]], column: str
) -> None:
    plain = [profile_of(stacks, region=f"r;{i % 2} 5") for i, stacks in enumerate(regions)]
    profiles = [full(profile) for profile in plain]
    if column not in columns_of(profiles):
        column = "loads"
    naming = Naming(column=column)
    sums = export.read(export.made(profiles, naming), naming)
    by_region: dict[tuple[str, str], int] = {}
    for profile in profiles:
        costs = profile.row_costs().total()
        whole = {"insns": costs.insns, "loads": costs.loads, **costs.specials}.get(column, 0)
        for name in ("", clean(profile.region)):
            by_region[name, column] = by_region.get((name, column), 0) + whole
    told = {key: total for key, total in sums.items() if key[1] == column and total}
    assert told == {key: total for key, total in by_region.items() if total and key in sums}
    assert bool(told) == any(by_region.values())


@ALL
def test_the_same_profile_is_the_same_file(export: Export) -> None:
    assert export.made(example(), NAMING) == export.made(example(), NAMING)


@ALL
def test_a_file_that_does_not_add_up_is_not_written(export: Export) -> None:
    # What is made is one instruction short of what the region has.
    short = profile_of({("work:main",): 999, ("work:main", "read"): 1})
    wrong = msgspec.structs.replace(export, make=lambda _, naming: export.make([short], naming))
    whole = profile_of({("work:main",): 1000, ("work:main", "read"): 1})
    with pytest.raises(
        LabError, match=rf"the {export.name} export.* adds up to 1000 insns, .*1001"
    ):
        wrong.made([whole], NAMING)


@ALL
def test_a_region_that_executed_nothing_is_a_file_all_the_same(export: Export) -> None:
    nothing = profile_of({("work:main",): 0})
    sums = export.read(export.made([nothing], NAMING), NAMING)
    assert not any(sums.values())


@ALL
def test_names_stay_in_their_line(export: Export) -> None:
    data = export.made(example(), NAMING)
    if not export.binary:
        text = data.decode()
        assert "\x1b" not in text
        assert "copy <to>" in text
        assert "\n $(y)" not in text


def test_code_of_others_in_a_node_is_below_it() -> None:
    plain = profile_of({("a",): 5, ("a", "b"): 7, ("c",): 1})
    # What b's node executed is c's code, as where a node stands for all that was called below it.
    rows = msgspec.structs.replace(plain.rows, group=np.array([0, 2, 2], np.int32))
    profile = msgspec.structs.replace(plain, rows=rows)
    lines = EXPORTS["folded"].made([profile], NAMING).decode().splitlines()
    assert lines == ["work;own;work;a 5", "work;own;work;a;b;c 7", "work;own;work;c 1"]


def test_the_call_of_what_calls_itself_leaves_out_what_comes_back() -> None:
    # a -> b -> a -> b, each with 1 of its own, and c below.
    parent = np.array([-1, 0, 1, 2, 3], np.int32)
    same = np.array([0, 1, 0, 1, 2], np.int64)
    inclusive = np.array([[5], [4], [3], [2], [1]], np.int64)
    cost = call_costs(parent, same, inclusive)[:, 0].tolist()
    assert cost == [5, 1, 1, 2, 1]
    # Own and calls: a has 2 + 1 + 2, which is all; b has 2 + 1 + 1, which is all but the first a.
    assert 2 + cost[1] + cost[3] == 5
    assert 2 + cost[2] + cost[4] == 4


def test_unknown_formats_and_columns_name_the_nearest() -> None:
    with pytest.raises(UserError, match='"calgrind" is no export format') as slip:
        export_of("calgrind")
    assert 'did you mean "callgrind"?' in slip.value.hint
    assert "perf-script" in slip.value.hint
    with pytest.raises(UserError, match='"load" is no column') as slip:
        EXPORTS["folded"].made(example(), Naming(column="load"))
    assert 'did you mean "loads"?' in slip.value.hint


@ALL
def test_code_without_symbols_has_its_objects_name(export: Export) -> None:
    data = export.made([profile_of(NAMELESS)], Naming())
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    for stack in NAMELESS:
        origin, _, _ = stack[-1].rpartition(":")
        assert f"[no symbol] {origin}".encode() in text
