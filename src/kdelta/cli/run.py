# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run`: its arguments, and the other program of --against with what goes with it."""

import contextlib
import shlex
import shutil
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta import __version__
from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.options import LikeOptions, OfProgram, on_cpu, one_kernel
from kdelta.cli.output import ReaderGoneError, emit
from kdelta.cli.plain_options import Functions, PrintOptions
from kdelta.cli.publish import publish, runs_printed, shown_lab, unkept_runs, write_page
from kdelta.host.interrupt import run_async
from kdelta.infer.effects.gate import Exit
from kdelta.lab.lab import open_store
from kdelta.lab.options import TimedHere
from kdelta.lab.request import Program
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.studies.against.study import AgainstRequest, run_against
from kdelta.studies.documents import document_text
from kdelta.studies.run.assemble import done_report
from kdelta.studies.run.document import BRIEF
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command

LEAST_RUNS = 3
"""Runs of each program, for their spread to be known."""

EPILOG = """\b
Exit codes with --against, as of kdelta gate:
  0     NEW is not slower than OLD by more than the margin
  1     NEW is slower
  125   a program failed, or a verdict is open, that of --clock too
  255   everything else: wrong usage, a broken lab, a fault of kdelta

"""


def _no_command(words: Sequence[str]) -> UserError:
    """The slip of a command line without --, in which the command may stand without it."""
    at = next((at for at, word in enumerate(words) if shutil.which(word)), None)
    if at is None:
        return UserError("no command", f"write it after --: kdelta run {words[0]} -- COMMAND ARGS")
    command = shlex.join(words[at:])
    if at == 0:
        hint = f"write a kernel first: kdelta run KERNEL -- {command}"
    else:
        hint = f"write it after --: kdelta run {shlex.join(words[:at])} -- {command}"
    return UserError("no command", hint)


def old_command(text: str, new: Sequence[str]) -> tuple[str, ...]:
    """Return the command of --against: a program with the other's arguments, or a whole command
    line. UserError for words that are neither.
    """
    if not text.strip():
        raise UserError("--against names no program", "write its path: --against ./old")
    if " " not in text.strip() or Path(text).is_file():
        return (text, *new[1:])
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(
            f"--against {text}: {error}", "quote it whole: --against './old --option'"
        ) from error


class AgainstOptions(msgspec.Struct, frozen=True):
    """The other program, by how much the new one may be slower, and whether both are timed."""

    old: Annotated[
        str | None,
        option(
            "--against",
            metavar="OLD",
            values="FILE",
            help="Compare COMMAND with this program or quoted command.",
        ),
    ] = None
    margin: Annotated[
        Fraction | None,
        option("--margin", usual="0", help="With --against: pass what is slower by up to PCT."),
    ] = None
    timed: TimedHere = TimedHere()


def run_two(
    against: AgainstOptions, new: RunRequest, printed: PrintOptions, *, functions: int
) -> Exit:
    """Run both programs, publish the report, and return what a gate answers."""
    old = against.old or ""
    if not new.program.command:
        raise UserError(
            f"--against {old} and no command to compare it with",
            f"write it after --: kdelta run {new.kernel} --against {old} -- NEW ARGS",
        )
    if new.lab.mode != "user":
        raise UserError(
            f"--against and --mode {new.lab.mode} at once",
            "kdelta crossing measures one program in each mode",
        )
    asked = msgspec.structs.replace(new.lab, perturbations=max(LEAST_RUNS, new.lab.perturbations))
    new = msgspec.structs.replace(new, lab=asked)
    other = msgspec.structs.replace(new.program, command=old_command(old, new.program.command))
    request = AgainstRequest(
        old=msgspec.structs.replace(new, program=other),
        new=new,
        margin=against.margin or Fraction(0),
        timed=against.timed,
    )
    with open_store() as store:
        with shown_lab(store) as lab:
            report = run_async(run_against(request, lab))
        with contextlib.suppress(ReaderGoneError):  # the code says it, too
            shown = {"functions": functions}
            publish(store, "against", [report], printed, shown=shown)
    return report.decision.exit


class RunOptions(msgspec.Struct, frozen=True):
    """How many functions are named."""

    functions: Functions = BRIEF.functions


def run(
    words: Annotated[
        list[str],
        Argument(
            metavar="KERNEL [+CHANGE...] -- COMMAND",
            help="Kernel spec, perhaps changed.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[RunRequest],
    program: OfProgram,
    against: AgainstOptions,
    like: LikeOptions,
    named: RunOptions,
    printed: PrintOptions,
) -> int:
    """Profile a command under a kernel, exactly.

    Counts what the command executes, in the kernel and outside, by function. The whole command is
    one region, unless it marks its own with kdelta.h. kdelta show prints all of it.
    """
    if program is None and against.old is None:
        raise _no_command(words)
    kernel = one_kernel(words, "kdelta compare runs a command under several")
    request = asked(kernel=kernel, program=program or Program(()))
    request = msgspec.structs.replace(request, lab=on_cpu(request.lab, like.cpu))
    against.timed.check(against=against.old is not None)
    if against.old is not None:
        return run_two(against, request, printed, functions=named.functions)
    if against.margin is not None:
        raise UserError(
            f"--margin {float(100 * against.margin):g} without --against",
            "kdelta gate takes it, too",
        )
    with open_store() as store:
        with shown_lab(store) as lab:
            found = run_async(run_command(request, lab))
        if not found:
            store.enter_last(refused=f"there is no kernel {kernel}")
        reports = [done_report(done, store) for done in found]
        if printed.html is not None:
            write_page(printed.html, unkept_runs(reports, named.functions), store)
    if printed.json:
        emit("".join(document_text(one, __version__) for one in reports))
    else:
        emit(runs_printed(reports, msgspec.structs.replace(BRIEF, functions=named.functions)))
    return 0 if any(done.counts for done in found) else RUNS_FAILED
