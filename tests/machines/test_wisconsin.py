# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `wisconsin` in real guests: what its databases execute, that it repeats, and how it
fails. Each result is checked by the workload itself, and a run fails if one differs.
"""

import functools
from collections import Counter

import msgspec
import pytest

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.counts.reader import Sources, read_counts
from kdelta.lab.lab import RunPlan
from kdelta.lab.work import workload_work
from kdelta.machines.outcome import GuestOutcome
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import NEW, clock_ticks, guest, kernel, run_job
from tests.workloads.wisconsin import checksum, results

pytestmark = [pytest.mark.guest, pytest.mark.slow]

SECONDS = 900.0
SQLITE, MARIADB, POSTGRESQL = "wisconsin", "wisconsin-mariadb", "wisconsin-postgresql"
SOME = ("select-10pct", "fetch-1pct-clustered", "insert-indexed")
SERVERS = {MARIADB: "mariadbd", POSTGRESQL: "postgres"}
LIBRARIES = {SQLITE: "libsqlite3.so.0", MARIADB: "libmariadb.so.3", POSTGRESQL: "libpq.so.5"}


@functools.cache
def work(name: str, *operations: str) -> RunPlan:
    return workload_work(find_workload(name), operations, kernel(NEW))


def ran(of: RunPlan, memory_mib: int = 0) -> GuestOutcome:
    where = guest(NEW, memory_mib=memory_mib or of.memory_mib or 512)
    return run_job(of.job, where, seconds=SECONDS)


def told(of: RunPlan, *words: str) -> RunPlan:
    """With more words for the program, before the operations."""
    program, *others = of.job.argv
    job = msgspec.structs.replace(of.job, argv=(program, *words, *others))
    return msgspec.structs.replace(of, job=job)


def regions_of(outcome: GuestOutcome, of: RunPlan) -> dict[str, RegionCounts]:
    assert outcome.status == "ok", (outcome.status, outcome.detail, outcome.console[-2000:])
    assert outcome.counts
    assert outcome.symbols
    sources = Sources(
        outcome.symbols,
        outcome.messages.get("modules", b""),
        of.binaries,
        outcome.messages["vdso"],
    )
    counts = read_counts(outcome.counts, sources, clock_ticks(outcome))
    assert counts.warnings == ()
    return merged_regions(counts)


@functools.cache
def counted(name: str) -> dict[str, RegionCounts]:
    return regions_of(ran(work(name, *SOME)), work(name, *SOME))


def user_insns(region: RegionCounts, context: str) -> Counter[str]:
    """Own instructions outside the kernel, by program or library."""
    found: Counter[str] = Counter()
    for row in region.functions:
        if row.context == context and row.origin != "kernel":
            found[row.origin] += row.cost.insns
    return found


@pytest.mark.parametrize("name", LIBRARIES)
def test_each_query_is_one_iteration_that_the_clock_saw_as_well(name: str) -> None:
    assert list(counted(name)) == list(SOME)
    for region in counted(name).values():
        assert len(region.iterations.own_user) == 1
        idle = region.idle_ticks()
        assert idle is not None
        assert idle >= 0
    assert name in SERVERS or {one.idle_ticks() for one in counted(name).values()} == {0}


@pytest.mark.parametrize("name", LIBRARIES)
def test_client_and_server_are_the_measured_tasks(name: str) -> None:
    for region in counted(name).values():
        own = user_insns(region, "own")
        assert own[LIBRARIES[name]] > 100
        assert own[SERVERS.get(name, LIBRARIES[name])] > own.total() / 3
        assert user_insns(region, "other").total() == 0


@pytest.mark.parametrize(
    "name", [SQLITE, MARIADB, pytest.param(POSTGRESQL, marks=pytest.mark.campaign)]
)
def test_it_repeats_to_the_last_instruction(name: str) -> None:
    of = work(name, *SOME)
    assert regions_of(ran(of), of) == counted(name)


def test_queries_are_in_the_kernel_and_outside() -> None:
    share = {
        name: region.cost("own", kernel=True).insns / region.cost("own").insns
        for name, region in counted(SQLITE).items()
    }
    # A transaction is a journal that is made, written, and removed; a scan reads pages.
    assert share["insert-indexed"] > 0.4
    assert 0.001 < share["fetch-1pct-clustered"] < share["select-10pct"] < 0.2


def test_a_loop_count_repeats_the_queries() -> None:
    of = work("wisconsin:loops=2", "insert-indexed", "fetch-one-clustered")
    found = regions_of(ran(of), of)
    assert {name: len(region.iterations.own_user) for name, region in found.items()} == {
        "insert-indexed": 2,
        "fetch-one-clustered": 2,
    }


def test_all_queries_in_one_region_find_what_each_of_them_should() -> None:
    of = work(SQLITE, "total")
    found = regions_of(ran(of), of)["total"]
    assert len(found.iterations.own_user) == 1
    assert found.cost("own").insns > 3 * counted(SQLITE)["select-10pct"].cost("own").insns


def test_a_checksum_that_differs_is_told_with_both() -> None:
    of = told(work(SQLITE, "min"), "--expect", "min:1:123456789abcdef0")
    found = ran(of)
    real = checksum(results()["min"])
    assert found.status == "workload-failed"
    assert found.detail == (
        f"min: the result of min is wrong: 1 rows with the checksum {real:016x}, "
        "expected were 1 with 123456789abcdef0 (exit 1)"
    )


def test_too_little_memory_is_told() -> None:
    found = ran(work(SQLITE, "min"), memory_mib=128)
    assert found.status == "workload-failed"
    assert "MiB of memory are free, and sqlite with the relations needs" in found.detail
    assert "--memory" in found.detail


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        (MARIADB, "--no-such-option", "unknown option '--no-such-option'"),
        (POSTGRESQL, "--no_such=1", 'unrecognized configuration parameter "no_such"'),
    ],
)
def test_a_server_that_does_not_start_says_why(name: str, word: str, said: str) -> None:
    found = ran(told(work(name, "min"), "--server", word))
    assert found.status == "workload-failed"
    assert f"start: the database does not start; /usr/{'sbin' if name == MARIADB else 'lib'}/" in (
        found.detail
    )
    assert said in found.detail


def test_a_client_library_that_is_missing_is_named() -> None:
    of = work(SQLITE, "min")
    files = tuple(file for file in of.job.files if "libsqlite3" not in file.guest)
    bare = msgspec.structs.replace(of, job=msgspec.structs.replace(of.job, files=files))
    assert "no client library: libsqlite3.so.0: cannot open shared object" in ran(bare).detail
