# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta shell`: its arguments, and the user's side of the terminal."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec

from kdelta.cli.options import LikeOptions, on_cpu, one_kernel, program_of
from kdelta.cli.output import emit, shows_progress
from kdelta.cli.publish import shown_lab
from kdelta.host.command import log_to_stderr
from kdelta.host.interrupt import run_async
from kdelta.host.lock import work_folder
from kdelta.lab.lab import open_store
from kdelta.lab.request import Files, LabRequest, Program
from kdelta.lab.shell import ShellRequest, check_shell, prepare_shell, use_shell
from kdelta.machines.terminal import Keyboard
from kdelta.spec.errors import UserError
from kdelta.spec.limits import GUEST_FILES_BYTES as MAX_BYTES
from kdelta.spec.option import AfterDashes, Argument, without

EPILOG = """\b
At a terminal, all keys go to the guest; Ctrl-A x ends it, and Ctrl-A a is
Ctrl-A. Elsewhere the shell, or COMMAND, reads kdelta's standard input:
  echo uname -r | kdelta shell KERNEL

\b
Exit codes: the shell's, 130 after Ctrl-A x, 255 if kdelta failed.

"""
_FAILED = 255
_OF_GUEST = 1000
"""Added to the exit code of a guest's program, which would be taken for one of kdelta's."""
_PIECE_BYTES = 1 << 12
_PREFIX = b"\x01"
_LEAVE = b"x"
_LITERAL = b"a"


class _ShellFiles(msgspec.Struct, frozen=True):
    """What is carried into the guest."""

    files: Files = ()


def program_or_shell(
    command: Sequence[str] | None, path: str, options: Mapping[str, Any]
) -> Program:
    """Return the program after --; without one, the files that the shell has."""
    if command is None:
        return Program((), **options)
    return program_of(command, path, options) or Program(())


class ShellOptions(msgspec.Struct, frozen=True):
    """The guest that the shell is in."""

    lab: Annotated[
        LabRequest,
        without("perturbations", "rerun", "snapshots", "jobs", "mode", "data_lines", "trace_limit"),
    ] = LabRequest(perturbations=1)


def shell(
    words: Annotated[
        list[str],
        Argument(
            metavar="KERNEL [+CHANGE...] [-- COMMAND]",
            help="Kernel, perhaps changed.",
            kernels=True,
        ),
    ],
    *,
    program: Annotated[Program, AfterDashes(_ShellFiles, program_or_shell)],
    like: LikeOptions,
    asked: ShellOptions,
) -> int:
    """Open a shell in a guest of a kernel.

    The guest is as the other commands have it, with common programs of this host, and waits in
    real time. COMMAND takes the shell's place. Nothing is counted or stored.
    """
    kernel = one_kernel(words, "kdelta shell is for one kernel")
    rows, columns = _size()
    request = ShellRequest(
        kernel=kernel,
        program=program,
        rows=rows,
        columns=columns,
        term=os.environ.get("TERM", "dumb"),
        plain=not _is_terminal(sys.stdout),
        lab=on_cpu(asked.lab, like.cpu),
    )
    check_shell(request)
    with open_store() as store, work_folder() as folder:
        if not _is_terminal(sys.stdin):
            request = _with_input(request, folder / "input")
        with shown_lab(store, asks=False) as lab:
            ready = run_async(prepare_shell(request, folder, lab))
        if shows_progress() and _is_terminal(sys.stdin):
            log_to_stderr(f"a guest of {ready.kernel.title}; exit, or Ctrl-A x, ends it")
        with _Terminal() as terminal:
            return _OF_GUEST + run_async(use_shell(ready, terminal, log_to_stderr))


def shell_code(command: Callable[[], int]) -> int:
    """The exit code of a guest's program; of what did not get so far, 255, and of an interrupt what
    it has everywhere.
    """
    code = command()
    if code >= _OF_GUEST:
        return code - _OF_GUEST
    return code if code == 0 or code > 128 else _FAILED


def _is_terminal(stream: TextIO | None) -> bool:
    """None: it was closed before kdelta began."""
    return stream is not None and stream.isatty()


def _size() -> tuple[int, int]:
    with contextlib.suppress(OSError):
        size = os.get_terminal_size(sys.stdout.fileno())
        return size.lines, size.columns
    return 24, 80


def _with_input(request: ShellRequest, path: Path) -> ShellRequest:
    """The same, with what kdelta's standard input has. UserError if that is too large."""
    with path.open("wb") as file:
        while sys.stdin is not None and (piece := sys.stdin.buffer.read(1 << 20)):
            if file.tell() + len(piece) > MAX_BYTES:
                raise UserError(f"standard input has more than {MAX_BYTES >> 20} MiB")
            file.write(piece)
    return msgspec.structs.replace(request, standard_input=path)


class Keys:
    """Finds what is typed for kdelta itself among what is for the guest."""

    def __init__(self) -> None:
        self._prefixed = False

    def typed(self, data: bytes) -> tuple[bytes, bool]:
        """What of the next bytes goes to the guest, and whether the user wants to leave it."""
        sent = b""
        for key in (data[at : at + 1] for at in range(len(data))):
            if not self._prefixed and key == _PREFIX:
                self._prefixed = True
                continue
            if self._prefixed and key == _LEAVE:
                return sent, True
            literal = self._prefixed and key in {_LITERAL, _PREFIX}
            sent += _PREFIX if literal else (_PREFIX + key if self._prefixed else key)
            self._prefixed = False
        return sent, False


class _Terminal:
    """A `Screen`: stdin and stdout. What is typed comes key by key from when the guest's program
    begins, and line by line again at the end, however that comes.
    """

    def __init__(self) -> None:
        self._keys = Keys()
        self._before: list[Any] | None = None

    def __enter__(self) -> "_Terminal":
        return self

    def begin(self, keyboard: Keyboard) -> None:
        if not _is_terminal(sys.stdin):
            return
        fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(fd)
        tty.setraw(fd, termios.TCSADRAIN)  # what was typed ahead is for the guest
        asyncio.get_running_loop().add_reader(fd, self._read, keyboard)

    def _read(self, keyboard: Keyboard) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(sys.stdin.fileno(), _PIECE_BYTES)
        sent, leaves = self._keys.typed(data)
        if sent:
            keyboard.send(sent)
        if leaves or not data:  # or the terminal is gone
            keyboard.leave()

    def show(self, printed: bytes) -> None:
        emit(printed)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            # What was typed for the guest is not for the shell that comes next.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSAFLUSH, self._before)
