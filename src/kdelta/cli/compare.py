# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta compare`: its arguments."""

from typing import Annotated

import msgspec
import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.program import in_place_of
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish, report_text
from kdelta.host.interrupt import run_async
from kdelta.infer.effects.effects import MARGIN
from kdelta.report.kind import ALL
from kdelta.spec.errors import UserError
from kdelta.spec.words import compared_words
from kdelta.studies.compare.answer import LEAST, LEAST_PPM
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.flames import record_profiles
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program


@options.makes_runs()
def compare(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE [+CHANGE...] [OTHER [+CHANGE...]]... [-- COMMAND]",
            help="Kernels; a single one with changes is compared with itself without them, "
            "and in K +a , +b with each of both.",
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
        float, options.margin_option(help="Differences of model cycles that do not matter.")
    ] = options.DEFAULT_MARGIN_PERCENT,
    path_margin: Annotated[
        float | None,
        typer.Option(
            "--path-margin",
            metavar="PCT",
            show_default=False,
            help="Only count smaller changes of the path; same is what is shown to be within it.  "
            "[default: 0.5; with -o all changes are listed]",
        ),
    ] = None,
    show_all: options.All = False,
    one_state: options.OneState = False,
    budget: options.Budget = None,
    lab: LabRequest,
    explain: Annotated[
        int,
        options.explain_option(
            help="With --all: explain by function the N operations that changed most."
        ),
    ] = 5,
    functions: options.Functions = 10,
    json: options.Json = False,
    html: options.HtmlFile = None,
    no_flame: options.NoFlame = False,
) -> int:
    """Compare kernels, operation by operation.

    Boots each kernel in QEMU under a clock that counts instructions, runs the workload in it, and
    prints what each operation costs under BASE and OTHER, then the functions that account for the
    difference. The figures are exact: they repeat to the last instruction, on any host, loaded or
    not. Runs are kept; asking again is answered from the store.
    """
    in_place_of(program, workload, operation or ())
    base, *others = [str(spec) for spec in compared_words(words)]
    if not others:
        raise UserError(
            f"nothing to compare with: {base}",
            "name another kernel, or a change of this one as in: kdelta compare ~/linux +fix.patch",
        )
    usual = 0.0 if operation else float(100 * LEAST)
    least = options.fraction_of(usual if path_margin is None else path_margin)
    request = CompareRequest(
        base=base,
        others=tuple(others),
        workload=workload or DEFAULT_WORKLOAD,
        operations=tuple(operation or ()),
        program=program,
        cpus=options.known_cpus(cpu or (), lab.machine.cpu),
        layouts=layouts,
        margin=float(options.fraction_of(margin, positive=True)),
        path_margin=MARGIN if path_margin is None else least,
        states=not one_state,
        budget_seconds=options.seconds_of("--budget", budget),
        lab=msgspec.structs.replace(lab, data_lines=data),
    )
    shown = {"explain": explain, "functions": functions, LEAST_PPM: int(10**6 * least)}
    shown |= {ALL: 1} if show_all else {}
    with open_store() as store:
        with shown_progress() as progress:

            def show(one: Comparison) -> None:
                progress.show(lambda: report_text("compare", compare_reports([one], store), shown))

            found = run_async(run_compare(request, store, progress, show))
            if html is not None and not no_flame:
                run_async(record_profiles(request, store, progress))
        publish(store, "compare", compare_reports(found, store), json=json, html=html, shown=shown)
    return 0 if all(one.base.counts and one.other.counts for one in found) else RUNS_FAILED
