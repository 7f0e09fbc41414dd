# SPDX-License-Identifier: GPL-2.0-or-later
"""What commands that run kernels have in common: their words, the program after -- that many take
in place of a workload, and the CPU of the machine.
"""

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kdelta.cli.output import shows_progress
from kdelta.cpus.model import CPU
from kdelta.host.command import log_to_stderr
from kdelta.lab.cpus import default_cpus, lab_like
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.errors import UserError
from kdelta.spec.option import AfterDashes, HelpSection, OptionKind, option
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.compare.request import CompareRequest


class LikeOptions(msgspec.Struct, frozen=True):
    """The CPU that the machine looks like."""

    cpu: Annotated[
        CPU | None,
        option(
            "--cpu", group=HelpSection.MACHINE, help="Take the paths of this CPU (see kdelta cpus)."
        ),
    ] = None


class CyclesOptions(msgspec.Struct, frozen=True):
    """The CPUs that model cycles are judged on; None: that of --cpu, or the default one."""

    cycles: Annotated[
        tuple[CPU | None, ...],
        option(
            "--cycles",
            metavar="[CPU]",
            kind=OptionKind.CPU,
            values="CPU",
            bare=True,
            help="Judge model cycles, too: of --cpu, or this one; repeatable.",
        ),
    ] = ()


class FlameOptions(msgspec.Struct, frozen=True):
    """Whether a page has flame graphs."""

    flames: Annotated[
        bool,
        option(
            "--no-flame",
            off=True,
            group=HelpSection.SHOWN,
            help="With --html: draw no flame graphs, which take a run more.",
        ),
    ] = True


def on_cpu(lab: LabRequest, cpu: CPU | None) -> LabRequest:
    """Return the same on machines that look like this CPU. UserError where the machine is to look
    like another one.
    """
    check_cpus([cpu] if cpu else [], lab)
    return lab_like(lab, cpu)


def with_cycles(request: CompareRequest, asked: CyclesOptions, *, priced: bool) -> CompareRequest:
    """Return the comparison with the CPUs that it is made on, and whether model cycles are judged;
    UserError, and priced, as of cycles_on.
    """
    judged = cycles_on(asked, request.cpus, priced=priced or request.lab.data_lines)
    check_cpus(judged or request.cpus, request.lab)
    if not judged and not request.cpus:
        return request
    return msgspec.structs.replace(request, cpus=judged or request.cpus, cycles=bool(judged))


def with_model(
    lab: LabRequest, like: LikeOptions, asked: CyclesOptions, *, priced: bool = False
) -> tuple[LabRequest, CPU | None]:
    """Return the CPU that model cycles are judged on, if any, on whose machine they are; else the
    same on machines that look like the one of --cpu. UserError, and priced, as of cycles_on.
    """
    cpus = (like.cpu,) if like.cpu else ()
    judged = cycles_on(asked, cpus, priced=priced)
    if len(judged) > 1:
        names = " ".join(cpu.name for cpu in judged)
        raise UserError(f"model cycles on several CPUs: {names}", "ask for one after the other")
    check_cpus(judged, lab)
    return (lab, judged[0]) if judged else (on_cpu(lab, like.cpu), None)


def cycles_on(
    asked: CyclesOptions, cpus: Sequence[CPU], *, priced: bool = False
) -> tuple[CPU, ...]:
    """Return the CPUs that model cycles are judged on; none where they are not asked for.

    cpus: those whose paths are taken. priced: there are options that are of model cycles alone, by
    which --cpu asked for these before it had an option of their own. UserError where the two
    options name different CPUs.
    """
    names = " ".join(cpu.name for cpu in cpus)
    if not asked.cycles:
        old = f"model cycles on {names} are judged, too; --cycles asks for them now"
        text = old if priced else f"the paths of {names}; --cycles judges its model cycles, too"
        if cpus and shows_progress():
            log_to_stderr(f"note: {text}")
        return tuple(cpus) if priced else ()
    found = [cpu for cpu in asked.cycles if cpu]
    if None in asked.cycles:
        found = [*(cpus or default_cpus()[:1]), *found]
    named = {cpu.name: cpu for cpu in found}
    if cpus and named.keys() != {cpu.name for cpu in cpus}:
        raise UserError(
            f"--cpu {names} and --cycles {' '.join(named)} at once",
            "model cycles are of the CPU whose paths are taken: leave out --cpu",
        )
    return tuple(named.values())


def check_cpus(cpus: Sequence[CPU], lab: LabRequest) -> None:
    """UserError where the machine is to look like two CPUs at once."""
    if cpus and lab.machine.cpu:
        raise UserError(
            f"--cpu {cpus[0].name} and --qemu-cpu {lab.machine.cpu} at once",
            "--cpu sets QEMU's model, too; copy the CPU's file for another one",
        )


def one_kernel(words: Sequence[str], hint: str) -> str:
    """The spec of a single kernel; UserError if the words are of several."""
    kernels = [str(spec) for spec in parse_kernel_words(words)]
    if len(kernels) != 1:
        raise UserError(f"{len(kernels)} kernels, not one: {', '.join(kernels)}", hint)
    return kernels[0]


def one_tree(words: Sequence[str], hint: str) -> str:
    """The spec of a single source; UserError if the words are of several."""
    trees = parse_kernel_words(words)
    if len(trees) != 1:
        raise UserError("more than one tree", hint)
    return str(trees[0])


_SPEC = re.compile(r"(deb|deb-src|git|tree|image|rpm|pkg):(?!//)")
_EXAMPLE = ("ls", "-l")
"""A command."""


def program_of(
    command: Sequence[str] | None, path: str, options: Mapping[str, Any]
) -> Program | None:
    """Return the program after --, None without one; UserError for a slip.

    command: the words after --. path: the words of kdelta before it, for hints. options: the other
    fields of a Program, as far as they are given.
    """
    if command is None:
        if files := options.get("files"):
            raise UserError(
                f"--file {files[0]} without a command",
                "write the command after --",
                ("--", "--", *_EXAMPLE),
            )
        return None
    if not command:
        raise UserError("no command after --", "name a program", ("--", "--", *_EXAMPLE))
    if command[0].startswith("-"):
        raise UserError(
            f"cannot run {command[0]}: it is an option, and what is after -- is a command",
            f"write options before it: {path} ... {command[0]} ... -- COMMAND",
        )
    if specs := [word for word in command if _SPEC.match(word)]:
        words = [word for word in command if word not in specs]
        raise UserError(
            f"cannot run {command[0]}: {'it' if specs[0] == command[0] else specs[0]} is a kernel "
            "spec, and what is after -- is a command",
            f"write kernels before it; as a program's argument: -- sh -c 'PROGRAM {specs[0]}'",
            ("--", *specs, "--", *(words or _EXAMPLE)),
        )
    return Program(tuple(command), **options)


def measured_program(
    command: Sequence[str] | None, path: str, options: Mapping[str, Any]
) -> Program | None:
    """Return the same of a program that is measured, after a note on a file at standard input,
    which such a program does not get.
    """
    program = program_of(command, path, options)
    if program and (file := _input_file()):
        by_shell = f"exec {shlex.join(program.command)} <{shlex.quote(file)}"
        log_to_stderr(
            f"{program.command[0]} gets an empty standard input, and not {file}; with it: "
            f"-- {shlex.join(('sh', '-c', by_shell))}"
        )
    return program


def _input_file() -> str:
    """The file that kdelta's standard input is; empty for all else."""
    with contextlib.suppress(OSError):
        state = os.fstat(0)
        if stat.S_ISREG(state.st_mode) and state.st_size:
            return str(Path("/proc/self/fd/0").readlink())
    return ""


OfProgram = Annotated[Program | None, AfterDashes(Program, measured_program, ("-w",))]
"""A parameter of a command: the program after --, None without one."""
