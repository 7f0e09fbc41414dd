# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest runs to be timed: the job of a counted run, whose program reads a clock instead."""

from collections.abc import Callable

import msgspec

from kdelta.guests.job import Job, job_archive
from kdelta.host.command import quiet
from kdelta.kernels.model import Kernel
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work, workload_work
from kdelta.workloads.catalog import Workload, find_workload

NAME = "KDELTA_WORKLOAD"
"""The variable in which native/clock_guest finds what is timed."""


_SPARE_MIB = 128
"""What a guest with the usual memory has left for files; some boards have no more."""


class TimedJob(msgspec.Struct, frozen=True):
    """A job as the archive that a guest unpacks, what memory that takes, and its longest time."""

    archive: bytes
    memory_mib: int
    seconds: float
    warnings: tuple[str, ...] = ()


def timed_job(
    work: Work, kernel: Kernel, asked: LabRequest, log: Callable[[str], None] = quiet
) -> TimedJob:
    """Return what a guest of that kernel runs for operations of a workload, or for a program, which
    is timed as a whole unless it was compiled with -DKDELTA_TIMED. UserError as of `Work.plan`.
    """
    if work.program:
        plan = work.plan(kernel, asked, log)
    else:
        timed = _timed(find_workload(work.workload))
        plan = workload_work(timed, work.operations, kernel, log, asked)
    job: Job = msgspec.structs.replace(plan.job, env=(*plan.job.env, (NAME, work.name)))
    archive = job_archive(job)
    least = max(asked.machine.memory_mib, plan.memory_mib)
    # The archive is there as it was loaded, as a file of the initramfs, and unpacked.
    memory_mib = least + max(0, (3 * len(archive) >> 20) - _SPARE_MIB)
    return TimedJob(archive, memory_mib, plan.seconds_on(asked.machine), plan.warnings)


def _timed(workload: Workload) -> Workload:
    """Return a workload whose program comes with the job, and has marks for a clock. It does not
    settle, and gets no other words for exact counts, but its own parameters.
    """
    usual = find_workload(workload.plain_name).arguments
    return msgspec.structs.replace(
        workload,
        image="job",
        own_starts=False,
        arguments=workload.arguments[len(usual) :],
        cflags=(*workload.cflags, "-DKDELTA_TIMED"),
    )
