# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the files of the host that a program needs: it runs once in a guest, uncounted, and the
host brings each file when the program asks for it.

The names that it asked for are kept in the cache, also those that the host does not have. As long
as the host has the same for them, the program need not run again for that in such a guest: of
another kernel, or with other CPUs or memory, it may ask for others.

What it only asks about is in the guest without its content. If it then reads that in a run, the
run is none, and the study begins again with the content.
"""

import asyncio
import functools
import itertools
import os
import shlex
import shutil
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from kdelta.guests.cpio import archive
from kdelta.guests.host_file import carried_bytes, open_host_file
from kdelta.guests.host_files import NO_TEXT, is_text
from kdelta.guests.job import Job, JobFile, job_identity
from kdelta.guests.libraries import LOADER_PATH, path_of_command
from kdelta.host.dirs import cache_dir
from kdelta.host.files import read_json, write_json
from kdelta.host.interrupt import interruptible
from kdelta.host.native import build_part
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
from kdelta.lab.unseen import UnseenContentError
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError, leaves
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus

FINDER = "/run/find_files"
_NAMED = 3
"""So many files that were left out are named; the others are counted."""
_FORMAT = 2
ROUNDS = 3
"""How many times a study begins again whose program read a file without content."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Record(msgspec.Struct, frozen=True):
    """The names that a program asked for in guests, by what these guests were, and the job that it
    was with what the host had then. `read`: names of files that it read in runs, besides.
    """

    guests: dict[str, tuple[str, ...]] = {}
    job: str = ""
    read: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(dict.fromkeys((*itertools.chain(*self.guests.values()), *self.read)))


async def with_found_files(work: Work, kernels: Sequence[Kernel], lab: Lab) -> Work:
    """Return the work whose program has the names of its files, found on each of the kernels that
    can be used for that: all kernels get the files that it asked for on any. A workload stays as it
    is.
    """
    program = work.program
    if program is None or not program.find or program.names is not None or not kernels:
        return work
    found = await _found(program, kernels, lab)
    return msgspec.structs.replace(work, program=found) if found else work


def in_rounds(
    study: Callable[_P, Coroutine[Any, Any, _T]],
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Make a study begin again, with more content of files, when its program read some that it had
    only asked about when they were looked for. UserError, with a name, after some rounds: each
    brings more, the last one all that it has asked about.
    """

    @functools.wraps(study)
    async def rounds(*given: _P.args, **named: _P.kwargs) -> _T:
        for number in range(ROUNDS):
            try:
                # In a task of its own, which ends with it: a group of tasks that fails leaves the
                # one that it was in as if that had been cancelled.
                return await asyncio.create_task(study(*given, **named))
            except (UnseenContentError, ExceptionGroup) as error:
                unseen = [one for one in leaves(error) if isinstance(one, UnseenContentError)]
                if len(unseen) < len(list(leaves(error))) or None in {one.record for one in unseen}:
                    raise
                lab = next(one for one in (*given, *named.values()) if isinstance(one, Lab))
                for one in unseen:
                    lab.progress.log(f"{one.message}: once more, with it")
                    _remember(one, number)
        return await study(*given, **named)

    return rounds


def _remember(unseen: UnseenContentError, number: int) -> None:
    """Keeps that content is wanted: of what was read, then of its folders, then of all."""
    assert unseen.record
    folders = {os.path.dirname(path) for path in unseen.paths}  # noqa: PTH120 - of the guest
    near = [path for path in unseen.holes if number or path in unseen.paths]
    near = [path for path in near if number > 1 or os.path.dirname(path) in folders]  # noqa: PTH120
    record = read_json(unseen.record, _Record) or _Record()
    read = dict.fromkeys((*record.read, *(f"c{path}" for path in near)))
    write_json(unseen.record, msgspec.structs.replace(record, read=tuple(read)))


def names_folder() -> Path:
    """Return where names are kept."""
    return cache_dir("found")


async def with_all_files(works: Sequence[Work], kernels: Sequence[Kernel], lab: Lab) -> list[Work]:
    """Do that for several works."""
    return [await with_found_files(one, kernels, lab) for one in works]


async def _found(program: Program, kernels: Sequence[Kernel], lab: Lab) -> Program | None:
    """The program with its names; None if they cannot be found on any of these kernels."""
    empty = msgspec.structs.replace(program, names=())
    key = identity(
        {
            "command": program.command,
            "files": program.files,
            "cwd": working_folder(),
            "loader path": os.environ.get(LOADER_PATH, ""),
            "arch": kernels[0].arch,
            "mode": lab.request.mode,
            "format": _FORMAT,
        }
    )
    file = names_folder() / f"{key[:32]}.json"
    record = read_json(file, _Record) or _Record()

    def named(names: tuple[str, ...]) -> Program:
        return msgspec.structs.replace(program, names=names, record=file)

    def job_of(known: _Record) -> Job:
        asked_for = msgspec.structs.replace(known, read=()).names
        return whole_job(named(asked_for), kernels[0], lab.request)

    if record.guests and record.job != job_identity(job_of(record)):
        record = _Record()
    known = dict(record.guests)
    for kernel in kernels:
        settled = await lab.settled([kernel])
        guest = identity(settled.guest(kernel).snapshot_facts())[:32]
        if guest not in known and (names := await _asked(empty, kernel, settled)) is not None:
            known[guest] = names
    if not known:
        return None
    if known != record.guests:
        record = msgspec.structs.replace(record, guests=known)
        job = job_of(record)
        write_json(file, msgspec.structs.replace(record, job=job_identity(job)))
        _report(named(record.names), job, lab.progress)
    return named(record.names)


async def _asked(program: Program, kernel: Kernel, lab: Lab) -> tuple[str, ...] | None:
    """The names that the program asks for; None if it cannot be followed on that kernel."""
    with interruptible():
        plan = _finder_work(program, kernel, lab)
    files = host_files(program, plan.job.files)
    files.take_new()  # which the job has already
    names: dict[str, None] = {}

    def answer(name: str) -> bytes:
        files.need(name)
        if is_text(name):
            names[name] = None
        return archive(one.entry() for one in files.take_new())

    outcome = await lab.answered(kernel, plan, answer)
    refused = outcome.messages.get("not-found", b"").decode("utf-8", "replace")
    if refused or outcome.status is RunStatus.BOOT_FAILED:
        lab.progress.log(
            f"files of {program_name(program)} are not looked for on {kernel.release}: "
            f"{refused or outcome.detail}; --file PATH adds one"
        )
        return None
    for path, why in files.left_out.items():
        if why == NO_TEXT:  # no record can name it
            lab.progress.log(f"left out {path}: {why}")
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
    finder = JobFile(build_part("find_files", log, by=by), FINDER, 0o755)
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
    path = path_of_command(word)
    if "/" in word:
        return ""
    with open_host_file(str(path)) as file:
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
