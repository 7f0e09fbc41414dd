# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series` as a kind of study: its report, question and JSON."""

from kdelta.infer.search.minimal import MinimalAnswer
from kdelta.infer.search.search_model import InteractionAnswer
from kdelta.infer.search.series_model import PatchAnswer, PatchGroup, ViewAnswer
from kdelta.report import words
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.report.shapes import BY_REGION, by_region
from kdelta.report.shortened import explained
from kdelta.studies.search.means import after, before, mean, means, seen
from kdelta.studies.series.document import document
from kdelta.studies.series.held import held
from kdelta.studies.series.model import KeptBranch, Minimal, SeriesReport, SeriesRow


def _question(one: SeriesReport) -> str:
    what = f"each of {len(one.rows)} patches" if len(one.rows) != 1 else one.rows[0].name
    return f"What does {what} do on {one.tree} under {words.listed(one.workloads)}?"


_SHAPES: dict[type, Shape] = {
    InteractionAnswer: Shape(adds={"patches": "units", "effects": by_region}),
    KeptBranch: Shape(adds={"patches": "kept"}),
    Minimal: Shape(adds={"effects": by_region}, flat=("answer",)),
    MinimalAnswer: Shape(adds={"patches": "members"}),
    PatchAnswer: Shape(
        adds={"effects": by_region, "mean": mean, "seen": seen},
        omits=("text",),
        later=("mean", "seen"),
    ),
    PatchGroup: BY_REGION,
    SeriesReport: Shape(
        adds={"before": before, "after": after, "patches": "rows", "held": held, "means": means},
        omits=("ends", "mean"),
        later=("means",),
    ),
    SeriesRow: Shape(flat=("answer",)),
    ViewAnswer: BY_REGION,
}


KIND = Kind(
    report=SeriesReport,
    json="kdelta.series/1",
    document=document,
    printed=explained(document, "regions", "folds", 8),
    question=_question,
    shapes=_SHAPES,
)
