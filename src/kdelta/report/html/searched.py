# SPDX-License-Identifier: GPL-2.0-or-later
"""What ablations, bisections and series have in common on a page: effects, accounts, builds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import bound, is_seen, reach
from kdelta.report import figures
from kdelta.report.ablation_model import AblatedRegion, AblationBuild, AblationReport, Proof
from kdelta.report.account import AccountWords, Part, account_rows, changed_most
from kdelta.report.bisect_model import BisectBuild, BisectReport
from kdelta.report.html import charts, common, words
from kdelta.report.html.model import (
    Block,
    Cell,
    Chart,
    Column,
    Fold,
    Items,
    Prose,
    Section,
    Table,
)
from kdelta.report.means import (
    Means,
    apart,
    apart_text,
    apart_title,
    bound_text,
    cell,
    spread,
)
from kdelta.report.model import Side
from kdelta.report.series_model import SeriesReport
from kdelta.report.stored import Stored

SLOWER, FASTER, SAME, UNRESOLVED = "slower", "faster", "same", "unresolved"
TONES = {SLOWER: "slower", FASTER: "faster", SAME: "same", UNRESOLVED: "unresolved"}
MOST_ROWS = 60
"""Rows of a chart; a table has all."""

_LIMIT = 40
_OK = "ok"

ACCOUNT = (
    Column("what", "name"),
    Column("diff", "number"),
    Column("spread", "number"),
    Column("%", "number", "of the region before"),
)


def tone_of(effect: Estimate) -> str:
    """What an effect does, as far as its interval says."""
    if effect.low > 0:
        return SLOWER
    return FASTER if effect.high < 0 else SAME


def mean_tone(mean: Estimate | None) -> str:
    """What a mean effect does, as far as its interval says."""
    return SAME if mean is None else tone_of(mean)


def mean_cells(mean: Estimate | None) -> tuple[Cell, Cell]:
    """A mean effect in per cent, and how far it may be off."""
    if mean is None:
        return Cell("", 0), Cell("", 0)
    far = spread(mean).replace("+-", words.PLUS_MINUS)
    return percent_cell(mean.value), Cell(far, float(reach(mean)))


MEAN_COLUMNS = (
    Column("% mean", "number", "over all steady regions; a minus is faster"),
    Column("spread", "number", "how far the mean may be off: spreads of regions add up"),
)


def apart_section(regions: Iterable[AblatedRegion]) -> tuple[Section, ...]:
    """The regions that are in no mean, with what their runs vary between."""
    found = apart(regions)
    if not found:
        return ()
    lead = Prose(f"{apart_title()[:1].upper()}{apart_title()[1:]}.")
    texts = tuple(apart_text(one).replace("+-", words.PLUS_MINUS) for one in found)
    return (Section("apart", "Regions that are in no mean", (lead, Items(texts))),)


def unseen_section(
    named: Sequence[tuple[str, Mapping[str, Estimate]]], means: Means
) -> tuple[Section, ...]:
    """What has no effect in the mean, how large it may be, and where it does have one."""
    if not named:
        return ()
    columns = (
        Column("name", "name"),
        Column("at most", "number", "in the mean, in either direction"),
        Column("but in"),
    )
    rows = tuple(
        (
            Cell(name),
            Cell(bound_text(mean), float(bound(mean)) if mean else 0.0),
            Cell("; ".join(f"{where} {cell(part)}" for where, part in means.seen_in(effects))),
        )
        for name, effects in named
        for mean in (means.of(effects),)
    )
    lead = Prose("The interval of the mean holds 0.")
    table = Table("unseen-table", "Without an effect in the mean", columns, rows, filtered=True)
    return (Section("unseen", "No effect seen", (lead, table)),)


def percent_cell(part: Fraction | None) -> Cell:
    """A change in per cent."""
    return Cell(words.percent(part), float("inf") if part is None else float(part))


def means_chart(rows: Sequence[tuple[str, Estimate | None]], caption: str) -> tuple[Block, ...]:
    """A chart of mean effects in per cent with their intervals, one a row; those whose interval
    holds zero are left out.
    """
    known = [(name, mean) for name, mean in rows if mean is not None and is_seen(mean)]
    shown = known[:MOST_ROWS]
    if not shown:
        return ()
    effects = [
        charts.Effect(name, float(mean.value), float(mean.low), float(mean.high), tone_of(mean))
        for name, mean in dict(shown).items()
    ]
    said = "; ".join(f"{name} {cell(mean)}" for name, mean in dict(shown).items())
    left = len(known) - len(shown)
    text = caption + (f" {words.counted(left, 'smaller one is', 'smaller ones are')} in the table."
                      if left else "")  # fmt: skip
    return (Chart(charts.effects_svg(effects, "%", TONES), text, f"{caption} {said}", wide=True),)


def account_folds(
    regions: Iterable[AblatedRegion],
    parts: Callable[[str], Iterable[Part]],
    accounts: AccountWords,
) -> tuple[Block, ...]:
    """Each region that changed, taken apart by what did it, in rows that add up to the whole."""
    every = list(regions)
    return tuple(
        _account(region, parts(region.name), accounts) for region in changed_most(every, len(every))
    )


def _account(region: AblatedRegion, parts: Iterable[Part], accounts: AccountWords) -> Fold:
    rows = account_rows(region, parts, accounts, _LIMIT)
    total = figures.scaled(region.whole.value)
    printed = figures.rounded_to_total([effect.value for _, effect in rows], total)
    each = "a virtual second" if region.rate else "an iteration"
    part = _part(region, region.whole.value)
    summary = (
        f"{region.name}: {words.number(region.before.value)} \N{RIGHTWARDS ARROW} "
        f"{words.number(region.after.value)} instructions {each} ({words.percent(part)})"
    )
    table = Table(
        f"account-{region.workload}-{region.name}",
        f"What changed {region.name}, in instructions {each}",
        ACCOUNT,
        tuple(
            (Cell(name), Cell(words.hundredths(shown), float(effect.value)),
             Cell(words.spread(effect), float(effect.half_width)),
             percent_cell(_part(region, effect.value)))
            for (name, effect), shown in zip(rows, printed, strict=True)
        ),
        ((Cell(accounts.total), Cell(words.hundredths(total)), Cell(words.spread(region.whole)),
          percent_cell(part)),),
    )  # fmt: skip
    beside: tuple[Block, ...] = ()
    if region.lookups.value:
        more = words.signed(region.lookups.value)
        text = f"Beside that {more} in functions that look up addresses, which is placement."
        beside = (Prose(text),)
    return Fold(summary, (table, *beside))


def _part(region: AblatedRegion, value: Fraction) -> Fraction | None:
    return 100 * value / region.before.value if region.before.value else None


def most_of(
    effects: Mapping[str, Estimate], regions: Sequence[AblatedRegion]
) -> tuple[str, Fraction]:
    """The region where an effect is the largest part of it, and that part in per cent."""
    best, part = "", Fraction(0)
    for region in regions:
        effect = effects.get(region.name)
        if effect is None or not region.before.value or tone_of(effect) == SAME:
            continue
        size = 100 * effect.value / region.before.value
        if abs(size) > abs(part):
            best, part = region.name, size
    return best, part


def last_sections(
    stored: Stored,
    report: AblationReport | BisectReport | SeriesReport,
    ends: Sequence[tuple[str, Side]],
    text: str,
) -> tuple[Section, ...]:
    """What every such page ends with: notes, the environment, the report as text."""
    return (
        *common.notes([("Of the search", report.notes), ("Warnings", report.warnings)]),
        common.environment(stored, report.machine, ends),
        common.as_text(text),
    )


def proof_section(proof: Proof | None) -> tuple[Section, ...]:
    """The kernel that proves what was ruled out, if there is one."""
    if proof is None:
        return ()
    held = {True: "The proof held. ", False: "The proof did not hold. ", None: ""}[proof.held]
    tone = {True: FASTER, False: SLOWER, None: ""}[proof.held]
    return (Section("proof", "Proof", (Prose(held + proof.text, tone),)),)


def builds_section(builds: Sequence[AblationBuild | BisectBuild]) -> tuple[Section, ...]:
    """The kernels that were built, and why some were not."""
    if not builds:
        return ()
    built = [one for one in builds if one.seconds is not None]
    minutes = sum(one.seconds or 0 for one in built) / 60
    text = f"{words.counted(len(builds), 'kernel')}"
    if len(built) < len(builds):
        text += f", {words.number(Fraction(len(builds) - len(built)))} of them from the cache"
    if built:
        text += f", {minutes:.0f} minutes of building"
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
            Cell("cache" if one.seconds is None else f"{one.seconds:.0f}", one.seconds or 0),
            Cell(one.detail),
        )
        for one in builds
    )
    table = Table("builds-table", "Kernels that were built", columns, rows, filtered=len(rows) > 9)
    return (Section("builds", "Builds", (Prose(f"{text}."), Fold("All of them", (table,)))),)


def _build_name(build: AblationBuild | BisectBuild) -> str:
    if isinstance(build, AblationBuild):
        return build.label
    named = f'{build.commit[:12]} ("{build.subject}")' if build.subject else build.commit[:12]
    return f"{build.label} {named}".strip()
