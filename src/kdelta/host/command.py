# SPDX-License-Identifier: GPL-2.0-or-later
"""Running the host's programs: none asks anything, each can be shown ready to paste."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from kdelta.spec.errors import LabError

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
    "lz4c": "lz4",
    "pahole": "dwarves",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "xz": "xz-utils",
    "zstd": "zstd",
}
"""The Debian package that holds a program, where its name differs or is worth telling."""

Talk = Callable[[str], None]
"""Gets a line about what takes long, for the user."""

_echo: list[Callable[[str], None]] = []


def set_echo(echo: Callable[[str], None] | None) -> None:
    """Shows every command before it runs, as a line that can be pasted into a shell."""
    _echo[:] = [echo] if echo else []


def echo_command(argv: Sequence[str | Path], cwd: Path | None = None) -> None:
    """Shows a command that someone else is about to run, if commands are shown at all."""
    line = shlex.join(map(str, argv))
    echo_line(f"(cd {shlex.quote(str(cwd))} && {line})" if cwd else line)


def echo_line(line: str) -> None:
    """Shows such a command that is a line already."""
    for echo in _echo:
        echo(line)


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

    def last_words(self, lines: int = 5) -> str:
        """The last lines that it printed, errors rather than output."""
        said = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return "\n".join(said[-lines:]) or f"it ended with {self.returncode} and said nothing"


def find_program(name: str) -> str:
    """The path of a program; LabError, with what to install, when it is not there."""
    found = shutil.which(name)
    if found is None:
        raise LabError(f"the program {name} is missing", install_hint(name))
    return found


def install_hint(*programs: str) -> str:
    """What to type to get these programs."""
    packages = sorted({PACKAGES.get(name, name) for name in programs})
    return f"on Debian or Ubuntu: sudo apt-get install {' '.join(packages)}"


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> Result:
    """Runs a program to its end, without standard input, in the C locale so that what it says can
    be read by a program. LabError when it is missing or takes longer than `seconds`; its own
    failure is in the result.
    """
    program = find_program(str(argv[0]))
    echo_command(argv, cwd)
    try:
        done = subprocess.run(
            [program, *(str(word) for word in argv[1:])],
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{argv[0]} did not end within {seconds:g} seconds") from error
    except OSError as error:
        raise LabError(f"{argv[0]} could not be started: {error.strerror}") from error
    return Result(tuple(map(str, argv)), done.returncode, done.stdout, done.stderr)


def start(argv: Sequence[str | Path], stderr: IO[bytes] | int) -> "subprocess.Popen[bytes]":
    """Starts a program whose output is read from a pipe; its errors go to an open file."""
    program = find_program(str(argv[0]))
    echo_command(argv)
    return subprocess.Popen(
        [program, *(str(word) for word in argv[1:])],
        env=environment(None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """The environment that programs get."""
    return {**os.environ, "LC_ALL": "C", "LANGUAGE": "", **(more or {})}


def quiet(_line: str) -> None:
    """A `talk` that says nothing."""


def talk_to_stderr(line: str) -> None:
    """A `talk` for those who have no better one."""
    print(line, file=sys.stderr, flush=True)
