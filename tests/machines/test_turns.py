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

# While all CPUs are idle, their clock goes on by one period of the timer at a time.
pytestmark = [pytest.mark.guest, pytest.mark.slow]

FOLDER = "create-unlink-same-folder"
ACROSS = ("pipe-round-trip", "fork-exit-wait", "getppid")


def with_turns(microseconds: int, cpus: int = 2, spec: str = NEW) -> Guest:
    return msgspec.structs.replace(guest(spec, cpus=cpus), turn_us=microseconds)


def waits(microseconds: int, name: str = FOLDER) -> tuple[Waiting | None, RunCounts]:
    outcome, counts = run_pairs(name, where=with_turns(microseconds))
    return waiting([(merged_regions(counts)[name], conflicts(outcome)[name])]), counts


def test_two_cpus_wait_for_a_folder_where_turns_are_short() -> None:
    assert waits(0)[0] is None
    found, counts = waits(20)
    assert found
    assert found.locks[0] == "shmem_inode_info.vfs_inode.i_rwsem"
    assert "rwsem_spin_on_owner" in found.functions
    assert found.insns.value > 10
    assert {region.idle_ticks() for region in counts.regions} == {0}
    again, _ = waits(20)
    assert again == found


def test_what_shares_nothing_waits_for_nothing() -> None:
    assert waits(20, "getppid-processes")[0] is None


@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("spec", [OLD, NEW])
@pytest.mark.parametrize("microseconds", [1, 30])
def test_runs_repeat_besides_a_busy_host(microseconds: int, spec: str, cpus: int) -> None:
    where = with_turns(microseconds, cpus, spec)
    first, counts = run_pairs(*NOT_BLOCKING, where=where)
    with stressed("all"):
        second, again = run_pairs(*NOT_BLOCKING, where=where)
    assert list(partings(counts, again)) == []
    assert conflicts(first) == conflicts(second)
    assert {region.idle_ticks() for region in counts.regions} == {0}


def test_counts_from_a_snapshot_and_from_power_on_are_equal() -> None:
    where = with_turns(7)
    job = syscalls_job("--clock", *ACROSS)
    powered = counts_of(run_job(job, where, power_on=True))
    assert list(partings(counts_of(run_job(job, where)), powered)) == []
