# SPDX-License-Identifier: GPL-2.0-or-later
"""Any program of the host under a kernel: one region, unless it marks its own."""

from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.guests.job import Job
from kdelta.guests.libraries import carry, find_program, is_static, parse_file_option
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import UserError
from kdelta.spec.run import CALLS
from kdelta.store.store import Store
from kdelta.studies.lab.lab import Done, Lab, Work, work_of
from kdelta.studies.lab.requests import Progress, RunRequest
from kdelta.studies.lab.work import in_mode

COMMAND_REGION = "command"
_ELF = b"\x7fELF"


async def run_command(request: RunRequest, store: Store, progress: Progress) -> tuple[Done, ...]:
    """The runs of a command, one a perturbation; none if the kernel could not be built."""
    check_command(request)  # before a kernel is built for it
    lab = Lab(request.lab, store, progress)
    kernel = lab.kernel(request.kernel)
    if isinstance(kernel, NoKernel):
        progress.say(f"no kernel: {kernel.text}")
        return ()
    (done,) = await lab.runs([kernel], [command_work(request, kernel)])
    return tuple(with_own_regions(one) for one in done)


def check_command(request: RunRequest) -> None:
    """UserError for no command, and for a program or a file that is not there."""
    if not request.command:
        raise UserError("no command", "write it after --: kdelta run KERNEL -- COMMAND ARGS")
    for text in request.files:
        parse_file_option(text)
    find_program(request.command[0])


def command_work(request: RunRequest, kernel: Kernel) -> Work:
    """The command, with all that it needs, as a job for that kernel."""
    files = [found for text in request.files for found in parse_file_option(text)]
    carried = carry(list(request.command), files, kernel.arch)
    job = Job(
        argv=carried.argv,
        env=(("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/root"), *carried.env),
        region=COMMAND_REGION,
        seconds=request.seconds,
        files=carried.files,
    )
    mode = request.lab.mode
    if mode in CALLS and is_static(Path(carried.argv[0])):
        raise UserError(
            f"{request.command[0]} is linked statically: nothing makes its calls direct",
            "--mode kernel runs it in the kernel's mode, with the calls that it has",
        )
    job = in_mode(job, mode, kernel)
    binaries = {Path(file.guest).name: file.host.read_bytes() for file in job.files}
    programs = {name: content for name, content in binaries.items() if content.startswith(_ELF)}
    name = Path(request.command[0]).name
    return work_of(f"run {name}", job, programs)


def with_own_regions(done: Done) -> Done:
    """A run without the region around the command when the command marked its own.

    The outer one ends where an inner one begins, so it holds the start of the program only.
    """
    if done.counts is None:
        return done
    inner = tuple(r for r in done.counts.regions if r.name != COMMAND_REGION)
    if not inner:
        return done
    counts: RunCounts = msgspec.structs.replace(done.counts, regions=inner)
    return msgspec.structs.replace(done, counts=counts)
