# SPDX-License-Identifier: GPL-2.0-or-later
"""Every way in which a command can end, as an exit code and words that say what to do."""

import datetime
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import typer

from kdelta.cli.output import ReaderGoneError, talk
from kdelta.host.dirs import data_dir
from kdelta.host.files import write_atomic
from kdelta.spec.errors import KdeltaError, UserError

RUNS_FAILED = 1
"""No run of some kernel went well: it is reported, and kept, and there is nothing to go by."""

USAGE = 2
LAB = 3
INTERRUPTED = 128 + signal.SIGINT


def guarded(command: Callable[[], object]) -> int:
    """Runs a command to its end; returns the exit code, and raises nothing."""
    ended_by = _end_like_ctrl_c(signal.SIGTERM, signal.SIGHUP)
    try:
        result = command()
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except ReaderGoneError:
        return 0
    except Exception as error:  # noqa: BLE001  (the last resort; it is written down)
        return _usage(error) or _failed(error)
    if result == INTERRUPTED:  # newer typers return it in place of the exception
        talk("kdelta: interrupted; runs that had ended are in the store")
        return 128 + (ended_by[0] if ended_by else signal.SIGINT)
    return result if isinstance(result, int) else 0


def _usage(error: Exception) -> int:
    """Shows a slip in the arguments; 0 if it was none.

    Newer typers bring a click of their own, so that its errors have no one class to be caught by.
    """
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if not callable(show) or not isinstance(code, int):
        return 0
    show(sys.stderr)
    return code


def _failed(error: Exception) -> int:
    errors = list(_leaves(error))
    known = [one for one in errors if isinstance(one, KdeltaError)]
    for one in known:
        talk(f"kdelta: {one.message}")
        if one.hint:
            talk(f"hint: {one.hint}")
    for bug in errors:
        if not isinstance(bug, KdeltaError):
            _report_bug(bug)
    usage = len(known) == len(errors) and all(isinstance(one, UserError) for one in known)
    return USAGE if usage else LAB


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group of tasks, each once by its words; a lone one is itself."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    said = set()
    for inner in error.exceptions:
        for leaf in _leaves(inner):
            if str(leaf) not in said:
                said.add(str(leaf))
                yield leaf


def _report_bug(error: BaseException) -> None:
    talk(f"kdelta: this is a bug in kdelta: {type(error).__name__}: {error}")
    text = "".join(traceback.format_exception(error))
    try:
        path = _crash_file()
        write_atomic(path, f"{sys.argv!r}\n{text}".encode())
    except KdeltaError:
        talk(text)
    else:
        talk(f"hint: please report it with the file {path}")


def _crash_file() -> Path:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return data_dir("crashes") / f"{now}-{os.getpid()}.txt"


def _end_like_ctrl_c(*signals: signal.Signals) -> list[int]:
    """Makes these signals end a command as Ctrl-C does, guests and folders tidied away; returns a
    list that will hold the first that came.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job has it
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    for one in signals:
        if signal.getsignal(one) is signal.SIG_DFL:
            signal.signal(one, interrupt)
    return came
