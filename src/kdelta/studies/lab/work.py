# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is to do: a workload as jobs for guests, in a mode, with what it needs of them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from kdelta.guests.job import Job, JobFile, job_identity
from kdelta.guests.kernel_mode import CALL_CACHE, LIBRARY, direct_calls, direct_library
from kdelta.guests.kernel_tree import kernel_tree
from kdelta.guests.userland import userland
from kdelta.host.command import quiet
from kdelta.host.files import lab_errors
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.mode_series import ARCH
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.run import CALLS, MachineOptions, Mode
from kdelta.workloads.catalog import NOTHING_MORE, LinkedIn, Workload


class GuestPart(msgspec.Struct, frozen=True):
    """What one guest does. `jobs`: the usual one, then the same for longer and longer, for regions
    that are not steady in those before.
    """

    name: str
    jobs: tuple[Job, ...]


class Work(msgspec.Struct, frozen=True):
    """What a run is to do. `binaries`: the programs whose code may run, name -> content.

    `name` and `identity` are the workload's, as the store keeps them. `job` says what all parts
    have in common; each part has a guest of its own. `warnings` go with what its runs count: what
    could not be prepared for them. Its guests have `memory_mib` at least, and a guest may take
    `host_seconds`, where the user does not say how long. Where its jobs have words for later, their
    program asks for them when it is about to execute the instruction at `asks_at`.
    """

    name: str
    identity: str
    job: Job
    binaries: Mapping[str, bytes]
    warnings: tuple[str, ...] = ()
    memory_mib: int = 0
    host_seconds: float = 0.0
    parts: tuple[GuestPart, ...] = ()
    asks_at: int = 0

    def seconds_on(self, machine: MachineOptions) -> float:
        """The longest that a guest of it may take here."""
        asked = machine.timeout_seconds
        usual = asked == MachineOptions().timeout_seconds
        return max(asked, self.host_seconds) if usual else asked


def work_of(
    name: str,
    job: Job,
    binaries: Mapping[str, bytes],
    warnings: tuple[str, ...] = (),
    *,
    parts: tuple[GuestPart, ...] = (),
    memory_mib: int = 0,
    host_seconds: float = 0.0,
    asks_at: int = 0,
) -> Work:
    """A job as the store knows it: by the hash of all that it carries. No parts: it is one."""
    key = job_identity(job)
    if parts:
        shapes = [
            (part.name, [(*one.argv, *(one.later or ())) for one in part.jobs]) for part in parts
        ]
        key = identity({"job": key, "parts": shapes})
    whole = (GuestPart(name, (job,)),)
    return Work(
        name, key, job, binaries, warnings, memory_mib, host_seconds, parts or whole, asks_at
    )


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


def carried_files(
    workload: Workload, program: Path, arch: str, talk: Callable[[str], None]
) -> list[JobFile]:
    """The files that a workload's programs need in a guest of that architecture, besides its image:
    those of the distribution, a kernel's source that is compiled, and its own program if that is
    not part of the image.
    """
    files = [JobFile(program, workload.program, 0o755)] if workload.image == "job" else []
    if workload.userland:
        programs = userland(workload.userland, arch, talk)
        files += programs.files
        if workload.kernel_tree:
            files += kernel_tree(workload.kernel_tree, workload.folder, programs, talk).files
    return files


def check_needs(workload: Workload, kernel: Kernel) -> None:
    """That a kernel can run a workload, as far as its config shows: UserError with what it lacks.
    Of a kernel without a config the workload finds out itself, before it begins.
    """
    if workload.architectures and kernel.arch not in workload.architectures:
        raise UserError(
            f"the workload {workload.name} runs on {', '.join(workload.architectures)}, and "
            f"{kernel.spec} is a kernel for {kernel.arch}",
            "kdelta workloads lists the others",
        )
    if kernel.config is None:
        return
    with lab_errors("reading", Path(kernel.config)):
        config = parse_config(Path(kernel.config).read_text(errors="replace"))
    options = [f"CONFIG_{name}" for name in workload.needs]
    lacking = [option for option in options if config.get(option) not in {"y", "m"}]
    if lacking:
        raise UserError(
            f"the workload {workload.name} needs {', '.join(lacking)}, which is off in "
            f"{kernel.spec}",
            f"build it with: {' '.join(f'+{option}=y' for option in lacking)}",
        )
