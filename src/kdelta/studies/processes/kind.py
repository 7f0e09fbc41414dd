# SPDX-License-Identifier: GPL-2.0-or-later
"""A run by process as a kind of study: its report, question, JSON and text."""

from kdelta.report.kind import Kind
from kdelta.studies.processes.document import document
from kdelta.studies.processes.model import ProcessesReport
from kdelta.studies.profile import shapes as profile_shapes

KIND = Kind(
    report=ProcessesReport,
    json="kdelta.processes/1",
    document=lambda s: document(s, s.one(ProcessesReport)),
    shapes=profile_shapes.SHAPES,
)
