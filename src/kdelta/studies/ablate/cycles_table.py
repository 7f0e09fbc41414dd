# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of each unit of an ablation, next to its path."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.estimate import Estimate, mean_percent
from kdelta.report.cycles import SIGNS, SIGNS_NOTE, in_per_cent, margin_text
from kdelta.report.document import Block, Cell, Column, Items, Prose, Table
from kdelta.studies.ablate.model import AblatedUnit, AblationReport, Fate
from kdelta.studies.search.means import cell

Effects = Mapping[str, PlacementEffect]
"""By region."""


def region_cycles(report: AblationReport) -> Table:
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
            Cell(str(effect.verdict.word), tone=str(effect.verdict.word)),
            Cell(in_per_cent(effect.relative), effect.relative.low),
            Cell(effect.verdict.reason),
        )
        for name, effect in report.cycles.items()
    )
    return Table("cycles-verdicts-table", "Verdicts on model cycles", columns, rows)


def unit_cycles(report: AblationReport, ranked: Iterable[AblatedUnit]) -> Iterator[Block]:
    """What is known of the units' model cycles, in this order; and of which only the path is."""
    parts = [(unit.name, unit.effects, unit.cycles.effects) for unit in ranked if unit.cycles]
    wholes = {region.name: region.whole for region in report.regions}
    parts.append(("B - A", wholes, report.cycles))
    rows = tuple(row for part in parts for row in _row(*part, report))
    columns = (
        Column("unit", "name"),
        Column("path", "number"),
        Column("model cycles", "number"),
        Column("regions"),
    )
    yield Table("unit-cycles-table", "Means over regions, in per cent of each", columns, rows)
    yield Prose(_about(report))
    if contexts := tuple(_contexts(report)):
        yield Prose("Not from A:")
        yield Items(contexts)
    only = [unit.name for unit in report.units if _has_path_only(unit)]
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
    effect = next(iter(report.cycles.values()))
    margin = margin_text(effect.margin)
    unseen = [kind for kind in report.cpu.kinds if kind not in effect.misses] if report.cpu else []
    left_out = f"; {', '.join(unseen)} misses are not in them" if unseen else ""
    return (
        f"Model cycles have their interval over the prices of misses and {effect.layouts[0]} "
        f"random layouts of each kernel{left_out}. Regions: how many are which: "
        f"{SIGNS_NOTE.format(margin=margin)}."
    )


def _contexts(report: AblationReport) -> Iterator[str]:
    """On top of what the units were flipped, where that is not A."""
    for unit in report.units:
        if unit.cycles and set(unit.cycles.flipped) - set(unit.needs):
            yield f"{unit.name} on top of {_listed(unit.cycles.flipped)}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} others"


def _has_path_only(unit: AblatedUnit) -> bool:
    return unit.cycles is None and unit.fate in {Fate.MEASURED, Fate.CLEARED}
