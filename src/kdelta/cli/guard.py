# SPDX-License-Identifier: GPL-2.0-or-later
"""Every way in which a command can end, as an exit code and words that say what to do."""

import datetime
import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType

import click

from kdelta.cli.codes import INTERRUPTED, LAB, USAGE
from kdelta.cli.output import ReaderGoneError
from kdelta.host.command import log_to_stderr
from kdelta.host.dirs import data_dir
from kdelta.host.files import write_atomic
from kdelta.host.invoked import invoked
from kdelta.spec.errors import KdeltaError, UserError, leaves

_NAME_SHOWN = 200


def guarded(command: Callable[[], object], arguments: Sequence[str] = ()) -> int:
    """Runs a command to its end; returns the exit code, and raises nothing.

    arguments: its command line, of which a corrected one is shown after a slip.
    """
    ended_by = _end_like_ctrl_c(signal.SIGTERM, signal.SIGHUP)
    try:
        result = command()
    except (KeyboardInterrupt, click.Abort):
        result = INTERRUPTED
    except ReaderGoneError:
        return 0
    except Exception as error:  # noqa: BLE001  (the last resort; it is written down)
        return _usage(error, arguments) or _failed(error, arguments)
    except BaseException as error:  # what a cancelled task leaves, alone or in a group of errors
        if isinstance(error, SystemExit):
            raise
        if any(isinstance(one, Exception) for one in leaves(error)):
            return _failed(error, arguments)
        result = INTERRUPTED
    if result == INTERRUPTED:
        log_to_stderr("kdelta: interrupted; runs that had ended are in the store")
        return 128 + (ended_by[0] if ended_by else signal.SIGINT)
    return result if isinstance(result, int) else 0


def _usage(error: Exception, arguments: Sequence[str]) -> int:
    """Shows a slip in the arguments; 0 if it was none."""
    if not isinstance(error, click.ClickException):
        return 0
    code = error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show(sys.stderr)
        return code
    from kdelta.cli import slips  # noqa: PLC0415  (it imports every command)

    slip = slips.usage_slip(error, arguments)
    log_to_stderr(f"kdelta: {slip.message}")
    if slip.hint:
        log_to_stderr(f"hint: {slip.hint}")
    log_to_stderr(f"try: {slips.working(slip, arguments)}")
    return code


def _failed(error: BaseException, arguments: Sequence[str]) -> int:
    by_words: dict[str, BaseException] = {}
    for one in leaves(error):
        if isinstance(one, Exception):  # not that a task was cancelled since another one failed
            by_words.setdefault(str(one), one)
    errors = [_of_a_name(one) for one in by_words.values()]
    known = [one for one in errors if isinstance(one, KdeltaError)]
    usage = len(known) == len(errors) and all(isinstance(one, UserError) for one in known)
    hints, command = {one: one.hint for one in known}, ""
    if usage and arguments and isinstance(known[0], UserError):
        from kdelta.cli import slips  # noqa: PLC0415

        hints[known[0]], command = slips.advice_on(known[0], arguments)
    for one in known:
        log_to_stderr(f"kdelta: {one.message}")
        if hints[one]:
            log_to_stderr(f"hint: {hints[one]}")
    for bug in errors:
        if not isinstance(bug, KdeltaError):
            _report_bug(bug)
    if invoked.defaults:
        log_to_stderr(f"note: defaults: {invoked.defaults}")
    if command:
        log_to_stderr(f"try: {command}")
    return USAGE if usage else LAB


def _of_a_name(error: BaseException) -> BaseException:
    """Return a UserError for a name that the system does not take, wherever it was looked at.

    pathlib raises that where it answers no to others.
    """
    if not isinstance(error, OSError) or error.errno not in (errno.ENAMETOOLONG, errno.EACCES):
        return error
    name = os.fsdecode(error.filename or "")
    short = name if len(name) < _NAME_SHOWN else f"{name[:_NAME_SHOWN]}..."
    return UserError(f"cannot use {short or 'a name'}: {error.strerror}")


def _report_bug(error: BaseException) -> None:
    log_to_stderr(f"kdelta: this is a bug in kdelta: {type(error).__name__}: {error}")
    text = "".join(traceback.format_exception(error))
    try:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
        path = data_dir("crashes") / f"{now}-{os.getpid()}.txt"
        write_atomic(path, f"{sys.argv!r}\n{text}".encode())
    except KdeltaError:
        log_to_stderr(text)
    else:
        log_to_stderr(f"hint: please report it with the file {path}")


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
