# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that make every kind of fault, at every place of a block, and tasks of every kind: the
counts equal the guest's clock in all of them, and each task's work is put down to whose it is.
"""

import functools
import subprocess
from pathlib import Path

import pytest

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.guests.job import Job, JobFile
from kdelta.host.emulator import find_qemu
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, STRICT_FLAGS, native_folder
from kdelta.host.target import target
from kdelta.machines.outcome import GuestOutcome
from tests.machines.bench import (
    NEW,
    OLD,
    clock_ticks,
    counts_of,
    guest,
    process_folder,
    run_job,
)
from tests.machines.corner_cases import PROGRAM, SOURCES, names_of_corners

pytestmark = pytest.mark.guest

SPECS = [OLD, pytest.param(NEW, marks=pytest.mark.slow)]


@functools.cache
def _program() -> Path:
    output = process_folder() / "corners"
    flags = (
        *COMMON_FLAGS,
        *STRICT_FLAGS,
        *STATIC_FLAGS,
        "-D_GNU_SOURCE",
        "-mno-red-zone",
        "-pthread",
    )
    include = f"-I{native_folder() / 'include'}"
    subprocess.run(["gcc", *flags, include, "-o", output, *SOURCES], check=True)
    return output


@functools.cache
def _not_trapped() -> set[str]:
    """Corners that this QEMU has not: since 9.1 it lets user code execute wbinvd."""
    qemu = find_qemu(target("x86_64"), guest().qemu)
    return {"no-wbinvd"} if qemu.plugin_apis[1] >= 3 else set()


@functools.cache
def _outcome(spec: str) -> GuestOutcome:
    argv = (PROGRAM, "but", *_not_trapped())
    job = Job(argv=argv, files=(JobFile(_program(), PROGRAM, 0o755),), seconds=300)
    return run_job(job, guest(spec))


@functools.cache
def _counts(spec: str) -> RunCounts:
    return counts_of(_outcome(spec), {"corners": _program().read_bytes()})


@functools.cache
def _regions(spec: str) -> dict[str, RegionCounts]:
    return merged_regions(_counts(spec))


def _user_insns(region: RegionCounts, context: str) -> int:
    return sum(
        f.cost.insns for f in region.functions if f.context == context and f.origin == "corners"
    )


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.slow
def test_every_corner_counts_what_the_clock_counts(spec: str) -> None:
    regions = _regions(spec)
    assert set(regions) == {*names_of_corners(), "nested-inner"} - _not_trapped()
    assert len(regions) > 80
    counted = {name: region.executed_insns() for name, region in regions.items()}
    assert counted == clock_ticks(_outcome(spec))
    assert _counts(spec).warnings == ()


@pytest.mark.parametrize("spec", SPECS)
def test_children_and_threads_are_their_makers_own_work(spec: str) -> None:
    for name, region in _regions(spec).items():
        if name != "other-task":
            assert _user_insns(region, "other") == 0, name
    assert _user_insns(_regions(spec)["children-at-once"], "own") > 200 * 20 * 100


@pytest.mark.parametrize("spec", SPECS)
def test_what_a_partner_makes_is_measured_too(spec: str) -> None:
    region = _regions(spec)["partner-s-tasks"]
    assert _user_insns(region, "own") > 20 * 500
    assert _user_insns(region, "other") == 0


@pytest.mark.parametrize("spec", SPECS)
def test_a_child_made_before_the_region_is_another_task(spec: str) -> None:
    region = _regions(spec)["other-task"]
    assert _user_insns(region, "other") > 20 * 10
    assert _user_insns(region, "own") > 20 * 10


@pytest.mark.parametrize("spec", SPECS)
def test_regions_that_meet_are_counted_apart(spec: str) -> None:
    by_name = [region.name for region in _counts(spec).regions]
    assert by_name.count("nested") == by_name.count("nested-inner") == 1
    assert by_name.count("twice") == 2
    assert by_name.index("nested") < by_name.index("nested-inner")
    second = [region for region in _counts(spec).regions if region.name == "twice"][1]
    assert len(second.iterations) == 2


@pytest.mark.parametrize("spec", SPECS)
def test_a_copy_that_a_tick_interrupts_is_the_tasks_own(spec: str) -> None:
    region = _regions(spec)["ticks-in-copies"]
    assert region.cost("interrupts").insns > 10_000
    assert region.cost("own").string_iterations > 1_000_000
    own = [f for f in region.functions if f.context == "own"]
    copies = max(own, key=lambda f: f.cost.string_iterations).name
    assert copies not in {f.name for f in region.functions if f.context == "interrupts"}


@pytest.mark.parametrize("spec", SPECS)
def test_a_task_that_ends_on_the_way_back_from_a_tick_does_that_itself(spec: str) -> None:
    functions = _regions(spec)["killed-at-work"].functions
    assert {f.context for f in functions if f.name == "do_exit"} == {"own"}
