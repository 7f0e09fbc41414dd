# SPDX-License-Identifier: GPL-2.0-or-later
"""What a later QEMU takes for a run of all operations, next to the host's: from one snapshot, so
that both execute the same, and in turns.
"""

import asyncio
import resource
from statistics import median

import msgspec

from kdelta.guests.job import job_archive
from kdelta.host.lock import work_folder
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Setting, Snapshot, run_guest

from .bench import OLD, SECONDS, counts_of, guest, new_setting, syscalls_job
from .other_qemu import SUITES, on_host, other_qemu


def children_seconds() -> float:
    """Processor time, user and system, of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(rounds: int) -> list[str]:
    """A line for each QEMU: how many times the host's processor time it takes."""
    return asyncio.run(_measured(rounds))


async def _measured(rounds: int) -> list[str]:
    ours = on_host(guest(OLD))
    snapshot = await obtain_snapshot(ours, new_setting())
    assert isinstance(snapshot, Snapshot)
    said = []
    for suite in SUITES:
        theirs = msgspec.structs.replace(ours, qemu=other_qemu(suite))
        turns = [
            (await _used(ours, snapshot), await _used(theirs, snapshot)) for _ in range(rounds)
        ]
        ratios = [another / host for host, another in turns]
        medians = [median(seconds) for seconds in zip(*turns, strict=True)]
        said.append(
            f"qemu: all operations take {medians[1]:.2f} s of processor time with --qemu {suite},"
            f" {medians[0]:.2f} s in the host's: {median(ratios):.2f} times"
            f" ({min(ratios):.2f} to {max(ratios):.2f}, {rounds} rounds)"
        )
    return said


async def _used(where: Guest, snapshot: Snapshot) -> float:
    before = children_seconds()
    with work_folder() as work:
        counts_of(
            await run_guest(where, job_archive(syscalls_job()), Setting(work, SECONDS), snapshot)
        )
    return children_seconds() - before
