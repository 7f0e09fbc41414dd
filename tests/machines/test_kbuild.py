# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `kbuild` in real guests: what it compiles, that it repeats, and how it fails."""

import functools
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.counts.reader import Sources, read_counts
from kdelta.lab.lab import RunPlan
from kdelta.lab.work import workload_work
from kdelta.machines.outcome import GuestOutcome
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import NEW, clock_ticks, guest, kernel, run_job

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.campaign]

KBUILD = find_workload("kbuild")
SMALL = ("small-j1", "small-j4")
OBJECTS = 3


@functools.cache
def work(*operations: str) -> RunPlan:
    return workload_work(KBUILD, operations, kernel(NEW))


def ran(of: RunPlan) -> GuestOutcome:
    return run_job(of.job, guest(NEW, memory_mib=of.memory_mib))


def regions_of(outcome: GuestOutcome) -> dict[str, RegionCounts]:
    assert outcome.status == "ok", (outcome.status, outcome.detail, outcome.console[-2000:])
    assert outcome.counts
    assert outcome.symbols
    sources = Sources(
        outcome.symbols,
        outcome.messages.get("modules", b""),
        work(*SMALL).binaries,
        outcome.messages["vdso"],
    )
    return merged_regions(read_counts(outcome.counts, sources, clock_ticks(outcome)))


@functools.cache
def outcome() -> GuestOutcome:
    return ran(work(*SMALL))


@functools.cache
def counted() -> dict[str, RegionCounts]:
    return regions_of(outcome())


def test_the_objects_are_made_and_are_those_of_the_host() -> None:
    """The workload itself holds each against its CRC-32, and fails if one differs."""
    assert list(counted()) == list(SMALL)
    said = outcome().messages["stdout"].decode().splitlines()
    assert said == [f"{name}: {OBJECTS} objects" for name in SMALL]


def test_all_counts_equal_the_clock() -> None:
    one = counted()["small-j1"]
    assert one.clock_ticks
    # One after the other, there is always something to execute.
    assert one.idle_ticks() == 0
    four = counted()["small-j4"].idle_ticks()
    assert four is not None
    assert four >= 0


def test_user_code_is_of_the_programs_that_kbuild_starts() -> None:
    user: Counter[str] = Counter()
    for row in counted()["small-j1"].functions:
        if row.context == "own":
            user[row.origin] += row.cost.insns
    assert {"cc1", "as", "gcc", "make", "sh", "fixdep", "rm", "mkdir", "libc.so.6"} <= user.keys()
    whole = sum(user.values())
    assert user["cc1"] > whole / 2
    assert user["[unknown]"] < whole / 10_000
    # A fork and a page fault for each of hundreds of processes.
    assert user["kernel"] > whole / 20


def test_the_work_is_the_same_four_at_a_time() -> None:
    """What the programs execute is the same but for make's waiting; the kernel switches more."""
    one, four = (counted()[name].cost("own", kernel=False).insns for name in SMALL)
    assert four == pytest.approx(one, rel=0.01)


def test_it_repeats_to_the_last_instruction() -> None:
    assert regions_of(ran(work(*SMALL))) == counted()


def ran_with(ctype: Path) -> GuestOutcome:
    """A compile of another lib/ctype.c than the host's."""
    of = work("small-j1")
    files = tuple(
        msgspec.structs.replace(file, host=ctype) if file.guest.endswith("/lib/ctype.c") else file
        for file in of.job.files
    )
    return ran(msgspec.structs.replace(of, job=msgspec.structs.replace(of.job, files=files)))


def test_what_the_compiler_says_is_the_runs_failure(tmp_path: Path) -> None:
    broken = tmp_path / "ctype.c"
    broken.write_text("int broken(void) { return nothing; }\n")
    found = ran_with(broken)
    assert found.status == "workload-failed"
    assert "lib/ctype.c:1:" in found.detail
    assert "error: 'nothing' undeclared" in found.detail.replace("\u2018", "'").replace(
        "\u2019", "'"
    )


def test_an_object_that_is_another_than_the_hosts(tmp_path: Path) -> None:
    other = tmp_path / "ctype.c"
    other.write_text("int other = 1;\n")
    found = ran_with(other)
    assert found.status == "workload-failed"
    assert "lib/ctype.o is not what the same compiler makes of it on the host" in found.detail


def test_too_little_memory_is_told() -> None:
    found = run_job(work("small-j1").job, guest(NEW, memory_mib=160))
    assert found.status != "ok"
    assert found.detail
