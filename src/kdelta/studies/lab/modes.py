# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs in the modes that a program can run in: what goes along so that its calls are direct."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.guests.job import Job, JobFile
from kdelta.guests.kernel_mode import CALL_CACHE, LIBRARY, direct_calls, direct_library
from kdelta.host.command import quiet
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.mode_series import ARCH
from kdelta.spec.errors import UserError
from kdelta.spec.run import CALLS, Mode
from kdelta.workloads.catalog import NOTHING_MORE, LinkedIn


def in_mode(job: Job, mode: Mode, kernel: Kernel, talk: Callable[[str], None] = quiet) -> Job:
    """The job in that mode, with the library that makes calls direct where it needs one: dynamic
    programs load it. UserError for a kernel of an architecture without such modes.
    """
    if mode == "user":
        return job
    must_have_modes(mode, kernel)
    job = msgspec.structs.replace(job, mode=mode)
    if mode not in CALLS:
        return job
    library = JobFile(direct_library(kernel.arch, talk), LIBRARY, 0o755)
    more = (
        ("LD_PRELOAD", LIBRARY),
        ("KDELTA_CALL", CALLS[mode]),
        ("KDELTA_CALL_CACHE", CALL_CACHE),
    )
    return msgspec.structs.replace(job, env=(*job.env, *more), files=(*job.files, library))


def library_of(job: Job) -> dict[str, bytes]:
    """The library that comes with a job in such a mode, by its name; nothing with others."""
    return {
        Path(file.guest).name: file.host.read_bytes() for file in job.files if file.guest == LIBRARY
    }


def linked_in(mode: Mode, kernel: Kernel) -> LinkedIn:
    """What a static program is linked with to call so. UserError as of `in_mode`."""
    if mode not in CALLS:
        return NOTHING_MORE
    must_have_modes(mode, kernel)
    return direct_calls()


def must_have_modes(mode: Mode, kernel: Kernel) -> None:
    """UserError for a kernel of an architecture that has user mode alone."""
    if kernel.arch != ARCH:
        raise UserError(
            f"--mode {mode} on {kernel.spec}, a kernel for {kernel.arch}",
            "programs run in the kernel's mode on x86-64 only",
        )
