# SPDX-License-Identifier: GPL-2.0-or-later
"""The types of counts: sums, helpers, and the JSON that the store keeps."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import (
    Cost,
    CpuCounts,
    FunctionCost,
    Iterations,
    RegionCounts,
    RunCounts,
    decode_counts,
    encode_counts,
    is_kernel,
    merged_regions,
    total_cost,
)
from kdelta.spec.errors import LabError
from tests.synthetic import Function, interrupts, other, own, region, run, user

counts = st.integers(0, 1000)
costs = st.builds(
    Cost,
    counts,
    counts,
    counts,
    counts,
    counts,
    st.dictionaries(st.sampled_from(["lock", "wrmsr", "syscall"]), st.integers(1, 9)),
)


@given(costs, costs, costs)
def test_costs_add_like_numbers(a: Cost, b: Cost, c: Cost) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == total_cost([a, b, c])
    assert (a + Cost()) == a
    assert (a + b).insns == a.insns + b.insns
    assert (a + b).specials.get("lock", 0) == a.specials.get("lock", 0) + b.specials.get("lock", 0)


def test_whose_code() -> None:
    assert is_kernel("kernel")
    assert is_kernel("[ext4]")
    assert not is_kernel("[vdso]")
    assert not is_kernel("[unknown]")
    assert not is_kernel("syscalls")


@pytest.fixture
def small() -> RegionCounts:
    functions: dict[Function, int | Cost] = {
        own("vfs_read"): Cost(300, 40, 100, 50, 160, {"lock": 4}),
        own("ext4_read", "[ext4]"): 100,
        user("main"): 200,
        user("__vdso_time", "[vdso]"): 7,
        interrupts("tick"): 30,
        other("kswapd"): 20,
    }
    return region("read", functions, iterations=4, clock_ticks=1000)


def test_costs_by_context_and_side(small: RegionCounts) -> None:
    assert small.cost("own").insns == 607
    assert small.cost("own", kernel=True).insns == 400
    assert small.cost("own", kernel=False).insns == 207
    assert small.cost("interrupts").insns == 30
    assert small.cost("other").insns == 20
    assert small.mean_own_insns() == Fraction(607, 4)


def test_the_clock_sees_each_iteration_of_a_string_operation(small: RegionCounts) -> None:
    assert small.executed_insns() == 607 + 30 + 20 + 40
    assert small.idle_ticks() == 1000 - 697
    assert RegionCounts("x", Iterations(), ()).idle_ticks() is None


def test_median_of_iterations() -> None:
    rows = Iterations((1, 1, 1, 1), (10, 12, 500, 14), (0,) * 4, (0,) * 4)
    assert rows.own() == (11, 13, 501, 15)
    assert RegionCounts("x", rows, ()).median_own_insns() == 14


def test_lost_iterations_count_in_the_mean() -> None:
    functions = (FunctionCost("own", "kernel", "f", Cost(1000)),)
    one = RegionCounts("x", Iterations((0,) * 3, (9,) * 3, (0,) * 3, (0,) * 3), functions, None, 7)
    assert one.iteration_count == 10
    assert one.mean_own_insns() == 100


def test_a_region_without_iterations_is_one_pass() -> None:
    whole = RegionCounts("x", Iterations(), (FunctionCost("own", "kernel", "f", Cost(8)),))
    assert whole.iteration_count == 1
    assert whole.median_own_insns() == whole.mean_own_insns() == 8


def test_rows_of_iterations_have_one_length() -> None:
    with pytest.raises(ValueError, match="length"):
        Iterations((1,), (), (), ())


def test_regions_of_one_name_are_one() -> None:
    first = region("a", {own("f"): 10, own("g"): 1}, iterations=5)
    second = region("a", {own("f"): 20, interrupts("f"): 3}, iterations=7)
    between = region("b", {own("f"): 1})
    bare = RegionCounts("a", Iterations(), (FunctionCost("own", "kernel", "f", Cost(5)),), 5)
    merged = merged_regions(run(first, between, second, bare))
    assert list(merged) == ["a", "b"]
    assert merged["b"] == between
    both = merged["a"]
    assert both.iteration_count == 5 + 7 + 1
    assert both.cost("own").insns == 36
    assert both.cost("interrupts").insns == 3
    assert both.clock_ticks == 11 + 23 + 5
    assert len(both.functions) == 3


def test_regions_of_one_name_add_up_by_cpu() -> None:
    def of(*cpus: CpuCounts) -> RegionCounts:
        return msgspec.structs.replace(region("a", {own("f"): 10}), cpus=cpus)

    first = of(CpuCounts(1, 2, 3, 40, 30), CpuCounts(5, 6, 7, 8, 0))
    again = of(CpuCounts(10, 20, 30, 40, 1), CpuCounts(0, 0, 0, 0))
    (both,) = merged_regions(run(first, again)).values()
    assert both.cpus == (CpuCounts(11, 22, 33, 80, 31), CpuCounts(5, 6, 7, 8, None))


def test_json_and_back(small: RegionCounts) -> None:
    counted = run(small, warnings=("never quiet",))
    text = encode_counts(counted)
    assert decode_counts(text) == counted
    assert encode_counts(decode_counts(text)) == text


def test_json_is_compact() -> None:
    functions = {own(f"some_function_{index}"): index + 1 for index in range(1500)}
    size = len(encode_counts(run(region("open+close", functions, iterations=500))))
    assert size < 1500 * 70 + 500 * 4 * 6


def test_counts_of_a_newer_schema() -> None:
    for text in (
        encode_counts(RunCounts((), (), schema=2)),
        msgspec.json.encode({"schema": 2, "regions": "elsewhere"}),
    ):
        with pytest.raises(LabError) as caught:
            decode_counts(text)
        assert "schema 2" in caught.value.message
        assert "newer kdelta" in caught.value.hint


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"schema":1}', b'{"schema":1,"regions":[1]}'])
def test_damaged_counts(text: bytes) -> None:
    with pytest.raises(LabError, match="cannot be read"):
        decode_counts(text)
