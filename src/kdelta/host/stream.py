# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that run for minutes: their output goes to a log line by line, and they end with us."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kdelta.host.command import echo_command, find_program
from kdelta.host.environment import environ_with
from kdelta.host.files import lab_errors
from kdelta.host.tie import tie_to
from kdelta.spec.errors import LabError

_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.01
# Stays between us and the program: the kernel tells only a child that its parent has died, and make
# would not tell the compilers. A shell's exit code for a program that was killed is 128 + 9.
_GUARD = """trap 'trap "" TERM; kill -TERM 0; wait' TERM; "$@" & wait $!"""
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def run_logged(
    argv: Sequence[str],
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    line: Callable[[str], None] | None = None,
    unfinished: Path | None = None,
) -> int:
    """Runs a program with all that it starts; its output is added to `log`, and `line` hears each
    line. Returns its exit code. If this is interrupted, the whole group of processes ends.

    unfinished: a file that is there while it runs, and stays when it was killed before it could
    clear up. LabError when it cannot be started, or a file cannot be written.
    """
    program = find_program(argv[0])
    echo_command(argv, cwd)
    with lab_errors("writing", log), log.open("ab", buffering=0) as file:
        file.write(f"$ {shlex.join(argv)}\n".encode())
        if unfinished is not None:
            unfinished.touch()
        with _started([program, *argv[1:]], cwd, env) as process:
            assert process.stdout is not None
            finished = False
            try:
                for raw in process.stdout:
                    file.write(raw)
                    if line is not None:
                        line(raw.decode("utf-8", "replace").rstrip("\n"))
                finished = process.wait() not in _KILLED
            except BaseException:
                finished = _end(process)
                raise
            finally:
                if unfinished is not None and finished:
                    unfinished.unlink(missing_ok=True)
        return process.returncode


@contextlib.contextmanager
def _started(
    argv: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None
) -> Iterator["subprocess.Popen[bytes]"]:
    parent = os.getpid()
    try:
        process = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", *argv],
            cwd=cwd,
            env=environ_with(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: tie_to(parent, signal.SIGTERM),  # noqa: PLW1509  (nothing else forks here)
        )
    except OSError as error:
        raise LabError(f"{argv[0]} could not be started: {error.strerror}") from error
    try:
        yield process
    finally:
        # Where the body could not: a second Ctrl-C while it waited for the end.
        if process.returncode is None:
            _end(process)
        if process.stdout is not None:
            process.stdout.close()


def _end(process: "subprocess.Popen[bytes]") -> bool:
    """Ends the program's whole session: asks first, so that make can remove half-made files.
    Returns whether that was enough.
    """
    _signal(process, signal.SIGTERM)
    end = time.monotonic() + _GRACE_SECONDS
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    # The group may have others that take longer; they have been asked, and soon must.
    while _signal(process, 0) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
    killed = _signal(process, signal.SIGKILL)
    process.wait()
    return not killed


def _signal(process: "subprocess.Popen[bytes]", number: int) -> bool:
    """Sends a signal (0: none) to the program's group; False when it has no process left."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True
