# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing`: its arguments."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.profile import asked_work
from kdelta.cli.program import in_place_of
from kdelta.cli.publish import run_study
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.crossing.study import (
    CrossingRequest,
    both_kernels,
    must_leave_mitigations,
    run_crossing,
)
from kdelta.studies.lab.request import LabRequest, Program


@options.makes_runs(without=("mode",))
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
        str, options.workload_option(help="See kdelta workloads.  [default: syscalls]")
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
        options.cpu_option(
            help="Look like this CPU, and price the path on it: a name that kdelta cpus lists, or "
            "a CPU file."
        ),
    ] = "",
    program: Program | None,
    lab: LabRequest,
    explain: Annotated[
        int, options.explain_option(help="Operations to name: those that gain most.")
    ] = 60,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Say what crossing into the kernel and back costs a program, and what of that is what.

    Runs the workload in five arms: the kernel as it is; with mitigations=off; with the program in
    ring 0 (+kernel-mode), calling by the same instruction, then by a jump to the kernel's entry,
    then past what only a change of privilege needs. Prints user and system instructions of each,
    and which share of the gain is mitigations, crossing, direct call and entry work. x86-64 only.
    """
    in_place_of(program, workload, operation or ())
    stock, changed = _kernels(words, with_mode)
    model = options.only_cpu(cpu, lab)
    request = CrossingRequest(
        stock=stock,
        with_mode=changed,
        what=asked_work(program, workload, tuple(operation or ())),
        cpu=model,
        lab=lab,
    )
    report = run_study(
        "crossing", run_crossing, request, json=json, html=html, shown={"explain": explain}
    )
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
