# SPDX-License-Identifier: GPL-2.0-or-later
"""What ablations, bisections and series have in common on a page: effects, accounts, builds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.estimate import Estimate
from kdelta.report import figures
from kdelta.report.ablation_model import AblatedRegion, AblationBuild, AblationReport, Proof
from kdelta.report.account import AccountWords, Part, account_rows, changed_most
from kdelta.report.bisect_model import BisectBuild, BisectReport
from kdelta.report.html import charts, common, words
from kdelta.report.html.model import Block, Cell, Chart, Column, Fold, Prose, Section, Table
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
    Column("%", "number", "of the region before"),
)


def tone_of(effect: Estimate) -> str:
    """What an effect does, as far as its interval says."""
    if effect.low > 0:
        return SLOWER
    return FASTER if effect.high < 0 else SAME


def mean_tone(mean: Fraction) -> str:
    """What a mean effect does."""
    return SLOWER if mean > 0 else FASTER if mean < 0 else SAME


def percent_cell(part: Fraction | None) -> Cell:
    """A change in per cent."""
    return Cell(words.percent(part), float("inf") if part is None else float(part))


def means_chart(rows: Sequence[tuple[str, Fraction]], caption: str) -> tuple[Block, ...]:
    """A chart of mean effects in per cent, one a row; those that are nought are left out."""
    shown = [row for row in rows if row[1]][:MOST_ROWS]
    if not shown:
        return ()
    effects = [
        charts.Effect(name, float(mean), min(0.0, float(mean)), max(0.0, float(mean)), tone)
        for name, mean in dict(shown).items()
        for tone in (mean_tone(mean),)
    ]
    said = "; ".join(f"{one.name} {one.value:+.3g} %" for one in effects)
    left = len([row for row in rows if row[1]]) - len(shown)
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
    printed = figures.rounded_to_total([value for _, value in rows], total)
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
            (Cell(name), Cell(words.hundredths(shown), float(value)),
             percent_cell(_part(region, value)))
            for (name, value), shown in zip(rows, printed, strict=True)
        ),
        ((Cell(accounts.total), Cell(words.hundredths(total)), percent_cell(part)),),
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
