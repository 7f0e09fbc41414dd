# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --export`: where the files of other tools go."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.cli.output import check_folder, emit, save
from kdelta.cli.progress import shown_progress
from kdelta.host.command import log_to_stderr
from kdelta.host.interrupt import run_async
from kdelta.host.invoked import command_line
from kdelta.infer.profiles.profile import Selection
from kdelta.report.exports import EXPORTS, Export, export_of
from kdelta.spec.errors import UserError
from kdelta.spec.option import HelpSection, option
from kdelta.studies.profile.exported import ExportedRun, exportable


class ExportOptions(msgspec.Struct, frozen=True):
    """What is made for other tools in place of a report."""

    format: Annotated[
        str,
        option(
            "--export",
            metavar="FORMAT",
            group=HelpSection.SHOWN,
            values="|".join(EXPORTS),
            help="Write a file for another tool; the formats are below.",
        ),
    ] = ""
    output: Annotated[
        str,
        option(
            "--output",
            group=HelpSection.SHOWN,
            usual="stdout",
            help="With --export: write to this file, or into this folder.",
        ),
    ] = ""
    figure: Annotated[
        str,
        option(
            "--figure",
            metavar="COLUMN",
            group=HelpSection.SHOWN,
            usual="insns",
            help="With --export: the figure of formats that hold one.",
        ),
    ] = ""


class Wanted(msgspec.Struct, frozen=True):
    """The format that is made of a recorded run. output, figure: as the options of these names."""

    export: Export
    output: str = ""
    figure: str = ""

    def write(self, recording: ExportedRun, selection: Selection, *, source: bool) -> None:
        """Write it. source: with source lines."""
        run = recording.one.run
        with shown_progress() as progress:
            profiles, naming = run_async(
                exportable(
                    recording,
                    selection,
                    progress,
                    column=self.figure or "insns",
                    source=source,
                    command=command_line(["kdelta", *sys.argv[1:]]),
                )
            )
            data = self.export.made(profiles, naming)
        if source and not naming.lines:
            log_to_stderr("no source lines: there is no debug info of anything that was executed")
        write_export(self.export, data, self.output, f"{run.workload}-{run.id}")


def checked_export(asked: ExportOptions, others: Mapping[str, bool]) -> Wanted | None:
    """Return what is asked for in place of a report, if anything. UserError, before anything is
    run, for what cannot be written. others: options that ask for something else, and whether given.
    """
    name, output, figure = asked.format, asked.output, asked.figure
    given = [text for text, is_on in others.items() if is_on]
    if name and given:
        shown = " and ".join([f"--export {name}", *given])
        raise UserError(f"{shown} at once", "leave one of them out")
    if not name:
        if output or figure:
            text = f"--output {output}" if output else f"--figure {figure}"
            raise UserError(f"{text} without --export", f"add --export {' or '.join(EXPORTS)}")
        return None
    export = export_of(name)
    if output:
        _check_writable(Path(output), is_folder=output.endswith("/"))
    elif export.binary and _at_terminal():
        raise UserError(
            f"{name} is no text, and stdout is a terminal",
            f"--output NAME{export.suffix} writes a file",
        )
    return Wanted(export, output, figure)


def _at_terminal() -> bool:
    return sys.stdout.isatty()


def _check_writable(path: Path, *, is_folder: bool) -> None:
    if is_folder or path.is_dir():
        check_folder(f"--output {path}", path, "another folder")
    elif path.is_file() or not path.exists():  # a pipe or a device is written to as it is
        check_folder(f"--output {path}", path.parent, "another folder")


def write_export(export: Export, data: bytes, output: str, stem: str) -> None:
    """Writes it to stdout, or to a file that is whole or not there; in a folder its name is that of
    the run. LabError when that fails.
    """
    if not output:
        emit(data)
        return
    path = Path(output)
    if output.endswith("/") or path.is_dir():
        path = path / (re.sub(r"[^\w.+-]+", "-", stem) + export.suffix)
    save(path, data)
    log_to_stderr(f"{export.name}: {path}, {len(data)} bytes")
