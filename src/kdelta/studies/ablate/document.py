# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of an ablation: which options do it, what was ruled out, how the configs differ."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from kdelta.infer.effects.estimate import Estimate, is_seen, share_percent
from kdelta.measures.cycles.words import cpu_line
from kdelta.report import cells, words
from kdelta.report import effects as measures
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Case,
    Cell,
    Chip,
    Column,
    Document,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.stored import Stored
from kdelta.studies.ablate import measured
from kdelta.studies.ablate.model import AblatedGroup, AblationReport, GroupOutcome
from kdelta.studies.search import document as searched
from kdelta.studies.search.model import averaged, bound_text, cell, how_made, means_of, totals

_OUTCOMES = {
    GroupOutcome.MEASURED: "measured",
    GroupOutcome.CLEARED: "no effect",
    GroupOutcome.UNRESOLVED: "unresolved",
    GroupOutcome.TOGETHER: "not distinguished",
    GroupOutcome.DEAD: "not executed",
    GroupOutcome.IDENTICAL: "compiles the same",
}
_WHYS = {
    GroupOutcome.DEAD: "no executed code depends on it",
    GroupOutcome.IDENTICAL: (
        "the executed objects that it reaches came out the same, compiled with it"
    ),
}
_TONES = {GroupOutcome.UNRESOLVED: "unresolved", GroupOutcome.TOGETHER: "unresolved"}
WORDS = searched.AccountWords("option groups", "B - A is", "total", "not accounted for", "B less A")

WHOLE = "B - A"

RULED_OUT = (GroupOutcome.DEAD, GroupOutcome.IDENTICAL)


def ablate_document(stored: Stored) -> Document:
    """Return the document of an ablation."""
    report = stored.one(AblationReport)
    names = tuple(f"{who}, {name}" for who, name in zip("AB", report.names, strict=True))
    ends = tuple(zip(names, report.ends, strict=True))
    cases = tuple(
        _case(unit) for unit in report.option_groups if unit.outcome is not GroupOutcome.TOGETHER
    )
    found = Document(
        title=f"{' '.join(report.workloads)}: {' -> '.join(report.names)}",
        made=common.made_of(stored),
        answers=(_answer(report),),
        facts=(
            ("tree", report.tree),
            *((who, common.kernel_fact(side)) for who, side in ends),
            ("workload", ", ".join(report.workloads)),
            *((("priced", cpu_line(report.cpu)),) if report.cpu else ()),
        ),
        sections=tuple(_sections(report)),
        environment=common.environment(stored, report.machine, ends),
        suites=(
            *searched.suites(names, report.ends, report.regions, Suite("options", cases)),
            *map(measures.suite, measured.plain(report.measured)),
        ),
        failures=common.failures(ends),
        notes=(*searched.undecided_texts(report.regions), *report.notes),
        warnings=report.warnings,
    )
    return searched.failed(found, report.failure) if report.failure else found


def _case(unit: AblatedGroup) -> Case:
    name = ", ".join(unit.options) or unit.name
    if unit.outcome is GroupOutcome.UNRESOLVED:
        return Case(name, Outcome.UNKNOWN, f"unresolved: {unit.why}")
    return searched.effects_case(name, unit.effects, unit.how or unit.why or str(unit.outcome))


def _answer(report: AblationReport) -> Answer:
    if report.failure:
        return Answer((report.failure,), tone="unresolved")
    outcomes = Counter(_OUTCOMES[unit.outcome] for unit in report.option_groups)
    chips = tuple(Chip(word, count) for word, count in outcomes.items())
    tone = searched.mean_tone(means_of(report).whole)
    proof = (f"Proof: {report.proof.text}",) if report.proof else ()
    return Answer((verdict_text(report), *proof), chips, tone=tone)


def _sections(report: AblationReport) -> Iterator[Section]:
    if report.failure:
        yield from searched.builds_section(report.builds)
        if report.cpu:
            yield from common.unlike_section(report.cpu.name, report.mismatches)
        return
    ranked = ranked_units(report)
    means = means_of(report)
    chart = searched.means_chart(
        [(unit.name, means.of(unit.effects)) for unit in ranked],
        "Mean over all regions, in per cent of A, of what flipping each option group does.",
    )
    lead = Prose(how_made(len(averaged(report.regions)), "A"))
    yield Section(
        "option groups", "Option groups and what they do", (*chart, _units_table(report), lead)
    )
    unseen = [(unit.name, unit.effects) for unit in unseen_units(report)]
    yield from searched.unseen_section(unseen, means)
    yield from searched.apart_section(report.regions)
    together = (one for one in report.option_groups if one.outcome is GroupOutcome.TOGETHER)
    yield from searched.items_section(
        "together", "Not distinguished", (f"{one.name}: {one.why}" for one in together)
    )
    yield from _ruled_out(report)
    yield from searched.regions_sections(
        report.regions, ("A", "B"), WORDS, partial(parts_of, report=report)
    )
    yield from measured.sections(report, [*ranked, *unseen_units(report)])
    yield from searched.interactions_section(
        f"{' + '.join(one.option_groups)}: most in {means.most_in(one.effects) or 'nowhere'}"
        for one in report.interactions
    )
    yield from _switches(report)
    yield from searched.proof_section(report.proof)
    yield Section("configs", "How the configs differ", (_options_table(report),), detail=True)
    alone = sum(unit.outcome is not GroupOutcome.TOGETHER for unit in report.option_groups)
    instead = f"one at a time would be {alone + 2}" if alone else ""
    yield from searched.builds_section(report.builds, instead)
    if report.cpu:
        yield from common.unlike_section(report.cpu.name, report.mismatches)


def _units_table(report: AblationReport) -> Table:
    several = len(report.workloads) > 1
    columns = (
        Column("option group", "name"),
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
    unresolved = [unit for unit in report.option_groups if unit.outcome is GroupOutcome.UNRESOLVED]
    rows = tuple(
        _unit_row(unit, report, several=several) for unit in [*ranked_units(report), *unresolved]
    )
    sides = report.vmlinux_bytes
    grown = None if None in sides else (sides[1] or 0) - (sides[0] or 0)
    foot = tuple(
        (
            Cell(name),
            Cell(word),
            *_means_of(effects, report, several=several),
            cells.NOTHING,
            cells.signed(grown if name == WHOLE else None),
            cells.NOTHING,
        )
        for name, effects, word in totals(means_of(report), WHOLE, WORDS.remainder)
    )
    caption = "An option group: options that can only be flipped together"
    return Table("units-table", caption, columns, rows, foot=foot, filtered=True)


def _unit_row(unit: AblatedGroup, report: AblationReport, *, several: bool) -> tuple[Cell, ...]:
    tone = _TONES.get(unit.outcome, searched.mean_tone(means_of(report).of(unit.effects)))
    return (
        Cell(unit.name),
        Cell(_OUTCOMES[unit.outcome], tone=tone),
        *_means_of(unit.effects, report, several=several),
        Cell((means_of(report).most_in(unit.effects) or "nowhere") if unit.effects else ""),
        cells.signed(unit.vmlinux_bytes),
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
    out = [unit for unit in report.option_groups if unit.outcome in RULED_OUT]
    if not out:
        return
    columns = (
        Column("option group", "name"),
        Column("why", "word"),
        *searched.REACH_COLUMNS,
        Column("in words"),
    )
    rows = tuple(
        (
            Cell(unit.name),
            Cell(_OUTCOMES[unit.outcome], tone="same"),
            *searched.reach_cells(unit.objects, unit.alive),
            Cell(unit.why or _WHYS[unit.outcome]),
        )
        for unit in out
    )
    caption = "Option groups without an effect, which needed no kernel of their own"
    table = Table("out-table", caption, columns, rows, filtered=True)
    text = (
        f"{words.counted(len(out), 'option group was', 'option groups were')} ruled out. "
        + " ".join(
            f"{_OUTCOMES[outcome]}: {why}."
            for outcome, why in _WHYS.items()
            if any(u.outcome is outcome for u in out)
        )
    )
    yield Section("ruled-out", "Ruled out, and why", (Prose(text), table))


def _switches(report: AblationReport) -> Iterator[Section]:
    rows = tuple(
        (
            Cell(unit.name),
            Cell(unit.switch.words),
            *searched.mean_cells(means_of(report).of(unit.switch.effects)),
            *searched.mean_cells(
                means_of(report).of(unit.effects) if unit.outcome is GroupOutcome.MEASURED else None
            ),
        )
        for unit in report.option_groups
        if unit.switch
    )
    if not rows:
        return
    columns = (
        Column("option group", "name"),
        Column("on the command line"),
        Column("% at run time", "number"),
        Column("spread at run time", "number"),
        Column("% built", "number"),
        Column("spread built", "number"),
    )
    caption = "What the command line switches of an option group, mean over all regions"
    yield Section("switches", "At run time", (Table("switches-table", caption, columns, rows),))


def _options_table(report: AblationReport) -> Table:
    """Every option that differs, with the option group that it belongs to."""
    columns = (
        Column("option", "name"),
        Column("A"),
        Column("B"),
        Column("option group"),
        Column("what became of it", "word"),
    )

    def row(unit: AblatedGroup, option: str) -> tuple[Cell, ...]:
        name, _, change = option.partition(" ")
        before, _, after = change.partition(" -> ")
        outcome = Cell(_OUTCOMES[unit.outcome], tone=_TONES.get(unit.outcome, "same"))
        return (Cell(name), Cell(before), Cell(after), Cell(unit.name), outcome)

    rows = tuple(row(unit, option) for unit in report.option_groups for option in unit.options)
    caption = f"{report.options} options differ between the two granted configs"
    return Table("options-table", caption, columns, rows, filtered=True)


def verdict_text(report: AblationReport) -> str:
    """In words: which option groups do most of it, and how many do nothing."""
    total = sum(unit.outcome is not GroupOutcome.TOGETHER for unit in report.option_groups)
    out = sum(unit.outcome in RULED_OUT for unit in report.option_groups)
    text = f"{report.options} options differ, in {total} option groups. {_most_of_it(report)}"
    count = words.counted(out, "option group was", "option groups were")
    return f"{text}{count} ruled out without a build."


def _most_of_it(report: AblationReport) -> str:
    means = means_of(report)
    whole, count = means.whole, len(averaged(report.regions))
    if whole is None:
        return "No region is steady enough for a mean. "
    where = f"the mean over {words.counted(count, 'region')}"
    if not is_seen(whole):
        return f"No effect is seen in {where}: it is at most {bound_text(whole)}. "
    shares = []
    for unit in ranked_units(report)[:3]:
        mean = means.of(unit.effects)
        share = share_percent(mean, whole) if mean else None
        if share is not None:
            shares.append(f"{unit.name} {_share(share)}")
    parts = f": {', '.join(shares)}" if shares else ""
    return f"Of the change of {cell(whole)} in {where}{parts}. "


def _share(share: Estimate) -> str:
    value = f"{float(share.value):.0f} %"
    ends = f"{float(share.low):.0f}", f"{float(share.high):.0f}"
    return value if ends[0] == ends[1] else f"{value} ({ends[0]} to {ends[1]} %)"


def ranked_units(report: AblationReport) -> list[AblatedGroup]:
    """The option groups with an effect in the mean, those with the largest first."""
    means = means_of(report)
    seen = [unit for unit in _measured(report) if means.sees(unit.effects)]
    return sorted(seen, key=lambda unit: (-means.size(unit.effects), unit.name))


def unseen_units(report: AblationReport) -> list[AblatedGroup]:
    """The option groups that were measured, and the interval of whose mean holds zero, by name."""
    means = means_of(report)
    unseen = [unit for unit in _measured(report) if not means.sees(unit.effects)]
    return sorted(unseen, key=lambda unit: unit.name)


def _measured(report: AblationReport) -> list[AblatedGroup]:
    return [
        unit
        for unit in report.option_groups
        if unit.outcome not in RULED_OUT and unit.outcome is not GroupOutcome.UNRESOLVED
    ]


def parts_of(region: str, report: AblationReport) -> list[searched.Part]:
    """Return a region's option groups, and what option groups do only together."""
    units = [
        (unit.name, unit.effects[region]) for unit in report.option_groups if region in unit.effects
    ]
    return units + [
        (f"together: {' + '.join(pair.option_groups)}", pair.effects[region])
        for pair in report.interactions
        if region in pair.effects
    ]
