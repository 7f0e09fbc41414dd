# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta clock check --counts` as a kind of study: its report, question and JSON."""

from kdelta.report.kind import Kind
from kdelta.studies.counters.document import counters_document
from kdelta.studies.counters.model import CountersReport


def _question(one: CountersReport) -> str:
    return (
        f"Does a {one.machine['cpu_model'] or 'machine'} retire what kdelta counts "
        f"in {one.workload} under {one.kernel.release}?"
    )


KIND = Kind(
    report=CountersReport,
    json="kdelta.counters/1",
    document=lambda s: counters_document(s, s.one(CountersReport)),
    question=_question,
)
