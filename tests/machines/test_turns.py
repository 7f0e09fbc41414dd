# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests whose CPUs have short turns: runs repeat, and locks are found taken."""

import msgspec
import pytest

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.infer.conflicts.waiting import Waiting, waiting
from kdelta.infer.effects.same import partings
from kdelta.machines.tcg import Guest
from tests.machines.bench import NEW, OLD, counts_of, guest, run_job, syscalls_job
from tests.machines.stress import stressed
from tests.machines.test_conflicts import NOT_BLOCKING, conflicts, run_pairs

pytestmark = pytest.mark.guest

FOLDER, ALONE = "create-unlink-same-folder", "getppid-processes"
ACROSS = ("pipe-round-trip", "fork-exit-wait", "getppid")


def with_turns(microseconds: int, cpus: int = 2, spec: str = NEW) -> Guest:
    return msgspec.structs.replace(guest(spec, cpus=cpus), turn_us=microseconds)


def waits(microseconds: int) -> tuple[dict[str, Waiting | None], RunCounts]:
    """What waits in a region of each name."""
    outcome, counts = run_pairs(FOLDER, ALONE, where=with_turns(microseconds))
    regions, contended = merged_regions(counts), conflicts(outcome)
    return {name: waiting([(regions[name], contended[name])]) for name in (FOLDER, ALONE)}, counts


@pytest.mark.slow
def test_two_cpus_wait_for_a_folder_and_for_nothing_that_they_do_not_share() -> None:
    found, counts = waits(100)
    assert (folder := found[FOLDER])
    assert folder.locks[0] == "shmem_inode_info.vfs_inode.i_rwsem"
    assert "rwsem_spin_on_owner" in folder.functions
    assert folder.insns.value > 10
    assert found[ALONE] is None
    assert {region.idle_ticks() for region in counts.regions} == {0}


@pytest.mark.slow
def test_nothing_waits_where_turns_are_long_and_shorter_ones_repeat() -> None:
    assert waits(0)[0][FOLDER] is None
    assert waits(20)[0] == waits(20)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("cpus", "spec"), [(2, OLD), (4, NEW)])
@pytest.mark.parametrize("microseconds", [1, 30])
def test_runs_repeat_besides_a_busy_host(microseconds: int, spec: str, cpus: int) -> None:
    where = with_turns(microseconds, cpus, spec)
    first, counts = run_pairs(*NOT_BLOCKING, where=where)
    with stressed("all"):
        second, again = run_pairs(*NOT_BLOCKING, where=where)
    assert list(partings(counts, again)) == []
    assert conflicts(first) == conflicts(second)
    assert {region.idle_ticks() for region in counts.regions} == {0}


@pytest.mark.slow
def test_counts_from_a_snapshot_and_from_power_on_are_equal() -> None:
    where = with_turns(7)
    job = syscalls_job("--clock", *ACROSS)
    powered = counts_of(run_job(job, where, power_on=True))
    assert list(partings(counts_of(run_job(job, where)), powered)) == []
