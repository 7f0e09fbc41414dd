# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of several CPUs on real kernels: the clock's truth, repetition, calls, snapshots."""

import asyncio
import subprocess

import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.same import partings
from kdelta.lab.smp import must_have_cpus
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import NOTHING_MORE, Guest, Recording, Snapshot, boot
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import (
    NEW,
    OLD,
    counts_of,
    guest,
    kernel,
    new_setting,
    regions_of,
    run_job,
    syscalls_job,
)
from tests.machines.stress import stressed
from tests.machines.test_conflicts import run_pairs

pytestmark = pytest.mark.guest

ALL = tuple(operation.name for operation in find_workload("syscalls").operations)
ACROSS = ("pipe-round-trip", "fork-exit-wait", "vfork-exec", "thread-create-join", "uname")
"""Operations whose tasks are on several CPUs; and one whose task is not."""


def with_cpus(cpus: int, spec: str = NEW, append: str = "") -> Guest:
    return guest(spec, append, cpus=cpus)


def counted(where: Guest, *names: str, recording: Recording = NOTHING_MORE) -> RunCounts:
    return counts_of(run_job(syscalls_job("--clock", *names), where, recording=recording))


def test_two_cpus_count_what_the_virtual_clock_counts() -> None:
    """Which goes on with each instruction of either CPU, and while both are idle."""
    where = with_cpus(2)
    regions = regions_of("getppid", "pipe-round-trip", "fork-exit-wait", where=where)
    assert {region.idle_ticks() for region in regions.values()} == {0}
    # Not vacuous: the other CPU worked, and one woke the other by an interrupt.
    names = {function.name for function in regions["pipe-round-trip"].functions}
    assert any("sysvec_reschedule_ipi" in name or "call_function" in name for name in names), names
    assert regions["pipe-round-trip"].cost("other").insns > 0
    start = asyncio.run(obtain_snapshot(where, new_setting()))
    assert isinstance(start, Snapshot)
    assert b"\nquiet yes\n" in start.messages()["hello"]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [OLD, NEW])
@pytest.mark.parametrize("cpus", [2, 4])
def test_every_region_counts_what_the_virtual_clock_counts(spec: str, cpus: int) -> None:
    regions = regions_of(*ALL, "fault-heavy", "cross-page", where=with_cpus(cpus, spec))
    idle = {name: region.idle_ticks() for name, region in regions.items()}
    assert idle == dict.fromkeys(regions, 0)


@pytest.mark.slow
@pytest.mark.parametrize("cpus", [2, 4])
def test_runs_repeat_besides_a_busy_host(cpus: int) -> None:
    first = counted(with_cpus(cpus), *ALL)
    with stressed("all"):
        second = counted(with_cpus(cpus), *ALL)
    assert list(partings(first, second)) == []


@pytest.mark.slow
def test_counts_from_a_snapshot_and_from_power_on_are_equal() -> None:
    where = with_cpus(2)
    powered = counts_of(run_job(syscalls_job("--clock", *ACROSS), where, power_on=True))
    assert list(partings(counted(where, *ACROSS), powered)) == []


@pytest.mark.slow
def test_boots_end_with_the_same_memory_besides_a_busy_host() -> None:
    where, quiet, busy = with_cpus(4), new_setting(), new_setting()
    assert asyncio.run(boot(where, quiet)).status == "ok"
    with stressed("all"):
        assert asyncio.run(boot(where, busy)).status == "ok"
    for name in ("ram", "boot"):
        files = [str(setting.folder / name) for setting in (quiet, busy)]
        assert subprocess.run(["cmp", *files], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("cpus", [2, 4])
def test_calls_add_up_to_what_is_counted_without(cpus: int) -> None:
    """A profile whose nodes do not add up to the counts is an error where it is read."""
    where = with_cpus(cpus)
    plain = counted(where, *ACROSS)
    followed = counted(where, *ACROSS, recording=Recording(calls="all"))
    assert list(partings(plain, followed)) == []


@pytest.mark.slow
def test_a_kernel_that_uses_one_cpu_is_refused() -> None:
    where = with_cpus(2, append="maxcpus=1")
    start = asyncio.run(obtain_snapshot(where, new_setting()))
    assert isinstance(start, Snapshot), start
    with pytest.raises(UserError, match=r"cannot give .* 2 CPUs: it uses 1"):
        must_have_cpus(kernel(NEW), where, start.messages())


@pytest.mark.slow
def test_each_cpu_executes_its_part() -> None:
    """The tasks of a round trip are on both, and in between both idle; that of uname is on one."""
    regions = regions_of("pipe-round-trip", "uname", where=with_cpus(2))
    across, alone = regions["pipe-round-trip"], regions["uname"]
    assert len(across.cpus) == len(alone.cpus) == 2
    assert all(cpu.own > 100_000 for cpu in across.cpus)
    assert alone.cpus[0].own > 100_000
    assert alone.cpus[1].own == 0
    assert all(cpu.idle == cpu.other > 0 for cpu in across.cpus)
    assert [cpu.idle for cpu in alone.cpus] == [0, 0]
    assert not regions_of("uname", where=guest(NEW))["uname"].cpus


@pytest.mark.slow
def test_a_cpu_that_a_timer_wakes_for_nothing_is_idle() -> None:
    """It switches to no task while the pair runs, so its idle task is known by its own calls."""
    _, counts = run_pairs("getppid-processes", where=with_cpus(4))
    woken = counts.regions[0].cpus[3]
    assert woken.own == 0
    assert woken.idle == woken.other > 0
