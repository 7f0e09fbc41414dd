# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a bisection: the commits that did it, what they did, and which were ruled out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.effects.estimate import NARROW, STEADY, ZERO, Adds, Estimate, is_seen
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Cell,
    Chip,
    Column,
    Document,
    Fold,
    Items,
    Prose,
    Section,
    Suite,
    Table,
    Verbatim,
)
from kdelta.report.stored import Stored
from kdelta.spec.errors import LabError
from kdelta.studies.bisect.model import BisectReport, FoundCommit
from kdelta.studies.search import document as searched
from kdelta.studies.search import measured
from kdelta.studies.search.measured import MeasuredChange
from kdelta.studies.search.model import BisectedRegion, percents

_FUNCTIONS = 12


def bisect_document(stored: Stored) -> Document:
    """Return the document of a bisection."""
    report = stored.one(BisectReport)
    names = tuple(f"{who}, {name}" for who, name in zip(("good", "bad"), report.names, strict=True))
    ends = tuple(zip(names, report.ends, strict=True))
    title = f"{' '.join(report.workloads)}: {report.names[0]}..{report.names[1]}"
    count = words.counted(len(report.found), "commit")
    found = Document(
        title=title if report.failure else f"{title}: {count} found",
        made=common.made_of(stored),
        answers=(_answer(report),),
        facts=(
            ("tree", report.repository),
            ("good", report.good.cited),
            ("bad", report.bad.cited),
            ("range", f"{words.counted(report.commits, 'commit')}, {report.candidates} searched"),
            ("workload", ", ".join(report.workloads)),
        ),
        sections=tuple(_sections(report)),
        environment=common.environment(stored, report.machine, ends),
        suites=(
            *searched.suites(names, report.ends, report.regions, _commits(report)),
            *measured.measured_suites(_changes(report)),
        ),
        failures=common.failures(ends),
        notes=(
            *left_texts([one for one in report.regions if is_seen(one.whole)]),
            *varying_texts(report.regions),
            *searched.undecided_texts(report.regions),
            *report.notes,
        ),
        warnings=report.warnings,
    )
    return searched.failed(found, report.failure) if report.failure else found


def _changes(report: BisectReport) -> list[MeasuredChange]:
    """Return the commits that measures were asked about."""
    return [
        MeasuredChange(one.commit.short, one.effects, one.measured)
        for one in report.found
        if one.measured
    ]


def _commits(report: BisectReport) -> Suite:
    cases = (
        *(searched.effects_case(one.commit.cited, one.effects, one.how) for one in report.found),
        *(
            searched.effects_case(
                f"{len(group.commits)} commits together from {group.commits[0].cited}",
                group.effects,
            )
            for group in report.groups
        ),
    )
    return Suite("commits", cases)


def _answer(report: BisectReport) -> Answer:
    if report.failure:
        return Answer((report.failure,), tone="unresolved")
    sentences = [bisect_verdict(report)]
    sentences += [_commit_sentence(found, report) for found in report.found[:3]]
    chips = [
        Chip("found", len(report.found), "slower"),
        Chip("groups not distinguished", len(report.groups), "unresolved"),
        Chip("placement", len(report.placement), "placement"),
        Chip("ruled out", len(report.ruled_out)),
    ]
    tone = "slower" if report.found else "unresolved" if report.groups else "same"
    return Answer(tuple(sentences), tuple(chip for chip in chips if chip.count), tone=tone)


def _commit_sentence(found: FoundCommit, report: BisectReport) -> str:
    rows = changed_regions(found.effects, report)
    if not rows:
        return f"{found.commit.cited}: {_moved_text(found, report)}."
    region, effect = rows[0]
    part = figures.percent(region.percent(effect.value))
    more = measured.sentence(found.measured, region.name)
    return f"{found.commit.cited}: {region.name} {figures.difference(effect.value)} ({part}){more}."


def _sections(report: BisectReport) -> Iterator[Section]:
    if report.failure:
        yield from searched.builds_section(report.builds)
        return
    if report.found:
        yield Section("commits", "Commits that did it", tuple(_found(report)))
    if report.groups:
        yield Section("groups", "Commits that were not distinguished", tuple(_groups(report)))
    yield from measured.sections(_changes(report), "commit")
    if report.regions:
        yield Section("regions", "Regions", (_regions_table(report),))
    if report.placement:
        yield Section("placement", "Placement", tuple(_placement(report)))
    if report.ruled_out:
        yield _ruled_out(report)
    yield from searched.builds_section(report.builds)


def _effects_table(
    id_: str, caption: str, effects: Mapping[str, Estimate], report: BisectReport
) -> Table:
    columns = (
        Column("region", "name"),
        Column("effect", "word"),
        *(Column(title, "number") for title in ("diff", "%", "spread")),
    )
    rows = tuple(
        (
            Cell(region.name),
            _word(effect, region),
            cells.signed(effect.value),
            cells.percent(region.percent(effect.value)),
            cells.spread(effect),
        )
        for region, effect in changed_regions(effects, report)
    )
    return Table(id_, caption, columns, rows)


def _word(effect: Estimate, region: BisectedRegion) -> Cell:
    word = searched.word_of(effect, region.before)
    return Cell(word, tone=word)


def _moved_text(found: FoundCommit, report: BisectReport) -> str:
    """What a commit did that has no effect on a region: none, or none that is known."""
    names = [one.name for one in report.regions if searched.is_undecided(one)]
    varying = [name for name in names if name in found.functions]
    if varying:
        return f"changed functions in {words.listed(varying)}, whose runs vary too much for a word"
    return "moved work between functions"


def _found(report: BisectReport) -> Iterator[Block]:
    for number, found in enumerate(report.found):
        commit = found.commit
        blocks: list[Block] = [Prose(f"{commit.author}, {commit.date}. {found.how}")]
        if changed_regions(found.effects, report):
            caption = f"What {commit.short} does; in {searched.units_of(report.regions)}"
            blocks.append(_effects_table(f"commit-{number}", caption, found.effects, report))
        elif found.moved:
            text = _moved_text(found, report)
            blocks.append(Prose(f"No region is known to have changed: it {text}."))
        if functions := tuple(_functions(found)):
            blocks.append(Fold("Functions", (Items(functions),)))
        if log := report.logs.get(commit.name):
            blocks.append(Fold("As git bisect log would have it", (Verbatim(log),)))
        yield Fold(commit.cited, tuple(blocks), open=number < 3)


def _functions(found: FoundCommit) -> Iterator[str]:
    for region, effects in found.functions.items():
        ranked = sorted(effects.items(), key=lambda item: (-abs(item[1].value), item[0]))
        shown = [
            f"{name} {figures.difference(effect.value)}" for name, effect in ranked[:_FUNCTIONS]
        ]
        if len(ranked) > _FUNCTIONS:
            shown.append(f"{len(ranked) - _FUNCTIONS} more")
        if shown:
            yield f"{region}: {', '.join(shown)}"


def _groups(report: BisectReport) -> Iterator[Block]:
    for number, group in enumerate(report.groups):
        title = f"{words.counted(len(group.commits), 'commit')} together: {group.why}"
        commits = Items(tuple(commit.cited for commit in group.commits))
        table = _effects_table(f"group-{number}", "What they do together", group.effects, report)
        yield Fold(title, (commits, table), open=True)


def _regions_table(report: BisectReport) -> Table:
    columns = (
        Column("region", "name"),
        Column("effect", "word"),
        *(Column(title, "number") for title in ("good", "bad", "diff", "spread", "%")),
        Column("found", "number", "the effects of what was found, added up"),
        Column("left", "number", "what they do not account for"),
        Column("sum", "word", f"adds up if what is left is 0 within {percents(NARROW)}"),
    )
    rows = tuple(
        (
            Cell(f"{one.name}, a virtual second" if one.rate else one.name),
            _word(one.whole, one),
            *cells.between(one.before.value, one.after.value),
            cells.spread(one.whole),
            cells.percent(one.percent(one.whole.value)),
            *_found_and_left(one),
            Cell(one.adds.value, tone="" if one.adds is Adds.ADDS_UP else "unresolved"),
        )
        for one in sorted(report.regions, key=lambda one: -abs(part_of_cost(one.whole.value, one)))
    )
    return Table(
        "regions-table",
        f"Both ends, in {searched.units_of(report.regions)}",
        columns,
        rows,
        filtered=True,
    )


def _found_and_left(region: BisectedRegion) -> tuple[Cell, ...]:
    """What was found and what is left, as printed adding up to bad less good."""
    effects = region.explained, region.remainder
    return tuple(
        Cell(f"{cells.difference(printed, value).text} {figures.spread(effect)}", float(value))
        for printed, effect in zip(rounded_parts(region), effects, strict=True)
        for value in (effect.value,)
    )


def _placement(report: BisectReport) -> Iterator[Block]:
    yield Prose("Nothing that was executed differs there, only where it lies.")
    texts = []
    for one in report.placement:
        said = "".join(
            f": {region.name} {figures.difference(effect.value)} ({figures.spread(effect)})"
            for region, effect in changed_regions(one.effects, report)[:1]
        )
        between = words.counted(one.commits, "commit")
        texts.append(f"{one.below.short}..{one.above.short} ({between}){said}")
    yield Items(tuple(texts))


def _ruled_out(report: BisectReport) -> Section:
    reasons = Counter(one.why for one in report.ruled_out)
    lead = f"{len(report.ruled_out)} of {words.counted(report.commits, 'commit')} needed no kernel."
    columns = (Column("commit", "name"), Column("subject"), Column("why"))
    rows = tuple(
        (Cell(one.commit.short), Cell(one.commit.subject), Cell(one.why))
        for one in report.ruled_out
    )
    table = Table("out-table", "Commits that were ruled out", columns, rows, filtered=True)
    texts = tuple(f"{count}: {why}" for why, count in reasons.most_common())
    blocks = (Prose(lead), Items(texts), Fold("All of them", (table,)))
    return Section("ruled-out", "Ruled out, and why", blocks)


def bisect_verdict(report: BisectReport) -> str:
    """In words, what was found."""
    if report.good == report.bad:
        return "Good and bad are the same commit: there is nothing to explain."
    where = f" in {' and '.join(report.asked)}" if report.asked else ""
    if not report.found and not report.groups:
        return f"There is no difference to explain{where}: {_no_difference(report)}"
    effects = [one for one in report.found if not one.moved]
    parts = [words.counted(len(effects), "commit")] if effects or not report.groups else []
    if report.groups:
        parts.append(words.counted(len(report.groups), "group") + " of commits")
    verb = "accounts" if len(effects) + len(report.groups) == 1 else "account"
    text = f"{' and '.join(parts)} {verb} for the difference{where}."
    if report.first:
        text = f"The largest effect{where} was searched for, and no other."
    moved = len(report.found) - len(effects)
    if moved:
        count = words.counted(moved, "commit")
        text += f" {count} changed functions, and no region is known to have changed."
    return text


def _no_difference(report: BisectReport) -> str:
    changed = [
        one
        for one in report.regions
        if is_seen(one.whole) and (not report.asked or one.name in report.asked)
    ]
    if not changed:
        regions = "it" if len(report.asked) == 1 else "they" if report.asked else "all regions"
        verb = "has" if len(report.asked) == 1 else "have"
        return f"{regions} {verb} the same path at both ends, within the spread."
    most = max(changed, key=lambda one: abs(part_of_cost(one.whole.value, one)))
    return f"the largest is {_figures(most)}, which is placement or within the margin."


def _figures(region: BisectedRegion) -> str:
    part = figures.percent(100 * part_of_cost(region.whole.value, region))
    return (
        f"{region.name} {figures.number(region.before.value)} -> "
        f"{figures.number(region.after.value)} ({part})"
    )


def part_of_cost(value: Fraction, region: BisectedRegion) -> Fraction:
    """Return an effect as a part of the cost in the good end; all of it where that is zero."""
    return value / region.before.value if region.before.value else Fraction(bool(value))


def changed_regions(
    effects: Mapping[str, Estimate], report: BisectReport
) -> list[tuple[BisectedRegion, Estimate]]:
    """The regions where an effect is more than its spread, the largest first."""
    rows = [
        (region, effects[region.name])
        for region in report.regions
        if region.name in effects and is_seen(effects[region.name])
    ]
    return sorted(rows, key=lambda row: (row[0].rate, -abs(part_of_cost(row[1].value, row[0]))))


def left_texts(regions: Sequence[BisectedRegion]) -> list[str]:
    """Where what was found does not add up to the whole, and where one cannot tell."""
    said = {
        Adds.LEFT_OVER: "more than the spread is left in",
        Adds.CANNOT_TELL: "whether what was found is all of it is not known, since the spread of "
        f"what is left is wider than {percents(NARROW)} of the region, in",
    }
    found = {adds: [one.name for one in regions if one.adds is adds] for adds in said}
    return [f"{text} {', '.join(found[adds])}" for adds, text in said.items() if found[adds]]


def varying_texts(regions: Sequence[BisectedRegion]) -> list[str]:
    """The regions that changed whose runs vary, with the figures between which they do."""
    return [
        f"runs of one kernel vary by more than {percents(STEADY)} in {one.name}: "
        f"{figures.number(one.varies.low)} to {figures.number(one.varies.high)} in "
        f"{one.varies.n} runs"
        for one in regions
        if is_seen(one.whole) and not one.rate and not one.steady
    ]


def rounded_parts(region: BisectedRegion) -> tuple[int, int]:
    """Return what was found and what is left, in hundredths that add up to bad - good as printed.
    LabError if the exact figures do not.
    """
    if region.explained.value + region.remainder.value != region.whole.value:
        raise LabError(
            f"{region.name}: what was found adds up to {float(region.explained.value)}, and what "
            f"is left is {float(region.remainder.value)}",
            "this is an error of kdelta; please report it with the output of --json",
        )
    total = figures.scaled(region.after.value) - figures.scaled(region.before.value)
    if region.remainder.value == ZERO:
        return total, 0
    found, left = figures.rounded_to_total([region.explained.value, region.remainder.value], total)
    return found, left
