# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta conflicts` as a kind of study: its report, question and JSON."""

from kdelta.report.kind import Kind
from kdelta.report.names import kernel_name, side_names
from kdelta.studies.conflicts.document import conflicts_document, conflicts_screen
from kdelta.studies.conflicts.model import ConflictsReport


def _question(one: ConflictsReport) -> str:
    if len(one.sides) == 1:
        name = kernel_name(one.sides[0].spec, one.sides[0].release)
        return f"What do {one.cpus} CPUs contend for in {one.workload} on {name}?"
    base, other = side_names(one.sides).names
    return f"What do {one.cpus} CPUs contend for in {one.workload}: {other} against {base}?"


KIND = Kind(
    report=ConflictsReport,
    json="kdelta.conflicts/1",
    document=conflicts_document,
    printed=conflicts_screen,
    question=_question,
)
