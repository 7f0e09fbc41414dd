# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta gate`: its arguments, and exit codes that `git bisect run` understands."""

import contextlib
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

import msgspec
import typer

from kdelta.cli import options
from kdelta.cli.output import ReaderGoneError, log
from kdelta.cli.program import in_place_of
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish
from kdelta.host.interrupt import run_async
from kdelta.infer.effects.effects import MARGIN
from kdelta.infer.effects.gate import MIXED, Exit
from kdelta.spec.errors import UserError
from kdelta.spec.words import compared_words
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.model import report_groups
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.flames import record_profiles
from kdelta.studies.gate.document import GateReport
from kdelta.studies.gate.request import GateRequest
from kdelta.studies.gate.study import run_gate
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program

ANSWERS = frozenset({Exit.NOT_SLOWER, Exit.SLOWER, Exit.CANNOT_TELL})

EPILOG = """\b
Exit codes:
  0     OTHER is not slower: faster, same, placement only, not slower in
        what is counted, or not slower by more than the margin
  1     an operation is slower
  125   a kernel was not built, booted or run, or a verdict is open:
        unresolved, mixed, not steady, depends on state or CPU speed,
        not comparable
  255   everything else: wrong usage, a broken lab, a fault of kdelta

\b
These are what git bisect run wants, which stops at 128 and above:
  git bisect start BAD GOOD
  git bisect run kdelta gate git:.@GOOD . -o open-close

"""


@options.makes_runs()
def gate(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE [+CHANGE...] [OTHER [+CHANGE...]] [-- COMMAND]",
            help="Two kernels, or one with changes, which is compared with itself without them.",
        ),
    ],
    *,
    workload: options.Workload = "",
    operation: options.Operations = None,
    program: Program | None,
    cpu: options.Cpus = None,
    layouts: options.Layouts = options.DEFAULT_LAYOUTS,
    data: options.Data = False,
    margin: Annotated[
        float | None,
        options.margin_option(
            help="Slower by no more than this does not count.  "
            "[default: 0 where all runs are equal, else 0.5; with --cpu 1]"
        ),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out", metavar="NAME", help="Leave this operation out; may be repeated."
        ),
    ] = None,
    mixed: options.MixedIs = "cannot-tell",
    one_state: options.OneState = False,
    budget: options.Budget = None,
    lab: LabRequest,
    html: options.HtmlFile = None,
    no_flame: options.NoFlame = False,
) -> int:
    """Answer by the exit code whether a kernel is slower, for CI and git bisect run.

    Compares as kdelta compare does, prints one line that says why, and exits with 0, 1, 125 or 255.
    """
    in_place_of(program, workload, operation or ())
    kernels = [str(spec) for spec in compared_words(words)]
    if len(kernels) != 2:
        raise UserError(
            f"{len(kernels)} kernels, not two: {', '.join(kernels)}",
            "a gate holds one kernel against one other: kdelta gate BASE OTHER",
        )
    cpus = options.known_cpus(cpu or (), lab.machine.cpu)
    if margin is None and cpus:
        margin = options.DEFAULT_MARGIN_PERCENT
    named = None if margin is None else options.fraction_of(margin, positive=bool(cpus))
    request = GateRequest(
        compare=CompareRequest(
            base=kernels[0],
            others=(kernels[1],),
            workload=workload or DEFAULT_WORKLOAD,
            operations=tuple(operation or ()),
            program=program,
            cpus=cpus,
            layouts=layouts,
            margin=float(named or 0),
            path_margin=MARGIN if named is None else named,
            states=not one_state,
            budget_seconds=options.seconds_of("--budget", budget),
            lab=msgspec.structs.replace(lab, data_lines=data),
        ),
        mixed=options.one_of("--mixed", mixed, MIXED),
        exact_margin=named or Fraction(0),
        left_out=tuple(leave_out or ()),
    )
    with open_store() as store:
        with shown_progress() as progress:
            answer = run_async(run_gate(request, store, progress))
            if html is not None and not no_flame and answer.comparisons:
                run_async(record_profiles(request.compare, store, progress))
        compared = compare_reports(answer.comparisons, store)
        report = GateReport(answer.decision, answer.judged, answer.notes, compared)
        groups = [f"control groups: {text}" for text in map(report_groups, compared) if text]
        for note in (*dict.fromkeys(groups), *answer.notes):
            log(f"note: {note}")
        with contextlib.suppress(
            ReaderGoneError
        ):  # there is no reader of the line; the code says it too
            publish(store, "gate", [report], html=html)
    return answer.decision.exit


def gate_code(command: Callable[[], int]) -> int:
    """A gate's exit code: whatever else its command ends with, however it ends, is 255."""
    try:
        code = command()
    except BaseException:  # noqa: BLE001  (1 is Python's code for a crash, and git's for bad)
        return Exit.BROKEN
    return code if code in ANSWERS else Exit.BROKEN
