# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a gate: what it answered and why, above the comparison that it is from."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from kdelta.infer.effects.effects import OPEN, Word
from kdelta.infer.effects.gate import BOUNDED, Decision, Exit, Judged
from kdelta.report import parts as common
from kdelta.report import words
from kdelta.report.document import (
    Answer,
    Case,
    Cell,
    Chip,
    Column,
    Document,
    Items,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
    Verbatim,
)
from kdelta.report.effects import chips
from kdelta.report.kind import ALL
from kdelta.report.lines import ascii_only
from kdelta.report.stored import Stored
from kdelta.report.words import TONES
from kdelta.studies.compare import document as compare
from kdelta.studies.compare.model import CompareReport


class GateReport(msgspec.Struct, frozen=True):
    """What was decided, all verdicts that were looked at, and the comparison that they are from:
    one report for each CPU. `notes`: of regions whose trace was cut off.
    """

    decision: Decision
    judged: tuple[Judged, ...]
    notes: tuple[str, ...] = ()
    compared: tuple[CompareReport, ...] = ()


_ANSWERS = {
    Exit.NOT_SLOWER: "No: it is not slower.",
    Exit.SLOWER: "Yes, it is slower.",
    Exit.CANNOT_TELL: "It cannot be decided.",
    Exit.BROKEN: "It cannot be decided.",
}
_OUTCOMES = {Exit.NOT_SLOWER: Outcome.OK, Exit.SLOWER: Outcome.SLOWER}
_TONES = {Exit.NOT_SLOWER: "faster", Exit.SLOWER: "slower"}
_NAMED = 5


def gate_document(stored: Stored, report: GateReport) -> Document:
    """Return the document of a gate's answer."""
    decision = report.decision
    bounded = sum(one.is_bounded for one in report.judged)
    found = Counter(one.word for one in report.judged if not one.is_bounded)
    shown = chips(found) + ((Chip(BOUNDED, bounded, TONES[Word.SAME]),) if bounded else ())
    line = gate_line(decision, report.judged)
    text = f"{_ANSWERS[decision.exit]} Exit code {int(decision.exit)}."
    sentences = (text, f"The gate says: {line}.")
    answer = Answer(sentences, shown, "gate", _TONES.get(decision.exit, "unresolved"))
    section = Section("gate", "What decided it", _because(report))
    cases = (
        Case("answer", _OUTCOMES.get(decision.exit, Outcome.UNKNOWN), line),
        *map(_case, report.judged),
    )
    suite = Suite("gate", cases)
    if not report.compared:
        return Document(
            title=line,
            made=common.made_of(stored),
            answers=(answer,),
            facts=(),
            sections=(section,),
            environment=common.environment(stored, {}, ()),
            suites=(suite,),
            notes=report.notes,
        )
    below = compare.compare_document(stored, report.compared)
    kernels = tuple(one for one in below.suites if one.name == "kernels")
    return msgspec.structs.replace(
        below,
        title=f"{report.compared[0].workload}: {line}",
        answers=(answer, *below.answers),
        sections=(section, *below.sections),
        suites=(*kernels, suite),
        notes=(*report.notes, *below.notes),
    )


def printed(stored: Stored, report: GateReport) -> Document:
    """Return the document of what the command prints: a line, or all of it."""
    whole = gate_document(stored, report)
    if ALL in stored.shown:
        return whole
    line = Section("line", "", (Verbatim(gate_line(report.decision, report.judged), wide=True),))
    return Document(whole.title, whole.made, (), (), (line,), ())


def _case(one: Judged) -> Case:
    reason = f": {one.reason}" if one.reason else ""
    region = f" ({one.region})" if one.region != one.id else ""
    outcome = Outcome.OK if one.is_bounded else words.OUTCOMES[one.word]
    return Case(one.id, outcome, f"{one.words}{reason}{region}")


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
        (Prose("It depends on:"), Items(because)) if because else (Prose("No region is slower."),)
    )
    unknown = sum(one.word in OPEN and not one.is_bounded for one in report.judged)
    more = (Prose(f"{unknown} could not be decided."),) if unknown else ()
    return (*lead, *more, table) if rows else lead


def gate_line(decision: Decision, judged: Sequence[Judged]) -> str:
    """Return the answer, and why."""
    why = list(decision.because[:_NAMED])
    if len(decision.because) > _NAMED:
        why.append(f"and {len(decision.because) - _NAMED} more")
    if decision.exit is Exit.NOT_SLOWER:
        found = Counter(one.words for one in judged)
        why = [f"{count} {word}" for word, count in sorted(found.items())]
    return ascii_only(f"{words.ANSWERS[decision.exit]}: {', '.join(why)}".replace("\n", " "))
