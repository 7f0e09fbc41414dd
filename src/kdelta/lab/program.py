# SPDX-License-Identifier: GPL-2.0-or-later
"""Any program of the host as what a run does: one region, unless it marks its own."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kdelta.counts.debuginfod import symbol_files
from kdelta.guests.host_file import carried_bytes
from kdelta.guests.host_files import HostFiles, canonical
from kdelta.guests.job import Job, JobFile, check_size
from kdelta.guests.libraries import (
    LOADER_PATH,
    carry,
    is_static,
    parse_file_option,
    path_of_command,
    program_files,
    target_of,
)
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.lab.plan import COMMAND_PREFIX, COMMAND_REGION, RunPlan, in_mode, work_of
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.shell_words import shell_meant
from kdelta.spec.errors import UserError
from kdelta.spec.run import CALLS, MachineOptions

_ELF = b"\x7fELF"
_USUAL_BYTES = 128 << 20
"""Contents of files that a guest with the usual memory has room for."""
GUEST_PATH = "/usr/local/bin:/usr/bin:/bin"


def program_name(program: Program) -> str:
    """Return what runs of a program are called in the store."""
    return COMMAND_PREFIX + Path(program.command[0]).name


def check_program(program: Program, arches: Iterable[str] = ()) -> None:
    """Raise UserError for no command, for a program or a file that is not there or cannot run in a
    guest, and for more than a guest takes.

    arches: the architectures of the guests, as far as they are known; empty ones are not.
    """
    if not program.command:
        raise UserError("no command", "write it after --: kdelta run KERNEL -- COMMAND ARGS")
    given = [found.host for text in program.files for found in parse_file_option(text)]
    word = program.command[0]
    try:
        path = path_of_command(word)
    except UserError as error:
        raise shell_meant(program.command) or error from None
    check_size({*given, path})  # before they are read
    of = [target(arch) for arch in arches if arch] or [target_of(path)]
    try:
        needed = [program_files(path, one) for one in of]
    except UserError as error:
        # As it was written, so that it is found in the command line.
        shown = word if "/" in word else str(path)
        instead = error.instead and tuple(
            word if one == str(path) else one for one in error.instead
        )
        raise UserError(error.message.replace(str(path), shown), error.hint, instead) from error
    check_size({*given, *needed[0]})


def program_work(program: Program, kernel: Kernel, asked: LabRequest) -> RunPlan:
    """Return the program, with all that it needs, as a job for that kernel, in the mode that is
    asked for."""
    job = whole_job(program, kernel, asked)
    paths = {Path(one.guest).name: one.host for one in job.files}
    paths |= {Path(one.path).name: Path(one.path) for one in job.found if one.content}
    binaries = {name: content for name, path in paths.items() if (content := _program(path))}
    symbols, warnings = symbol_files(binaries)
    return work_of(
        program_name(program),
        job,
        binaries,
        warnings,
        memory_mib=_memory_mib(job),
        symbol_files=symbols,
        record=program.record,
    )


def whole_job(program: Program, kernel: Kernel, asked: LabRequest) -> Job:
    """Return the program as one region, in the mode that is asked for, with the files that it gets
    of the host.
    """
    job = program_job(program, kernel)
    if asked.mode in CALLS and is_static(Path(job.argv[0])):
        raise UserError(
            f"{program.command[0]} is linked statically: nothing makes its calls direct",
            "--mode kernel runs it in the kernel's mode, with the calls that it has",
        )
    job = in_mode(job, asked.mode, kernel, asked.machine)
    if program.names is not None:
        files = host_files(program, job.files)
        moved = (msgspec.structs.replace(one, guest=canonical(one.guest)) for one in job.files)
        job = msgspec.structs.replace(job, files=tuple(moved), found=files.files)
    return msgspec.structs.replace(job, region=COMMAND_REGION)


def program_job(program: Program, kernel: Kernel) -> Job:
    """Return the program as a job without a region and without found files. UserError if it cannot
    run in the guest.
    """
    files = [found for text in program.files for found in parse_file_option(text)]
    carried = carry(list(program.command), files, kernel.arch)
    env, cwd = carried.env, "/"
    if program.names is not None:  # what it needs to start is among the files that are found
        path = os.environ.get(LOADER_PATH)
        carried = msgspec.structs.replace(carried, files=tuple(files))
        env, cwd = ((LOADER_PATH, path),) if path else (), working_folder()
    return Job(
        argv=carried.argv,
        env=(("PATH", GUEST_PATH), ("HOME", "/root"), *env),
        cwd=cwd,
        seconds=program.seconds,
        files=carried.files,
    )


def host_files(program: Program, given: tuple[JobFile, ...]) -> HostFiles:
    """Return what the host has for the names that the program asked for, besides the files given
    to it.
    """
    files = HostFiles({canonical(one.guest) for one in given})
    files.need(f"s{working_folder()}")
    files.need_all(f"n{Path(one.guest).parent}" for one in given)
    files.need_all(program.names or ())
    return files


def working_folder() -> str:
    """Return the folder that kdelta was started in, "/" if a guest cannot have it."""
    files = HostFiles()
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:  # it was removed
        return "/"
    files.need(f"s{folder}")
    return folder if any(one.path == folder for one in files.files) else "/"


def _program(path: Path) -> bytes:
    """The content of a program; empty if the file is none."""
    with path.open("rb") as file:
        start = file.read(len(_ELF))
        return start + file.read() if start == _ELF else b""


def _memory_mib(job: Job) -> int:
    """What a guest needs, 0 for the usual: rounded up, so that few snapshots serve."""
    found = carried_bytes(job.found)
    if found <= _USUAL_BYTES:
        return 0
    usual = MachineOptions().memory_mib
    return usual * (1 + -(-2 * found // (usual << 20)))
