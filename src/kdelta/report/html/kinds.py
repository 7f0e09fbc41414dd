# SPDX-License-Identifier: GPL-2.0-or-later
"""Which page a study of which kind has."""

from collections.abc import Callable, Mapping, Sequence

from kdelta.report.ablation_model import AblationReport
from kdelta.report.bisect_model import BisectReport
from kdelta.report.crossing_model import CrossingReport
from kdelta.report.diff_model import DiffReport
from kdelta.report.gate_model import GateReport
from kdelta.report.history_model import HistoryReport
from kdelta.report.html import (
    ablate,
    bisect,
    compare,
    crossing,
    diff,
    gate,
    history,
    layout,
    place,
    processes,
    profile,
    run,
    series,
)
from kdelta.report.html.flame import Flame
from kdelta.report.html.flame_section import with_flames
from kdelta.report.html.model import Document
from kdelta.report.layout_model import LayoutReport
from kdelta.report.model import CompareReport, RunReport
from kdelta.report.place_model import PlaceReport
from kdelta.report.processes_model import ProcessesReport
from kdelta.report.profile_model import ProfileReport
from kdelta.report.series_model import SeriesReport
from kdelta.report.stored import Stored


def document(stored: Stored, flames: Sequence[Flame] = ()) -> Document:
    """The page of a stored study; KeyError for a kind that has none."""
    return with_flames(_DOCUMENTS[stored.kind](stored), flames)


_DOCUMENTS: Mapping[str, Callable[[Stored], Document]] = {
    "ablate": lambda s: ablate.document(s, s.one(AblationReport)),
    "bisect": lambda s: bisect.document(s, s.one(BisectReport)),
    "compare": lambda s: compare.document(s, s.of(CompareReport)),
    "crossing": lambda s: crossing.document(s, s.one(CrossingReport)),
    "diff": lambda s: diff.document(s, s.one(DiffReport)),
    "gate": lambda s: gate.document(s, s.one(GateReport)),
    "history": lambda s: history.document(s, s.one(HistoryReport)),
    "layout": lambda s: layout.document(s, s.one(LayoutReport)),
    "place": lambda s: place.document(s, s.one(PlaceReport)),
    "processes": lambda s: processes.document(s, s.one(ProcessesReport)),
    "profile": lambda s: profile.document(s, s.one(ProfileReport)),
    "run": lambda s: run.document(s, s.of(RunReport)),
    "series": lambda s: series.document(s, s.one(SeriesReport)),
}
"""By the study's kind; and profiles, which are no studies."""
