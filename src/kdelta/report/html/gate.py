# SPDX-License-Identifier: GPL-2.0-or-later
"""A gate's page: what it answered and why, above the comparison that it is from."""

from collections import Counter

import msgspec

from kdelta.infer.effects import OPEN, Word
from kdelta.infer.gate import BOUNDED, Exit
from kdelta.report.gate import gate_line
from kdelta.report.gate_model import GateReport
from kdelta.report.html import common, compare, words
from kdelta.report.html.model import (
    Answer,
    Cell,
    Chip,
    Column,
    Document,
    Items,
    Prose,
    Section,
    Table,
)
from kdelta.report.html.words import TONES
from kdelta.report.stored import Stored

_ANSWERS = {
    Exit.NOT_SLOWER: "No: it is not slower.",
    Exit.SLOWER: "Yes, it is slower.",
    Exit.CANNOT_TELL: "It cannot be told.",
    Exit.BROKEN: "It cannot be told.",
}
_TONES = {Exit.NOT_SLOWER: "faster", Exit.SLOWER: "slower"}


def document(stored: Stored, report: GateReport) -> Document:
    """The page of a gate's answer."""
    decision = report.decision
    bounded = sum(one.is_bounded for one in report.judged)
    found = Counter(one.word for one in report.judged if not one.is_bounded)
    chips = tuple(Chip(word.value, found[word], TONES[word]) for word in words.ORDER if found[word])
    chips += (Chip(BOUNDED, bounded, TONES[Word.SAME]),) if bounded else ()
    text = f"{_ANSWERS[decision.exit]} Exit code {int(decision.exit)}."
    answer = Answer((text,), chips, "gate", _TONES.get(decision.exit, "unresolved"))
    section = Section("gate", "What decided it", _because(report))
    line = gate_line(decision, report.judged)
    if not report.compared:
        return Document(
            title="kdelta gate",
            question=stored.question,
            answers=(answer,),
            facts=(),
            sections=(section, common.environment(stored, {}, ()), common.as_text(line)),
        )
    below = compare.document(stored, report.compared)
    return msgspec.structs.replace(
        below,
        title="kdelta gate",
        answers=(answer, *below.answers),
        sections=(section, *below.sections),
    )


def _because(report: GateReport) -> tuple[Prose | Items | Table, ...]:
    because = report.decision.because
    columns = (Column("region", "name"), Column("verdict", "word"), Column("reason"))
    rows = tuple(
        (
            Cell(one.region),
            Cell(one.words, words.ORDER.index(one.word), TONES[one.word]),
            Cell(one.reason),
        )
        for one in sorted(report.judged, key=lambda one: words.ORDER.index(one.word))
    )
    table = Table("judged", "All that was judged, on its margin", columns, rows, filtered=True)
    lead: tuple[Prose | Items, ...] = (
        (Prose("It hangs on:"), Items(because)) if because else (Prose("No region is slower."),)
    )
    notes = (Items(report.notes),) if report.notes else ()
    unknown = sum(one.word in OPEN and not one.is_bounded for one in report.judged)
    more = (Prose(f"{unknown} could not be told."),) if unknown else ()
    return (*lead, *more, *notes, table) if rows else (*lead, *notes)
