# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run --against` as a kind of study: its report, question and JSON."""

from kdelta.report.kind import Kind
from kdelta.studies.against.document import against_document
from kdelta.studies.against.model import AgainstReport


def _question(one: AgainstReport) -> str:
    old, new = one.names
    return f"Is {new} slower than {old} on {one.new.side.spec}?"


KIND = Kind(
    report=AgainstReport,
    json="kdelta.against/2",
    document=lambda s: against_document(s, s.one(AgainstReport)),
    printed=lambda s: against_document(s, s.one(AgainstReport), s.shown.get("functions", 0)),
    question=_question,
)
