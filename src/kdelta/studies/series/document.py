# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a series: what each patch does, which were ruled out and why, what needs what."""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial

from kdelta.infer.effects.estimate import MEAN, Estimate, is_seen
from kdelta.infer.search.minimal import PatchRole
from kdelta.infer.search.search_model import PatchAnswer, PatchGroup, PatchOutcome, View
from kdelta.report import cells, figures, words
from kdelta.report import effects as measures
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
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
)
from kdelta.report.stored import Stored
from kdelta.studies.search import document as searched
from kdelta.studies.search import measured
from kdelta.studies.search.measured import MeasuredChange
from kdelta.studies.search.model import averaged, cell, how_made, means_of, totals
from kdelta.studies.series.held import StatedOutcome, held
from kdelta.studies.series.model import Minimal, SeriesReport, SeriesRow

_TONES = {
    PatchOutcome.UNRESOLVED: "unresolved",
    PatchOutcome.TOGETHER: "unresolved",
    PatchOutcome.RULED_OUT: "same",
    PatchOutcome.CLEARED: "same",
}

WORDS = searched.AccountWords(
    "patches", "all do", "all patches", "patches without effect", "all patches"
)

_KNOWN = 4
"""Patches that are named with what their code costs more."""

HEADS = {View.ORDER: "in order", View.LEFT_OUT: "left out", View.ALONE: "alone"}


def series_document(stored: Stored) -> Document:
    """Return the document of a series of patches."""
    report = stored.one(SeriesReport)
    ends = tuple(zip(("without", "with all"), report.ends, strict=True))
    patches = Suite("patches", tuple(map(_case, report.rows)))
    title = f"{' '.join(report.workloads)}: {words.counted(len(report.rows), 'patch', 'patches')}"
    found = Document(
        title=title if report.failure else f"{title} on {report.tree}",
        made=common.made_of(stored),
        answers=(_answer(report),),
        facts=(
            ("tree", report.tree),
            ("patches", " ".join(report.words)),
            *((who, common.kernel_fact(side)) for who, side in ends),
            ("workload", ", ".join(report.workloads)),
        ),
        sections=tuple(_sections(report)),
        environment=common.environment(stored, report.machine, ends),
        suites=(
            *searched.suites(("without", "with all"), report.ends, report.regions, patches),
            *map(measures.suite, report.measured),
            *measured.measured_suites(_changes(report)),
        ),
        failures=common.failures(ends),
        notes=(*searched.undecided_texts(report.regions), *report.notes),
        warnings=report.warnings,
    )
    return searched.failed(found, report.failure) if report.failure else found


def _changes(report: SeriesReport) -> list[MeasuredChange]:
    """Return the patches, groups of them, and the set that measures were asked about."""
    found = [MeasuredChange(one.name, one.answer.effects, one.measured) for one in report.rows]
    found += [
        MeasuredChange(f"group {number}", one.effects, one.measured)
        for number, one in enumerate(report.groups, start=1)
    ]
    if report.minimal:
        smallest = report.minimal
        found.append(MeasuredChange("the smallest set", smallest.effects, smallest.measured))
    return [one for one in found if one.measured]


def _case(row: SeriesRow) -> Case:
    answer = row.answer
    if answer.outcome in (PatchOutcome.UNRESOLVED, PatchOutcome.TOGETHER):
        return Case(row.name, Outcome.UNKNOWN, answer.text or str(answer.outcome))
    return searched.effects_case(
        row.name, answer.effects, answer.text or row.why or str(answer.outcome)
    )


def _answer(report: SeriesReport) -> Answer:
    if report.failure:
        return Answer((report.failure,), tone="unresolved")
    outcomes = Counter(row.answer.outcome for row in report.rows)
    chips = tuple(Chip(outcome.value, count) for outcome, count in outcomes.items())
    sentences = [series_verdict(report)]
    if report.minimal and report.minimal.answer.members:
        names = [one.name for one in report.minimal.answer.members]
        sentences.append(f"The smallest set with the effect: {words.listed(names)}.")
    sentences += [f"Proof: {report.proof.text}"] if report.proof else []
    return Answer(tuple(sentences), chips, tone=searched.mean_tone(means_of(report).whole))


def _sections(report: SeriesReport) -> Iterator[Section]:
    if report.failure:
        yield from searched.builds_section(report.builds)
        return
    every = means_of(report)
    means = [(row.name, every.of(row.answer.effects)) for row in report.rows if row.answer.effects]
    means += [
        (f"group {number}", every.of(group.effects))
        for number, group in enumerate(report.groups, start=1)
    ]
    chart = searched.means_chart(
        means, "Mean over all regions, of what each patch does on top of those before it."
    )
    lead = Prose(how_made(len(averaged(report.regions)), "the tree without patches"))
    yield Section("patches", "Patches and what they do", (*chart, _patches_table(report), lead))
    unseen = [(row.name, row.answer.effects) for row in unseen_rows(report)]
    code = {row.name: searched.code_texts(row.answer.code) for row in report.rows}
    yield from searched.unseen_section(unseen, every, code)
    yield from searched.apart_section(report.regions)
    if report.minimal:
        yield Section("minimal", "The smallest set", tuple(_minimal(report, report.minimal)))
    groups = (
        f"group {number}: {', '.join(group.patches)}; {group.reason}"
        for number, group in enumerate(report.groups, start=1)
    )
    yield from searched.items_section("groups", "Not split", groups)
    yield from _ruled_out(report)
    yield from _held(report)
    parts = None if report.minimal else partial(series_parts, report=report)
    yield from searched.regions_sections(report.regions, ("without", "with all"), WORDS, parts)
    changes = _changes(report)
    yield from measured.sections(changes, "patch", report.measured, ("without", "with all"))
    yield from _needs(report)
    yield from searched.interactions_section(
        f"{' + '.join(one.units)}: most in {every.most_in(one.effects) or 'nowhere'}; {one.text}"
        for one in report.interactions
    )
    yield from searched.proof_section(report.proof)
    yield from _kept(report)
    instead = f"one build a patch would be {len(report.rows) + 1}" if report.rows else ""
    yield from searched.builds_section(report.builds, instead)


def _patches_table(report: SeriesReport) -> Table:
    views = [view for view in HEADS if view in report.views or view is View.ORDER]
    columns = (
        Column("patch", "name"),
        Column("what became of it", "word"),
        *(
            column
            for view in views
            for column in (Column(f"% {HEADS[view]}", "number"), Column("spread", "number"))
        ),
        Column("most in"),
        Column("subject"),
        Column("how it is known"),
    )
    # What was ruled out has a table of its own.
    listed = [row for row in report.rows if row.answer.outcome is not PatchOutcome.RULED_OUT]
    rows = [_patch_row(row, views, report) for row in listed]
    rows += [
        _group_row(f"group {number}", group, views, report)
        for number, group in enumerate(report.groups, start=1)
    ]
    foot = tuple(
        (
            Cell(name),
            Cell(word),
            *searched.mean_cells(means_of(report).of(effects)),
            *[cells.NOTHING] * (2 * len(views) + 1),
        )
        for name, effects, word in totals(means_of(report), WORDS.total, WORDS.remainder)
    )
    caption = "Mean over all regions, in per cent of the tree without patches; a minus is faster"
    return Table("patches-table", caption, columns, tuple(rows), foot=foot, filtered=True)


def _patch_row(row: SeriesRow, views: list[View], report: SeriesReport) -> tuple[Cell, ...]:
    answer = row.answer
    tone = _TONES.get(answer.outcome, searched.mean_tone(means_of(report).of(answer.effects)))
    return (
        Cell(row.name),
        Cell(answer.outcome.value, tone=tone),
        *_view_cells(answer, views, report),
        Cell(means_of(report).most_in(answer.effects)),
        Cell(row.subject),
        Cell(answer.text or row.why),
    )


def _group_row(
    name: str, group: PatchGroup, views: list[View], report: SeriesReport
) -> tuple[Cell, ...]:
    return (
        Cell(name),
        Cell(words.counted(len(group.patches), "patch", "patches"), tone="unresolved"),
        *_view_cells(group, views, report),
        Cell(means_of(report).most_in(group.effects)),
        cells.NOTHING,
        Cell(group.reason),
    )


def _view_cells(
    found: PatchAnswer | PatchGroup, views: list[View], report: SeriesReport
) -> Iterator[Cell]:
    """The mean in each of these views, and how far it may be off."""
    answers = {View.ORDER: found, View.LEFT_OUT: found.left_out, View.ALONE: found.alone}
    for one in (answers[view] for view in views):
        mean = means_of(report).of(one.effects) if one and one.effects else None
        yield from searched.mean_cells(mean)


def _minimal(report: SeriesReport, minimal: Minimal) -> Iterator[Block]:
    answer = minimal.answer
    if not answer.members:
        yield Prose(f"No set was found that has the effect. {answer.note}")
        return
    within = figures.percent(100 * minimal.within).lstrip("+")
    count = words.counted(len(answer.members), "patch has", "patches have")
    text = f"{count} the effect of all, within {within} of it."
    if not answer.complete:
        text = f"{count} to be there, and perhaps more."
    yield Prose(text)
    yield Items(
        tuple(
            f"{one.name}: {'' if one.role is PatchRole.CULPRIT else 'needed: '}{one.text}"
            for one in answer.members
        )
    )
    tried = words.counted(answer.tests, "kernel")
    text = f"{tried} tried for it, {words.counted(answer.refused, 'set')} refused without one."
    if answer.confirmed:
        text += " Left out one by one, none of them can be spared."
    yield Prose(f"{text} {answer.note}".rstrip())
    if minimal.effects:
        mean = cell(means_of(report).of(minimal.effects))
        most = means_of(report).most_in(minimal.effects)
        yield Prose(f"Together, without the others: {mean} in the mean, most in {most}.")


def _ruled_out(report: SeriesReport) -> Iterator[Section]:
    rows = report.of(PatchOutcome.RULED_OUT)
    if not rows:
        return
    columns = (Column("patch", "name"), *searched.REACH_COLUMNS, Column("why"))
    shown = tuple(
        (
            Cell(row.name),
            *searched.reach_cells(row.objects, row.alive),
            Cell(row.why or "no executed code depends on it"),
        )
        for row in rows
    )
    text = f"{words.counted(len(rows), 'patch', 'patches')} needed no kernel of their own."
    table = Table("out-table", "Patches that were ruled out", columns, shown, filtered=True)
    yield Section("ruled-out", "Ruled out, and why", (Prose(text), table))


def _held(report: SeriesReport) -> Iterator[Section]:
    """What became of effects that were measured before, on another base."""
    found = held(report)
    if not found:
        return
    counted = {word: sum(one.word is word for one in found) for word in StatedOutcome}
    lead = ", ".join(f"{count} {word.value}" for word, count in counted.items() if count)
    columns = (
        Column("patch", "name"),
        Column("region"),
        Column("% earlier", "number"),
        Column("% now", "number"),
        Column("it", "word"),
    )
    rows = tuple(
        (
            Cell(one.patch),
            Cell(one.region),
            cells.percent(Fraction(f"{one.earlier:.4f}")),
            cells.percent(Fraction(f"{one.now:.4f}")) if one.now is not None else Cell("?"),
            Cell(one.word.value),
        )
        for one in found
    )
    table = Table("held-table", "Effects that were measured before", columns, rows)
    yield Section("earlier", "What still holds", (Prose(f"{lead}."), table))


def _needs(report: SeriesReport) -> Iterator[Section]:
    if report.needs:
        columns = (Column("patch", "name"), Column("needs"), Column("why"))
        rows = tuple(
            (Cell(one.patch), Cell(", ".join(one.needs)), Cell(one.reason)) for one in report.needs
        )
        table = Table("needs-table", "Patches that cannot be had without others", columns, rows)
        yield Section("needs", "What needs what", (table,))


def _kept(report: SeriesReport) -> Iterator[Section]:
    if kept := report.kept:
        text = f"{kept.branch}, {words.counted(len(kept.kept), 'commit')}, tip {kept.tip[:12]}."
        for word, names in (("Dropped", kept.dropped), ("Marked", kept.marked)):
            if names:
                text += f" {word}, since slower: {', '.join(names)}."
        yield Section("kept", "The branch that was kept", (Prose(text),))


def series_verdict(report: SeriesReport) -> str:
    """Return in words what all do, which patches do most of it, and how many do nothing."""
    whole, count = means_of(report).whole, len(averaged(report.regions))
    changed = [one for one in report.regions if not one.rate and is_seen(one.whole)]
    if whole is None:
        text = "No region is steady enough for a mean. "
    elif not changed:
        text = "All patches together change no region's path. "
    else:
        text = (
            f"All patches together change the path by {cell(whole)} in the mean over "
            f"{words.counted(count, 'region', 'regions')}; {len(changed)} differ. "
        )
    doing = [row for row in report.of(PatchOutcome.MEASURED) if does_something(row.answer.effects)]
    if report.minimal is None:
        text += f"{words.counted(len(doing), 'patch is', 'patches are')} known to do something. "
    code = [(row.name, searched.code_texts(row.answer.code)) for row in unseen_rows(report)]
    if known := [f"{name} {texts[0]}" for name, texts in code if texts]:
        more = [f"{len(known) - _KNOWN} more"] if len(known) > _KNOWN else []
        text += f"Exact, but less than runs vary by: {'; '.join([*known[:_KNOWN], *more])}. "
    out = words.counted(len(report.of(PatchOutcome.RULED_OUT)), "patch was", "patches were")
    return f"{text}{out} ruled out without a build."


def does_something(effects: Mapping[str, Estimate]) -> bool:
    """Whether an effect is more than its spread in any region."""
    return any(is_seen(one) for region, one in effects.items() if region != MEAN)


def unseen_rows(report: SeriesReport) -> list[SeriesRow]:
    """The patches that were measured, or cleared with others, and do nothing in any region."""
    measured = [*report.of(PatchOutcome.MEASURED), *report.of(PatchOutcome.CLEARED)]
    return [row for row in measured if not does_something(row.answer.effects)]


def series_parts(region: str, report: SeriesReport) -> list[searched.Part]:
    """Return a region's patches and groups of them."""
    return [
        (row.name, row.answer.effects[region])
        for row in report.of(PatchOutcome.MEASURED)
        if region in row.answer.effects
    ] + [
        (f"group {number} ({len(group.patches)} patches)", group.effects[region])
        for number, group in enumerate(report.groups, start=1)
        if region in group.effects
    ]
