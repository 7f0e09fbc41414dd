# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose path depends on what a guest's kernel did otherwise than on a CPU."""

from kdelta.counts.model import Cost, FunctionCost, Iterations, RegionCounts, RunCounts
from kdelta.cpus.model import KernelPath
from kdelta.cpus.representative import Difference
from kdelta.infer.effects.marks import MarkedRegion, marked_regions


def difference(name: str, **what: object) -> Difference:
    """A difference of a path that has these fields."""
    path = KernelPath(name=name, source="", otherwise="", flags=("x",), **what)  # type: ignore[arg-type]
    return Difference(path, ("no x",))


THUNKS = difference("retpolines", functions=("__x86_indirect_thunk_*",))
TABLES = difference("isolation", specials=("mov-cr",), entries=True)
STRINGS = difference("strings", functions=("memcpy", "memcpy_orig"), strings=True)


def region(name: str, *functions: FunctionCost, iterations: int = 2) -> RegionCounts:
    """A region with those functions."""
    row = (1,) * iterations
    return RegionCounts(name, Iterations(row, row, row, row), functions)


def own(name: str, **cost: object) -> FunctionCost:
    """A function's own cost."""
    return FunctionCost("own", "kernel", name, Cost(**cost))  # type: ignore[arg-type]


def test_functions_that_a_path_changes() -> None:
    run = RunCounts((region("stat", own("__x86_indirect_thunk_rax", insns=8), own("a", insns=9)),))
    assert marked_regions([THUNKS, TABLES, STRINGS], run) == (
        MarkedRegion("stat", "retpolines", 4, 0, 0, entered=False),
    )


def test_special_instructions_whose_number_it_changes() -> None:
    run = RunCounts((region("switch", own("a", insns=9, specials={"mov-cr": 6})),))
    assert marked_regions([THUNKS, TABLES], run) == (
        MarkedRegion("switch", "isolation", 0, 3, 0, entered=False),
    )


def test_ways_into_the_kernel_even_where_nothing_else_shows_it() -> None:
    run = RunCounts(
        (
            region("getppid", own("entry_SYSCALL_64", insns=9, specials={"sysret": 2})),
            region("loop", own("main", insns=900)),
        )
    )
    assert marked_regions([TABLES], run) == (
        MarkedRegion("getppid", "isolation", 0, 0, 0, entered=True),
    )
    assert marked_regions([THUNKS, STRINGS], run) == ()


def test_strings_wherever_they_are_moved() -> None:
    run = RunCounts((region("read", own("a", insns=4, string_bytes=128), own("memcpy", insns=6)),))
    assert marked_regions([THUNKS, STRINGS], run) == (
        MarkedRegion("read", "strings", 3, 0, 64, entered=False),
    )


def test_only_the_own_work_counts() -> None:
    other = FunctionCost("other", "kernel", "memcpy", Cost(insns=9, string_bytes=9))
    interrupt = FunctionCost("interrupts", "kernel", "b", Cost(insns=9, specials={"iret": 1}))
    run = RunCounts((region("stat", own("a", insns=9), other, interrupt),))
    assert marked_regions([THUNKS, TABLES, STRINGS], run) == ()


def test_a_region_that_was_begun_twice_is_one() -> None:
    row = own("memcpy", insns=6)
    run = RunCounts((region("read", row), region("read", row, iterations=4)))
    assert marked_regions([STRINGS], run) == (
        MarkedRegion("read", "strings", 2, 0, 0, entered=False),
    )
