# SPDX-License-Identifier: GPL-2.0-or-later
"""A run by process as JSON: document kdelta.processes/1."""

from typing import Literal

import msgspec

from kdelta.infer.processes import Processes, ProgramCost
from kdelta.report.json import JsonRun, document_text, json_run
from kdelta.report.processes_model import ProcessesReport


class JsonProgram(msgspec.Struct, frozen=True):
    """Instructions of all processes while they execute one program: their own in user code, and the
    kernel's on their behalf. ended: how many of them ended as that program.
    """

    program: str
    ended: int
    user: int
    kernel: int


class JsonProcesses(msgspec.Struct, frozen=True):
    """A region by program, those with the most instructions first. programs: of measured tasks;
    other: of tasks that are not. interrupts: instructions on anybody's time. insns: all of it, and
    residency: of that the kernel's. idle_ticks: ns in which nothing was executed, null if unknown.
    """

    name: str
    iterations: int
    programs: list[JsonProgram]
    other: list[JsonProgram]
    interrupts: int
    insns: int
    residency: int
    idle_ticks: int | None


class JsonProcessesReport(msgspec.Struct, frozen=True):
    """The whole of `kdelta profile --processes`."""

    schema: Literal["kdelta.processes/1"]
    kdelta: str
    run: JsonRun
    regions: list[JsonProcesses]


def processes_json(report: ProcessesReport, version: str) -> str:
    """The whole report; `version` is kdelta's."""
    return document_text(
        JsonProcessesReport(
            schema="kdelta.processes/1",
            kdelta=version,
            run=json_run(report.run),
            regions=[_region(region) for region in report.regions],
        )
    )


def _region(region: Processes) -> JsonProcesses:
    return JsonProcesses(
        name=region.region,
        iterations=region.iterations,
        programs=[_program(one) for one in region.programs],
        other=[_program(one) for one in region.other],
        interrupts=region.interrupts,
        insns=region.insns,
        residency=region.residency,
        idle_ticks=region.idle_ticks,
    )


def _program(one: ProgramCost) -> JsonProgram:
    return JsonProgram(one.program, one.ended, one.user, one.kernel)
