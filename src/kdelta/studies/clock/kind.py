# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta clock judge` and `floor` as a kind of study: its report, question and JSON."""

from kdelta.report.kind import Kind
from kdelta.studies.clock.document import clock_document
from kdelta.studies.clock.model import ClockReport


def _question(one: ClockReport) -> str:
    if one.floor:
        return f"Which differences of times can this machine show under {one.workload}?"
    return (
        f"Is {one.other.release} slower than {one.base.release} under {one.workload}, by the clock "
        f"of a {one.machine['cpu_model'] or 'machine'}?"
    )


KIND = Kind(
    report=ClockReport,
    json="kdelta.clock/1",
    document=lambda s: clock_document(s, s.one(ClockReport)),
    question=_question,
)
