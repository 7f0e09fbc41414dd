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
from kdelta.infer.effects.effects import FIRM, OPEN, Word
from kdelta.measures.cycles.words import cpu_line, cycle_words, margin_text
from kdelta.report import cells, figures, words
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Chart,
    Charts,
    Column,
    Fold,
    Items,
    Prose,
    Section,
    Spread,
    Suite,
    Table,
)
from kdelta.report.effects import EffectsView, chips, effects_chart, point_of, step_cells
from kdelta.report.figures import in_per_cent
from kdelta.report.measured import MODEL_CYCLES, Effect, MeasuredEffects
from kdelta.report.model import Mismatch, ReportedCPU

_NAMED = 3
_KINDS_SHOWN = ("l1i", "l2")

_OVER_LAYOUTS = "other less base over all layouts, with the interval of layouts and prices."
"""What a chart shows."""

_SETTLED = {
    Word.SLOWER: "slower",
    Word.FASTER: "faster",
    Word.NOT_SLOWER: "not slower in what is counted",
    Word.SAME: "the same",
    Word.PLACEMENT_ONLY: "otherwise only where code lies",
}

_COLUMNS = (
    Column(MODEL_CYCLES, "word", "the verdict on them"),
    Column("% model cycles", "number", "effect over all layouts and prices, of the base's mean"),
    Column("% as linked", "number", "how the two layouts as linked differ"),
    Column("why"),
)


class CycleForm(EffectsView):
    """How documents show model cycles."""

    joined = True

    def answers(self, found: MeasuredEffects, about: str) -> Iterator[Answer]:
        effects = tuple(found.placements.values())
        if not effects:
            return
        counts = Counter(one.verdict.word for one in effects)
        label = found.measure + found.where
        label += f", {about}" if about not in ("", _cpu_of(found)) else ""
        yield Answer((sentence(effects),), chips(counts), label, words.tone_of(counts))

    def charts(self, found: MeasuredEffects, regions: Sequence[str]) -> Iterator[Chart]:
        effects = found.placements
        ordered = [effects[name] for name in regions if name in effects]
        return effect_chart(ordered, _cpu_of(found))

    def columns(self) -> tuple[Column, ...]:
        return _COLUMNS

    def cells(self, found: MeasuredEffects, region: str) -> tuple[Cell, ...]:
        one = next((one for one in found.effects if one.region == region), None)
        why = one.reason if one else ""
        if one and one.placement:
            why = _why(one.placement)
        return (*self.step_cells(one), Cell(why))

    def sections(
        self, found: MeasuredEffects, about: str, mark: str, cpu: ReportedCPU | None
    ) -> Iterator[Section]:
        effects = tuple(found.placements.values())
        if cpu is None or not effects:
            return
        lead = (
            "Each kernel's code was replayed in random layouts. What the change does is the "
            "difference between the two distributions; where the two layouts as linked stand in "
            f"them is luck. {cpu_line(cpu)}."
        )
        lead += _about(cpu, effects)
        name = f"Placement and model cycles on {cpu.name}"
        title = f"{name}: {about}" if about else name
        blocks = (Prose(lead), *ensembles(effects, mark=mark), *_besides(effects))
        yield Section(f"placement{mark}", title, blocks)

    def suites(self, found: MeasuredEffects, who: str) -> Iterator[Suite]:
        if cases := tuple(map(_case, found.effects)):
            yield Suite(f"{who}{found.measure}{found.where}", cases)

    def screen(self, found: MeasuredEffects, mismatches: Sequence[Mismatch]) -> Section:
        order = dict.fromkeys((Word.SLOWER, Word.FASTER, Word.PLACEMENT_ONLY, *OPEN, *Word))
        effects = found.placements.values()
        of = {word: [one for one in effects if one.verdict.word is word] for word in order}
        texts = [f"{word} ({len(few)}): {_named(few, word)}" for word, few in of.items() if few]
        if names := dict.fromkeys(one.name for one in mismatches):
            texts += [f"not as on a real {_cpu_of(found)}: {', '.join(names)}"]
        title = f"Model cycles{found.where}: means over random layouts of each kernel"
        return Section("cycles", title, (Items(tuple(texts)),))

    def step_columns(self, measure: str, cpu: str) -> tuple[Column, ...]:
        return (
            Column(f"on {cpu}", "word", f"the verdict on {measure}"),
            Column("over layouts", "number"),
            Column("as linked", "number"),
        )

    def step_cells(self, one: Effect | None) -> tuple[Cell, ...]:
        return (*step_cells(one), cells.relative(one.as_linked if one else None))

    def step_text(self, measure: str, one: Effect) -> str:
        return f"{measure} {one.word}" + (f" ({in_per_cent(one.change)})" if one.change else "")


def _cpu_of(found: MeasuredEffects) -> str:
    return found.where.removeprefix(" on ")


def _named(found: Sequence[PlacementEffect], word: Word) -> str:
    names = [one.region + _size(one, word) for one in found]
    more = f" and {len(names) - 2 * _NAMED} more" if len(names) > 2 * _NAMED else ""
    return ", ".join(names[: 2 * _NAMED]) + more


def _size(effect: PlacementEffect, word: Word) -> str:
    if word is Word.PLACEMENT_ONLY:
        return f" (as these two are linked: {in_per_cent(effect.as_linked.relative)})"
    return f" {in_per_cent(effect.relative)}" if word in FIRM else ""


def _why(effect: PlacementEffect) -> str:
    verdict = effect.verdict
    if verdict.word is Word.SAME:
        within = "exactly" if verdict.within == 0 else f"within {margin_text(verdict.within)}"
        return f"{within}; {verdict.reason}" if verdict.reason else within
    return verdict.text


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


def _case(one: Effect) -> Case:
    """Return a region's: the means of both ensembles, or why its trace has none."""
    effect, outcome = one.placement, words.OUTCOMES[one.word]
    if effect is None:
        return Case(one.region, outcome, f"{one.word}: {one.reason}")
    rows = {"model cycles, misses hidden": effect.hidden, "misses exposed": effect.exposed}
    rows |= {f"{kind} misses": found for kind, found in (effect.misses | effect.data).items()}
    lines = tuple(
        f"{name} {found.base.mean:.6g} -> {found.other.mean:.6g}" for name, found in rows.items()
    )
    return Case(one.region, outcome, cycle_words(effect), lines)


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


def _besides(effects: Sequence[PlacementEffect]) -> Iterator[Block]:
    """What of an effect no layout changes, and which code is the same, relinked."""
    texts = [
        f"{one.region}: of the effect, what data misses in any layout: "
        f"{cells.ends(one.data_cycles).text} model cycles"
        for one in effects
        if one.data_cycles is not None
    ]
    if relinked := [one.region for one in effects if one.relinked]:
        texts.append(f"the same code relinked: {', '.join(relinked)}")
    if texts:
        yield Items(tuple(texts))


def effect_chart(effects: Sequence[PlacementEffect], cpu: str) -> Iterator[Chart]:
    """Draw effects with their intervals, in the order given."""
    shown = [one for one in effects if math.isfinite(one.relative.low + one.relative.high)]
    points = [point_of(one.region, one.relative, one.verdict.word) for one in shown]
    said = (
        f"{point.name} {point.low:+.2f} to {point.high:+.2f} % {one.verdict.word}"
        for point, one in zip(points, shown, strict=True)
    )
    of = f"{MODEL_CYCLES} on {cpu}"
    return effects_chart(points, said, of, f"Model cycles on {cpu}: {_OVER_LAYOUTS}")


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
