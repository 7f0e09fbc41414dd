# SPDX-License-Identifier: GPL-2.0-or-later
"""A repeated string operation is one instruction and so many elements, wherever it lies."""

import functools
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.guests.job import Job, JobFile
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, STRICT_FLAGS, native_folder
from tests.machines.bench import counts_of, guest, process_folder, run_job

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).parent / "strings" / "main.c"
PROGRAM = "/strings"
PASSES = 3
INSIDE = "-512"  # of the places: where no block ends for a page's sake


class Operation(NamedTuple):
    """What an element is: bytes, operands, and whether its pass is an instruction (as scas's)."""

    element_bytes: int
    loads: int
    stores: int
    is_insn: bool = False


OPERATIONS = {
    "stosb": Operation(1, 0, 1),
    "stosq": Operation(8, 0, 1),
    "movsb": Operation(1, 1, 1),
    "lodsw": Operation(2, 1, 0),
    "scasb": Operation(1, 1, 0, is_insn=True),
}


@functools.cache
def _program() -> Path:
    output = process_folder() / "strings"
    flags = (*COMMON_FLAGS, *STRICT_FLAGS, *STATIC_FLAGS, "-D_GNU_SOURCE", "-mno-red-zone")
    include = f"-I{native_folder() / 'include'}"
    subprocess.run(["gcc", *flags, include, "-o", output, SOURCE], check=True)
    return output


@functools.cache
def _regions() -> dict[tuple[str, int, str, str], RegionCounts]:
    """By operation, count, instructions before it in its block, and place."""
    job = Job(argv=(PROGRAM,), files=(JobFile(_program(), PROGRAM, 0o755),), seconds=300)
    counts = counts_of(run_job(job, guest()), {"strings": _program().read_bytes()})
    assert counts.warnings == ()
    found = {}
    for name, region in merged_regions(counts).items():
        operation, count, lead, place = name.split("/")
        found[operation, int(count), lead, place] = region
    return found


def _user(region: RegionCounts) -> tuple[int, ...]:
    cost = region.cost("own", kernel=False)
    return cost.insns, cost.string_iterations, cost.string_bytes, cost.loads, cost.stores


def _wanted(operation: Operation, count: int) -> tuple[int, ...]:
    """What a region costs in user code: more than one of no elements by its elements."""
    elements = PASSES * count
    more = (
        elements if operation.is_insn else 0,
        0 if operation.is_insn else elements,
        elements * operation.element_bytes,
        elements * operation.loads,
        elements * operation.stores,
    )
    none = _user(_regions()["stosb", 0, "0", INSIDE])
    return tuple(a + b for a, b in zip(none, more, strict=True))


@pytest.mark.slow
def test_the_clock_is_what_was_counted() -> None:
    regions = _regions()
    assert len(regions) == len(OPERATIONS) * 5 * 2 * 10
    assert {name: region.idle_ticks() for name, region in regions.items()} == dict.fromkeys(
        regions, 0
    )
    # Not vacuous: pages that an operation stores to are faulted in on its way.
    assert regions["stosb", 5000, "0", "0"].cost("own").specials["iret"] == 2 * 3


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.slow
def test_an_operation_is_one_instruction_and_its_elements_at_each_place(operation: str) -> None:
    wrong = {
        (count, lead, place): (_user(region), wanted)
        for (name, count, lead, place), region in _regions().items()
        if name == operation and _user(region) != (wanted := _wanted(OPERATIONS[operation], count))
    }
    assert wrong == {}


def test_each_pass_is_the_same_at_each_place() -> None:
    for (name, count, lead, place), region in _regions().items():
        inside = _regions()[name, count, lead, INSIDE]
        assert len(region.iterations) == PASSES
        assert region.iterations.own_user == inside.iterations.own_user, (name, count, lead, place)
