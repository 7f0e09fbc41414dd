# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line asks of any study: how runs are made, and of what program."""

from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.host.machine import cores
from kdelta.machines.tcg import CallsMode, Recording
from kdelta.spec.option import HelpSection, OptionKind, option
from kdelta.spec.run import MachineOptions, Mode


class LabRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are made, whatever the study.

    perturbations  runs a kernel
    jobs           guests at a time
    rerun          run what the store has, and see that it counts the same
    snapshots      start from a snapshot of the booted guest, taken once
    trace          keep the sequence of executed blocks, too
    data_lines     and that of accesses to data
    trace_limit    see Recording
    calls          follow calls, for profiles
    conflicts      record which lines of memory CPUs contend for
    mode           in which programs run and call
    """

    machine: MachineOptions = MachineOptions()
    perturbations: Annotated[
        int, option("--perturb", help="Make N perturbed runs of each kernel.")
    ] = 4
    jobs: Annotated[
        int,
        option(
            "-j",
            "--jobs",
            metavar="N",
            least=1,
            most=1024,
            group=HelpSection.MACHINE,
            usual="cores",
            help="Run so many guests at a time.",
        ),
    ] = msgspec.field(default_factory=cores)
    rerun: Annotated[
        bool,
        option(
            "--rerun",
            group=HelpSection.SURE,
            help="Rerun even if results are stored; fail if counts differ.",
        ),
    ] = False
    snapshots: Annotated[
        bool,
        option(
            "--no-snapshot",
            off=True,
            group=HelpSection.MACHINE,
            help="Boot for each run (slower; same counts).",
        ),
    ] = True
    trace: bool = False
    data_lines: Annotated[
        bool, option("--data", help="With --cycles: count L2 misses, too; takes 5 times longer.")
    ] = False
    trace_limit: Annotated[
        int,
        option(
            "--trace-limit",
            metavar="GIB",
            kind=OptionKind.TRACE,
            least=0.01,
            most=15,
            group=HelpSection.MACHINE,
            help="Allow traces of this size, for layouts and --cycles.",
        ),
    ] = Recording().trace_limit
    calls: CallsMode = "off"
    conflicts: bool = False
    mode: Annotated[
        Mode,
        option(
            "--mode",
            metavar="MODE",
            group=HelpSection.MACHINE,
            help="Run programs so: user, kernel, kernel-direct, kernel-skip.",
        ),
    ] = "user"


USUAL_LAB = LabRequest()


DEFAULT_WORKLOAD = "syscalls"


Files = Annotated[
    tuple[str, ...],
    option(
        "--file",
        metavar="PATH[:GUESTPATH]",
        values="FILE",
        help="Add this file and its libraries to the guest; repeatable.",
    ),
]


class Program(msgspec.Struct, frozen=True):
    """A program of the host, in place of a workload.

    command  its words, as for a shell
    files    what is carried along, each as HOST[:GUEST]
    seconds  the longest it may run, in the guest's own time
    find     whether files of the host that it asks for are carried along, too
    names    those that it asked for (guests/host_files.py); None before they were looked for
    record   where these are kept
    """

    command: tuple[str, ...]
    files: Files = ()
    seconds: Annotated[
        int,
        option(
            "--seconds",
            metavar="N",
            least=1,
            help="End COMMAND after so many seconds of the guest's time.",
        ),
    ] = 600
    find: Annotated[
        bool, option("--no-find", off=True, help="Add the program, its libraries and --file alone.")
    ] = True
    names: tuple[str, ...] | None = None
    record: Path | None = None
