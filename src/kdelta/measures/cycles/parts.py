# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles in a document: the verdict, the effects, the ensembles with layouts as linked."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.cpus.misses import PLURALS
from kdelta.infer.cycles.placement_model import ComparedEnsembles as Ensembles
from kdelta.infer.cycles.placement_model import Draws, PlacementEffect
from kdelta.infer.effects.effects import Word
from kdelta.measures.cycles.model import CycleReport
from kdelta.measures.cycles.words import cpu_line, cycle_reason, cycle_words, margin_text
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Fold,
    Items,
    Point,
    Prose,
    Section,
    Spread,
    Table,
)
from kdelta.report.figures import in_per_cent
from kdelta.report.model import ReportedCPU
from kdelta.report.words import TONES

_NAMED = 3
_KINDS_SHOWN = ("l1i", "l2")

_SETTLED = {
    Word.SLOWER: "slower",
    Word.FASTER: "faster",
    Word.NOT_SLOWER: "not slower in what is counted",
    Word.SAME: "the same",
    Word.PLACEMENT_ONLY: "otherwise only where code lies",
}

COLUMNS = (
    Column("model cycles", "word", "the verdict on them"),
    Column("% model cycles", "number", "effect over all layouts and prices, of the base's mean"),
    Column("% as linked", "number", "how the two layouts as linked differ"),
    Column("why"),
)


def cycle_cells(
    region: str, effect: PlacementEffect | None, found: CycleReport | None
) -> tuple[Cell, ...]:
    """A region's cells in the table of operations."""
    if effect is None:
        cut = found.cut if found else ()
        verdict = next((one.verdict for one in cut if one.name == region), None)
        word = cells.verdict(verdict.word) if verdict else cells.NOTHING
        return word, cells.NOTHING, cells.NOTHING, Cell(verdict.reason if verdict else "")
    return (
        cells.verdict(effect.verdict.word),
        cells.relative(effect.relative),
        cells.relative(effect.as_linked.relative),
        Cell(_why(effect)),
    )


def _why(effect: PlacementEffect) -> str:
    verdict = effect.verdict
    if verdict.word is Word.SAME:
        within = "exactly" if verdict.within == 0 else f"within {margin_text(verdict.within)}"
        return f"{within}; {verdict.reason}" if verdict.reason else within
    return cycle_reason(verdict)


def answers(cpu: ReportedCPU | None, judged: CycleReport | None, about: str) -> tuple[Answer, ...]:
    """The verdict on model cycles in words, if they were judged."""
    effects = judged.effects if judged else ()
    if cpu is None or not effects:
        return ()
    found = Counter(one.verdict.word for one in effects)
    chips = tuple(Chip(word.value, found[word], TONES[word]) for word in words.ORDER if found[word])
    label = f"model cycles on {cpu.name}{f', {about}' if about not in ('', cpu.name) else ''}"
    return (Answer((sentence(effects),), chips, label, words.tone_of(found)),)


def sentence(effects: Sequence[PlacementEffect]) -> str:
    """The verdict on model cycles of all regions, in words."""
    found = Counter(one.verdict.word for one in effects)
    total = words.counted(len(effects), "operation")
    parts = [f"{says} in {found[word]}" for word, says in _SETTLED.items() if found[word]]
    text = f"Of {total}, it is {words.listed(parts)}." if parts else f"Of {total} none is settled."
    if found[Word.UNRESOLVED]:
        text += f" {found[Word.UNRESOLVED]} unresolved{_reasons(effects)}."
    if found[Word.NOT_COMPARABLE]:
        text += f" {found[Word.NOT_COMPARABLE]} cannot be compared: a path is not as on the CPU."
    for word, title, sign in ((Word.SLOWER, "Slower most", -1), (Word.FASTER, "Faster most", 1)):
        named = sorted(
            (one for one in effects if one.verdict.word is word),
            key=lambda one: sign * (one.relative.low + one.relative.high),
        )
        if named:
            shown = [f"{one.region} ({in_per_cent(one.relative)})" for one in named[:_NAMED]]
            text += f" {title}: {words.listed(shown)}."
    return text


def _reasons(effects: Sequence[PlacementEffect]) -> str:
    """What keeps verdicts open, the commonest first."""
    open_ones = [one.verdict.reason for one in effects if one.verdict.word is Word.UNRESOLVED]
    reasons = Counter(reason.partition(";")[0] for reason in open_ones)
    texts = [f"{reason} ({count})" for reason, count in reasons.most_common(_NAMED) if reason]
    return f": {'; '.join(texts)}" if texts else ""


def cases(report: CycleReport) -> Iterator[Case]:
    """Yield a case for each region: the means of both ensembles, and the verdicts on cut traces."""
    for effect in report.effects:
        rows = {"model cycles, misses hidden": effect.hidden, "misses exposed": effect.exposed}
        rows |= {f"{kind} misses": found for kind, found in (effect.misses | effect.data).items()}
        lines = tuple(
            f"{name} {found.base.mean:.6g} -> {found.other.mean:.6g}"
            for name, found in rows.items()
        )
        yield Case(effect.region, words.OUTCOMES[effect.verdict.word], cycle_words(effect), lines)
    for one in report.cut:
        if one.verdict:
            text = f"{one.verdict.word}: {cycle_reason(one.verdict)}"
            yield Case(one.name, words.OUTCOMES[one.verdict.word], text)


def sections(
    cpu: ReportedCPU | None, found: CycleReport | None, about: str, mark: str
) -> Iterator[Section]:
    """Yield the effects and the ensembles of one pair, and what was not as on the CPU."""
    if cpu is None or found is None:
        return
    if found.effects:
        lead = (
            "Each kernel's code was replayed in random layouts. What the change does is the "
            "difference between the two distributions; where the two layouts as linked stand in "
            f"them is luck. {cpu_line(cpu)}."
        )
        lead += _about(cpu, found.effects)
        name = f"Placement and model cycles on {cpu.name}"
        title = f"{name}: {about}" if about else name
        blocks = (Prose(lead), *ensembles(found.effects, mark=mark), *_besides(found))
        yield Section(f"placement{mark}", title, blocks)
    yield from common.unlike_section(cpu.name, found.mismatches, f"mismatches{mark}")


def _about(cpu: ReportedCPU, effects: Sequence[PlacementEffect]) -> str:
    """How many layouts there were, and what is in no figure."""
    counts = sorted({count for one in effects for count in one.layouts})
    drawn = ", drawn alike" if all(one.paired for one in effects) else ""
    text = f" {' and '.join(map(str, counts))} layouts of each kernel{drawn}."
    unseen = [kind for kind in cpu.kinds if not any(kind in one.misses for one in effects)]
    if unseen:
        text += f" {', '.join(unseen)} misses are not in them"
        text += ", since accesses to data were not recorded (--data)." if "l2" in unseen else "."
    return f"{text} docs/cpus.md has what else is not."


def _besides(found: CycleReport) -> Iterator[Block]:
    """What of an effect no layout changes, and which code is the same, relinked."""
    texts = [
        f"{one.region}: of the effect, what data misses in any layout: "
        f"{cells.ends(one.data_cycles).text} model cycles"
        for one in found.effects
        if one.data_cycles is not None
    ]
    if found.relinked:
        texts.append(f"the same code relinked: {', '.join(found.relinked)}")
    if texts:
        yield Items(tuple(texts))


def effect_chart(effects: Sequence[PlacementEffect], cpu: ReportedCPU) -> Iterator[Chart]:
    """The effects with their intervals, in the order given."""
    shown = [one for one in effects if math.isfinite(one.relative.low + one.relative.high)]
    rows = [
        Point(
            one.region,
            100 * (one.relative.low + one.relative.high) / 2,
            100 * one.relative.low,
            100 * one.relative.high,
            TONES[one.verdict.word],
        )
        for one in shown
    ]
    if not rows:
        return
    said = "; ".join(
        f"{row.name} {row.low:+.2f} to {row.high:+.2f} % {one.verdict.word}"
        for row, one in zip(rows, shown, strict=True)
    )
    yield Chart(
        "effects",
        tuple(rows),
        f"% of the base's model cycles on {cpu.name}",
        f"Model cycles on {cpu.name}: other less base over all layouts, with the "
        "interval of layouts and prices.",
        f"Effects on model cycles on {cpu.name} by operation: {said}",
        wide=True,
    )


def ensembles(
    effects: Sequence[PlacementEffect], who: tuple[str, str] = ("base", "other"), mark: str = ""
) -> Iterator[Block]:
    """Both kernels' layouts of each region whose placement matters at all."""
    drawn = {one.region: tuple(_charts_of(one, who)) for one in effects}
    if found := tuple(itertools.chain(*drawn.values())):
        yield Charts(found)
    if still := [region for region, charts in drawn.items() if not charts]:
        yield Prose(f"Every layout costs the same in: {', '.join(still)}.")
    yield Fold("Model cycles and misses, in figures", (_means_table(effects, who, mark),))


def _means_table(effects: Sequence[PlacementEffect], who: tuple[str, str], mark: str) -> Table:
    """What the charts draw, and what they do not: data misses, and what has no price."""
    confidence = min((one.confidence for one in effects), default=0.0)
    columns = (
        Column("operation", "name"),
        Column("what"),
        *(Column(one, "number", "mean over the layouts") for one in who),
        Column("diff", "number"),
        Column("+-", "number", f"its confidence interval ({100 * confidence:.4g} %)"),
        *(
            Column(f"{one} as linked", "number", "p: how many per cent of the layouts have less")
            for one in who
        ),
    )
    rows = tuple(
        (
            Cell(effect.region),
            Cell(name),
            *cells.between(Fraction(found.base.mean), Fraction(found.other.mean)),
            cells.reach(found.effect),
            _as_linked(found.base),
            _as_linked(found.other),
        )
        for effect in effects
        for name, found in _figures_of(effect)
        if found.base.most or found.other.most
    )
    return Table(f"means{mark}", "Model cycles and misses an iteration", columns, rows)


def _as_linked(draws: Draws) -> Cell:
    place = "" if draws.percentile is None else f" p{draws.percentile:.0f}"
    return Cell(f"{cells.number(draws.as_linked).text}{place}", draws.as_linked)


def _figures_of(effect: PlacementEffect) -> Iterator[tuple[str, Ensembles]]:
    yield "model cycles, misses hidden", effect.hidden
    yield "model cycles, misses exposed", effect.exposed
    for kind, found in (effect.misses | effect.data).items():
        yield f"{kind} misses", found
    for kind, found in effect.unpriced.items():
        yield f"{kind}, without a price", found


def _charts_of(effect: PlacementEffect, who: tuple[str, str]) -> Iterator[Chart]:
    shown: Mapping[str, tuple[str, Ensembles]] = {
        "model cycles, misses exposed": ("model cycles an iteration", effect.exposed),
        **{PLURALS.get(kind, kind): (f"{PLURALS.get(kind, kind)} an iteration", found)
           for kind, found in effect.misses.items() if kind in _KINDS_SHOWN},
    }  # fmt: skip
    for title, (unit, found) in shown.items():
        if not (found.base.draws or found.other.draws):
            continue
        sides = tuple(zip(who, (found.base, found.other), ("base", "other"), strict=True))
        said = "; ".join(_said(name, draws) for name, draws, _ in sides)
        yield Chart(
            "spreads",
            tuple(
                Spread(name, draws.draws or (draws.mean,), draws.as_linked, colour)
                for name, draws, colour in sides
            ),
            unit,
            f"{effect.region}: {title}; {effect.verdict.word}",
            f"{effect.region}, {title}: {said}",
        )


def _said(who: str, draws: Draws) -> str:
    least, most, mean, shipped = (
        figures.fitted(Fraction(value))
        for value in (draws.least, draws.most, draws.mean, draws.as_linked)
    )
    text = f"{who} {least} to {most}, mean {mean}, as linked {shipped}"
    if draws.percentile is not None:
        text += f" (above {draws.percentile:.0f} % of the layouts)"
    return text
