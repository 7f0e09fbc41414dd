# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta compare`: its arguments."""

from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.measures import with_measures
from kdelta.cli.options import CyclesOptions, FlameOptions, OfProgram, with_cycles
from kdelta.cli.plain_options import All, Functions, PrintOptions, explain_option
from kdelta.cli.publish import publish, report_text, shown_lab
from kdelta.host.interrupt import run_async
from kdelta.lab.lab import open_store
from kdelta.report.kind import ALL
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.spec.words import compared_words
from kdelta.studies.compare.answer import LEAST_PPM
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.flames import record_profiles


class CompareOptions(msgspec.Struct, frozen=True):
    """How much of a comparison is printed."""

    show_all: All = False
    explain: Annotated[
        int,
        explain_option(help="With --all: explain the N operations that changed most."),
    ] = 5
    functions: Functions = 10


def compare(
    words: Annotated[
        list[str],
        Argument(
            metavar="BASE [+CHANGE...] [OTHER [+CHANGE...]]... [-- COMMAND]",
            help="Kernels; a single one with changes is compared with itself without them, "
            "and in K +a , +b with each of both.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[CompareRequest],
    cycles: CyclesOptions,
    program: OfProgram,
    shown: CompareOptions,
    printed: PrintOptions,
    flames: FlameOptions,
) -> int:
    """Compare kernels, operation by operation.

    Boots each kernel in QEMU under a clock that counts instructions, runs the workload in it, and
    prints what each operation costs under BASE and OTHER, then the functions that account for the
    difference. The figures are exact: they repeat to the last instruction, on any host, loaded or
    not. Runs are kept; asking again is answered from the store.
    """
    base, *others = [str(spec) for spec in compared_words(words)]
    if not others:
        raise UserError(
            f"nothing to compare with: {base}",
            "name another kernel, or a change of this one as in: kdelta compare ~/linux +fix.patch",
        )
    request = asked(base=base, others=tuple(others), program=program)
    request, cycles = with_measures(request, cycles)
    request = with_cycles(
        request, cycles, priced=not {"layouts", "margin"}.isdisjoint(asked.keywords)
    )
    details = {"explain": shown.explain, "functions": shown.functions}
    details |= {LEAST_PPM: int(10**6 * request.listed_from), **({ALL: 1} if shown.show_all else {})}
    with open_store() as store:
        with shown_lab(store) as lab:

            def show(one: Comparison) -> None:
                lab.progress.show(
                    lambda: report_text("compare", compare_reports([one], store), details)
                )

            found = run_async(run_compare(request, lab, show))
            if printed.html is not None and flames.flames:
                run_async(record_profiles(request, lab))
        publish(store, "compare", compare_reports(found, store), printed, shown=details)
    return 0 if all(one.base.counts and one.other.counts for one in found) else RUNS_FAILED
