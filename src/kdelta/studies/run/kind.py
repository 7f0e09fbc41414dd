# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run` as a kind of study: its report, question and JSON."""

from kdelta.report.document import Document
from kdelta.report.kind import Kind
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.studies.run.document import RunDetail, run_document
from kdelta.studies.run.model import RunReport


def _question(first: RunReport, *_: RunReport) -> str:
    run = first.run.run
    return (
        f"What does {run.workload} execute on {kernel_name(run.kernel_spec, run.kernel_release)}?"
    )


def _printed(stored: Stored) -> Document:
    """With as many functions as were asked for."""
    asked = RunDetail(functions=stored.shown.get("functions", 20))
    return run_document(stored, stored.of(RunReport), asked)


KIND = Kind(
    report=RunReport,
    json="kdelta.run/2",
    document=lambda s: run_document(s, s.of(RunReport)),
    printed=_printed,
    question=_question,
)
