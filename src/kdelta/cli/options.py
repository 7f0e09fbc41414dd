# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several commands share, and the requests they make."""

import difflib
import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from kdelta.cli import plain_options
from kdelta.cli.change_options import CHANGE_OPTIONS, changed_words
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.output import check_folder, echo_commands, silence_progress
from kdelta.cli.program import PROGRAM_OPTIONS, RunsPrograms, program_of
from kdelta.cpus.model import CPU
from kdelta.spec.errors import UserError
from kdelta.spec.run import MODES, RUNS_AS, MachineOptions
from kdelta.spec.run import Mode as RunMode
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.lab.cpus import lab_like
from kdelta.studies.lab.request import USUAL_LAB, LabRequest

_Word = TypeVar("_Word", bound=str)
Command = Callable[..., Any]

SINGLE = ("perturb", "jobs", "qemu_cpu")
"""What a command does not ask for that makes one run of a kernel."""

SPECS = """\b
Kernel specs:
  PATH, tree:PATH              a source tree as it is, or packed (.tar.xz)
  git:PATH@REV                 a commit, tag or branch of a git repository
  deb-src:PACKAGE[=VERSION]    a distribution's source: linux-source-6.12
  deb:PACKAGE[=VERSION]        a distribution's binary kernel, fetched by apt
  deb:PACKAGE:armhf            one for another architecture: armhf, arm64
  deb:PACKAGE@trixie           one of another release than this host's
  rpm:FILE[,FILE]              packages of Fedora, openSUSE, RHEL, or pkg:FILE
                               of Arch; or their addresses
  rpm:PACKAGE@REPOSITORY       one of a repository, or pkg:PACKAGE@DATABASE
  image:PATH[,modules=FOLDER]  a bzImage, a vmlinux with CONFIG_PVH=y, a
                               zImage for ARM, an Image for arm64 or RISC-V;
                               a folder or an archive that has one

\b
Changes on a source, in their order:
  +CONFIG_X=y  +'# CONFIG_X is not set'  options
  +some.config  +fragment.config         a whole config, or a part of one
  +defconfig  +kvm_guest.config          what the tree's own make knows
  +fix.patch  +series.mbox               patches
  +KCFLAGS=-O3  +CC=clang  +LLVM=1       for make; without + for all kernels
  +order:FILE  +shuffle:SEED             functions in that or a random order,
  +align:64  +sections                   aligned; as without, to compare with
  +kernel-mode                           programs can run in ring 0 (x86-64)

\b
A lone + is the first kernel again: ~/linux +a.config + +fix.patch
"""

# Options whose help differs from command to command.
workload_option = functools.partial(typer.Option, "-w", "--workload", metavar="NAME")
operation_option = functools.partial(typer.Option, "-o", "--operation", metavar="NAME")
cpu_option = functools.partial(typer.Option, "--cpu", metavar="CPU")
explain_option = functools.partial(typer.Option, "--explain", metavar="N", min=0)
functions_option = functools.partial(typer.Option, "--functions", metavar="N", min=0)
margin_option = functools.partial(typer.Option, "--margin", metavar="PCT")
max_builds_option = functools.partial(typer.Option, "--max-builds", metavar="N", min=0)
limit_option = plain_options.limit_option
layouts_option = functools.partial(typer.Option, "--layouts", metavar="N", min=2, max=100_000)

Perturb = Annotated[
    int,
    typer.Option(
        "--perturb", metavar="N", min=1, max=1000, help="Make N perturbed runs of each kernel."
    ),
]
As = Annotated[
    str,
    typer.Option(
        "--as", metavar="service|container|none", help="Control group that programs run in."
    ),
]
OneState = Annotated[
    bool, typer.Option("--one-state", help="Skip the runs from other states and CPU speeds.")
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        show_default=False,
        help="Limit further runs by processor time, as in 40s or 5m.  [default: no end]",
    ),
]
All = Annotated[
    bool, typer.Option("--all", help="Print all figures, functions and facts, not one screen.")
]
MixedIs = Annotated[
    str,
    typer.Option(
        "--mixed",
        metavar="cannot-tell|fail|pass",
        help="What a mixed operation makes of the answer.",
    ),
]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Run also what the store has; it is an error if the counts then differ."
    ),
]
NoSnapshot = Annotated[
    bool,
    typer.Option("--no-snapshot", help="Boot for each run; the counts are the same, only later."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", metavar="N", min=1, max=1024, help="Guests at a time.  [default: cores]"
    ),
]
Memory = Annotated[
    int, typer.Option("--memory", metavar="MIB", min=64, max=1 << 20, help="Memory of a guest.")
]
Cpu = Annotated[
    str,
    cpu_option(
        help="Look like this CPU to the kernel: a name that kdelta cpus lists, or a CPU file."
    ),
]
QemuCpu = Annotated[
    str,
    typer.Option(
        "--qemu-cpu",
        metavar="MODEL",
        help="QEMU's name of a CPU model; no features are forced.  [default: like zen4 on x86-64]",
    ),
]
Qemu = Annotated[
    str,
    typer.Option(
        "--qemu",
        metavar="host|pin|PATH",
        help="Run guests by this QEMU; the pinned one is fetched.  [default: pin]",
    ),
]
CompileGuest = Annotated[
    bool,
    typer.Option(
        "--compile-guest",
        help="Take the guest's programs from this host, not from the pin.",
    ),
]
Append = Annotated[
    str, typer.Option("--append", metavar="WORDS", help="Added to the kernel's command line.")
]
Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="How programs run and call the kernel: user, as ever; on kernels with +kernel-mode "
        "also kernel (in ring 0), kernel-direct (calls are jumps to the kernel's entry) or "
        "kernel-skip (past what only a change of privilege needs).",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=1,
        show_default="600",
        help="The longest a boot or a run may take here.",
    ),
]
Json = plain_options.Json
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show each command, ready to be pasted.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show no progress, only the result.")]
Functions = Annotated[int, functions_option(help="Functions to name an operation.")]

Cpus = Annotated[
    list[str] | None,
    cpu_option(
        help="Judge model cycles, too, on this CPU: a name that kdelta cpus lists, or a CPU file; "
        "may be repeated."
    ),
]
Layouts = Annotated[
    int, layouts_option(help="With --cpu: random layouts that each kernel's code is replayed in.")
]
Data = Annotated[
    bool,
    typer.Option(
        "--data",
        help="With --cpu: also record data accesses, so that L2 misses can be counted; runs take "
        "about 5 times longer.",
    ),
]
Workload = Annotated[str, workload_option(help="See kdelta workloads.  [default: syscalls]")]
Workloads = Annotated[
    list[str] | None,
    workload_option(help="May be repeated; see kdelta workloads.  [default: syscalls]"),
]
Operations = Annotated[
    list[str] | None,
    operation_option(help="Only this one; may be repeated.  [default: all of the workload]"),
]


def _writable(path: Path | None) -> Path | None:
    """The path; UserError, before anything runs, if no page can be written there."""
    if path is not None:
        if path.is_dir():
            hint = f"name a file: --html {path / 'report.html'}"
            instead = (str(path), str(path / "report.html"))
            raise UserError(f"--html {path} is a folder", hint, instead)
        check_folder(f"--html {path}", path.parent, "a file in another folder")
    return path


HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        callback=_writable,
        help="Write the report there, too: one page that any browser opens, offline.",
    ),
]
NoFlame = Annotated[
    bool,
    typer.Option(
        "--no-flame", help="With --html: no flame graphs, for which each kernel is run once more."
    ),
]

DEFAULT_MEMORY_MIB = MachineOptions().memory_mib
DEFAULT_TIMEOUT_SECONDS = MachineOptions().timeout_seconds
DEFAULT_LAYOUTS = CompareRequest(base="", others=()).layouts
DEFAULT_MARGIN_PERCENT = 100 * CompareRequest(base="", others=()).margin


def lab_request(
    *,
    perturb: Perturb = 1,
    again: Again = False,
    no_snapshot: NoSnapshot = False,
    jobs: Jobs = None,
    memory: Memory = DEFAULT_MEMORY_MIB,
    qemu_cpu: QemuCpu = "",
    qemu: Qemu = "",
    compile_guest: CompileGuest = False,
    append: Append = "",
    mode: Mode = "user",
    runs_as: As = "service",
    timeout: Timeout = DEFAULT_TIMEOUT_SECONDS,
) -> LabRequest:
    """How runs are to be made, from the options of the same names."""
    return LabRequest(
        machine=MachineOptions(
            memory_mib=memory,
            cpu=qemu_cpu,
            qemu=qemu,
            compile_guest=compile_guest,
            append=append,
            timeout_seconds=timeout,
            runs_as=one_of("--as", runs_as, RUNS_AS),
        ),
        perturbations=perturb,
        jobs=jobs or len(os.sched_getaffinity(0)),
        again=again,
        snapshots=not no_snapshot,
        mode=known_mode(mode),
    )


def makes_runs(
    *,
    without: tuple[str, ...] = (),
    perturb: int = USUAL_LAB.perturbations,
    of_one_tree: bool = False,
) -> Callable[[Command], Command]:
    """Puts the options of `lab_request`, but for those `without`, in the place of a command's
    parameter `lab`, which is then the LabRequest that they make; CHANGE_OPTIONS, which are then in
    its `words`; -v, which has what is executed echoed; and -q, which hides progress. A parameter
    `program` is the Program after --, with the options of `program_options`, None without one.

    perturb: the default of --perturb. Without that option it is one run a kernel.
    of_one_tree: all changes among the words are those of one tree, which need not have any.
    """
    options = [
        one.replace(default=perturb) if one.name == "perturb" else one
        for one in inspect.signature(lab_request).parameters.values()
        if one.name not in without
    ]

    def decorated(command: Command) -> Command:
        takes_program = "program" in inspect.signature(command).parameters

        @functools.wraps(command)
        def with_options(*words: Any, verbose: bool, quiet: bool, **given: Any) -> Any:
            echo_commands(wanted=verbose)
            silence_progress(wanted=quiet)
            changes: dict[str, Any] = {name: given.pop(name) for name in CHANGE_OPTIONS}
            if given.get("words"):
                given["words"] = changed_words(given["words"], of_one_tree=of_one_tree, **changes)
            if takes_program:
                parsed, files = given.pop("parsed"), tuple(given.pop("file") or ())
                seconds, find = given.pop("seconds"), not given.pop("no_find")
                given["program"] = program_of(parsed, files, seconds, find=find)
            lab = lab_request(**{one.name: given.pop(one.name) for one in options})
            return command(*words, lab=lab, **given)

        with_options.__signature__ = _signature(command, options)  # type: ignore[attr-defined]
        if takes_program:
            with_options.parsed_by = RunsPrograms  # type: ignore[attr-defined]
        return with_options

    return decorated


def _signature(command: Command, options: Sequence[inspect.Parameter]) -> inspect.Signature:
    """The command's own, with these options where `lab` is, those of a program where `program` is,
    and -v and -q at the end.
    """
    signature = inspect.signature(command)
    places = {"lab": options, "program": PROGRAM_OPTIONS}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += places.get(parameter.name, [parameter])
        if parameter.name == "lab" and parameter.annotation is not LabRequest:
            raise TypeError(f"{command.__name__}: lab is to be a LabRequest")
    keyword = inspect.Parameter.KEYWORD_ONLY
    if "program" in signature.parameters:
        parameters.append(inspect.Parameter("parsed", keyword, annotation=typer.Context))
    shared = {**CHANGE_OPTIONS, "verbose": (Verbose, False), "quiet": (Quiet, False)}
    for name, (option, usual) in shared.items():
        parameters.append(inspect.Parameter(name, keyword, default=usual, annotation=option))
    return signature.replace(parameters=parameters)


def on_cpu(lab: LabRequest, name: str) -> LabRequest:
    """The same on machines that look like this CPU; an empty name is none. UserError for a CPU that
    is unknown, and where the machine is to look like another one.
    """
    for cpu in known_cpus([name], lab.machine.cpu):
        lab = lab_like(lab, cpu)
    return lab


def known_mode(name: str) -> RunMode:
    """The mode of that name; UserError if there is none."""
    for mode in MODES:
        if mode == name:
            return mode
    near = difflib.get_close_matches(name, MODES, n=1)
    instead = (name, near[0]) if near else None
    raise UserError(f"no mode is called {name!r}", f"there is: {', '.join(MODES)}", instead)


def one_of(option: str, given: str, known: Sequence[_Word]) -> _Word:
    """The word that was given to an option; UserError if it is none of those that it takes."""
    for word in known:
        if word == given:
            return word
    near = next(iter(difflib.get_close_matches(given, list[str](known), n=1)), known[0])
    message = f"cannot use {option} {given}: there is no such word"
    raise UserError(message, f"use {', '.join(known)}", (given, near))


def known_cpus(names: Sequence[str], qemu_cpu: str = "") -> tuple[CPU, ...]:
    """Return the CPUs of these names, each once; empty names are none. UserError for one that is
    unknown, and where the machine is to look like two at once.
    """
    wanted = list(dict.fromkeys(name for name in names if name))
    if wanted and qemu_cpu:
        raise UserError(
            f"--cpu {wanted[0]} and --qemu-cpu {qemu_cpu} at once",
            "--cpu sets QEMU's model, too; copy the CPU's file for another one",
        )
    return tuple({cpu.name: cpu for cpu in map(_known_cpu, wanted)}.values())


def only_cpu(name: str, lab: LabRequest) -> CPU | None:
    """Return the CPU of that name; None if it is empty. UserError: see known_cpus."""
    return next(iter(known_cpus([name], lab.machine.cpu)), None)


def _known_cpu(name: str) -> CPU:
    try:
        return named_cpu(name)
    except UserError as error:
        raise UserError(
            error.message,
            f"{error.hint}; --qemu-cpu takes QEMU's own names, without prices",
            error.instead,
        ) from error


def fraction_of(percent: float, *, positive: bool = False) -> Fraction:
    """A margin as a fraction, to the last digit as it was written. UserError for one that is
    negative or no number, and for zero where it has to be `positive`.
    """
    if not 0 <= percent < math.inf or (positive and not percent):
        raise UserError(
            f"a margin of {percent:g} %",
            "the margin must be positive: random layouts never compare equal at 0"
            if positive
            else "the margin is 0 or more",
        )
    return Fraction(str(percent)) / 100


_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds_of(option: str, text: str | None) -> Fraction | None:
    """Return the seconds of a text such as 40s or 1.5m; None without one. UserError for others."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)", text, re.ASCII)
    if not found:
        raise UserError(f"{option} {text} is no time", f"write it as in {option} 40s, or 5m")
    return Fraction(found[1]) * _SECONDS[found[2]]


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
