# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of a kernel with the user's terminal: nothing of it is counted or stored."""

from pathlib import Path

import msgspec

from kdelta.guests.image import stop_address
from kdelta.guests.job import Job, JobFile, handed_over
from kdelta.guests.libraries import carry, parse_file_option
from kdelta.guests.shell import carried_shell, terminal_description
from kdelta.host.command import Log, echo_line, log_to_stderr
from kdelta.host.interrupt import interruptible
from kdelta.host.native import build_part
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import arch_of, check_kernels
from kdelta.lab.explain import about_config, advice
from kdelta.lab.lab import Lab
from kdelta.lab.plan import guest_compiler
from kdelta.lab.program import check_program
from kdelta.lab.progress import Progress
from kdelta.lab.request import LabRequest, Program
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest, Setting, Snapshot, prepare_program
from kdelta.machines.terminal import Screen, use_terminal
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import parse_kernel_spec

LEFT = 130
"""The exit code when the user ends the guest: that of Ctrl-C."""
_HELPER = "/run/kdelta/terminal"
_INPUT = "/run/kdelta/input"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ShellRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel spec, and what is run in its guest: the command of the program, or a shell if it has
    none.

    rows, columns  the size of the terminal
    term           its name, as in TERM
    standard_input  a file that takes the place of what is typed, None: the terminal
    plain          what is printed is to come byte for byte: no terminal is there to show it
    """

    kernel: str
    program: Program
    rows: int = 24
    columns: int = 80
    term: str = "dumb"
    standard_input: Path | None = None
    plain: bool = False
    lab: LabRequest = LabRequest(perturbations=1)


class ShellGuest(msgspec.Struct, frozen=True):
    """A guest that is about to open its terminal, or, without a `start`, about to boot."""

    kernel: Kernel
    guest: Guest
    job: bytes
    start: Snapshot | None
    folder: Path
    seconds: float


def check_shell(request: ShellRequest) -> None:
    """UserError for what is not there, before anything is fetched, built or booted."""
    if request.program.command:
        check_program(request.program, [arch_of(parse_kernel_spec(request.kernel))])
    for text in request.program.files:
        parse_file_option(text)
    check_kernels([request.kernel], log_to_stderr)


async def prepare_shell(request: ShellRequest, folder: Path, lab: Lab) -> ShellGuest:
    """The guest in that folder, booted unless it has to begin at power-on. LabError if there is no
    kernel, or it does not boot.
    """
    check_shell(request)
    lab, progress = lab.with_request(request.lab), lab.progress
    kernel = lab.kernel(request.kernel)
    if isinstance(kernel, NoKernel):
        raise LabError(f"cannot open a shell: no kernel: {kernel.text}", "kdelta runs lists it")
    with interruptible():
        job, helper = _job(request, kernel, lab.guest(kernel).board.serial, progress)
    settled = await lab.settled([kernel])
    guest, start = await settled.start(kernel, settled.guest(kernel))
    if isinstance(start, GuestOutcome):
        raise _no_shell(kernel, start.detail + advice(start, kernel, {}, guest))
    seconds = request.lab.machine.timeout_seconds
    archive = handed_over(job)
    if start:
        step = f"open a shell in {kernel.title}"
        setting = Setting(folder / "prepared", seconds, echo=echo_line)
        progress.begin(step)
        ready = await prepare_program(guest, archive, setting, start, stop_address(helper))
        progress.end(step, "ready" if ready else "failed")
        archive, start = (b"", ready) if ready else (archive, start)
    return ShellGuest(kernel, guest, archive, start, folder, seconds)


def _job(
    request: ShellRequest, kernel: Kernel, serial: str, progress: Progress
) -> tuple[Job, Path]:
    """What the guest runs, and the program of it that has the terminal."""
    helper = build_part(
        "terminal",
        progress.log,
        by=guest_compiler(kernel.arch, request.lab.machine, progress.log),
    )
    files = [found for text in request.program.files for found in parse_file_option(text)]
    files += terminal_description(request.term)
    if command := list(request.program.command):
        carried = carry(command, files, kernel.arch)
    else:
        carried = carried_shell(files, kernel.arch, progress.log)
    typed = request.standard_input is None
    own = [JobFile(helper, _HELPER, 0o755)]
    own += [] if request.standard_input is None else [JobFile(request.standard_input, _INPUT)]
    words = (
        f"/dev/{serial}", str(request.rows), str(request.columns),
        "-" if typed else _INPUT, "plain" if request.plain else "terminal",
    )  # fmt: skip
    own_env = {"PATH": _PATH, "HOME": "/root", "TERM": request.term, "PS1": f"{kernel.release} # "}
    job = Job(
        argv=(_HELPER, *words, *carried.argv),
        env=(*own_env.items(), *carried.env),
        cwd="/root",
        seconds=0,
        files=(*carried.files, *own),
    )
    return job, helper


async def use_shell(ready: ShellGuest, screen: Screen, log: Log) -> int:
    """Connects the guest to the user's screen; returns the exit code of its program, or `LEFT`.

    UserError for a guest that has no terminal, LabError for one that ended on its own.
    """
    if ready.start is None:
        log(f"booting {ready.kernel.title} in real time: this machine has no snapshots")
    setting = Setting(ready.folder / "terminal", ready.seconds, echo=echo_line)
    end = await use_terminal(ready.guest, ready.job, setting, ready.start, screen)
    if end.failure and end.begun:
        raise LabError(
            f"the guest of {ready.kernel.spec} ended: {end.failure}",
            "the kernel's last words are above; with them, nothing of the guest is left",
        )
    if end.failure:
        raise _no_shell(ready.kernel, end.failure + about_config(ready.kernel))
    return LEFT if end.code is None else end.code


def _no_shell(kernel: Kernel, why: str) -> LabError:
    return LabError(
        f"cannot open a shell in {kernel.spec}: {why}",
        f"kdelta run {kernel.spec} -- COMMAND needs no terminal in the guest",
    )
