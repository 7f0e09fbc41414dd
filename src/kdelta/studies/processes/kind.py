# SPDX-License-Identifier: GPL-2.0-or-later
"""A run by process as a kind of study: its report, question, JSON and text."""

from kdelta.report.kind import Kind
from kdelta.studies.processes.document import ProcessesReport, document

KIND = Kind(
    report=ProcessesReport,
    json="kdelta.processes/2",
    document=lambda s: document(s, s.one(ProcessesReport)),
)
