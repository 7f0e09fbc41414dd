# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands and their options."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.ablate import ablate
from kdelta.cli.bisect import bisect
from kdelta.cli.calibrate import EPILOG as CALIBRATE_EPILOG
from kdelta.cli.calibrate import calibrate
from kdelta.cli.compare import compare
from kdelta.cli.cpus import cpus
from kdelta.cli.crossing import crossing
from kdelta.cli.diff import diff
from kdelta.cli.doctor import doctor
from kdelta.cli.gate import EPILOG as GATE_EPILOG
from kdelta.cli.gate import gate, gate_code
from kdelta.cli.guard import RUNS_FAILED, guarded
from kdelta.cli.kernels import build, kernels
from kdelta.cli.layout import layout
from kdelta.cli.listing import runs_text, workloads_text
from kdelta.cli.log import log
from kdelta.cli.output import emit
from kdelta.cli.place import place
from kdelta.cli.profile import profile
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import begin_command, runs_printed, unkept_runs, write_page
from kdelta.cli.report import EPILOG as REPORT_EPILOG
from kdelta.cli.report import report
from kdelta.cli.reports import done_report, stored_report
from kdelta.cli.series import EPILOG as SERIES_EPILOG
from kdelta.cli.series import series
from kdelta.host.interrupt import run_async
from kdelta.report.model import run_list
from kdelta.spec.words import parse_kernel_words
from kdelta.store.store import LAST
from kdelta.studies.documents import DOCUMENTS, document_text, schema_text
from kdelta.studies.lab.command import run_command
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.requests import LabRequest, RunRequest
from kdelta.studies.run.document import RunDetail
from kdelta.workloads.catalog import workloads as known_workloads

app = typer.Typer(
    name="kdelta",
    help="Find which change to a Linux kernel made it faster or slower, and by exactly how much.",
    epilog="Exit codes: 0 done, 1 all runs of a kernel failed, 2 wrong usage, 3 the lab failed, "
    "130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The program `kdelta`."""
    sys.exit(ended(sys.argv[1:]))


def ended(arguments: Sequence[str]) -> int:
    """Runs the program with these arguments; returns its exit code, and raises nothing."""

    def command() -> int:
        begin_command(arguments)
        return guarded(lambda: app(args=list(arguments), prog_name="kdelta", standalone_mode=False))

    # Of kdelta's own options none takes a value.
    name = next((word for word in arguments if not word.startswith("-")), "")
    return gate_code(command) if name == "gate" else command()


def _show_version(wanted: bool) -> None:
    if wanted:
        emit(f"kdelta {__version__}\n")
        raise typer.Exit


@app.callback()
def _kdelta(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """What holds for every command."""


@options.makes_runs(perturb=1)
def run(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL [+CHANGE...]", help="Kernel spec, perhaps changed.")
    ],
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND", help="A program of this host, and its arguments."),
    ],
    *,
    file: Annotated[
        list[str] | None,
        options.file_option(
            help="Add this file to the guest, with its shared libraries; repeatable."
        ),
    ] = None,
    seconds: Annotated[
        int,
        typer.Option(
            "--seconds", metavar="N", min=1, help="The longest it may run, in the guest's own time."
        ),
    ] = options.DEFAULT_GUEST_SECONDS,
    lab: LabRequest,
    cpu: options.Cpu = "",
    functions: options.Functions = 20,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Profile a command under a kernel, exactly.

    Counts what the command executes, in the kernel and outside, by function. The whole command is
    one region, unless it marks its own with kdelta.h.
    """
    lab = options.on_cpu(lab, cpu)
    words, program = options.kernel_and_command([kernel, *command])
    request = RunRequest(
        kernel=str(parse_kernel_words(words)[0]),
        command=program,
        files=tuple(file or ()),
        seconds=seconds,
        lab=lab,
    )
    with open_store() as store:
        with shown_progress() as progress:
            found = run_async(run_command(request, store, progress))
        reports = [done_report(done, store) for done in found]
        if html is not None:
            write_page(html, unkept_runs(reports, functions), store)
    if json:
        emit("".join(document_text(one, __version__) for one in reports))
    else:
        emit(runs_printed(reports, RunDetail(functions=functions)))
    return 0 if any(done.counts for done in found) else RUNS_FAILED


def runs(
    limit: Annotated[int, options.limit_option(min=1, help="The latest so many.")] = 20,
    json: options.Json = False,
) -> None:
    """List the runs, failed ones too.

    The latest comes first.
    """
    with open_store() as store:
        found = store.runs(limit)
    emit(document_text(run_list(found), __version__) if json else runs_text(found))


def show(
    run_id: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run's id, or its beginning, or last.")
    ] = LAST,
    *,
    operation: Annotated[
        list[str] | None,
        options.operation_option(help="Name the functions of this region; may be repeated."),
    ] = None,
    functions: options.Functions = 20,
    console: Annotated[
        bool, typer.Option("--console", help="Show what the guest printed, and nothing else.")
    ] = False,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> None:
    """Show one run.

    What its regions cost, and which functions did it; or why it failed.
    """
    with open_store() as store:
        found = store.run(run_id)
        if console:
            text = store.console(found)
        elif json:
            text = document_text(stored_report(found, store), __version__)
        else:
            asked = RunDetail(tuple(operation or ()), functions)
            text = runs_printed([stored_report(found, store)], asked)
        if html is not None:
            write_page(html, unkept_runs([stored_report(found, store)], functions), store)
    emit(text)


def schema(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A document, such as kdelta.compare/2.")
    ] = "",
) -> None:
    """Print the JSON Schema of a document.

    Without NAME, list the documents.
    """
    emit(schema_text(name) if name else "".join(f"{one}\n" for one in DOCUMENTS))


def workloads() -> None:
    """List the workloads and their operations."""
    emit(workloads_text(known_workloads().values()))


_COMMANDS: Mapping[Callable[..., object], str | None] = {
    compare: options.SPECS,
    gate: GATE_EPILOG + options.SPECS,
    run: options.SPECS,
    runs: None,
    show: None,
    profile: None,
    diff: None,
    report: REPORT_EPILOG,
    log: None,
    layout: options.SPECS,
    place: options.SPECS,
    crossing: options.SPECS,
    ablate: options.SPECS,
    bisect: options.SPECS,
    series: SERIES_EPILOG + options.SPECS,
    build: options.SPECS,
    kernels: None,
    cpus: None,
    schema: None,
    calibrate: CALIBRATE_EPILOG,
    workloads: None,
    doctor: None,
}
"""The commands in the order of --help, each with what its own help ends with."""

for _command, _epilog in _COMMANDS.items():
    app.command(epilog=_epilog)(_command)
