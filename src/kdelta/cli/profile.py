# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile`: its arguments."""

import enum
import re
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.export import Figure, Format, Look, Output, checked_export
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.output import emit, log
from kdelta.cli.program import in_place_of
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import unkept, write_page
from kdelta.counts.model import CONTEXTS, Context
from kdelta.cpus.model import CPU
from kdelta.host.interrupt import run_async
from kdelta.infer.profiles.profile import OF_DATA, Part, Selection, Sort, chosen_regions
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.report.text import text_of
from kdelta.spec.errors import UserError
from kdelta.store.model import Run
from kdelta.store.store import LAST
from kdelta.studies.documents import document_text
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.reports import reported_run
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program
from kdelta.studies.lab.work import Work
from kdelta.studies.processes.document import ProcessesReport
from kdelta.studies.processes.document import document as processes_document
from kdelta.studies.processes.study import processes_of_kernel, processes_of_run
from kdelta.studies.profile.document import FunctionsAsked
from kdelta.studies.profile.document import document as profile_document
from kdelta.studies.profile.exported import ExportedRun, kernel_recording, run_recording
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.parts import usual_columns
from kdelta.studies.profile.study import ProfileRequest, kernel_profile, run_profile
from kdelta.studies.profile.views import Views

_RUN = re.compile(rf"{LAST}|[0-9a-f]{{1,12}}")


class Whose(enum.StrEnum):
    """Whose work is looked at."""

    OWN = "own"
    INTERRUPTS = "interrupts"
    OTHER = "other"
    ALL = "all"


Regions = Annotated[
    list[str] | None,
    options.operation_option(help="Only this region; may be repeated.  [default: all, summed up]"),
]
Contexts = Annotated[
    list[Whose] | None,
    typer.Option(
        "--context",
        metavar="WHOSE",
        help="The measured tasks' own work, that of interrupts on their time, or of other tasks: "
        "own, interrupts, other, all; may be repeated.  [default: own]",
    ),
]
Only = Annotated[
    list[Part] | None,
    typer.Option(
        "--only",
        metavar="WHOSE",
        help="Only this code: kernel, modules, user; may be repeated.  [default: all]",
    ),
]
CallTree = Annotated[bool, typer.Option("--calls", help="Show who called whom, from the top.")]
Source = Annotated[
    bool, typer.Option("--source", help="Show source lines, where there is debug info.")
]
Annotate = Annotated[
    list[str] | None,
    typer.Option("--annotate", metavar="FUNCTION", help="Show its instructions; may be repeated."),
]
ByProcess = Annotated[
    bool,
    typer.Option("--processes", help="Show by process what user and kernel executed, and no more."),
]
Cut = Annotated[
    float,
    typer.Option(
        "--cut", metavar="PCT", min=0, max=100, help="With --calls: leave out what is less."
    ),
]
OfWorkload = Annotated[str, options.workload_option(help="Of a kernel; see kdelta workloads.")]


@options.makes_runs(without=options.SINGLE)
def profile(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN | KERNEL [+CHANGE...] [-- COMMAND]]",
            help="A run's id, or its beginning, or last; or a kernel, which is run if need be.",
        ),
    ] = None,
    *,
    workload: OfWorkload = "",
    operation: Regions = None,
    context: Contexts = None,
    only: Only = None,
    functions: options.Functions = 20,
    sort: Annotated[
        Sort,
        typer.Option("--sort", metavar="FIGURE", help=f"Rank functions by: {', '.join(Sort)}."),
    ] = Sort.INSNS,
    columns: Annotated[
        list[Sort] | None,
        typer.Option(
            "--column", metavar="FIGURE", help="Show this; may be repeated.  [default: what fits]"
        ),
    ] = None,
    calls: CallTree = False,
    callers: Annotated[
        list[str] | None,
        typer.Option("--callers", metavar="FUNCTION", help="Show who called it; may be repeated."),
    ] = None,
    cut: Cut = 1.0,
    source: Source = False,
    annotate: Annotate = None,
    processes: ByProcess = False,
    cpu: Annotated[
        str,
        options.cpu_option(
            help="Add misses and model cycles on this CPU: a name that kdelta cpus lists, or a "
            "file. A kernel's machine looks like it, too."
        ),
    ] = "",
    data: Annotated[
        bool,
        typer.Option(
            "--data",
            help="With --cpu: also what accesses to data miss (columns l1d, l2d, dtlb); such a run "
            "takes about 5 times longer.",
        ),
    ] = False,
    program: Program | None,
    lab: LabRequest,
    export: Format = "",
    output: Output = "",
    figure: Figure = "",
    top: Look = False,
    html: options.HtmlFile = None,
    json: options.Json = False,
) -> int:
    """Show where a run's instructions went, function by function.

    The regions of the run are summed up; the lines add up to their total. What a run has not
    recorded (calls, lines, instructions, misses) is had by making the same run again.
    """
    wanted = checked_export(
        export,
        output,
        figure,
        top=top,
        others={
            "--json": json,
            "--html": html is not None,
            "--processes": processes,
            "--calls": calls,
            "--callers": bool(callers),
            "--annotate": bool(annotate),
            "--source": source and top,
        },
    )
    shown = {sort, *(columns or ())}
    model = _modelled(cpu, shown, data=data)
    selection = selection_of(context or ([Whose.ALL] if export else None), only)
    request = ProfileRequest(
        regions=tuple(operation or ()),
        selection=selection,
        views=Views(calls, tuple(callers or ()), source, tuple(annotate or ()), cut / 100),
        calls=html is not None or not shown.isdisjoint({Sort.INCLUSIVE, Sort.CALLS}),
        cpu=model,
        data=data,
        lab=lab,
    )
    given = list(words or [LAST])
    of_run = is_run(given, workload) and program is None
    asked = asked_work(program, workload, request.regions)
    if processes:
        return _by_process(given, None if of_run else asked, request, html, json=json)
    report: ProfileReport | ExportedRun | Run | None
    if of_run:
        report = _of_run(given, request, recorded=wanted is not None)
    else:
        request = msgspec.structs.replace(request, lab=options.on_cpu(lab, cpu))
        report = _of_kernel(_one_kernel(given), asked, request, recorded=wanted is not None)
    if wanted and isinstance(report, ExportedRun):
        wanted.show(report, selection, functions=functions, source=source)
        return 0
    if not isinstance(report, ProfileReport):
        return failed(report if isinstance(report, Run) else None)
    stored = _as_stored("profile", "Where do the instructions go", report, functions)
    table = FunctionsAsked(functions, sort, tuple(columns or usual_columns(report, sort)))
    text = text_of(profile_document(stored, report, table))
    if html is not None:
        _write_page(html, stored)
    emit(document_text(report, __version__) if json else text)
    return 0


def _modelled(cpu: str, shown: Set[Sort], *, data: bool) -> CPU | None:
    """Return the CPU of that name, if one is named; UserError if figures that are shown need one,
    or need accesses to data to be recorded.
    """
    model = named_cpu(cpu) if cpu else None
    if model is None and not shown.isdisjoint({Sort.MISSES, Sort.CYCLES}):
        raise UserError(
            "misses and model cycles are those of a CPU, and none is named",
            "name one with --cpu: kdelta cpus lists them",
        )
    if not data and not shown.isdisjoint(OF_DATA):
        raise UserError(
            f"{min(one.value for one in shown & set(OF_DATA))} is what accesses to data "
            "miss, and these are not recorded",
            "add --data, with --cpu",
        )
    if data and model is None:
        raise UserError(
            "accesses to data are recorded for the caches of a CPU, and none is named",
            "name one with --cpu, or leave out --data",
        )
    return model


def _as_stored(
    kind: str, asks: str, report: ProfileReport | ProcessesReport, functions: int = 0
) -> Stored:
    run = report.run.run
    question = f"{asks} of {run.workload} on {kernel_name(run.kernel_spec, run.kernel_release)}?"
    return unkept(kind, question, [report], run.started, functions)


def _write_page(path: Path, stored: Stored) -> None:
    with open_store() as store:
        write_page(path, stored, store)


def selection_of(contexts: Sequence[Whose] | None, parts: Sequence[Part] | None) -> Selection:
    """What is looked at, from the options of these names."""
    asked = {one.value for one in contexts or (Whose.OWN,)}
    chosen: tuple[Context, ...] = tuple(c for c in CONTEXTS if Whose.ALL in asked or c in asked)
    return Selection(chosen, tuple(part for part in Part if not parts or part in parts))


def is_run(words: Sequence[str], workload: str) -> bool:
    """Whether these words name runs, and no kernels: ./abc is a folder, abc a run."""
    return not workload and _RUN.fullmatch(words[0]) is not None


def failed(run: Run | None) -> int:
    """Says which run failed, if one did."""
    if run is not None:
        reason = f": {run.detail}" if run.detail else ""
        log(f"kdelta: run {run.id} ended with {run.word}{reason}")
        log(f"hint: kdelta show {run.id} has all that is known of it")
    return RUNS_FAILED


def _of_run(
    words: Sequence[str], request: ProfileRequest, *, recorded: bool
) -> ProfileReport | ExportedRun:
    if len(words) != 1:
        raise UserError(f"{len(words)} runs: {' '.join(words)}", "kdelta diff compares two")
    with open_store() as store:
        run = store.run(words[0])
        with shown_progress() as progress:
            if recorded:
                return run_async(run_recording(run, store, progress, request))
            return run_async(run_profile(run, store, progress, request))


def _of_kernel(
    spec: str, asked: Work, request: ProfileRequest, *, recorded: bool
) -> ProfileReport | ExportedRun | Run | None:
    with open_store() as store, shown_progress() as progress:
        if recorded:
            return run_async(kernel_recording(spec, asked, store, progress, request))
        return run_async(kernel_profile(spec, asked, store, progress, request))


def _by_process(
    words: Sequence[str],
    asked: Work | None,
    request: ProfileRequest,
    html: Path | None,
    *,
    json: bool,
) -> int:
    with open_store() as store:
        run: Run | None = None
        with shown_progress() as progress:
            if asked is None:
                run = store.run(words[0])
                found = run_async(processes_of_run(run, store, progress, request.lab))
            else:
                spec = _one_kernel(words)
                run, found = run_async(
                    processes_of_kernel(spec, asked, store, progress, request.lab)
                )
        if run is None or not found:
            return failed(run)
        wanted = chosen_regions({one.region: one for one in found}, request.regions)
        report = ProcessesReport(reported_run(run, store, stored=True), tuple(wanted.values()))
    stored = _as_stored("processes", "Which processes execute the instructions", report)
    text = text_of(processes_document(stored, report))
    emit(document_text(report, __version__) if json else text)
    if html is not None:
        _write_page(html, stored)
    return 0


def _one_kernel(words: Sequence[str]) -> str:
    return options.one_kernel(words, "kdelta diff compares the profiles of two")


def asked_work(program: Program | None, workload: str, operations: tuple[str, ...]) -> Work:
    """What is to run: the program, or the workload if there is none; UserError for both."""
    in_place_of(program, workload)
    if program:
        return Work(program=program)
    return Work(workload or DEFAULT_WORKLOAD, operations)
