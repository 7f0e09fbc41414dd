# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a run by process: who executed how much, and how much of it in the kernel."""

from collections.abc import Iterator

import msgspec

from kdelta.infer.profiles.processes import Processes
from kdelta.report import cells, words
from kdelta.report import parts as common
from kdelta.report.document import Answer, Cell, Column, Document, Prose, Section, Table
from kdelta.report.model import ReportedRun
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored


class ProcessesReport(msgspec.Struct, frozen=True):
    """Regions of one run by process."""

    run: ReportedRun
    regions: tuple[Processes, ...]


_NAMED = 3
_MEANING = (
    "A process belongs to the program that it executes, from its start or its last exec on; a "
    "shell's child is a shell until then. Ended: how many processes ended as that program. Kernel: "
    "system calls, faults and switches on their behalf; in it: that part of the line. All figures "
    "are instructions; a string operation is one."
)
_MEASURED, _OTHER, _INTERRUPTS = "measured", "other", "interrupts"

_COLUMNS = (
    Column("program", "name"),
    Column("tasks", "word", "measured ones, or others"),
    Column("ended", "number", "processes that ended as that program"),
    Column("user", "number", "instructions of its own", sums=True),
    Column("kernel", "number", "instructions of the kernel for it", sums=True),
    Column("%", "number", "of all instructions"),
    Column("in it, %", "number", "of its instructions: the kernel's"),
)


def processes_document(stored: Stored, report: ProcessesReport) -> Document:
    """Return the document. LabError if a region's lines do not add up."""
    run = report.run.run
    side = common.run_side(report.run)
    return Document(
        title=f"{run.workload} on {kernel_name(run.kernel_spec, run.kernel_release)}: by process",
        made=common.made_of(stored),
        answers=tuple(_answer(region) for region in report.regions),
        facts=(
            ("kernel", common.kernel_fact(side)),
            ("run", f"{run.id}, {run.started_text} UTC, perturbation {run.perturbation}"),
            ("workload", run.workload),
            ("regions", words.listed([region.region for region in report.regions])),
        ),
        sections=(
            *(_section(index, region) for index, region in enumerate(report.regions)),
            Section("meaning", "What is a process here", (Prose(_MEANING),)),
        ),
        environment=common.environment(stored, run.machine, (("kernel", side),)),
    )


def _answer(region: Processes) -> Answer:
    if not region.insns:
        return Answer((f"{region.region}: nothing was executed there.",), tone="unresolved")
    most = [f"{one.program} ({_part(one.insns, region.insns)})" for one in region.programs[:_NAMED]]
    text = (
        f"{region.region}: the kernel executed {region.residency} of {region.insns} instructions "
        f"({_part(region.residency, region.insns)}). Most: {words.listed(most)}."
    )
    return Answer((text,), tone="same")


def _part(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


def _section(index: int, region: Processes) -> Section:
    blocks: list[Table | Prose] = [region_table(region, f"processes-{index}")]
    if region.idle_ticks is not None:
        blocks.append(Prose(f"Nothing was executed for {region.idle_ticks} ns of guest time."))
    return Section(f"region-{index}", f"{region.region}, by process", tuple(blocks))


def region_table(region: Processes, id_: str = "processes") -> Table:
    """Return the table of one region. LabError if its lines do not add up."""
    user = region.insns - region.residency
    return Table(
        id_,
        f"Who executed what in {region.region}",
        _COLUMNS,
        tuple(_rows(region)),
        _row("total", "", None, (user, region.residency), region.insns),
        filtered=True,
    )


def _rows(region: Processes) -> Iterator[tuple[Cell, ...]]:
    for tasks, programs in ((_MEASURED, region.programs), (_OTHER, region.other)):
        for one in programs:
            yield _row(one.program, tasks, one.ended, (one.user, one.kernel), region.insns)
    yield _row(_INTERRUPTS, _INTERRUPTS, None, (0, region.interrupts), region.insns)


def _row(
    name: str, tasks: str, ended: int | None, own: tuple[int, int], whole: int
) -> tuple[Cell, ...]:
    user, kernel = own
    insns = user + kernel
    return (
        Cell(name),
        Cell(tasks, tone="same" if tasks else ""),
        cells.number(ended),
        cells.number(user),
        cells.number(kernel),
        Cell(_part(insns, whole), float(insns)),
        Cell(_part(kernel, insns), kernel / insns if insns else 0.0),
    )
