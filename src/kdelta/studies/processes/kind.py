# SPDX-License-Identifier: GPL-2.0-or-later
"""A run by process as a kind of study: its report, question, JSON and text."""

from kdelta.report.kind import Kind
from kdelta.studies.processes.document import ProcessesReport, processes_document

KIND = Kind(
    report=ProcessesReport,
    json="kdelta.processes/2",
    document=lambda s: processes_document(s, s.one(ProcessesReport)),
)
