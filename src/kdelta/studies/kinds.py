# SPDX-License-Identifier: GPL-2.0-or-later
"""All kinds of studies, by their commands' names: the table that forms and the store go by."""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.report.document import Document
from kdelta.report.flame import Flame
from kdelta.report.kind import Kind
from kdelta.report.parts import with_flames
from kdelta.report.stored import Stored, decode, encode
from kdelta.spec.errors import LabError
from kdelta.store.model import NewStudy, Study
from kdelta.store.store import Store
from kdelta.studies.ablate import kind as ablate
from kdelta.studies.against import kind as against
from kdelta.studies.bisect import kind as bisect
from kdelta.studies.clock import kind as clock
from kdelta.studies.compare import kind as compare
from kdelta.studies.conflicts import kind as conflicts
from kdelta.studies.counters import kind as counters
from kdelta.studies.crossing import kind as crossing
from kdelta.studies.diff import kind as diff
from kdelta.studies.gate import kind as gate
from kdelta.studies.layout import kind as layout
from kdelta.studies.log import kind as log
from kdelta.studies.place import kind as place
from kdelta.studies.processes import kind as processes
from kdelta.studies.profile import kind as profile
from kdelta.studies.run import kind as run
from kdelta.studies.series import kind as series

KINDS: Mapping[str, Kind] = {
    "ablate": ablate.KIND,
    "against": against.KIND,
    "bisect": bisect.KIND,
    "clock": clock.KIND,
    "compare": compare.KIND,
    "conflicts": conflicts.KIND,
    "counters": counters.KIND,
    "crossing": crossing.KIND,
    "diff": diff.KIND,
    "gate": gate.KIND,
    "layout": layout.KIND,
    "log": log.KIND,
    "place": place.KIND,
    "processes": processes.KIND,
    "profile": profile.KIND,
    "run": run.KIND,
    "series": series.KIND,
}

RENAMED: Mapping[str, str] = {"history": "log"}
"""Kinds of studies that older versions kept under another name."""

_FEW = 2
_WITHOUT_OPERATIONS = frozenset({"diff", "profile", "processes"})
"""Kinds of studies whose cases are functions or processes."""

STORED = {name: kind.report for name, kind in KINDS.items() if kind.question}
"""The kinds that the store has, with the types of their reports."""


def document_of(stored: Stored, flames: Sequence[Flame] = ()) -> Document:
    """Return the document of a stored study. LabError if what is printed of it does not add up."""
    return with_flames(KINDS[stored.kind].document(stored), flames)


def question_of(kind: str, reports: Sequence[msgspec.Struct]) -> str:
    """Return what was asked by the study of that kind that made these reports."""
    ask = KINDS[kind].question
    if ask is None:
        raise KeyError(kind)
    return ask(*reports)


def keep(stored: Stored, store: Store) -> Study:
    """Keeps a study with its report; LabError if that cannot be written."""
    operations, answer = summary_of(stored)
    with store.writing():
        return store.keep_study(
            NewStudy(
                kind=stored.kind,
                question=stored.question,
                command=stored.command,
                started=stored.started,
                version=stored.version,
                report_blob=store.put(encode(stored)),
                operations=operations,
                answer=answer,
            )
        )


def summary_of(stored: Stored) -> tuple[str, str]:
    """Return a study's operations and its answer, each in some words: the verdicts that were
    counted, or else the first sentence. Both are empty for a study that cannot be shown.
    """
    try:
        document = document_of(stored)
    except LabError:
        return "", ""
    names = [
        case.name
        for suite in document.suites
        for case in suite.cases
        if not case.name.startswith("kernel ") and case.name != "answer"  # of a gate
        if stored.kind not in _WITHOUT_OPERATIONS
    ]
    first = next(iter(document.answers), None)
    if first is None:
        return _shortly(names), ""
    counted = ", ".join(f"{chip.count} {chip.word}" for chip in first.chips)
    return _shortly(names), counted or " ".join(first.sentences[:1])


def _shortly(names: Sequence[str]) -> str:
    """The names where there are few, else how many there are."""
    found = list(dict.fromkeys(names))
    return ", ".join(found) if len(found) <= _FEW else f"{len(found)} operations"


def stored_of(content: bytes) -> Stored:
    """Read what is kept of a study; LabError for what cannot be read."""
    return decode(content, STORED, RENAMED)


def load(study: Study, store: Store) -> Stored:
    """Return a study with its report; LabError, with what makes it again, if that is lost."""
    try:
        return msgspec.structs.replace(stored_of(store.get(study.report_blob)), id=study.id)
    except LabError as error:
        raise LabError(
            f"the report of study {study.id} cannot be shown: {error.message}",
            f"its runs may be in the store still; this makes it again: {study.command}",
        ) from error
