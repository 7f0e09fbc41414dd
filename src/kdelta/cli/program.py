# SPDX-License-Identifier: GPL-2.0-or-later
"""`-- COMMAND ARGS`, which many commands take in place of a workload, and its options."""

import inspect
import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from kdelta.cli.defaults import Command
from kdelta.spec.errors import UserError
from kdelta.studies.lab.request import Program

_SPEC = re.compile(r"(deb|deb-src|git|tree|image|rpm|pkg):")
_AFTER_DASHES = "kdelta.command"
_SECONDS = Program(()).seconds

Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        metavar="PATH[:GUESTPATH]",
        help="Add this file to the guest, with its shared libraries; repeatable.",
    ),
]
Seconds = Annotated[
    int,
    typer.Option(
        "--seconds",
        metavar="N",
        min=1,
        help="The longest a COMMAND may run, in the guest's own time.",
    ),
]
NoFind = Annotated[
    bool,
    typer.Option("--no-find", help="Add the program, its libraries and --file alone."),
]


class RunsPrograms(Command):
    """A command that takes `-- COMMAND ARGS`: what is after the first -- is not kdelta's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Sets the command aside, and parses what is before it."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_AFTER_DASHES] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def program_options(
    *, file: Files = None, no_find: NoFind = False, seconds: Seconds = _SECONDS
) -> None:
    """The options of a program, which `makes_runs` puts in the place of a parameter `program`."""


PROGRAM_OPTIONS = tuple(inspect.signature(program_options).parameters.values())


def program_of(
    context: typer.Context, files: tuple[str, ...], seconds: int, *, find: bool
) -> Program | None:
    """The program after --, None without one; UserError for a slip."""
    command = command_of(context)
    if command is None:
        if files:
            raise UserError(f"--file {files[0]} without a command", "write the command after --")
        return None
    return Program(command, files, seconds, find)


def command_of(context: typer.Context) -> tuple[str, ...] | None:
    """The words after --, None without it; UserError for a slip."""
    command: tuple[str, ...] | None = context.meta.get(_AFTER_DASHES)
    if command is None:
        return None
    if not command:
        raise UserError("no command after --", f"for example: {context.command_path} ... -- ls -l")
    if command[0].startswith("-"):
        raise UserError(
            f"cannot run {command[0]}: it is an option, and what is after -- is a command",
            f"write options before it: {context.command_path} ... {command[0]} ... -- COMMAND",
        )
    if _SPEC.match(command[0]):
        raise UserError(
            f"cannot run {command[0]}: it is a kernel spec, and what is after -- is a command",
            f"write kernels before it: {context.command_path} {command[0]} -- COMMAND",
        )
    return command


def in_place_of(program: Program | None, workload: str, operations: Sequence[str] = ()) -> None:
    """UserError for a program and what belongs to a workload at once."""
    if program is None:
        return
    for option, word in (("-w", workload), ("-o", next(iter(operations), ""))):
        if word:
            raise UserError(
                f"{option} {word} and a command at once: {shlex.join(program.command)}",
                "leave one of them out",
            )
