# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate` as a kind of study: its report, question and JSON."""

from kdelta.report import words
from kdelta.report.kind import Kind
from kdelta.report.shortened import explained
from kdelta.studies.ablate.document import ablate_document
from kdelta.studies.ablate.model import (
    AblationReport,
)


def _question(one: AblationReport) -> str:
    first, last = one.names
    options = f"{one.options} options" if one.options else "options"
    return (
        f"Which of the {options} that differ between {first} and {last} make {one.tree} faster "
        f"or slower under {words.listed(one.workloads)}?"
    )


KIND = Kind(
    report=AblationReport,
    json="kdelta.ablate/3",
    document=ablate_document,
    printed=explained(ablate_document, "regions", "folds", 8),
    question=_question,
)
