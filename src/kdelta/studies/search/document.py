# SPDX-License-Identifier: GPL-2.0-or-later
"""What ablations, bisections and series have in common: effects, accounts, builds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

import msgspec

from kdelta.infer.effects.effects import MARGIN
from kdelta.infer.effects.estimate import (
    MEAN,
    STEADY,
    Adds,
    Estimate,
    Quantity,
    bound,
    farthest,
    is_seen,
    total,
)
from kdelta.infer.search.search_model import Proof
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Block,
    Case,
    Cell,
    Chart,
    Column,
    Document,
    Fold,
    Items,
    Outcome,
    Point,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.model import KernelRuns
from kdelta.spec.errors import LabError
from kdelta.studies.search.model import (
    INSTRUCTIONS,
    AblatedRegion,
    AblationBuild,
    BisectBuild,
    Means,
    RegionBetween,
    apart,
    apart_text,
    bound_text,
    cell,
    percents,
    remainder_words,
    spread,
)

SLOWER, FASTER, SAME, UNRESOLVED = "slower", "faster", "same", "unresolved"
_REGIONS = 2
"""Operations that are named with what code costs more in them."""

MOST_ROWS = 60
"""Rows of a chart; a table has all."""

_LIMIT = 40
_OK = "ok"

ACCOUNT = (
    Column("what", "name"),
    Column("diff", "number", sums=True),
    Column("spread", "number"),
    Column("%", "number", "of the region before"),
)


def effect_tone(effect: Estimate) -> str:
    """What an effect does, as far as its interval says."""
    return SLOWER if effect.low > 0 else FASTER if effect.high < 0 else SAME


def word_of(effect: Estimate, before: Estimate) -> str:
    """Return what an effect does; unresolved, where its interval includes zero and reaches beyond
    the margin.
    """
    known = effect_tone(effect)
    is_open = known == SAME and bound(effect) > MARGIN * abs(before.value)
    return UNRESOLVED if is_open else known


def mean_tone(mean: Estimate | None) -> str:
    """What a mean effect does, as far as its interval says."""
    return SAME if mean is None else effect_tone(mean)


def mean_cells(mean: Estimate | None) -> tuple[Cell, Cell]:
    """A mean effect in per cent, and how far it may be off."""
    if mean is None:
        return Cell("", 0), Cell("", 0)
    return cells.percent(mean.value), Cell(spread(mean), float(farthest(mean)))


MEAN_COLUMNS = (
    Column("% mean", "number", "over all steady regions; a minus is faster"),
    Column("spread", "number", "how far the mean may be off: spreads of regions add up"),
)


REACH_COLUMNS = (
    Column("objects", "number", "that it reaches"),
    Column("executed", "number", "of these, those that executed code depends on"),
)


def reach_cells(objects: int | None, alive: int | None) -> tuple[Cell, ...]:
    """The cells of these columns; empty where they are not known."""
    return tuple(Cell("" if one is None else str(one), one or 0) for one in (objects, alive))


def items_section(
    id_: str, title: str, texts: Iterable[str], lead: str = ""
) -> tuple[Section, ...]:
    """Return a section of these items, after a sentence about them; none without any."""
    items = tuple(texts)
    if not items:
        return ()
    return (Section(id_, title, (*((Prose(lead),) if lead else ()), Items(items))),)


def interactions_section(texts: Iterable[str]) -> tuple[Section, ...]:
    """Return what does more or less together than each alone."""
    lead = "Together these do more or less than each alone:"
    return items_section("interactions", "Interactions", texts, lead)


def apart_section(regions: Iterable[AblatedRegion]) -> tuple[Section, ...]:
    """Return the regions that are in no mean, with what their runs vary between."""
    lead = f"In no mean: runs of one kernel vary by more than {percents(STEADY)}."
    texts = map(apart_text, apart(regions))
    return items_section("apart", "Regions that are in no mean", texts, lead)


def unseen_section(
    named: Sequence[tuple[str, Mapping[str, Estimate]]],
    means: Means,
    code: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[Section, ...]:
    """Return what has no effect in the mean: how large it may be there and in the region that is
    known least, and where it does have one; code: by name, as of `code_texts`.
    """
    if not named:
        return ()
    columns = (
        Column("name", "name"),
        Column("at most", "number", "in the mean, in either direction"),
        Column("but in"),
        Column("known least in", "text", "the operation, and how large it may be there"),
    )
    rows = tuple(
        (
            Cell(name),
            Cell(bound_text(mean), float(bound(mean)) if mean else 0.0),
            Cell(
                "; ".join(
                    [f"{where} {cell(part)}" for where, part in means.seen_in(effects)]
                    + list(code.get(name, ()))
                )
            ),
            Cell(means.known_least(effects)),
        )
        for name, effects in named
        for mean in (means.of(effects),)
    )
    lead = Prose("The interval of the mean holds 0; an effect within it is not excluded.")
    table = Table("unseen-table", "Without an effect in the mean", columns, rows, filtered=True)
    return (Section("unseen", "No effect seen", (lead, table)),)


def code_texts(code: Mapping[str, Mapping[str, Fraction]]) -> list[str]:
    """Return in which operations which functions cost more, those of the same ones together."""
    alike: dict[str, list[str]] = {}
    for region, functions in code.items():
        text = words.listed([f"{figures.brief(by, 6)} {name}" for name, by in functions.items()])
        alike.setdefault(text, []).append(region)
    return [f"{text} in {words.some(regions, _REGIONS)}" for text, regions in alike.items()]


def means_chart(rows: Sequence[tuple[str, Estimate | None]], caption: str) -> tuple[Block, ...]:
    """A chart of mean effects in per cent with their intervals, one a row; those whose interval
    holds zero are left out.
    """
    known = [(name, mean) for name, mean in rows if mean is not None and is_seen(mean)]
    shown = known[:MOST_ROWS]
    if not shown:
        return ()
    effects = [
        Point(name, float(mean.value), float(mean.low), float(mean.high), effect_tone(mean))
        for name, mean in dict(shown).items()
    ]
    said = "; ".join(f"{name} {cell(mean)}" for name, mean in dict(shown).items())
    left = len(known) - len(shown)
    text = caption + (f" {words.counted(left, 'smaller one is', 'smaller ones are')} in the table."
                      if left else "")  # fmt: skip
    return (Chart("effects", tuple(effects), "%", text, f"{caption} {said}", wide=True),)


Part = tuple[str, Estimate]
"""A name, and its effect in a region."""


class AccountWords(msgspec.Struct, frozen=True):
    """How an account calls things. parts: what is named in it; whole, sum: what they add up to, in
    a sentence; total: the name of its last line; remainder: of the line for what no part explains.
    """

    parts: str
    whole: str
    total: str
    remainder: str
    sum: str


def changed_most(regions: Iterable[AblatedRegion]) -> list[AblatedRegion]:
    """The regions that changed, by the largest part of what they were, and after them what
    interrupts and other tasks did, where it changed by more than its spread.
    """
    regions = list(regions)
    found = [one for one in regions if not one.rate and one.before.value and one.whole.value]
    found.sort(key=lambda one: -abs(one.whole.value / one.before.value))
    return found + [one for one in regions if one.rate and is_seen(one.whole)]


def account_rows(
    region: AblatedRegion, parts: Iterable[Part], words: AccountWords, limit: int
) -> list[Part]:
    """A region's `limit` largest parts, the rest as one, and what no part explains. LabError if
    they do not add up to the whole.
    """
    largest = sorted((one for one in parts if one[1].value), key=lambda one: -abs(one[1].value))
    rows, rest = largest[:limit], largest[limit:]
    if rest:
        rows.append(
            (f"others ({len(rest)})", total((effect for _, effect in rest), region.whole.n))
        )
    if region.remainder.value or region.adds is Adds.CANNOT_TELL:
        rows.append((f"{words.remainder}, {remainder_words(region.adds)}", region.remainder))
    found = sum((effect.value for _, effect in rows), Fraction(0))
    if found != region.whole.value:
        raise LabError(
            f"{region.name}: the {words.parts} add up to {float(found)}, and {words.whole} "
            f"{float(region.whole.value)}",
            "this is an error of kdelta; please report it with the output of --json",
        )
    return rows


def _account(region: AblatedRegion, parts: Iterable[Part], accounts: AccountWords) -> Fold:
    rows = account_rows(region, parts, accounts, _LIMIT)
    total = figures.scaled(region.whole.value)
    values = [effect.value for _, effect in rows]
    printed = figures.shared(region.name, values, region.whole.value, total)
    each = region.counted_in
    part = region.percent(region.whole.value)
    summary = (
        f"{region.name}: {figures.fitted(region.before.value)} -> "
        f"{figures.fitted(region.after.value)} {each} ({figures.percent(part)})"
    )
    table = Table(
        f"account-{region.workload}-{region.name}",
        f"What changed {region.name}, in {each}",
        ACCOUNT,
        tuple(
            (
                Cell(name),
                cells.difference(shown, effect.value),
                cells.spread(effect),
                cells.percent(region.percent(effect.value)),
            )
            for (name, effect), shown in zip(rows, printed, strict=True)
        ),
        (
            Cell(accounts.total),
            cells.difference(total, region.whole.value),
            cells.spread(region.whole),
            cells.percent(part),
        ),
    )  # fmt: skip
    more = figures.difference(region.lookups.value)
    text = f"Besides that {more} in functions that look up addresses, which is placement."
    besides = (Prose(text),) if region.lookups.value else ()
    return Fold(summary, (table, *besides), always=region.rate)


def suites(
    names: Sequence[str], ends: Sequence[KernelRuns], regions: Iterable[RegionBetween], more: Suite
) -> tuple[Suite, ...]:
    """Return what a CI reads of a search: the kernels, the regions, and what was searched."""
    kernels = common.kernels_suite(zip(names, ends, strict=True))
    cases = tuple(_region_case(region) for region in regions)
    return tuple(one for one in (kernels, Suite("regions", cases), more) if one.cases)


def _region_case(region: RegionBetween) -> Case:
    base, other, diff = cells.between(region.before.value, region.after.value)
    part = figures.percent(Quantity(region.before, region.after).percent)
    text = f"{base.text} -> {other.text} {region.counted_in}, {diff.text}"
    outcome, word = Outcome.OK, "not slower"
    if region.whole.low > 0:
        outcome, word = Outcome.SLOWER, SLOWER
    elif is_undecided(region):
        outcome, word = Outcome.UNKNOWN, "undecided"
    return Case(
        region.name,
        outcome,
        f"{word} ({part})",
        (f"{text}, {figures.spread(region.whole)}",),
    )


def is_undecided(region: RegionBetween) -> bool:
    """Return whether a region's path is undecided from end to end: the interval includes zero, and
    reaches beyond the margin.
    """
    allowed = MARGIN * abs(region.before.value)
    return not region.rate and not is_seen(region.whole) and bound(region.whole) > allowed


def undecided_texts(regions: Iterable[RegionBetween]) -> list[str]:
    """Return a line for each region that stays open: what is found holds for the others."""
    return [
        f"{one.name} stays open: runs vary so much that from end to end it may have changed by "
        f"{part_text(one)}; a change in it may be missed"
        for one in regions
        if is_undecided(one)
    ]


def part_text(region: RegionBetween) -> str:
    """Return the interval of a region's effect in per cent of what it was, or in its unit."""
    whole, base = region.whole, abs(region.before.value)
    if not base:
        return f"{float(whole.low):+.3g} to {float(whole.high):+.3g} {region.counted_in}"
    return f"{float(100 * whole.low / base):+.3g} to {float(100 * whole.high / base):+.3g} %"


def units_of(regions: Iterable[RegionBetween]) -> str:
    """Return what these regions are counted in."""
    return " or ".join(dict.fromkeys(one.counted_in for one in regions)) or INSTRUCTIONS


def effects_case(name: str, effects: Mapping[str, Estimate], why: str = "") -> Case:
    """Return what something does, by region."""
    some = {
        region: effect
        for region, effect in effects.items()
        if region != MEAN and effect_tone(effect) != SAME
    }
    slower = any(effect.low > 0 for effect in some.values())
    text = "makes something slower" if slower else "makes nothing slower"
    lines = tuple(
        f"{region} {figures.brief(effect.value, 1)} ({figures.spread(effect)})"
        for region, effect in sorted(some.items(), key=lambda item: -abs(item[1].value))
    )
    outcome = Outcome.SLOWER if slower else Outcome.OK
    return Case(name, outcome, f"{text}; {why}" if why else text, lines)


def regions_sections(
    regions: Sequence[AblatedRegion],
    names: tuple[str, str],
    accounts: AccountWords,
    parts: Callable[[str], Iterable[Part]] | None,
) -> Iterator[Section]:
    """Return each region that changed, broken down by what did it, in rows that add up to the whole
    (if `parts` are given, by region); and all regions, those first that changed by more than their
    spread, and by most. names: of both ends.
    """
    changed = changed_most(regions) if parts else []
    if folds := [_account(one, parts(one.name), accounts) for one in changed if parts]:
        lead = Prose(f"What did it in each region that changed; rows add up to {accounts.sum}.")
        yield Section("regions", "Regions", (lead, *folds), detail=True)
    if not regions:
        return

    def size(region: RegionBetween) -> tuple[bool, Fraction]:
        part = Quantity(region.before, region.after).percent
        return effect_tone(region.whole) == SAME, -abs(part or Fraction(0))

    rows = tuple(
        (
            Cell(region.name),
            *cells.between(region.before.value, region.after.value),
            cells.percent(Quantity(region.before, region.after).percent),
            cells.spread(region.whole),
        )
        for region in sorted(regions, key=size)
    )
    columns = (
        Column("region", "name"),
        *(Column(title, "number") for title in (*names, "diff", "%", "spread")),
    )
    caption = f"In {units_of(regions)}, of the measured tasks"
    table = Table("ends-table", caption, columns, rows, filtered=True)
    yield Section("ends", "Both ends", (table,), detail=True)


def failed(document: Document, failure: str) -> Document:
    """Return the document of a search that could not begin."""
    kernels, *_ = document.suites
    return msgspec.structs.replace(
        document,
        title=f"{document.title}: {failure.partition(chr(10))[0]}",
        suites=(kernels, Suite("search", (Case("search", Outcome.FAILED, failure),))),
    )


def proof_section(proof: Proof | None) -> tuple[Section, ...]:
    """The kernel that proves what was ruled out, if there is one."""
    if proof is None:
        return ()
    said, tone = {
        True: ("The proof held. ", FASTER),
        False: ("The proof did not hold. ", SLOWER),
        None: ("", ""),
    }[proof.held]
    return (Section("proof", "Proof", (Prose(said + proof.text, tone),)),)


def builds_section(
    builds: Sequence[AblationBuild | BisectBuild], instead: str = ""
) -> tuple[Section, ...]:
    """The kernels that were built, and why some were not. instead: how many it would have been."""
    if not builds:
        return ()
    built = [one for one in builds if one.seconds is not None]
    minutes = sum(one.seconds or 0 for one in built) / 60
    text = words.counted(len(builds), "kernel")
    cached = sum(map(_is_cached, builds))
    text += f", {cached} of them from the cache" if cached else ""
    text += f", {minutes:.0f} minutes of building" if built else ""
    text += f"; {instead}" if instead else ""
    columns = (
        Column("kernel", "name"),
        Column("status", "word"),
        Column("seconds", "number"),
        Column("detail"),
    )
    rows = tuple(
        (
            Cell(_build_name(one)),
            Cell(one.status, tone="" if one.status == _OK else "unresolved"),
            _seconds_cell(one),
            Cell(one.detail),
        )
        for one in builds
    )
    table = Table("builds-table", "Kernels that were built", columns, rows, filtered=len(rows) > 9)
    return (
        Section(
            "builds", "Builds", (Prose(f"{text}."), Fold("All of them", (table,))), detail=True
        ),
    )


def _build_name(build: AblationBuild | BisectBuild) -> str:
    if isinstance(build, AblationBuild):
        return build.label
    named = f'{build.commit[:12]} ("{build.subject}")' if build.subject else build.commit[:12]
    return f"{build.label} {named}".strip()


def _is_cached(build: AblationBuild | BisectBuild) -> bool:
    return build.seconds is None and build.status == _OK


def _seconds_cell(build: AblationBuild | BisectBuild) -> Cell:
    without = "cache" if _is_cached(build) else "-"
    return Cell(without if build.seconds is None else f"{build.seconds:.0f}", build.seconds or 0)
