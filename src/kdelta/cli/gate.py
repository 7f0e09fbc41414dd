# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta gate`: its arguments, and exit codes that `git bisect run` understands."""

import contextlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.measures import with_measures
from kdelta.cli.options import CyclesOptions, FlameOptions, OfProgram, with_cycles
from kdelta.cli.output import ReaderGoneError
from kdelta.cli.plain_options import HtmlFile, PrintOptions
from kdelta.cli.publish import publish, shown_lab
from kdelta.cli.reading import fraction_of
from kdelta.host.command import log_to_stderr
from kdelta.host.interrupt import run_async
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.infer.effects.gate import Exit
from kdelta.lab.lab import open_store
from kdelta.lab.request import Program
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.spec.words import compared_words
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.model import report_groups
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.flames import record_profiles
from kdelta.studies.gate.document import GateReport
from kdelta.studies.gate.request import GateRequest
from kdelta.studies.gate.study import run_gate


class GateOptions(msgspec.Struct, frozen=True):
    """The page that is written, too."""

    html: HtmlFile = None


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


def gate(
    words: Annotated[
        list[str],
        Argument(
            metavar="BASE [+CHANGE...] [OTHER [+CHANGE...]] [-- COMMAND]",
            help="Two kernels, or one with changes, which is compared with itself without them.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[GateRequest],
    cycles: CyclesOptions,
    program: OfProgram,
    page: GateOptions,
    flames: FlameOptions,
) -> int:
    """Answer by the exit code whether a kernel is slower, for CI and git bisect run.

    Compares as kdelta compare does, prints one line that says why, and exits with 0, 1, 125 or 255.
    """
    kernels = [str(spec) for spec in compared_words(words)]
    if len(kernels) != 2:
        raise UserError(
            f"{len(kernels)} kernels, not two: {', '.join(kernels)}",
            "a gate holds one kernel against one other: kdelta gate BASE OTHER",
        )
    request = _request(asked, cycles, kernels, program)
    with open_store() as store:
        with shown_lab(store) as lab:
            answer = run_async(run_gate(request, lab))
            if page.html is not None and flames.flames and answer.comparisons:
                run_async(record_profiles(request.compare, lab))
        compared = compare_reports(answer.comparisons, store)
        report = GateReport(answer.decision, answer.judged, answer.notes, compared)
        groups = [f"control groups: {text}" for text in map(report_groups, compared) if text]
        for note in (*dict.fromkeys(groups), *answer.notes):
            log_to_stderr(f"note: {note}")
        # Where there is no reader of the line, the code says it, too.
        with contextlib.suppress(ReaderGoneError):
            publish(store, "gate", [report], PrintOptions(html=page.html), headed=False)
    return answer.decision.exit


def _request(
    asked: partial[GateRequest],
    cycles: CyclesOptions,
    kernels: Sequence[str],
    program: Program | None,
) -> GateRequest:
    """What is asked of these kernels, with the usual margins where none is named."""
    given = asked.keywords.get("compare", CompareRequest(base="", others=()))
    given, cycles = with_measures(given, cycles)
    given = with_cycles(given, cycles, priced=given.layouts != CompareRequest.layouts)
    named: Fraction | None = asked.keywords.get("exact_margin")
    if named is None and given.cpus and given.cycles:
        named = Fraction(str(DEFAULT_MARGIN))
    if named is not None and given.cpus and given.cycles:
        fraction_of(float(100 * named), positive=True)
    compare = msgspec.structs.replace(
        given,
        base=kernels[0],
        others=(kernels[1],),
        program=program,
        margin=float(named or 0),
        path_margin=named,
    )
    return asked(compare=compare, exact_margin=named or Fraction(0))


def gate_code(command: Callable[[], int]) -> int:
    """A gate's exit code: whatever else its command ends with, however it ends, is 255."""
    try:
        code = command()
    except BaseException:  # noqa: BLE001  (1 is Python's code for a crash, and git's for bad)
        return Exit.BROKEN
    return code if code in ANSWERS else Exit.BROKEN
