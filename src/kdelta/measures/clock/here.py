# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that time themselves under the kernel that runs here, in pairs whose order is drawn.

Such a run is a process, and no boot: what a kernel draws when it is booted is the same in all.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO

import msgspec

from kdelta.guests.libraries import path_of_command, target_of
from kdelta.host.command import Log, echo_command
from kdelta.host.environment import users_environment
from kdelta.host.native import HERE, build_part
from kdelta.host.target import host_target
from kdelta.host.tie import tie_to
from kdelta.lab.plan import guest_compiler
from kdelta.measures.clock.boots import TimedKernels, must_be_alike
from kdelta.measures.clock.bundle import build_bundle
from kdelta.measures.clock.pairs import drawn_pairs
from kdelta.measures.clock.results import TimedRun, parse_run
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import PRINTED_BYTES
from kdelta.spec.run import MachineOptions
from kdelta.workloads.catalog import find_workload

SECONDS = 600.0
"""That a workload may take here."""

"""Of a command: as many as native/clock/main.c takes."""

_POLL_SECONDS = 0.2


class TimedProgram(msgspec.Struct, frozen=True):
    """A bundle with its arguments. name: what messages call it; seconds: that it may take."""

    argv: tuple[str, ...]
    name: str
    seconds: float = SECONDS


def bundle_here(workload: str, operations: tuple[str, ...], log: Log) -> TimedProgram:
    """Return the bundle of a workload for this host, compiled unless the cache has it. UserError
    for a workload that cannot be packed, for an operation that there is not, and on a host of an
    architecture without bundles.
    """
    found = find_workload(workload)
    for name in operations:
        found.operation(name)
    host = host_target()
    if host is None:
        raise UserError(
            f"nothing can be timed here: there is no bundle for {os.uname().machine}",
            "kdelta clock pack lists architectures that have one",
        )
    program = build_bundle(found, guest_compiler(host.name, MachineOptions(), log), log)
    return TimedProgram((str(program), "run", *operations), workload)


def command_here(command: Sequence[str], seconds: float, log: Log) -> TimedProgram:
    """Return what times any program of this host as a whole, and its own regions if it was compiled
    with -DKDELTA_TIMED. UserError for one that cannot run here.
    """
    program = path_of_command(command[0])
    of = target_of(program)
    if not of.is_host:
        raise UserError(
            f"{command[0]} cannot be timed here: it is a program for {of.name}",
            "leave out --clock, or compile it for this host",
        )
    host = host_target()
    by = guest_compiler(host.name, MachineOptions(), log) if host else HERE
    argv = (str(build_part("clock", log, by=by)), "exec", str(program), *command[1:])
    return TimedProgram(argv, command[0], seconds)


def timed_here(program: TimedProgram) -> TimedRun:
    """Run a bundle under this kernel, and return what it says. LabError for one that fails, that
    does not end in time, or that prints without end; nothing of it is left running.
    """
    echo_command(program.argv)
    with tempfile.TemporaryFile() as results, tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(
                program.argv,
                env=users_environment(),
                stdin=subprocess.DEVNULL,
                stdout=results,
                stderr=printed,
                start_new_session=True,
                preexec_fn=partial(tie_to, os.getpid(), signal.SIGKILL),  # noqa: PLW1509
            )
        except OSError as error:
            raise LabError(f"{program.name} could not be started: {error.strerror}") from error
        try:
            _wait(process, program, printed)
        finally:
            _end(process)
        results.seek(0)
        content, last = results.read(), _last_line(printed)
    if process.returncode and not content.endswith(b"}\n"):
        raise LabError(f"{program.name} failed: {last or f'it ended with {process.returncode}'}")
    try:
        return parse_run(content, program.name)
    except UserError as error:  # whose files are none of the user's
        raise LabError("; it printed: ".join(filter(None, (error.message, last)))) from error


def pairs_here(
    sides: tuple[TimedProgram, TimedProgram], most: int, doing: Callable[[str], None]
) -> Iterator[TimedKernels]:
    """Yield, after each of so many pairs of runs, all pairs so far: of a base and of another
    program. doing: gets words before a pair runs. UserError for a program that changes meanwhile.
    """
    firsts: dict[int, TimedRun] = {}

    def run(side: int) -> TimedRun:
        found = timed_here(sides[side])
        must_be_alike((firsts.setdefault(side, found), found))
        # They are two programs on purpose; what is of the machine must be the same.
        first = next(iter(firsts.values())).facts
        shared = {name: getattr(first, name) for name in ("bundle", "workload", "arguments")}
        facts = msgspec.structs.replace(found.facts, **shared)
        return msgspec.structs.replace(found, facts=facts)

    for timed in drawn_pairs(run, most, doing):
        yield msgspec.structs.replace(timed, here=True)


def _wait(process: "subprocess.Popen[bytes]", program: TimedProgram, printed: IO[bytes]) -> None:
    end = time.monotonic() + program.seconds
    while True:
        try:
            process.wait(min(_POLL_SECONDS, program.seconds))
            return
        except subprocess.TimeoutExpired:
            if os.fstat(printed.fileno()).st_size > PRINTED_BYTES:
                most = PRINTED_BYTES >> 20
                raise LabError(f"{program.name} printed more than {most} MiB") from None
            if time.monotonic() >= end:
                raise LabError(
                    f"{program.name} did not end within {program.seconds:g} seconds"
                ) from None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of the program's session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(printed: IO[bytes]) -> str:
    printed.seek(max(0, os.fstat(printed.fileno()).st_size - 4096))
    lines = printed.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
