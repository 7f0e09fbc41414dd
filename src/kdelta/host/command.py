# SPDX-License-Identifier: GPL-2.0-or-later
"""Running the host's programs: none asks anything, each can be shown ready to paste."""

import contextlib
import functools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from kdelta.host.environment import environ_with
from kdelta.host.tie import tie_to
from kdelta.spec.errors import LabError
from kdelta.spec.visible import visible

PACKAGES = {
    "addr2line": "binutils",
    "apt-cache": "apt",
    "apt-get": "apt",
    "as": "binutils",
    "clang": "clang",
    "dpkg": "dpkg",
    "dpkg-deb": "dpkg",
    "gcc": "gcc",
    "gzip": "gzip",
    "ld": "binutils",
    "objcopy": "binutils",
    "objdump": "binutils",
    "ld.lld": "lld",
    "lz4": "lz4",
    "lz4c": "lz4",
    "pahole": "dwarves",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "xz": "xz-utils",
    "zstd": "zstd",
}
"""The Debian package that holds a program, where its name differs or is worth telling."""

Log = Callable[[str], None]
"""Gets a line about what takes long, for the user."""

_QUOTED = 200
"""So many characters are quoted of the last line of a program that did not end."""

_echoes = threading.Event()


def echo_commands(*, wanted: bool) -> None:
    """Show from now on each command before it runs, as a line to paste into a shell; or none."""
    if wanted:
        _echoes.set()
    else:
        _echoes.clear()


@functools.cache
def log_once(line: str, log: Log) -> None:
    """Log a line that this process has not logged there before."""
    log(line)


def echo_command(argv: Sequence[str | Path], cwd: Path | None = None) -> None:
    """Shows a command that someone else is about to run, if commands are shown at all."""
    line = shlex.join(map(str, argv))
    echo_line(f"(cd {shlex.quote(str(cwd))} && {line})" if cwd else line)


def echo_line(line: str) -> None:
    """Shows such a command that is a line already."""
    if _echoes.is_set():
        log_to_stderr(f"+ {line}")


class Result(msgspec.Struct, frozen=True):
    """How a program ended: a negative returncode is a signal's number, as in subprocess."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.returncode == 0

    def or_raise(self, failed: str, lines: int = 1) -> "Result":
        """Itself if it is ok, else a LabError with the last lines that it printed."""
        if not self.ok:
            raise LabError(f"{failed}: {self.last_words(lines)}")
        return self

    def last_words(self, lines: int = 5) -> str:
        """The last lines that it printed, errors rather than output."""
        said = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return "\n".join(said[-lines:]) or f"it ended with {self.returncode} and said nothing"


def find_program(name: str) -> str:
    """The path of a program; LabError, with what to install, when it is not there."""
    if (found := shutil.which(name)) is None:
        raise LabError(f"the program {name} is missing", install_hint(name))
    return found


def install_hint(*programs: str) -> str:
    """What to type to get these programs; see `package_hint`."""
    if "apt" in {PACKAGES.get(name, name) for name in programs}:
        return "name kernels as git:PATH@REV, tree:PATH or image:PATH, which work on any system"
    return package_hint(*sorted({PACKAGES.get(name, name) for name in programs}))


def package_hint(*packages: str) -> str:
    """What to type to get these packages of Debian's; without apt, what to look for."""
    if shutil.which("apt-get") is None:
        what = "package" if len(packages) == 1 else "packages"
        return f"install what this system has of Debian's {what} {', '.join(packages)}"
    return f"on Debian or Ubuntu: sudo apt-get install {' '.join(packages)}"


def run_program(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
    name: str = "",
    tied: bool = False,
) -> Result:
    """Run a program to its end, without standard input, in `environ_with(env)`. LabError, with its
    `name` if another starts it, when it is missing or takes longer than `seconds`; its own failure
    is in the result. tied: it is killed if kdelta is.
    """
    program = find_program(str(argv[0]))
    echo_command(argv, cwd)
    try:
        done = subprocess.run(
            [program, *(str(word) for word in argv[1:])],
            cwd=cwd,
            env=environ_with(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
            preexec_fn=functools.partial(tie_to, os.getpid(), signal.SIGKILL) if tied else None,
        )
    except subprocess.TimeoutExpired as error:
        said = b"".join(one for one in (error.stdout, error.stderr) if one)
        lines = said.decode("utf-8", "replace").split("\n")
        last = next((line.strip()[:_QUOTED] for line in reversed(lines) if line.strip()), "")
        raise LabError(
            f"{name or argv[0]} did not end within {seconds:g} seconds"
            + (f"; the last line that it printed: {last}" if last else "")
        ) from error
    except OSError as error:
        raise LabError(f"{name or argv[0]} could not be started: {error.strerror}") from error
    return Result(tuple(map(str, argv)), done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def piped(
    argv: Sequence[str | Path],
    failed: Callable[[str], Exception],
    source: IO[bytes] | None = None,
) -> Iterator[IO[bytes]]:
    """Starts a program and gives what it prints. Once the body has read what it wants, raises what
    `failed` makes of the last line of its errors, unless it ended with exit code 0. The program
    reads an open file `source` from where the file descriptor stands.
    """
    program = find_program(str(argv[0]))
    echo_command(argv)
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [program, *(str(word) for word in argv[1:])],
            env=environ_with(),
            stdin=source or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        assert process.stdout is not None
        yield process.stdout
        # Closing the pipe early ends the program.
        process.stdout.close()
        if process.wait() != 0:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
            raise failed(said[-1] if said else "")


def quiet(_line: str) -> None:
    """A log that writes nothing."""


def log_to_stderr(line: str) -> None:
    """Print a line for the user to stderr; a terminal that is gone is no error."""
    try:
        print(visible(line), file=sys.stderr, flush=True)  # noqa: T201  (the way out)
    except OSError:
        forget_stream(2)


def forget_stream(descriptor: int) -> None:
    """Have what is written there from now on go nowhere: what is still in Python's buffer would be
    written at exit, and fail again.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
