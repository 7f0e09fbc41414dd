# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta calibrate`: its arguments."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.output import echo_commands, emit
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import unkept
from kdelta.host.files import write_atomic
from kdelta.host.interrupt import run_async
from kdelta.host.machine import cores
from kdelta.report.text import text_of
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from kdelta.studies.calibrate.check import RELINKS as CHECK_RELINKS
from kdelta.studies.calibrate.check import held_out, run_check
from kdelta.studies.calibrate.document import calibration_document, check_document
from kdelta.studies.calibrate.model import CalibrationReport, CheckReport
from kdelta.studies.calibrate.study import (
    RELINKS,
    CalibrateRequest,
    chosen_programs,
    described,
    make_bundle,
    run_calibrate,
)
from kdelta.studies.calibrate.traced import DEFAULT_KERNEL
from kdelta.studies.documents import document_text
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import LabRequest

EPILOG = """\b
On another machine, without Python:
  kdelta calibrate --bundle DIR --arch arm64   makes DIR; copy it there
  sh DIR/run.sh                                writes DIR/RESULTS; copy it back
  kdelta calibrate --from DIR/RESULTS

\b
A held-out program is NAME=OBJECT,OBJECT,... or a TOML file; docs/calibration
says what it has to be.
"""


def calibrate(
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the CPU file here, not for --cpu host."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer programs and links: wider intervals, sooner.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            metavar="N",
            min=5,
            max=200,
            help="Links of each program.  [default: 30; of --check: 16]",
        ),
    ] = None,
    cpu: Annotated[
        str,
        typer.Option(
            "--cpu",
            metavar="CPU",
            help="Whose geometry to replay with.  [default: the nearest to this machine's; of "
            "--check: host]",
        ),
    ] = "",
    kernel: Annotated[
        str, typer.Option("--kernel", metavar="KERNEL", help="Under which programs are traced.")
    ] = DEFAULT_KERNEL,
    busy_ok: Annotated[
        bool, typer.Option("--busy-ok", help="Go on though the machine is busy.")
    ] = False,
    ssh: Annotated[
        str, typer.Option("--ssh", metavar="HOST", help="Calibrate that machine, over SSH.")
    ] = "",
    arch: Annotated[
        str, typer.Option("--arch", metavar="ARCH", help="Of --bundle and --ssh.")
    ] = "x86_64",
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="DIR", help="Only make what runs there, without Python."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--from", metavar="RESULTS", help="Take what a bundle's run.sh wrote."),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            metavar="PROGRAM",
            help="Fit nothing: hold this program against the prices; may be repeated.",
        ),
    ] = None,
    again: options.Again = False,
    no_snapshot: options.NoSnapshot = False,
    jobs: options.Jobs = None,
    timeout: options.Timeout = options.DEFAULT_TIMEOUT_SECONDS,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> int:
    """Measure what misses cost on a machine, by its clock.

    Generates programs, links each many times in other orders, times all links, traces each program
    once, and fits prices of what the links differ in. Ends in a CPU file, which --cpu host finds.
    """
    echo_commands(wanted=verbose)
    _refuse_both({"--ssh": ssh, "--from": results, "--bundle": bundle, "--check": check})
    request = CalibrateRequest(
        kernel=kernel,
        cpu=named_cpu(cpu) if cpu else None,
        arch=arch,
        relinks=seeds or (CHECK_RELINKS if check else RELINKS),
        quick=quick,
        busy_ok=busy_ok,
        ssh=ssh,
        results=results,
        write=output,
        lab=LabRequest(
            machine=MachineOptions(timeout_seconds=timeout),
            perturbations=1,
            jobs=jobs or cores(),
            again=again,
            snapshots=not no_snapshot,
        ),
    )
    if dry_run:
        emit(f"{_plan(request, bundle, check or [])}\n")
        return 0
    if bundle is not None:
        with shown_progress() as progress:
            made = make_bundle(request, bundle, progress)
        emit(f"{bundle}: {made}; run.sh there writes {bundle / 'RESULTS'}\n")
        return 0
    if check:
        return _check(request, check, json=json)
    with open_store() as store, shown_progress() as progress:
        report = run_async(run_calibrate(request, store, progress))
    emit(document_text(report, __version__) if json else _text(report))
    return 0


def _check(request: CalibrateRequest, programs: list[str], *, json: bool) -> int:
    wanted = [held_out(text) for text in programs]
    with open_store() as store, shown_progress() as progress:
        report = run_async(run_check(request, wanted, store, progress))
    text = document_text(report, __version__) if json else _text(report)
    if request.write is not None:
        write_atomic(request.write, text.encode())
    emit(text)
    return 0


def _text(report: CalibrationReport | CheckReport) -> str:
    started = datetime.datetime.fromisoformat(report.when).timestamp()
    if isinstance(report, CheckReport):
        question = f"How well do the prices of {report.cpu} predict other programs?"
        return text_of(check_document(unkept("calibrate", question, [report], started), report))
    question = f"What do misses cost on {report.machine.cpu}?"
    return text_of(calibration_document(unkept("calibrate", question, [report], started), report))


def _refuse_both(given: Mapping[str, object]) -> None:
    said = [option for option, value in given.items() if value]
    if len(said) > 1:
        raise UserError(f"{' and '.join(said)} at once", "each is a calibration of its own")


def _plan(request: CalibrateRequest, bundle: Path | None, check: list[str]) -> str:
    if check:
        return f"links, times and traces {', '.join(held_out(text).name for text in check)}"
    if request.results is not None:
        return f"reads {request.results}, and traces the links next to it under {request.kernel}"
    programs = described(chosen_programs(request))
    if bundle is not None:
        return f"{programs}, put into the bundle {bundle} for {request.arch}"
    where = f"on {request.ssh}" if request.ssh else "on this host"
    return f"{programs}, timed {where} and traced under {request.kernel}"
