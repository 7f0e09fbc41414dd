# SPDX-License-Identifier: GPL-2.0-or-later
"""A series' page: what each patch does, which were ruled out and why, what needs what."""

from collections import Counter
from collections.abc import Iterator, Mapping

from kdelta.infer.estimate import Estimate
from kdelta.infer.minimal import Role
from kdelta.infer.series_model import PatchFate, PatchGroup, View, ViewAnswer
from kdelta.report.html import common, searched, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Chip,
    Column,
    Document,
    Items,
    Prose,
    Section,
    Table,
)
from kdelta.report.means import about, averaged, cell, left_over
from kdelta.report.series import (
    HEADS,
    WORDS,
    means_of,
    most_in,
    parts_of,
    series_text,
    unseen_rows,
    verdict_text,
)
from kdelta.report.series_model import Minimal, SeriesReport, SeriesRow
from kdelta.report.stored import Stored

_TONES = {
    PatchFate.UNRESOLVED: "unresolved",
    PatchFate.TOGETHER: "unresolved",
    PatchFate.RULED_OUT: "same",
    PatchFate.CLEARED: "same",
}


def document(stored: Stored, report: SeriesReport) -> Document:
    """The page of a series of patches."""
    ends = tuple(zip(("without", "with all"), report.ends, strict=True))
    return Document(
        title="kdelta series",
        question=stored.question,
        answers=(_answer(report),),
        facts=(
            ("tree", report.tree),
            ("patches", " ".join(report.words)),
            *((who, common.kernel_fact(side)) for who, side in ends),
            ("workload", ", ".join(report.workloads)),
        ),
        sections=(
            *_sections(report),
            *searched.last_sections(
                stored, report, ends, series_text(report, stored.shown.get("explain", 8))
            ),
        ),
        warnings=tuple(common.failures(ends)),
    )


def _answer(report: SeriesReport) -> Answer:
    if report.failure:
        return Answer((report.failure,), tone="unresolved")
    fates = Counter(row.answer.fate for row in report.rows)
    chips = tuple(Chip(fate.value, count) for fate, count in fates.items())
    sentences = [verdict_text(report)]
    if report.minimal and report.minimal.answer.members:
        names = [one.name for one in report.minimal.answer.members]
        sentences.append(f"The smallest set with the effect: {words.listed(names)}.")
    return Answer(tuple(sentences), chips, tone=searched.mean_tone(means_of(report).whole()))


def _sections(report: SeriesReport) -> Iterator[Section]:
    if report.failure:
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
    lead = Prose(about(len(averaged(report.regions)), "the tree without patches"))
    yield Section("patches", "Patches and what they do", (*chart, _patches_table(report), lead))
    unseen = [(row.name, row.answer.effects) for row in unseen_rows(report)]
    yield from searched.unseen_section(unseen, every)
    yield from searched.apart_section(report.regions)
    if report.minimal:
        yield Section("minimal", "The smallest set", tuple(_minimal(report, report.minimal)))
    if report.groups:
        texts = tuple(
            f"group {number}: {', '.join(group.patches)}; {group.reason}"
            for number, group in enumerate(report.groups, start=1)
        )
        yield Section("groups", "Not taken apart", (Items(texts),))
    yield from _ruled_out(report)
    yield from _earlier(report)
    folds = searched.account_folds(report.regions, lambda name: parts_of(name, report), WORDS)
    if folds and report.minimal is None:
        lead = Prose("What did it in each region that changed; rows add up to all patches.")
        yield Section("regions", "Regions", (lead, *folds))
    yield from _needs(report)
    if report.interactions:
        texts = tuple(
            f"{' + '.join(one.units)}: most in {most_in(one.effects, report) or 'nowhere'}; "
            f"{one.text}"
            for one in report.interactions
        )
        title = Prose("Together these do more or less than each alone:")
        yield Section("interactions", "Interactions", (title, Items(texts)))
    yield from searched.proof_section(report.proof)
    yield from _kept(report)
    yield from searched.builds_section(report.builds)


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
    rows = [_patch_row(row, views, report) for row in report.rows]
    rows += [
        _group_row(f"group {number}", group, views, report)
        for number, group in enumerate(report.groups, start=1)
    ]
    explained = means_of(report).sums
    whole = means_of(report).wholes
    left = means_of(report).rests
    foot = tuple(
        (
            Cell(name),
            Cell(word),
            *searched.mean_cells(means_of(report).of(effects)),
            *[Cell("")] * (2 * len(views) + 1),
        )
        for name, effects, word in (
            ("sum of these", explained, ""),
            ("all patches", whole, ""),
            (WORDS.remainder, left, left_over(means_of(report))),
        )
        if effects is not left or word
    )
    caption = "Mean over all regions, in per cent of the tree without patches; a minus is faster"
    return Table("patches-table", caption, columns, tuple(rows), foot, filtered=True)


def _patch_row(row: SeriesRow, views: list[View], report: SeriesReport) -> tuple[Cell, ...]:
    answer = row.answer
    mean = means_of(report).of(answer.effects)
    tone = _TONES.get(answer.fate, searched.TONES[searched.mean_tone(mean)])
    cells = {View.ORDER: answer.effects, View.LEFT_OUT: _of(answer.left_out),
             View.ALONE: _of(answer.alone)}  # fmt: skip
    return (
        Cell(row.name),
        Cell(answer.fate.value, tone=tone),
        *(one for view in views for one in _mean_cells(cells[view], report)),
        Cell(most_in(answer.effects, report)),
        Cell(row.subject),
        Cell(answer.text or row.why),
    )


def _group_row(
    name: str, group: PatchGroup, views: list[View], report: SeriesReport
) -> tuple[Cell, ...]:
    cells = {View.ORDER: group.effects, View.LEFT_OUT: _of(group.left_out),
             View.ALONE: _of(group.alone)}  # fmt: skip
    return (
        Cell(name),
        Cell(words.counted(len(group.patches), "patch", "patches"), tone="unresolved"),
        *(one for view in views for one in _mean_cells(cells[view], report)),
        Cell(most_in(group.effects, report)),
        Cell(""),
        Cell(group.reason),
    )


def _of(view: ViewAnswer | None) -> Mapping[str, Estimate]:
    return view.effects if view else {}


def _mean_cells(effects: Mapping[str, Estimate], report: SeriesReport) -> tuple[Cell, Cell]:
    return searched.mean_cells(means_of(report).of(effects) if effects else None)


def _minimal(report: SeriesReport, minimal: Minimal) -> Iterator[Block]:
    answer = minimal.answer
    if not answer.members:
        yield Prose(f"No set was found that has the effect. {answer.note}")
        return
    within = words.percent(100 * minimal.within).lstrip("+")
    count = words.counted(len(answer.members), "patch has", "patches have")
    text = f"{count} the effect of all, within {within} of it."
    if not answer.complete:
        text = f"{count} to be there, and perhaps more."
    yield Prose(text)
    yield Items(
        tuple(
            f"{one.name}: {'' if one.role is Role.CULPRIT else 'needed: '}{one.text}"
            for one in answer.members
        )
    )
    if minimal.effects:
        mean = cell(means_of(report).of(minimal.effects))
        most = most_in(minimal.effects, report)
        yield Prose(f"Together, without the others: {mean} in the mean, most in {most}.")


def _ruled_out(report: SeriesReport) -> Iterator[Section]:
    rows = report.of(PatchFate.RULED_OUT)
    if not rows:
        return
    columns = (
        Column("patch", "name"),
        Column("objects", "number", "that it reaches"),
        Column("executed", "number", "of these, those that executed code depends on"),
        Column("why"),
    )
    shown = tuple(
        (
            Cell(row.name),
            Cell("" if row.objects is None else str(row.objects), row.objects or 0),
            Cell("" if row.alive is None else str(row.alive), row.alive or 0),
            Cell(row.why or "no executed code depends on it"),
        )
        for row in rows
    )
    text = f"{words.counted(len(rows), 'patch', 'patches')} needed no kernel of their own."
    table = Table("out-table", "Patches that were ruled out", columns, shown, filtered=True)
    yield Section("ruled-out", "Ruled out, and why", (Prose(text), table))


def _earlier(report: SeriesReport) -> Iterator[Section]:
    texts = tuple(f"{row.name}: {text}" for row in report.rows for text in row.earlier)
    if texts:
        yield Section("earlier", "What was measured before", (Items(texts),))


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
