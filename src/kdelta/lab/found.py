# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the files of the host that a program needs: it runs once in a guest, uncounted, and the
host brings each file when the program asks for it.

The names that it asked for are kept in the cache, also those that the host does not have. As long
as the host has the same for them, the program need not run again for that.
"""

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.guests.cpio import archive
from kdelta.guests.host_file import carried_bytes, opened
from kdelta.guests.job import Job, JobFile, job_identity
from kdelta.guests.libraries import LOADER_PATH, find_program
from kdelta.host.dirs import cache_dir
from kdelta.host.files import read_json, write_json
from kdelta.host.interrupt import interruptible
from kdelta.host.native import build
from kdelta.kernels.model import Kernel
from kdelta.lab.failed_program import WAITING
from kdelta.lab.lab import Lab
from kdelta.lab.plan import COMMAND_PREFIX, RunPlan, guest_compiler, work_of
from kdelta.lab.program import (
    GUEST_PATH,
    host_files,
    program_job,
    program_name,
    whole_job,
    working_folder,
)
from kdelta.lab.progress import Progress
from kdelta.lab.request import Program
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus

FINDER = "/run/find_files"
_NAMED = 3
"""So many files that were left out are named; the others are counted."""
_FORMAT = 1


class _Record(msgspec.Struct, frozen=True):
    """The names that a program asked for, and the job that it was with what the host had then."""

    names: tuple[str, ...]
    job: str


async def with_files(work: Work, kernels: Sequence[Kernel], lab: Lab) -> Work:
    """Return the work whose program has the names of its files, found on the first of the kernels
    that can be used for that: all kernels get the same files. A workload stays as it is.
    """
    program = work.program
    if program is None or not program.find or program.names is not None:
        return work
    for kernel in kernels:
        found = await _found(program, kernel, lab)
        if found is not None:
            return msgspec.structs.replace(work, program=found)
    return work


def names_folder() -> Path:
    """Return where names are kept."""
    return cache_dir("found")


async def with_all_files(works: Sequence[Work], kernels: Sequence[Kernel], lab: Lab) -> list[Work]:
    """Do that for several works."""
    return [await with_files(one, kernels, lab) for one in works]


async def _found(program: Program, kernel: Kernel, lab: Lab) -> Program | None:
    """The program with its names; None if they cannot be found on that kernel."""
    settled = await lab.settled([kernel])
    empty = msgspec.structs.replace(program, names=())
    key = identity(
        {
            "command": program.command,
            "files": program.files,
            "cwd": working_folder(),
            "loader path": os.environ.get(LOADER_PATH, ""),
            "arch": kernel.arch,
            "cpu": settled.guest(kernel).cpu,
            "mode": lab.request.mode,
            "format": _FORMAT,
        }
    )
    file = names_folder() / f"{key[:32]}.json"
    record = read_json(file, _Record)
    if record:
        known = msgspec.structs.replace(program, names=record.names)
        if job_identity(whole_job(known, kernel, lab.request)) == record.job:
            return known
    names = await _asked(empty, kernel, settled)
    if names is None:
        return None
    found = msgspec.structs.replace(program, names=names)
    job = whole_job(found, kernel, lab.request)
    write_json(file, _Record(names, job_identity(job)))
    _report(found, job, lab.progress)
    return found


async def _asked(program: Program, kernel: Kernel, lab: Lab) -> tuple[str, ...] | None:
    """The names that the program asks for; None if it cannot be followed on that kernel."""
    with interruptible():
        plan = _finder_work(program, kernel, lab)
    files = host_files(program, plan.job.files)
    files.take_new()  # which the job has already
    names: dict[str, None] = {}

    def answer(name: str) -> bytes:
        if not name.isprintable():  # no UTF-8, or a line's end: it would spoil lists of names
            return archive(())
        names[name] = None
        files.need(name)
        return archive(one.entry() for one in files.take_new())

    outcome = await lab.answered(kernel, plan, answer)
    refused = outcome.messages.get("not-found", b"").decode("utf-8", "replace")
    if refused or outcome.status is RunStatus.BOOT_FAILED:
        lab.progress.log(
            f"files of {program_name(program)} are not looked for on {kernel.release}: "
            f"{refused or outcome.detail}; --file PATH adds one"
        )
        return None
    if outcome.status is RunStatus.TIMED_OUT:  # counted, it would take still longer
        raise UserError(
            f"{program_name(program).removeprefix(COMMAND_PREFIX)} did not end while its files were"
            f" looked for: {outcome.detail}",
            f"{WAITING}; else give it less to do, or more time by --timeout or --seconds; "
            "--no-find looks for none",
        )
    return tuple(names)


def _finder_work(program: Program, kernel: Kernel, lab: Lab) -> RunPlan:
    log = lab.progress.log
    by = guest_compiler(kernel.arch, lab.request.machine, log)
    finder = JobFile(build("find_files", log, by=by), FINDER, 0o755)
    job = program_job(program, kernel)
    files = host_files(program, job.files)
    job = msgspec.structs.replace(
        job, argv=(FINDER, *job.argv), files=(*job.files, finder), found=files.files
    )
    return work_of(program_name(program), job, {})


def script_note(word: str) -> str:
    """Return that a name of the PATH leads to a script, such as a shim of a version manager, since
    its interpreter is counted, too; empty for all else.
    """
    path = find_program(word)
    if "/" in word:
        return ""
    with opened(str(path)) as file:
        if file.read(2) != b"#!":
            return ""
    other = shutil.which(word, path=GUEST_PATH)
    others = f"; without that: -- {other}" if other and Path(other) != path else ""
    return f"{word} is the script {path}, whose interpreter is counted as well{others}"


def _report(program: Program, job: Job, progress: Progress) -> None:
    """A line on what is carried, and one on what the program asked for in vain."""
    contents = [one for one in job.found if one.content]
    mib = carried_bytes(job.found) / (1 << 20)
    progress.log(
        f"{shlex.join(program.command[:1])} gets {len(contents)} files of this host, {mib:.1f} MiB"
    )
    if note := script_note(program.command[0]):
        progress.log(note)
    left_out = host_files(program, job.files).left_out
    for path, why in list(left_out.items())[:_NAMED]:
        progress.log(f"left out {path}: {why}; --file {path} adds it")
    if len(left_out) > _NAMED:
        progress.log(f"left out {len(left_out) - _NAMED} more files")
