# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile`: its arguments."""

import enum
import re
from collections.abc import Sequence, Set
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta import __version__
from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.export import ExportOptions, Wanted, checked_export
from kdelta.cli.options import CyclesOptions, LikeOptions, OfProgram, on_cpu, one_kernel, with_model
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Functions, PrintOptions
from kdelta.cli.publish import shown_lab, unkept, write_page
from kdelta.counts.model import CONTEXTS, Context
from kdelta.cpus.model import CPU
from kdelta.host.command import log_to_stderr
from kdelta.host.interrupt import run_async
from kdelta.infer.profiles.profile import OF_DATA, Part, Selection, Sort, chosen_regions
from kdelta.lab.lab import open_store
from kdelta.lab.options import LabOfOne
from kdelta.lab.reports import reported_run
from kdelta.lab.request import DEFAULT_WORKLOAD, LabRequest, Program
from kdelta.lab.work import Work
from kdelta.report.exports import EXPORTS
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.report.text import text_of
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, HelpSection, OptionKind, option
from kdelta.store.model import Run
from kdelta.store.store import LAST
from kdelta.studies.documents import document_text
from kdelta.studies.processes.document import ProcessesReport, processes_document
from kdelta.studies.processes.study import processes_of_kernel, processes_of_run
from kdelta.studies.profile.document import FunctionsAsked, profile_document
from kdelta.studies.profile.exported import ExportedRun, kernel_recording, run_recording
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.parts import usual_columns
from kdelta.studies.profile.study import ProfileRequest, kernel_profile, run_profile
from kdelta.studies.profile.views import Views

_RUN = re.compile(rf"{LAST}|[0-9a-f]{{1,12}}")


EPILOG = f"\b\nFormats of --export:\n  {'  '.join(EXPORTS)}\n\n"


class Whose(enum.StrEnum):
    """Whose work is looked at."""

    OWN = "own"
    INTERRUPTS = "interrupts"
    OTHER = "other"
    ALL = "all"


class LookOptions(msgspec.Struct, frozen=True):
    """What of a run, or of two, is looked at."""

    regions: Annotated[
        tuple[str, ...],
        option(
            "-o",
            "--operation",
            usual="all, summed up",
            help="Look only at this region; repeatable.",
        ),
    ] = ()
    contexts: Annotated[
        tuple[Whose, ...],
        option(
            "--context",
            metavar="WHOSE",
            usual="own",
            help="Look at own, interrupts, other, all work; repeatable.",
        ),
    ] = ()
    code: Annotated[
        tuple[Part, ...],
        option(
            "--code",
            metavar="WHOSE",
            usual="all",
            help="Only this code: kernel, modules, user; repeatable.",
        ),
    ] = ()
    calls: Annotated[
        bool, option("--calls", group=HelpSection.SHOWN, help="Show who called whom, from the top.")
    ] = False
    cut: Annotated[
        Fraction,
        option(
            "--cut",
            metavar="PCT",
            kind=OptionKind.PERCENT,
            least=0,
            most=100,
            group=HelpSection.SHOWN,
            help="With --calls: leave out what is less.",
        ),
    ] = Fraction(1, 100)
    source: Annotated[
        bool,
        option(
            "--source",
            group=HelpSection.SHOWN,
            help="Show source lines, where there is debug info.",
        ),
    ] = False
    annotate: Annotated[
        tuple[str, ...],
        option(
            "--annotate",
            metavar="FUNCTION",
            group=HelpSection.SHOWN,
            help="Show its instructions; repeatable.",
        ),
    ] = ()
    lab: LabOfOne = LabRequest()

    def views(self, callers: tuple[str, ...] = ()) -> Views:
        """Return what is shown besides the functions."""
        return Views(self.calls, callers, self.source, self.annotate, float(self.cut))


class ProfileOptions(msgspec.Struct, frozen=True):
    """What is shown of each function, and in which order."""

    workload: Annotated[str, option("-w", "--workload", help="Run this workload under KERNEL.")] = (
        ""
    )
    functions: Functions = 20
    sort: Annotated[
        Sort,
        option(
            "--sort",
            metavar="FIGURE",
            group=HelpSection.SHOWN,
            values="|".join(Sort),
            help="Rank functions by this figure.",
        ),
    ] = Sort.INSNS
    columns: Annotated[
        tuple[Sort, ...],
        option(
            "--column",
            metavar="FIGURE",
            group=HelpSection.SHOWN,
            values="|".join(Sort),
            usual="what fits",
            help="Show this figure; repeatable.",
        ),
    ] = ()
    callers: Annotated[
        tuple[str, ...],
        option(
            "--callers",
            metavar="FUNCTION",
            group=HelpSection.SHOWN,
            help="Show who called it; repeatable.",
        ),
    ] = ()
    processes: Annotated[
        bool,
        option(
            "--processes", group=HelpSection.SHOWN, help="Show user and kernel work by process."
        ),
    ] = False
    data: Annotated[
        bool, option("--data", help="With --cycles: count data misses, too; takes 5 times longer.")
    ] = False


OF_CPU = frozenset({Sort.MISSES, Sort.CYCLES})
"""Figures that are those of a CPU."""
_LAST = [LAST]


def profile(
    *,
    looked: LookOptions,
    columns: ProfileOptions,
    like: LikeOptions,
    cycles: CyclesOptions,
    program: OfProgram,
    exported: ExportOptions,
    printed: PrintOptions,
    words: Annotated[
        list[str],
        Argument(
            metavar="[RUN | KERNEL [+CHANGE...] [-- COMMAND]]",
            help="A run's id, or its beginning, or last; or a kernel, which is run if need be.",
            kernels=True,
            values="RUN|KERNEL",
        ),
    ] = _LAST,
) -> int:
    """Show where a run's instructions went, function by function.

    The regions of the run are summed up; the lines add up to their total. What a run has not
    recorded (calls, lines, instructions, misses) is had by making the same run again.
    """
    wanted = _wanted(looked, columns, exported, printed)
    whose = looked.contexts or ((Whose.ALL,) if exported.format else ())
    given = list(words or [LAST])
    of_run = is_run(given, columns.workload) and program is None
    request = _request(looked, columns, whose, has_page=printed.html is not None)
    request = _on(request, columns, like, cycles, of_run=of_run)
    asked = asked_work(program, columns.workload, request.regions)
    if columns.processes:
        return _by_process(given, None if of_run else asked, request, printed)
    report: ProfileReport | ExportedRun | Run | None
    if of_run:
        report = _of_run(given, request, recorded=wanted is not None)
    else:
        report = _of_kernel(_one_kernel(given), asked, request, recorded=wanted is not None)
    if wanted and isinstance(report, ExportedRun):
        wanted.write(report, request.selection, source=looked.source)
        return 0
    if not isinstance(report, ProfileReport):
        return run_failed(report if isinstance(report, Run) else None)
    stored = _as_stored("profile", "Where do the instructions go", report, columns.functions)
    chosen = columns.columns or usual_columns(report, columns.sort)
    table = FunctionsAsked(columns.functions, columns.sort, tuple(chosen))
    text = text_of(profile_document(stored, report, table))
    if printed.html is not None:
        _write_page(printed.html, stored)
    emit(document_text(report, __version__) if printed.json else text)
    return 0


def _on(
    request: ProfileRequest,
    columns: ProfileOptions,
    like: LikeOptions,
    cycles: CyclesOptions,
    *,
    of_run: bool,
) -> ProfileRequest:
    """Return the request with its machine, and the CPU whose model cycles it has, if any. UserError
    for figures that need one.
    """
    shown = {columns.sort, *columns.columns}
    # A run has the paths of its own machine, so of one --cpu can only ask for model cycles.
    priced = of_run or columns.data or not OF_CPU.isdisjoint(shown)
    lab, cpu = with_model(request.lab, like, cycles, priced=priced)
    _check_cpu(cpu, shown, data=columns.data)
    lab = request.lab if of_run else on_cpu(lab, cpu)
    return msgspec.structs.replace(request, lab=lab, cpu=cpu)


def _request(
    looked: LookOptions, columns: ProfileOptions, whose: Sequence[Whose], *, has_page: bool
) -> ProfileRequest:
    """Return what is asked for, besides the CPU."""
    shown = {columns.sort, *columns.columns}
    return ProfileRequest(
        regions=looked.regions,
        selection=selection_of(whose, looked.code),
        views=looked.views(columns.callers),
        calls=has_page or not shown.isdisjoint({Sort.INCLUSIVE, Sort.CALLS}),
        data=columns.data,
        lab=looked.lab,
    )


def _wanted(
    looked: LookOptions, columns: ProfileOptions, exported: ExportOptions, printed: PrintOptions
) -> Wanted | None:
    """Return what is made in place of a report, if anything; UserError for two things at once."""
    others = {
        "--json": printed.json,
        "--html": printed.html is not None,
        "--processes": columns.processes,
        "--calls": looked.calls,
        "--callers": bool(columns.callers),
        "--annotate": bool(looked.annotate),
    }
    file = next((one for one in looked.regions if exported.format and {".", "/"} & {*one}), None)
    if file is not None and not exported.output:
        raise UserError(
            f"-o {file} is an operation, not a file",
            f"write --output {file}",
            ("-o", "--output"),
        )
    return checked_export(exported, others)


def _check_cpu(model: CPU | None, shown: Set[Sort], *, data: bool) -> None:
    """UserError if figures that are shown need a CPU and none is named, or need accesses to data to
    be recorded.
    """
    if model is None and not shown.isdisjoint(OF_CPU):
        raise UserError(
            "misses and model cycles are those of a CPU, and none is named",
            "name one with --cycles: kdelta cpus lists them",
        )
    if not data and not shown.isdisjoint(OF_DATA):
        raise UserError(
            f"{min(one.value for one in shown & set(OF_DATA))} is what accesses to data "
            "miss, and these are not recorded",
            "add --data, with --cycles",
        )
    if data and model is None:
        raise UserError(
            "accesses to data are recorded for the caches of a CPU, and none is named",
            "name one with --cycles, or leave out --data",
        )


def _as_stored(
    kind: str, asks: str, report: ProfileReport | ProcessesReport, functions: int = 0
) -> Stored:
    run = report.run.run
    question = f"{asks} of {run.workload} on {kernel_name(run.kernel_spec, run.kernel_release)}?"
    return unkept(kind, question, [report], run.started, functions)


def _write_page(path: Path, stored: Stored) -> None:
    with open_store() as store:
        write_page(path, stored, store)


def selection_of(contexts: Sequence[Whose], parts: Sequence[Part]) -> Selection:
    """What is looked at, from the options of these names."""
    asked = {one.value for one in contexts or (Whose.OWN,)}
    chosen: tuple[Context, ...] = tuple(c for c in CONTEXTS if Whose.ALL in asked or c in asked)
    return Selection(chosen, tuple(part for part in Part if not parts or part in parts))


def is_run(words: Sequence[str], workload: str) -> bool:
    """Whether these words name runs, and no kernels: ./abc is a folder, abc a run."""
    return not workload and _RUN.fullmatch(words[0]) is not None


def run_failed(run: Run | None) -> int:
    """Log which run failed, if one did."""
    if run is not None:
        reason = f": {run.detail}" if run.detail else ""
        log_to_stderr(f"kdelta: run {run.id} ended with {run.word}{reason}")
        log_to_stderr(f"hint: kdelta show {run.id} has all that is known of it")
    return RUNS_FAILED


def _of_run(
    words: Sequence[str], request: ProfileRequest, *, recorded: bool
) -> ProfileReport | ExportedRun:
    if len(words) != 1:
        raise UserError(f"{len(words)} runs: {' '.join(words)}", "kdelta diff compares two")
    with open_store() as store:
        run = store.run(words[0])
        with shown_lab(store, asks=False) as lab:
            if recorded:
                return run_async(run_recording(run, request, lab))
            return run_async(run_profile(run, request, lab))


def _of_kernel(
    spec: str, asked: Work, request: ProfileRequest, *, recorded: bool
) -> ProfileReport | ExportedRun | Run | None:
    with open_store() as store, shown_lab(store) as lab:
        if recorded:
            return run_async(kernel_recording(spec, asked, request, lab))
        return run_async(kernel_profile(spec, asked, request, lab))


def _by_process(
    words: Sequence[str],
    asked: Work | None,
    request: ProfileRequest,
    printed: PrintOptions,
) -> int:
    with open_store() as store:
        run: Run | None = None
        with shown_lab(store, asks=asked is not None) as lab:
            as_asked = lab.with_request(request.lab)
            if asked is None:
                run = store.run(words[0])
                found = run_async(processes_of_run(run, as_asked))
            else:
                spec = _one_kernel(words)
                run, found = run_async(processes_of_kernel(spec, asked, as_asked))
        if run is None or not found:
            return run_failed(run)
        wanted = chosen_regions({one.region: one for one in found}, request.regions)
        report = ProcessesReport(reported_run(run, store, stored=True), tuple(wanted.values()))
    stored = _as_stored("processes", "Which processes execute the instructions", report)
    text = text_of(processes_document(stored, report))
    emit(document_text(report, __version__) if printed.json else text)
    if printed.html is not None:
        _write_page(printed.html, stored)
    return 0


def _one_kernel(words: Sequence[str]) -> str:
    return one_kernel(words, "kdelta diff compares the profiles of two")


def asked_work(program: Program | None, workload: str, operations: tuple[str, ...]) -> Work:
    """Return what is to run: the program, or the workload if there is none."""
    if program:
        return Work(operations=operations, program=program)
    return Work(workload or DEFAULT_WORKLOAD, operations)
