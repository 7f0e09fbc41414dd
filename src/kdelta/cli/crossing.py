# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing`: its arguments."""

import itertools
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.html import HtmlFile
from kdelta.cli.lab import makes_runs
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish
from kdelta.host.interrupt import run_async
from kdelta.spec.errors import UserError
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.crossing.study import (
    CrossingRequest,
    both_kernels,
    must_leave_mitigations,
    run_crossing,
)
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.requests import LabRequest, RunRequest
from kdelta.studies.profile.study import ProfileJob


@makes_runs(without=("mode",))
def crossing(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL-TREE [+CHANGE...] [-- COMMAND]",
            help="A source, perhaps changed, and a program of this host in place of a workload.",
        ),
    ],
    *,
    workload: Annotated[
        str,
        typer.Option(
            "-w", "--workload", metavar="NAME", help="See kdelta workloads.  [default: syscalls]"
        ),
    ] = "",
    operation: options.Operations = None,
    with_mode: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="KERNEL",
            help="A kernel that has kernel mode, in place of KERNEL-TREE +kernel-mode.",
        ),
    ] = "",
    cpu: Annotated[
        str,
        typer.Option(
            "--cpu",
            metavar="CPU",
            help="Look like this CPU, and price the path on it: a name that kdelta cpus lists, or "
            "a CPU file.",
        ),
    ] = "",
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file", metavar="PATH[:GUESTPATH]", help="Carry this file along; may be repeated."
        ),
    ] = None,
    lab: LabRequest,
    explain: Annotated[
        int,
        typer.Option(
            "--explain", metavar="N", min=0, help="Operations to name: those that gain most."
        ),
    ] = 60,
    json: options.Json = False,
    html: HtmlFile = None,
) -> int:
    """Say what crossing into the kernel and back costs a program, and what of that is what.

    Runs the workload in five arms: the kernel as it is; with mitigations=off; with the program in
    ring 0 (+kernel-mode), calling by the same instruction, then by a jump to the kernel's entry,
    then past what only a change of privilege needs. Prints user and system instructions of each,
    and which share of the gain is mitigations, crossing, direct call and entry work. x86-64 only.
    """
    first, *rest = words
    changes = list(itertools.takewhile(lambda word: word.startswith("+"), rest))
    stock, changed = _kernels([first, *changes], with_mode)
    command = tuple(rest[len(changes) :])
    models = options.known_cpus([cpu], lab.machine.cpu)
    asked = ProfileJob(workload, tuple(operation or ()))
    request = CrossingRequest(
        stock=stock,
        with_mode=changed,
        what=_asked(
            asked, RunRequest(kernel=stock, command=command, files=tuple(file or ()), lab=lab)
        ),
        cpu=models[0] if models else None,
        lab=lab,
    )
    with open_store() as store:
        with shown_progress() as progress:
            report = run_async(run_crossing(request, store, progress))
        publish(store, "crossing", [report], json=json, html=html, shown={"explain": explain})
    return 0 if len(report.found.total.arms) == len(report.arms) else RUNS_FAILED


def _kernels(words: Sequence[str], with_mode: str) -> tuple[str, str]:
    """The specs of the kernel as it is, and with kernel mode."""
    (spec,) = parse_kernel_words(words)
    if with_mode:
        (changed,) = parse_kernel_words([with_mode])
    else:
        spec, changed = both_kernels(spec)
    for one in (spec, changed):
        must_leave_mitigations(one)
    return str(spec), str(changed)


def _asked(asked: ProfileJob, request: RunRequest) -> ProfileJob:
    """A workload, or a command where there is one; UserError for both."""
    if not request.command:
        if request.files:
            raise UserError(
                f"--file {request.files[0]} without a command", "write the command after --"
            )
        return msgspec.structs.replace(asked, workload=asked.workload or "syscalls")
    if asked.workload or asked.operations:
        given = f"-w {asked.workload}" if asked.workload else f"-o {asked.operations[0]}"
        raise UserError(
            f"{given} and a command at once: {' '.join(request.command)}", "leave one of them out"
        )
    return ProfileJob(command=request)
