# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures besides the path say, in the document of an ablation."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.estimate import Estimate, mean_percent
from kdelta.measures.cycles import parts as cycles
from kdelta.measures.cycles.words import SIGNS, SIGNS_NOTE, margin_text
from kdelta.measures.forms import form_of
from kdelta.report import cells
from kdelta.report.document import Block, Cell, Column, Items, Prose, Section, Table
from kdelta.report.figures import in_per_cent
from kdelta.report.measured import MeasuredEffects, placements_in
from kdelta.studies.ablate.model import AblatedGroup, AblationReport, GroupOutcome
from kdelta.studies.search import measured as searched
from kdelta.studies.search.measured import MeasuredChange
from kdelta.studies.search.model import cell

_INTERVAL = "Model cycles have their interval over the prices of misses"

_KNOWN = {GroupOutcome.MEASURED, GroupOutcome.CLEARED}

Effects = Mapping[str, PlacementEffect]
"""Effects on model cycles by region."""


def plain(measured: Sequence[MeasuredEffects]) -> tuple[MeasuredEffects, ...]:
    """Return what is shown as of any measure."""
    return tuple(one for one in measured if not form_of(one.measure).joined)


def sections(report: AblationReport, ranked: Sequence[AblatedGroup]) -> Iterator[Section]:
    """Yield a section for each measure. ranked: the option groups that were measured, in order."""
    yield from _cycles(report, ranked)
    whole = plain(report.measured)
    groups = [
        MeasuredChange(one.name, one.effects, measured)
        for one in report.option_groups
        for measured in (plain(one.measured),)
        if measured or (whole and one.outcome in _KNOWN)
    ]
    yield from searched.sections(groups, "option group", whole, ("A", "B"))


def _cycles(report: AblationReport, ranked: Sequence[AblatedGroup]) -> Iterator[Section]:
    if report.cpu is None:
        return
    known = placements_in(report.measured)
    if not known:
        text = "Not known: no operation was traced on both sides."
        yield Section("placement", f"Model cycles on {report.cpu.name}", (Prose(text),))
        return
    effects = tuple(known.values())
    blocks: tuple[Block, ...] = (
        Prose(cycles.sentence(effects)),
        _region_cycles(known),
        *cycles.effect_chart(sorted(effects, key=_by_cycles), report.cpu.name),
        *cycles.ensembles(effects, ("A", "B")),
        *_unit_cycles(report, ranked),
    )
    yield Section("placement", f"Model cycles on {report.cpu.name}, from A to B", blocks)


def _by_cycles(effect: PlacementEffect) -> float:
    """What is slower comes first."""
    return -(effect.relative.low + effect.relative.high)


def _region_cycles(known: Effects) -> Table:
    """The verdict on each region's model cycles from A to B."""
    columns = (
        Column("region", "name"),
        Column("verdict", "word"),
        Column("%", "number"),
        Column("why"),
    )
    rows = tuple(
        (
            Cell(name),
            cells.verdict(effect.verdict.word),
            cells.relative(effect.relative),
            Cell(effect.verdict.reason),
        )
        for name, effect in known.items()
    )
    return Table("cycles-verdicts-table", "Verdicts on model cycles", columns, rows)


def _unit_cycles(report: AblationReport, ranked: Iterable[AblatedGroup]) -> Iterator[Block]:
    """What is known of the option groups' model cycles, in this order; and of which only the path
    is.
    """
    of = {unit.name: placements_in(unit.measured) for unit in report.option_groups}
    whole = placements_in(report.measured)
    parts = [(unit.name, unit.effects, of[unit.name]) for unit in ranked if of[unit.name]]
    parts.append(("B - A", {region.name: region.whole for region in report.regions}, whole))
    rows = tuple(row for part in parts for row in _row(*part, report))
    columns = (
        Column("option group", "name"),
        Column("path", "number"),
        Column("model cycles", "number"),
        Column("regions"),
    )
    yield Table("unit-cycles-table", "Means over regions, in per cent of each", columns, rows)
    yield Prose(_about(report))
    if contexts := tuple(_contexts(report)):
        yield Prose("Not from A:")
        yield Items(contexts)
    only = [one.name for one in report.option_groups if not of[one.name] and one.outcome in _KNOWN]
    if only:
        yield Prose(f"Path only, no two of these kernels differ by it alone: {', '.join(only)}.")


def _row(
    name: str, path: Mapping[str, Estimate], cycles: Effects, report: AblationReport
) -> Iterator[tuple[Cell, ...]]:
    """Both means are over the regions whose model cycles are known."""
    held = [region for region in report.regions if region.name in cycles and region.before.value]
    if not held:
        return
    mean = mean_percent(path, {region.name: region.before for region in held})
    known = [cycles[region.name] for region in held]
    words = Counter(effect.verdict.word for effect in known)
    verdicts = " ".join(f"{words[word]}{sign}" for word, sign in SIGNS.items() if words[word])
    both = _mean(known)
    yield (
        Cell(name),
        Cell(cell(mean), float(mean.value) if mean else 0.0),
        Cell(in_per_cent(both), both.low),
        Cell(verdicts),
    )


def _mean(effects: Sequence[PlacementEffect]) -> Interval:
    """The mean of either end; infinite where one is."""
    ends = [(one.relative.low, one.relative.high) for one in effects]
    low, high = (math.fsum(side) / len(ends) for side in zip(*ends, strict=True))
    return Interval(low, high)


def _about(report: AblationReport) -> str:
    effect = next(iter(placements_in(report.measured).values()))
    margin = margin_text(effect.margin)
    unseen = [kind for kind in report.cpu.kinds if kind not in effect.misses] if report.cpu else []
    left_out = f"; {', '.join(unseen)} misses are not in them" if unseen else ""
    return (
        f"{_INTERVAL} and {effect.layouts[0]} random layouts of each kernel{left_out}. "
        f"Regions: how many are which: {SIGNS_NOTE.format(margin=margin)}."
    )


def _contexts(report: AblationReport) -> Iterator[str]:
    """On top of what the option groups were flipped, where that is not A."""
    for unit in report.option_groups:
        if placements_in(unit.measured) and set(unit.flipped) - set(unit.needs):
            yield f"{unit.name} on top of {_listed(unit.flipped)}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} others"
