# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison's page: the verdict, the effects, the operations, and which functions did it."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from kdelta.infer.effects import BackgroundEffect, OperationEffect, Word
from kdelta.infer.estimate import Quantity
from kdelta.infer.placement_model import PlacementEffect
from kdelta.report.comparison import BACKGROUND_NAMES
from kdelta.report.html import charts, common, cycles, functions, packets, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Document,
    Fold,
    Prose,
    Section,
    Table,
)
from kdelta.report.html.words import TONES
from kdelta.report.model import Compared, CompareReport, OptionChange, Side
from kdelta.report.stored import Stored
from kdelta.report.text import COUNTED, compares_text

_NAMED = 3
_OFF = "n"


class Pair(msgspec.Struct, frozen=True):
    """A base and one other on one machine. `about` names the pair where there are more; `mark` is
    behind the ids of its sections.
    """

    report: CompareReport
    compared: Compared
    about: str
    mark: str

    @property
    def cycles(self) -> dict[str, PlacementEffect]:
        """The effects on model cycles by region."""
        found = self.compared.cycles
        return {one.region: one for one in found.effects} if found else {}

    def title(self, text: str) -> str:
        """A heading that says which pair it is of."""
        return f"{text}: {self.about}" if self.about else text


def document(stored: Stored, reports: Sequence[CompareReport]) -> Document:
    """The page of a comparison."""
    found = list(pairs(reports))
    answers = tuple(answer for pair in found for answer in answers_of(pair))
    sections = tuple(section for pair in found for section in sections_of(pair))
    shown = stored.shown
    text = compares_text(reports, shown.get("explain", 5), shown.get("functions", 10))
    return Document(
        title=f"kdelta compare: {reports[0].base.spec}",
        question=stored.question,
        answers=answers,
        facts=facts_of(reports),
        sections=(
            *sections,
            *common.notes(notes_of(reports)),
            environment_of(stored, reports),
            common.as_text(text),
        ),
        warnings=tuple(warnings_of(reports)),
    )


def pairs(reports: Sequence[CompareReport]) -> Iterator[Pair]:
    """Every comparison of one kernel with another on one machine."""
    several = len(reports) > 1
    for at, report in enumerate(reports):
        for number, compared in enumerate(report.others):
            names = [compared.side.release or compared.side.spec] if len(report.others) > 1 else []
            names += [report.cpu.name] if several and report.cpu else []
            yield Pair(report, compared, " on ".join(names), f"-{at + 1}-{number + 1}")


def facts_of(reports: Sequence[CompareReport]) -> tuple[tuple[str, str], ...]:
    """What was compared."""
    first = reports[0]
    facts = [("base", common.kernel_fact(first.base))]
    for number, other in enumerate(first.others):
        label = "other" if len(first.others) == 1 else f"other {number + 1}"
        facts.append((label, common.kernel_fact(other.side)))
    facts.append(("workload", first.workload))
    if cpus := [report.cpu.title for report in reports if report.cpu]:
        facts.append(("CPU", ", ".join(cpus)))
    return (*facts, ("counted", COUNTED))


def answers_of(pair: Pair) -> tuple[Answer, ...]:
    """What is known of the path, and of model cycles."""
    operations = pair.compared.effects.operations
    if not any(one.costs for one in operations):
        text = "Nothing can be compared: no operation succeeded on both sides."
        return (Answer((text,), about=pair.about, tone="unresolved"),)
    found = Counter(one.verdict.word for one in operations)
    path = Answer(
        (path_sentence(operations),),
        chips_of(found),
        f"path{f', {pair.about}' if pair.about else ''}",
        words.tone_of(found),
    )
    return (path, *cycles.answers(pair.report, pair.compared, pair.about))


def chips_of(found: Counter[Word]) -> tuple[Chip, ...]:
    """Words and how many there are, those that ask for a look first."""
    return tuple(Chip(word.value, found[word], TONES[word]) for word in words.ORDER if found[word])


UNCLEAR = (Word.MIXED, Word.NOT_STEADY, Word.DEPENDS_ON_STATE, Word.DEPENDS_ON_SPEED)
"""Words of operations that changed, and are neither slower nor faster."""


def path_sentence(operations: Sequence[OperationEffect]) -> str:
    """The verdict on the path of all operations, in words."""
    found = Counter(one.verdict.word for one in operations)
    total = words.counted(sum(found.values()), "operation")
    slower, faster = found[Word.SLOWER], found[Word.FASTER]
    parts = [f"executes more instructions in {slower}"] if slower else []
    parts += (
        [f"{'fewer' if slower else 'executes fewer instructions'} in {faster}"] if faster else []
    )
    if not parts:
        same = found[Word.SAME] + found[Word.PLACEMENT_ONLY]
        whole = (
            "the same path" if same == sum(found.values()) else "no path that is known to differ"
        )
        text = f"Of {total}, the other kernel has {whole}."
    else:
        text = f"Of {total}, the other kernel {words.listed(parts)}."
    unclear = [
        f"{words.counted(found[word], 'operation')} {word.value}" for word in UNCLEAR if found[word]
    ]
    if unclear:
        text += f" Besides: {words.listed(unclear)}."
    for word, title in ((Word.SLOWER, "Most more"), (Word.FASTER, "Most fewer")):
        named = [
            f"{one.name} ({words.percent(one.costs.insns.percent)})"
            for one in by_size(operations)
            if one.verdict.word is word and one.costs
        ][:_NAMED]
        if named:
            text += f" {title}: {words.listed(named)}."
    return text


def by_size(operations: Sequence[OperationEffect]) -> list[OperationEffect]:
    """Those whose path changed most first; a cost that was nought before is above all."""
    return sorted(operations, key=lambda one: -_size(one))


def _size(operation: OperationEffect) -> float:
    if operation.costs is None:
        return -1.0
    part = operation.costs.insns.percent
    return float("inf") if part is None else abs(float(part))


def sections_of(pair: Pair) -> Iterator[Section]:
    """The sections of one pair."""
    compared = pair.compared
    operations = compared.effects.operations
    if not any(one.costs for one in operations):
        return
    yield Section(
        f"effects{pair.mark}",
        pair.title("Effects"),
        _effects(pair),
    )
    yield Section(f"operations{pair.mark}", pair.title("Operations"), tuple(_tables(pair)))
    yield from packets.sections(compared, pair.cycles, pair.report.cpu, pair.about, pair.mark)
    yield from cycles.sections(pair.report, compared, pair.about, pair.mark)
    folds = functions.folds(by_size(operations), pair.mark)
    folds += functions.background_folds(compared.effects.background, pair.mark)
    if folds:
        lead = Prose("Which functions account for the difference; the lines of each add up to it.")
        yield Section(f"functions{pair.mark}", pair.title("Functions"), (lead, *folds))
    yield from _config(pair)


def _config(pair: Pair) -> Iterator[Section]:
    """How the configs differ, where both are known."""
    changes = pair.compared.config
    if changes is None:
        return
    title = pair.title("How the configs differ")
    if not changes:
        yield Section(f"config{pair.mark}", title, (Prose("They do not: both are the same."),))
        return
    columns = (
        Column("option", "name"),
        Column("base"),
        Column("other"),
        Column("what", "word"),
    )
    rows = tuple(
        (Cell(one.option), Cell(one.base), Cell(one.other), Cell(_change(one), tone="same"))
        for one in changes
    )
    count = words.counted(len(changes), "option has", "options have")
    lead = Prose(
        f"{count} another value. kdelta ablate tells which of them account for the difference, "
        "where both kernels are built from one tree."
    )
    table = Table(f"config-table{pair.mark}", "Options", columns, rows, filtered=True)
    yield Section(f"config{pair.mark}", title, (lead, Fold("All of them", (table,))))


def _change(one: OptionChange) -> str:
    if one.base == _OFF:
        return "switched on"
    return "switched off" if one.other == _OFF else "changed"


def _effects(pair: Pair) -> tuple[Block, ...]:
    """The charts of both effects, side by side."""
    drawn = [*_path_chart(pair)]
    if pair.report.cpu and pair.compared.cycles:
        drawn += cycles.effect_chart(pair.compared.cycles.effects, pair.report.cpu)
    return (Charts(tuple(drawn)),) if drawn else ()


def _path_chart(pair: Pair) -> Iterator[Chart]:
    """Instructions are exact, so most of these effects have no interval to be seen."""
    rows = [
        charts.Effect(
            one.name,
            *_in_percent(one.costs.insns),
            tone=one.verdict.word.value,
        )
        for one in sorted(pair.compared.effects.operations, key=_by_percent)
        if one.costs and one.costs.insns.base.value
    ]
    if not rows:
        return
    svg = charts.effects_svg(rows, "% of the base's instructions", TONES)
    said = "; ".join(f"{row.name} {row.value:+.2f} %" for row in rows)
    yield Chart(
        svg,
        "Path: instructions an iteration, other less base, with the interval over perturbed runs. "
        "Left of nought the other kernel executes fewer.",
        f"Effects on the path by operation: {said}",
        wide=True,
    )


def _by_percent(operation: OperationEffect) -> float:
    part = operation.costs.insns.percent if operation.costs else None
    return 0.0 if part is None else -float(part)


def _in_percent(cost: Quantity) -> tuple[float, float, float]:
    """The effect with its interval, in per cent of the base."""
    base, effect = cost.base.value, cost.effect
    value, low, high = (float(100 * end / base) for end in (effect.value, effect.low, effect.high))
    return value, low, high


def _tables(pair: Pair) -> Iterator[Block]:
    """The table of operations, that of what others did meanwhile, and what else is counted."""
    yield operations_table(pair)
    background = pair.compared.effects.background
    if background:
        yield _background_table(background, pair.mark)
    yield from functions.kinds_folds(pair.compared.effects.operations, pair.mark)


def operations_table(pair: Pair) -> Table:
    """One row an operation, with both verdicts where there are two."""
    known = pair.cycles
    columns = [
        Column("operation", "name"),
        Column("path", "word", "the verdict on the instructions executed"),
        Column("base", "number", "instructions an iteration"),
        Column("other", "number", "instructions an iteration"),
        Column("diff", "number"),
        Column("%", "number", "of the base"),
        Column("spread", "number", "how far the difference may be off, over perturbed runs"),
        Column("median", "number", "the difference of the median iterations"),
    ]
    if known:
        columns += cycles.COLUMNS
    rows = []
    for one in by_size(pair.compared.effects.operations):
        cells = _operation_cells(one, pair.mark)
        rows.append(
            (*cells, *cycles.cells(one.name, known.get(one.name), pair.compared))
            if known
            else cells
        )
    caption = "Instructions an iteration of the measured tasks' own work"
    if known and pair.report.cpu:
        caption += f", and model cycles on {pair.report.cpu.name}"
    return Table(f"ops{pair.mark}", caption, tuple(columns), tuple(rows), filtered=True)


def _operation_cells(one: OperationEffect, mark: str) -> tuple[Cell, ...]:
    word = one.verdict.word
    verdict = Cell(word.value, words.ORDER.index(word), TONES[word])
    if one.costs is None:
        sides = [Cell(words.number(x.value), float(x.value)) if x else Cell("") for x in
                 (one.base, one.other)]  # fmt: skip
        return (Cell(one.name), verdict, *sides, *[Cell("")] * 4)
    insns, median = one.costs.insns, one.costs.median_insns.effect.value
    link = f"functions-of-{one.name}{mark}" if functions.changed(one) else ""
    part = insns.percent
    return (
        Cell(one.name, link=link),
        verdict,
        Cell(words.number(insns.base.value), float(insns.base.value)),
        Cell(words.number(insns.other.value), float(insns.other.value)),
        Cell(words.signed(insns.effect.value), float(insns.effect.value)),
        Cell(words.percent(part), float("inf") if part is None else float(part)),
        Cell(words.spread(insns.effect), float(insns.effect.half_width)),
        Cell(words.signed(median), float(median)),
    )


def _background_table(background: Sequence[BackgroundEffect], mark: str) -> Table:
    columns = (
        Column("who", "name"),
        Column("verdict", "word"),
        Column("base", "number"),
        Column("other", "number"),
        Column("diff", "number"),
        Column("%", "number"),
        Column("spread", "number"),
    )
    rows = []
    for one in background:
        rate, part = one.rate, one.rate.percent
        rows.append(
            (
                Cell(BACKGROUND_NAMES[one.context]),
                Cell(one.verdict.word.value, tone=TONES[one.verdict.word]),
                Cell(words.number(rate.base.value), float(rate.base.value)),
                Cell(words.number(rate.other.value), float(rate.other.value)),
                Cell(words.signed(rate.effect.value), float(rate.effect.value)),
                Cell(words.percent(part), float("inf") if part is None else float(part)),
                Cell(words.spread(rate.effect), float(rate.effect.half_width)),
            )
        )
    caption = "What others did meanwhile, in instructions a virtual second"
    return Table(f"background{mark}", caption, columns, tuple(rows))


def warnings_of(reports: Sequence[CompareReport]) -> Iterator[str]:
    """What failed, and what the runs warned of; each once."""
    said: dict[str, None] = {}
    for report in reports:
        said |= dict.fromkeys(common.failures(_sides(report)))
    yield from said


def notes_of(reports: Sequence[CompareReport]) -> list[tuple[str, Sequence[str]]]:
    """Notes on model cycles, and warnings."""
    notes: dict[str, None] = {}
    warnings: dict[str, None] = {}
    for report in reports:
        warnings |= dict.fromkeys(report.warnings)
        for other in report.others:
            warnings |= dict.fromkeys(other.effects.warnings)
            notes |= dict.fromkeys(other.cycles.notes if other.cycles else ())
            for more in other.more:
                text = (
                    f"{more.operation} was run {len(more.other)} times by itself on each kernel, "
                    "since fewer runs may differ so by chance"
                )
                notes[text] = None
    return [("Of the operations", tuple(notes)), ("Warnings", tuple(warnings))]


def _sides(report: CompareReport) -> list[tuple[str, Side]]:
    alone = len(report.others) == 1
    others = [
        ("other" if alone else f"other {number + 1}", one.side)
        for number, one in enumerate(report.others)
    ]
    return [("base", report.base), *others]


def environment_of(stored: Stored, reports: Sequence[CompareReport]) -> Section:
    """The machine, and all runs, those of other CPUs too."""
    first, *rest = reports
    more = [(f"{who}, {report.cpu.name if report.cpu else ''}", side.runs)
            for report in rest for who, side in _sides(report)]  # fmt: skip
    for report in reports:
        for other in report.others:
            for one in other.more:
                more += [
                    (f"base, {one.operation}", one.base),
                    (f"other, {one.operation}", one.other),
                ]
    return common.environment(stored, first.machine, _sides(first), more)
