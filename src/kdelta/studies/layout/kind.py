# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout` as a kind of study: its report, question and JSON."""

import msgspec

from kdelta.report.document import Document
from kdelta.report.kind import Kind
from kdelta.report.shortened import shortened
from kdelta.report.stored import Stored
from kdelta.studies.layout.document import layout_document
from kdelta.studies.layout.model import LayoutReport


def _question(one: LayoutReport) -> str:
    return (
        f"How much does {one.workload} depend on where the functions of {one.kernel.spec} are, "
        f"on {one.cpu.name}?"
    )


def _printed(stored: Stored) -> Document:
    """With as many collisions, of as many regions, as were asked for."""
    report = stored.one(LayoutReport)
    most = stored.shown.get("collisions", 10)
    change = msgspec.structs.replace
    regions = tuple(change(one, collisions=one.collisions[:most]) for one in report.regions)
    found = layout_document(stored, change(report, regions=regions))
    return shortened(found, "collisions", "folds", stored.shown.get("explain", 5))


KIND = Kind(
    report=LayoutReport,
    json="kdelta.layout/2",
    document=lambda s: layout_document(s, s.one(LayoutReport)),
    printed=_printed,
    question=_question,
)
