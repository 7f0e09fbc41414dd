# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles on a page: the verdict, the effects, and the ensembles with the shipped layouts."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kdelta.infer.effects import Word
from kdelta.infer.placement_model import Compared as Ensembles
from kdelta.infer.placement_model import Draws, PlacementEffect
from kdelta.report.cycles import cpu_line, cycle_reason, margin_text
from kdelta.report.html import charts, common, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Prose,
    Section,
)
from kdelta.report.html.words import TONES
from kdelta.report.layout_text import KINDS
from kdelta.report.model import Compared, CompareReport, ReportedCPU

_NAMED = 3
_KINDS_SHOWN = ("l1i", "l2")
_COLOURS = ("base", "other")

COLUMNS = (
    Column("model cycles", "word", "the verdict on them"),
    Column("% model cycles", "number", "effect over all layouts and prices, of the base's mean"),
    Column("% as shipped", "number", "how the two shipped layouts differ"),
    Column("why"),
)


def cells(region: str, effect: PlacementEffect | None, compared: Compared) -> tuple[Cell, ...]:
    """A region's cells in the table of operations."""
    if effect is None:
        cut = {one.name: one.verdict for one in (compared.cycles.cut if compared.cycles else ())}
        verdict = cut.get(region)
        word = verdict.word if verdict else None
        return (
            Cell(word.value, words.ORDER.index(word), TONES[word]) if word else Cell(""),
            Cell(""),
            Cell(""),
            Cell(verdict.reason if verdict else ""),
        )
    verdict = effect.verdict
    middle = (effect.relative.low + effect.relative.high) / 2
    as_shipped = (effect.shipped.relative.low + effect.shipped.relative.high) / 2
    return (
        Cell(verdict.word.value, words.ORDER.index(verdict.word), TONES[verdict.word]),
        Cell(words.interval(effect.relative), middle),
        Cell(words.interval(effect.shipped.relative), as_shipped),
        Cell(_why(effect)),
    )


def _why(effect: PlacementEffect) -> str:
    verdict = effect.verdict
    if verdict.word is Word.SAME:
        within = "exactly" if verdict.within == 0 else f"within {margin_text(verdict.within)}"
        return f"{within}; {verdict.reason}" if verdict.reason else within
    return cycle_reason(verdict)


def answers(report: CompareReport, compared: Compared, about: str) -> tuple[Answer, ...]:
    """The verdict on model cycles in words, if they were judged."""
    if report.cpu is None or compared.cycles is None or not compared.cycles.effects:
        return ()
    effects = compared.cycles.effects
    found = Counter(one.verdict.word for one in effects)
    text = sentence(effects)
    chips = tuple(Chip(word.value, found[word], TONES[word]) for word in words.ORDER if found[word])
    label = f"model cycles on {report.cpu.name}{f', {about}' if about else ''}"
    return (Answer((text,), chips, label, words.tone_of(found)),)


def sentence(effects: Sequence[PlacementEffect]) -> str:
    """The verdict on model cycles of all regions, in words."""
    found = Counter(one.verdict.word for one in effects)
    total = words.counted(len(effects), "operation")
    parts = []
    for word, says in (
        (Word.SLOWER, "slower in {}"),
        (Word.FASTER, "faster in {}"),
        (Word.NOT_SLOWER, "not slower in what is counted in {}"),
        (Word.SAME, "the same in {}"),
        (Word.PLACEMENT_ONLY, "otherwise only where code lies in {}"),
    ):
        if found[word]:
            parts.append(says.format(found[word]))
    text = f"Of {total}, it is {words.listed(parts)}." if parts else f"Of {total} none is settled."
    if found[Word.UNRESOLVED]:
        text += f" {found[Word.UNRESOLVED]} cannot be told{_reasons(effects)}."
    if found[Word.NOT_COMPARABLE]:
        text += f" {found[Word.NOT_COMPARABLE]} cannot be compared: a path is not as on the CPU."
    for word, title, sign in ((Word.SLOWER, "Slower most", -1), (Word.FASTER, "Faster most", 1)):
        named = sorted(
            (one for one in effects if one.verdict.word is word),
            key=lambda one: sign * (one.relative.low + one.relative.high),
        )
        if named:
            shown = [f"{one.region} ({words.interval(one.relative)})" for one in named[:_NAMED]]
            text += f" {title}: {words.listed(shown)}."
    return text


def _reasons(effects: Sequence[PlacementEffect]) -> str:
    """What keeps verdicts open, the commonest first."""
    open_ones = [one.verdict.reason for one in effects if one.verdict.word is Word.UNRESOLVED]
    reasons = Counter(reason.partition(";")[0] for reason in open_ones)
    texts = [f"{reason} ({count})" for reason, count in reasons.most_common(_NAMED) if reason]
    return f": {'; '.join(texts)}" if texts else ""


def sections(report: CompareReport, compared: Compared, about: str, mark: str) -> Iterator[Section]:
    """The effects and the ensembles of one pair, and what was not as on the CPU."""
    if report.cpu is None or compared.cycles is None:
        return
    cpu, found = report.cpu, compared.cycles
    if found.effects:
        lead = (
            "Each kernel's code was replayed in random layouts. What the change does is the "
            "difference between the two distributions; where the two shipped layouts stand in "
            f"them is luck. {cpu_line(cpu)}."
        )
        name = f"Placement and model cycles on {cpu.name}"
        title = f"{name}: {about}" if about else name
        blocks = (Prose(lead), *ensembles(found.effects))
        yield Section(f"placement{mark}", title, blocks)
    yield from common.unlike_section(cpu.name, found.unlike, f"unlike{mark}")


def effect_chart(effects: Sequence[PlacementEffect], cpu: ReportedCPU) -> Iterator[Chart]:
    """The effects with their intervals, those on the slower side first."""
    rows = [
        charts.Effect(
            one.region,
            100 * (one.relative.low + one.relative.high) / 2,
            100 * one.relative.low,
            100 * one.relative.high,
            one.verdict.word.value,
        )
        for one in effects
        if math.isfinite(one.relative.low) and math.isfinite(one.relative.high)
    ]
    if not rows:
        return
    rows.sort(key=lambda row: -row.value)
    said = "; ".join(f"{row.name} {row.low:+.2f} to {row.high:+.2f} % {row.tone}" for row in rows)
    yield Chart(
        charts.effects_svg(rows, f"% of the base's model cycles on {cpu.name}", TONES),
        f"Model cycles on {cpu.name}: other less base over all layouts, with the "
        "interval of layouts and prices.",
        f"Effects on model cycles on {cpu.name} by operation: {said}",
        wide=True,
    )


def ensembles(
    effects: Sequence[PlacementEffect], who: tuple[str, str] = ("base", "other")
) -> Iterator[Block]:
    """Both kernels' layouts of each region whose placement matters at all."""
    found, still = [], []
    for one in effects:
        drawn = list(_charts_of(one, who))
        found += drawn
        still += [] if drawn else [one.region]
    if found:
        yield Charts(tuple(found))
    if still:
        yield Prose(f"Every layout costs the same in: {', '.join(still)}.")


def _charts_of(effect: PlacementEffect, who: tuple[str, str]) -> Iterator[Chart]:
    shown: Mapping[str, tuple[str, Ensembles]] = {
        "model cycles, misses exposed": ("model cycles an iteration", effect.exposed),
        **{KINDS.get(kind, kind): (f"{KINDS.get(kind, kind)} an iteration", found)
           for kind, found in effect.misses.items() if kind in _KINDS_SHOWN},
    }  # fmt: skip
    for title, (unit, found) in shown.items():
        if not (found.base.draws or found.other.draws):
            continue
        sides = tuple(zip(who, (found.base, found.other), _COLOURS, strict=True))
        spreads = [
            charts.Spread(name, draws.draws or (draws.mean,), draws.shipped, colour)
            for name, draws, colour in sides
        ]
        said = "; ".join(_said(name, draws) for name, draws, _ in sides)
        yield Chart(
            charts.spreads_svg(spreads, unit),
            f"{effect.region}: {title}; {effect.verdict.word}",
            f"{effect.region}, {title}: {said}",
        )


def _said(who: str, draws: Draws) -> str:
    least, most, mean, shipped = (
        words.number(round(value, 2))
        for value in (draws.least, draws.most, draws.mean, draws.shipped)
    )
    text = f"{who} {least} to {most}, mean {mean}, shipped {shipped}"
    if draws.percentile is not None:
        text += f" (above {draws.percentile:.0f} % of the layouts)"
    return text
