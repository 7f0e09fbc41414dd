# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms that what is stored can be shown in: each a pure function of it."""

import difflib
from collections.abc import Callable, Mapping

import msgspec

from kdelta.report.ablation import ablation_text
from kdelta.report.ablation_json import ablation_json
from kdelta.report.ablation_model import AblationReport
from kdelta.report.bisect import bisect_text
from kdelta.report.bisect_json import bisect_json
from kdelta.report.bisect_model import BisectReport
from kdelta.report.crossing_json import crossing_json
from kdelta.report.crossing_model import CrossingReport
from kdelta.report.crossing_text import crossing_text
from kdelta.report.diff_json import diff_json
from kdelta.report.diff_model import DiffReport
from kdelta.report.diff_text import diff_text
from kdelta.report.gate import gate_line
from kdelta.report.gate_json import gate_json
from kdelta.report.gate_model import GateReport
from kdelta.report.history_json import history_json
from kdelta.report.history_model import HistoryReport
from kdelta.report.history_text import history_text
from kdelta.report.json import compare_json, run_json
from kdelta.report.junit import junit
from kdelta.report.ktap import ktap
from kdelta.report.layout_json import layout_json
from kdelta.report.layout_model import LayoutReport
from kdelta.report.layout_text import layout_text
from kdelta.report.mail import mail
from kdelta.report.markdown import markdown
from kdelta.report.model import CompareReport, RunReport
from kdelta.report.place_json import place_json
from kdelta.report.place_model import PlaceReport
from kdelta.report.place_text import place_text
from kdelta.report.run_text import run_text
from kdelta.report.series import series_text
from kdelta.report.series_json import series_json
from kdelta.report.series_model import SeriesReport
from kdelta.report.stored import Stored
from kdelta.report.text import compares_text
from kdelta.spec.errors import UserError

Render = Callable[[Stored], str]


class Form(msgspec.Struct, frozen=True):
    """A form: what it is for, in a few words, what makes it, and how its files' names end."""

    purpose: str
    render: Render
    endings: tuple[str, ...]


def text(stored: Stored) -> str:
    """As the study itself printed it."""
    return _TEXTS[stored.kind](stored)


def json(stored: Stored) -> str:
    """As the study itself prints it with --json."""
    return _JSONS[stored.kind](stored)


def html(stored: Stored) -> str:
    """One page that opens offline."""
    # Imported here: what draws its charts takes longer than all else at start.
    from kdelta.report.html.page import page  # noqa: PLC0415

    return page(stored)


def find_form(name: str) -> Form:
    """The form of that name; UserError, with the nearest, if there is none."""
    if name in FORMS:
        return FORMS[name]
    near = difflib.get_close_matches(name.lower(), FORMS, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"no such format: {name}", f"{meant}there is {', '.join(FORMS)}")


def form_of_file(name: str) -> str:
    """The name of the form that a file of that name is written in: text if nothing tells it."""
    ending = next(
        (one for form in FORMS.values() for one in form.endings if name.endswith(one)), ""
    )
    return next((key for key, form in FORMS.items() if ending in form.endings), "text")


_TEXTS: Mapping[str, Render] = {
    "ablate": lambda s: ablation_text(s.one(AblationReport), s.shown.get("explain", 8)),
    "bisect": lambda s: bisect_text(s.one(BisectReport), s.shown.get("explain", 8)),
    "compare": lambda s: compares_text(
        s.of(CompareReport), s.shown.get("explain", 5), s.shown.get("functions", 10)
    ),
    "crossing": lambda s: crossing_text(s.one(CrossingReport), s.shown.get("explain", 60)),
    "diff": lambda s: diff_text(s.one(DiffReport), s.shown.get("functions", 40)),
    "gate": lambda s: gate_line(s.one(GateReport).decision, s.one(GateReport).judged),
    "history": lambda s: history_text(s.one(HistoryReport), s.shown.get("explain", 8)),
    "layout": lambda s: layout_text(
        s.one(LayoutReport), s.shown.get("explain", 5), s.shown.get("collisions", 10)
    ),
    "place": lambda s: place_text(s.one(PlaceReport)),
    "run": lambda s: run_text(s.one(RunReport), functions=s.shown.get("functions", 20)),
    "series": lambda s: series_text(s.one(SeriesReport), s.shown.get("explain", 8)),
}

_JSONS: Mapping[str, Render] = {
    "ablate": lambda s: ablation_json(s.one(AblationReport), s.version),
    "bisect": lambda s: bisect_json(s.one(BisectReport), s.version),
    "compare": lambda s: compare_json(s.of(CompareReport), s.version),
    "crossing": lambda s: crossing_json(s.one(CrossingReport), s.version),
    "diff": lambda s: diff_json(s.one(DiffReport), s.version),
    "gate": lambda s: gate_json(s.one(GateReport), s.version),
    "history": lambda s: history_json(s.one(HistoryReport), s.version),
    "layout": lambda s: layout_json(s.one(LayoutReport), s.version),
    "place": lambda s: place_json(s.one(PlaceReport), s.version),
    "run": lambda s: run_json(s.one(RunReport), s.version),
    "series": lambda s: series_json(s.one(SeriesReport), s.version),
}

FORMS: Mapping[str, Form] = {
    "text": Form("for a terminal, as the study printed it", text, (".txt",)),
    "mail": Form("to be sent, with its headers", mail, (".eml", ".mbox", ".mail")),
    "html": Form("one page that opens offline in any browser", html, (".html", ".htm")),
    "json": Form("for programs, with a schema", json, (".json",)),
    "ktap": Form("for the kernel's test tools", ktap, (".ktap", ".tap")),
    "junit": Form("for CI servers", junit, (".xml",)),
    "markdown": Form("to be pasted as a comment, details folded", markdown, (".md", ".markdown")),
}
"""By name; the names are those of --format."""
