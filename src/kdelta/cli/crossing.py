# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing`: its arguments."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.options import CyclesOptions, LikeOptions, OfProgram, with_model
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.profile import asked_work
from kdelta.cli.publish import run_study
from kdelta.lab.options import Operations, Workload
from kdelta.lab.request import LabRequest
from kdelta.spec.option import Argument, option, without
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.crossing.study import (
    CrossingRequest,
    both_kernels,
    must_leave_mitigations,
    run_crossing,
)


class CrossingOptions(msgspec.Struct, frozen=True):
    """What is run in each of the kernels, and how."""

    workload: Workload = ""
    operations: Operations = ()
    with_mode: Annotated[
        str,
        option(
            "--with",
            metavar="KERNEL",
            values="KERNEL",
            help="Use this kernel with kernel mode, not TREE +kernel-mode.",
        ),
    ] = ""
    lab: Annotated[LabRequest, without("mode", "data_lines", "trace_limit")] = LabRequest()
    explain: Annotated[
        int,
        explain_option(help="Name the N operations that gain most."),
    ] = 60


def crossing(
    words: Annotated[
        list[str],
        Argument(
            metavar="KERNEL-TREE [+CHANGE...] [-- COMMAND]",
            help="A source, perhaps changed, and a program of this host in place of a workload.",
            kernels=True,
        ),
    ],
    *,
    asked: CrossingOptions,
    like: LikeOptions,
    cycles: CyclesOptions,
    program: OfProgram,
    printed: PrintOptions,
) -> int:
    """Measure the cost of entering and leaving the kernel, split by cause.

    Runs the workload in five variants: the kernel as it is; with mitigations=off; with the program
    in ring 0 (+kernel-mode), calling by the same instruction, then by a jump to the kernel's entry,
    then past what only a change of privilege needs. Prints user and system instructions of each,
    and which share of the gain is mitigations, crossing, direct call and entry work. x86-64 only.
    """
    stock, changed = _kernels(words, asked.with_mode)
    lab, cpu = with_model(asked.lab, like, cycles)
    request = CrossingRequest(
        stock=stock,
        with_mode=changed,
        what=asked_work(program, asked.workload, asked.operations),
        cpu=cpu,
        lab=lab,
    )
    shown = {"explain": asked.explain}
    report = run_study("crossing", run_crossing, request, printed, shown=shown)
    return 0 if len(report.found.total.variants) == len(report.variants) else RUNS_FAILED


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
