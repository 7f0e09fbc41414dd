# SPDX-License-Identifier: GPL-2.0-or-later
"""An ablation's page: which options do it, which were ruled out and why, and how they differ."""

from collections import Counter
from collections.abc import Iterator, Mapping

from kdelta.infer.estimate import Estimate
from kdelta.report.ablation import (
    RULED_OUT,
    WORDS,
    ablation_text,
    means_of,
    most_in,
    parts_of,
    ranked_units,
    unseen_units,
    verdict_text,
)
from kdelta.report.ablation_model import AblatedUnit, AblationReport, Fate
from kdelta.report.html import common, cycles, searched, words
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
from kdelta.report.means import about, averaged, left_over
from kdelta.report.stored import Stored

_FATES = {
    Fate.MEASURED: "measured",
    Fate.CLEARED: "no effect",
    Fate.UNRESOLVED: "unresolved",
    Fate.TOGETHER: "not told apart",
    Fate.DEAD: "not executed",
    Fate.IDENTICAL: "compiles the same",
}
_WHYS = {
    Fate.DEAD: "no executed code depends on it",
    Fate.IDENTICAL: "the executed objects that it reaches came out the same, compiled with it",
}
_TONES = {Fate.UNRESOLVED: "unresolved", Fate.TOGETHER: "unresolved"}


def document(stored: Stored, report: AblationReport) -> Document:
    """The page of an ablation."""
    ends = tuple(zip(("A", "B"), report.ends, strict=True))
    return Document(
        title="kdelta ablate",
        question=stored.question,
        answers=(_answer(report),),
        facts=(
            ("tree", report.tree),
            *((f"{who}: {name}", common.kernel_fact(side))
              for (who, side), name in zip(ends, report.names, strict=True)),
            ("workload", ", ".join(report.workloads)),
        ),
        sections=(
            *_sections(report),
            *searched.last_sections(
                stored, report, ends, ablation_text(report, stored.shown.get("explain", 8))
            ),
        ),
        warnings=tuple(common.failures(ends)),
    )  # fmt: skip


def _answer(report: AblationReport) -> Answer:
    if report.failure:
        return Answer((report.failure,), tone="unresolved")
    fates = Counter(_FATES[unit.fate] for unit in report.units)
    chips = tuple(Chip(word, count) for word, count in fates.items())
    tone = searched.mean_tone(means_of(report).whole())
    return Answer((verdict_text(report),), chips, tone=tone)


def _sections(report: AblationReport) -> Iterator[Section]:
    if report.failure:
        return
    ranked = ranked_units(report)
    means = means_of(report)
    chart = searched.means_chart(
        [(unit.name, means.of(unit.effects)) for unit in ranked],
        "Mean over all regions, in per cent of A, of what flipping each unit does.",
    )
    lead = Prose(about(len(averaged(report.regions)), "A"))
    yield Section(
        "units", "Units of options and what they do", (*chart, _units_table(report), lead)
    )
    unseen = [(unit.name, unit.effects) for unit in unseen_units(report)]
    yield from searched.unseen_section(unseen, means)
    yield from searched.apart_section(report.regions)
    yield from _ruled_out(report)
    folds = searched.account_folds(report.regions, lambda name: parts_of(name, report), WORDS)
    if folds:
        lead = Prose("What did it in each region that changed; rows add up to B less A.")
        yield Section("regions", "Regions", (lead, *folds))
    yield from _cycles(report)
    if report.interactions:
        texts = tuple(
            f"{' + '.join(one.units)}: most in {most_in(one.effects, report)}"
            for one in report.interactions
        )
        title = Prose("Together these do more or less than each alone:")
        yield Section("interactions", "Interactions", (title, Items(texts)))
    yield from _switches(report)
    yield from searched.proof_section(report.proof)
    yield Section("configs", "How the configs differ", (_options_table(report),))
    yield from searched.builds_section(report.builds)
    if report.cpu:
        yield from common.unlike_section(report.cpu.name, report.unlike)


def _units_table(report: AblationReport) -> Table:
    several = len(report.workloads) > 1
    columns = (
        Column("unit", "name"),
        Column("what became of it", "word"),
        *searched.MEAN_COLUMNS,
        *(
            column
            for name in (report.workloads if several else ())
            for column in (Column(f"% {name}", "number"), Column(f"spread {name}", "number"))
        ),
        Column("most in"),
        Column("vmlinux", "number", "bytes that it adds to the image"),
        Column("how it is known"),
    )
    unresolved = [unit for unit in report.units if unit.fate is Fate.UNRESOLVED]
    shown = [*ranked_units(report), *unresolved]
    rows = tuple(_unit_row(unit, report, several=several) for unit in shown)
    whole = means_of(report).wholes
    explained = means_of(report).sums
    left = means_of(report).rests
    foot = tuple(
        (
            Cell(name),
            Cell(word),
            *_means_of(effects, report, several=several),
            *[Cell("")] * 3,
        )
        for name, effects, word in (
            ("sum of these", explained, ""),
            ("B - A", whole, ""),
            (WORDS.remainder, left, left_over(means_of(report))),
        )
        if effects is not left or word
    )
    caption = "Units: options that can only be flipped together"
    return Table("units-table", caption, columns, rows, foot, filtered=True)


def _unit_row(unit: AblatedUnit, report: AblationReport, *, several: bool) -> tuple[Cell, ...]:
    mean = means_of(report).of(unit.effects)
    known = bool(unit.effects)
    tone = _TONES.get(unit.fate, searched.TONES[searched.mean_tone(mean)])
    size = unit.vmlinux_bytes
    return (
        Cell(unit.name),
        Cell(_FATES[unit.fate], tone=tone),
        *_means_of(unit.effects, report, several=several),
        Cell(most_in(unit.effects, report) if known else ""),
        Cell("" if size is None else words.signed(size), size or 0),
        Cell(unit.how or unit.why),
    )  # fmt: skip


def _means_of(
    effects: Mapping[str, Estimate], report: AblationReport, *, several: bool
) -> tuple[Cell, ...]:
    """Over all regions, and over those of each workload where there are several."""
    means = means_of(report)
    over = [None, *(report.workloads if several else ())]
    found = [means.of(effects, workload) if effects else None for workload in over]
    return tuple(cell for mean in found for cell in searched.mean_cells(mean))


def _ruled_out(report: AblationReport) -> Iterator[Section]:
    out = [unit for unit in report.units if unit.fate in RULED_OUT]
    if not out:
        return
    columns = (
        Column("unit", "name"),
        Column("why", "word"),
        Column("objects", "number", "that it reaches"),
        Column("executed", "number", "of these, those that executed code depends on"),
        Column("in words"),
    )
    rows = tuple(
        (
            Cell(unit.name),
            Cell(_FATES[unit.fate], tone="same"),
            Cell("" if unit.objects is None else str(unit.objects), unit.objects or 0),
            Cell("" if unit.alive is None else str(unit.alive), unit.alive or 0),
            Cell(unit.why or _WHYS[unit.fate]),
        )
        for unit in out
    )
    caption = "Units without an effect, which needed no kernel of their own"
    table = Table("out-table", caption, columns, rows, filtered=True)
    text = f"{words.counted(len(out), 'unit was', 'units were')} ruled out. " + " ".join(
        f"{_FATES[fate]}: {why}." for fate, why in _WHYS.items() if any(u.fate is fate for u in out)
    )
    yield Section("ruled-out", "Ruled out, and why", (Prose(text), table))


def _switches(report: AblationReport) -> Iterator[Section]:
    rows = tuple(
        (
            Cell(unit.name),
            Cell(unit.switch.words),
            *searched.mean_cells(means_of(report).of(unit.switch.effects)),
            *searched.mean_cells(
                means_of(report).of(unit.effects) if unit.fate is Fate.MEASURED else None
            ),
        )
        for unit in report.units
        if unit.switch
    )
    if not rows:
        return
    columns = (
        Column("unit", "name"),
        Column("on the command line"),
        Column("% at run time", "number"),
        Column("spread at run time", "number"),
        Column("% built", "number"),
        Column("spread built", "number"),
    )
    caption = "What the command line switches of a unit, mean over all regions"
    table = Table("switches-table", caption, columns, rows)
    yield Section("switches", "At run time", (table,))


def _cycles(report: AblationReport) -> Iterator[Section]:
    if report.cpu is None or not report.cycles:
        return
    effects = tuple(report.cycles.values())
    lead = Prose(cycles.sentence(effects))
    blocks: tuple[Block, ...] = (
        lead,
        *cycles.effect_chart(effects, report.cpu),
        *cycles.ensembles(effects, ("A", "B")),
    )
    yield Section("placement", f"Model cycles on {report.cpu.name}, from A to B", blocks)


def _options_table(report: AblationReport) -> Table:
    """Every option that differs, with the unit that it belongs to."""
    columns = (
        Column("option", "name"),
        Column("A"),
        Column("B"),
        Column("unit"),
        Column("what became of it", "word"),
    )
    rows = []
    for unit in report.units:
        for option in unit.options:
            name, _, change = option.partition(" ")
            before, _, after = change.partition(" -> ")
            tone = _TONES.get(unit.fate, "same")
            rows.append(
                (
                    Cell(name),
                    Cell(before),
                    Cell(after),
                    Cell(unit.name),
                    Cell(_FATES[unit.fate], tone=tone),
                )
            )
    caption = f"{report.options} options differ between the two granted configs"
    return Table("options-table", caption, columns, tuple(rows), filtered=True)
