# SPDX-License-Identifier: GPL-2.0-or-later
"""`-- COMMAND ARGS`, which many commands take in place of a workload."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from kdelta.lab.request import Program
from kdelta.spec.errors import UserError
from kdelta.spec.option import AfterDashes

_SPEC = re.compile(r"(deb|deb-src|git|tree|image|rpm|pkg):")


def program_of(
    command: Sequence[str] | None, path: str, options: Mapping[str, Any]
) -> Program | None:
    """Return the program after --, None without one; UserError for a slip.

    command: the words after --. path: the words of kdelta before it, for hints. options: the other
    fields of a Program, as far as they are given.
    """
    if command is None:
        if files := options.get("files"):
            raise UserError(f"--file {files[0]} without a command", "write the command after --")
        return None
    if not command:
        raise UserError("no command after --", f"for example: {path} ... -- ls -l")
    if command[0].startswith("-"):
        raise UserError(
            f"cannot run {command[0]}: it is an option, and what is after -- is a command",
            f"write options before it: {path} ... {command[0]} ... -- COMMAND",
        )
    if _SPEC.match(command[0]):
        raise UserError(
            f"cannot run {command[0]}: it is a kernel spec, and what is after -- is a command",
            f"write kernels before it: {path} {command[0]} -- COMMAND",
        )
    return Program(tuple(command), **options)


OfProgram = Annotated[Program | None, AfterDashes(Program, program_of, ("-w", "-o"))]
"""A parameter of a command: the program after --, None without one."""

OfProgramWithRegions = Annotated[Program | None, AfterDashes(Program, program_of, ("-w",))]
"""The same where -o names regions, which a program may have, too."""
