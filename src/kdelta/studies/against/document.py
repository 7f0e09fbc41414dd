# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of two programs under one kernel."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.effects import MARGIN, OperationEffect, Word
from kdelta.infer.effects.estimate import Quantity
from kdelta.infer.effects.gate import Judged
from kdelta.infer.profiles.system_calls import KernelCostChange, PartKind
from kdelta.report import cells, figures, words
from kdelta.report import effects as measures
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Column,
    Document,
    Items,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
    with_titles,
)
from kdelta.report.stored import Stored
from kdelta.studies.against.model import AgainstRegion, AgainstReport
from kdelta.studies.compare.functions import MOST, functions_table

_SHOWN = 60
"""Characters of a line of output that are shown."""

_MEANING = (
    "Counts and instructions of the runs without perturbation, all processes of the program "
    "together. A call's instructions are those of its function in the kernel and of all that it "
    "calls, faults on its way included. Page faults are those of the program's own code. Entry "
    "and exit: the way into the kernel and back, of all of them."
)


def against_document(stored: Stored, report: AgainstReport, functions: int = 0) -> Document:
    """Return the document. functions: how many are named, of each region; 0 is as many as usual."""
    sides = (("old", report.old.side), ("new", report.new.side))
    line = _decision_text(report)
    answers = tuple(_answer(one, report) for one in report.regions)
    if report.times and answers:
        answers += (measures.answer(report.times),)
    ends = f"Exit code {int(report.decision.exit)}: {line}."
    title = answers[0].sentences[0].rstrip(".") if answers else line
    return Document(
        title=title,
        made=common.made_of(stored),
        answers=answers or (Answer((ends,), tone="unresolved"),),
        facts=(
            ("old", report.old.line),
            ("new", report.new.line),
            ("kernel", common.kernel_fact(report.new.side)),
            ("runs", f"{len(report.new.side.runs)} a program, perturbed by {words.PERTURBED}"),
            ("counted", words.COUNTED),
            ("answer", f"exit code {int(report.decision.exit)}, {line}{_margin_text(report)}"),
        ),
        sections=tuple(_sections(report, functions)),
        environment=common.environment(stored, report.machine, sides),
        suites=(common.kernels_suite(sides), *_judged_suites(report.judged)),
        failures=common.failures(sides),
        notices=tuple(_notices(report)),
        warnings=report.warnings,
    )


def _margin_text(report: AgainstReport) -> str:
    return f", with a margin of {float(100 * report.margin):g} %" if report.margin else ""


def _decision_text(report: AgainstReport) -> str:
    because = "; ".join(report.decision.because)
    return words.ANSWERS[report.decision.exit] + (f": {because}" if because else "")


def _judged_suites(judged: Sequence[Judged]) -> tuple[Suite, ...]:
    return (Suite("against", tuple(map(_case, judged))),) if judged else ()


def _case(one: Judged) -> Case:
    reason = f": {one.reason}" if one.reason else ""
    return Case(one.id, words.OUTCOMES.get(one.word, Outcome.UNKNOWN), f"{one.word}{reason}")


def _notices(report: AgainstReport) -> Iterator[str]:
    """That the programs print different things, before any figure."""
    if report.output:
        streams = words.listed([one.stream for one in report.output])
        yield (
            f"The two programs print different output ({streams}), so they may not have done the "
            "same work."
        )


def _answer(region: AgainstRegion, report: AgainstReport) -> Answer:
    effect, (old, new) = region.effect, report.names
    about = effect.name if len(report.regions) > 1 else ""
    word = effect.verdict.word
    tone = words.TONES[word]
    if effect.costs is None:
        text = f"{old} and {new} cannot be compared: {effect.verdict.reason}."
        return Answer((text,), about=about, tone=tone)
    insns = effect.costs.insns
    size = (
        f"{figures.fitted(insns.other.value)} instructions instead of "
        f"{figures.fitted(insns.base.value)} ({figures.percent(insns.percent)})"
    )
    texts = {
        Word.SLOWER: f"{new} is slower than {old}: {size}.",
        Word.FASTER: f"{new} is faster than {old}: {size}.",
        Word.SAME: f"{new} is as fast as {old}: {size}.",
    }
    reason = f" ({effect.verdict.reason})" if effect.verdict.reason else ""
    text = texts.get(word, f"Of {new} against {old} the verdict is {word}{reason}: {size}.")
    return Answer((text, *_most(region)), about=about, tone=tone)


def _most(region: AgainstRegion) -> Iterator[str]:
    """The system call of which there are more or fewer and that changed most; where all are as
    many, the one whose cost did, if that is more than nothing of the whole.
    """
    calls = [one for one in region.parts if one.kind is PartKind.SYSTEM_CALL]
    if not calls:
        return
    most = max(calls, key=lambda one: (one.old_count != one.new_count, abs(one.added)))
    whole = region.effect.costs.insns.base.value if region.effect.costs else 0
    if most.old_count != most.new_count:
        yield (
            f"The system call that changed most is {most.name}: "
            f"{words.counted(most.new_count or 0, 'call')} instead of {most.old_count}, "
            f"{most.added:+} instructions in the kernel."
        )
    elif not most.added:
        yield "Both make the same system calls, at the same cost."
    elif abs(most.added) <= MARGIN * whole:
        yield "Both make the same system calls, at about the same cost."
    else:
        yield (
            f"Both make the same system calls; that whose cost changed most is {most.name}: "
            f"{most.added:+} instructions in the kernel."
        )


def _sections(report: AgainstReport, functions: int) -> Iterator[Section]:
    if report.output:
        yield Section("output", "Different output", (_output_table(report),))
    if report.times:
        notes = [Items(report.times.notes)]
        yield measures.section(report.times, "Times on this host", "", ("old", "new"), notes)
    many = len(report.regions) > 1
    for index, region in enumerate(report.regions):
        mark = f"-{index}" if index else ""
        name = f" of {region.effect.name}" if many else ""
        if region.effect.costs is not None:
            table = _figures(region.effect, report, mark, whole=not index)
            yield Section(f"figures{mark}", f"Instructions{name}", (table,))
        if region.parts:
            blocks: tuple[Block, ...] = (_parts_table(region.parts, mark), Prose(_MEANING))
            yield Section(f"calls{mark}", f"System calls{name}", blocks)
        if region.effect.costs is not None and region.effect.costs.insns.moved:
            shown = _functions(region.effect, mark, functions)
            yield Section(f"functions{mark}", f"Functions{name}", (shown,))


def _output_table(report: AgainstReport) -> Table:
    columns = (Column("stream", "name"), Column("line", "number"), Column("old"), Column("new"))
    rows = tuple(
        (
            Cell(one.stream),
            Cell(str(one.line), one.line),
            Cell(one.old[:_SHOWN]),
            Cell(one.new[:_SHOWN]),
        )
        for one in report.output
    )
    return Table("output-table", "The first line that differs", columns, rows)


def _figures(effect: OperationEffect, report: AgainstReport, mark: str, *, whole: bool) -> Table:
    """User and kernel, which add up to the instructions, and the memory of whole programs."""
    assert effect.costs is not None
    costs = effect.costs
    columns = (
        Column("an iteration" if _iterates(costs.insns, report) else "in all", "name"),
        *(Column(title, "number") for title in ("old", "new", "diff", "%", "spread")),
    )
    named = (
        ("instructions", costs.insns),
        ("user", costs.user_insns),
        ("kernel", costs.kernel_insns),
        ("interrupts, besides", costs.interrupts),
        ("other tasks, besides", costs.background),
    )
    rows = [(Cell(name), *cells.effect(cost)) for name, cost in named]
    peaks = report.old.peak_kib, report.new.peak_kib
    if whole and peaks[0] is not None and peaks[1] is not None:
        old, new = Fraction(peaks[0]), Fraction(peaks[1])
        part = 100 * (new - old) / old if old else None
        rows.append(
            (
                Cell("peak memory, KiB"),
                *cells.between(old, new),
                cells.percent(part),
                Cell("n=1"),
            )
        )
    return Table(f"figures-table{mark}", "Old and new", columns, tuple(rows))


def _iterates(insns: Quantity, report: AgainstReport) -> bool:
    """Whether figures are those of one iteration of several: of a program that marks its own."""
    return any(one.effect.name != "command" for one in report.regions) and bool(insns)


def _parts_table(parts: Sequence[KernelCostChange], mark: str) -> Table:
    columns = (
        Column("in the kernel for", "name"),
        Column("old", "number"),
        Column("new", "number"),
        Column("more", "number", "calls, as in old and new"),
        Column("old insns", "number", sums=True),
        Column("new insns", "number", sums=True),
        Column("diff", "number", "instructions", sums=True),
    )
    rows = tuple(_part_row(one) for one in parts)
    old, new = sum(one.old_insns for one in parts), sum(one.new_insns for one in parts)
    total = (Cell("total"), *[cells.NOTHING] * 3, *_sides(old, new))
    return Table(
        f"calls-table{mark}",
        "What the kernel executed, by system call",
        columns,
        rows,
        total,
        filtered=True,
    )


def _part_row(one: KernelCostChange) -> tuple[Cell, ...]:
    counts = [cells.NOTHING] * 3
    if one.old_count is not None and one.new_count is not None:
        counts = [*_sides(one.old_count, one.new_count)]
    return (Cell(one.name), *counts, *_sides(one.old_insns, one.new_insns))


def _sides(old: int, new: int) -> tuple[Cell, Cell, Cell]:
    return cells.number(old), cells.number(new), cells.signed(new - old)


def _functions(effect: OperationEffect, mark: str, functions: int) -> Table:
    assert effect.costs is not None
    insns, most = effect.costs.insns, functions or MOST
    table = functions_table(f"functions{mark}", effect.name, insns, effect.functions, most)
    table = with_titles(table, {"base": "old", "other": "new"})
    return msgspec.structs.replace(
        table, caption="Functions that changed most, of user code and the kernel"
    )
