# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs in the modes that a program can run in: what goes along so that its calls are direct."""

from collections.abc import Callable

import msgspec

from kdelta.guests.job import Job
from kdelta.host.command import quiet
from kdelta.kernels.mode_series import ARCH
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import CALLS, Mode
from kdelta.workloads.catalog import NOTHING_MORE, LinkedIn


def in_mode(job: Job, mode: Mode, kernel: Kernel, talk: Callable[[str], None] = quiet) -> Job:
    """The job in that mode, with the library that makes calls direct where it needs one: dynamic
    programs load it. UserError for a kernel of an architecture without such modes.
    """
    if mode == "user":
        return job
    _must_have_modes(mode, kernel)
    job = msgspec.structs.replace(job, mode=mode)
    if mode not in CALLS:
        return job
    talk("making calls direct")
    raise LabError(f"the library for --mode {mode} is not there", "use --mode kernel")


def linked_in(mode: Mode, kernel: Kernel) -> LinkedIn:
    """What a static program is linked with to call so. UserError as of `in_mode`."""
    if mode not in CALLS:
        return NOTHING_MORE
    _must_have_modes(mode, kernel)
    raise LabError(f"the library for --mode {mode} is not there", "use --mode kernel")


def _must_have_modes(mode: Mode, kernel: Kernel) -> None:
    if kernel.arch != ARCH:
        raise UserError(
            f"--mode {mode} on {kernel.spec}, a kernel for {kernel.arch}",
            "programs run in the kernel's mode on x86-64 only",
        )
