# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles in a report of `kdelta ablate`: the effect of the whole and of each unit."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from kdelta.infer.ensembles import Interval
from kdelta.infer.estimate import Estimate
from kdelta.infer.means import mean_percent
from kdelta.infer.placement_model import PlacementEffect
from kdelta.report.ablation_model import AblatedUnit, AblationReport, Fate
from kdelta.report.cycles import SIGNS, SIGNS_NOTE, in_per_cent, margin_text
from kdelta.report.layout import wrapped
from kdelta.report.means import cell

NAME = 24
PATH = 15
CYCLES = 22

Effects = Mapping[str, PlacementEffect]
"""By region."""


def cycle_lines(report: AblationReport, ranked: Iterable[AblatedUnit]) -> list[str]:
    """The table of what is known of model cycles, the units in this order; and of which units
    only the path is known.
    """
    if report.cpu is None:
        return []
    cpu = report.cpu.name
    if not report.cycles:
        return ["", f"model cycles on {cpu}: not known, no operation was traced on both sides"]
    rows = [(unit.name, unit.effects, unit.cycles.effects) for unit in ranked if unit.cycles]
    wholes = {region.name: region.whole for region in report.regions}
    lines = ["", f"{f'model cycles on {cpu}':<{NAME}} {'path':>{PATH}} {'model cycles':>{CYCLES}}"]
    for name, path, cycles in [*rows, ("B - A", wholes, report.cycles)]:
        lines += _row(name, path, cycles, report)
    lines += wrapped(_about(report), "", "")
    lines += _contexts(report)
    only = [unit.name for unit in report.units if _has_path_only(unit)]
    if only:
        text = f"path only, no two of these kernels differ by it alone: {', '.join(only)}"
        lines += wrapped(text, "", "  ")
    return lines


def region_lines(report: AblationReport, region: str) -> list[str]:
    """The verdict on one region's model cycles from A to B."""
    effect = report.cycles.get(region)
    if effect is None or report.cpu is None:
        return []
    text = (
        f"model cycles on {report.cpu.name}: {effect.verdict.word} ({in_per_cent(effect.relative)})"
    )
    return wrapped(text, "  ", "    ")


def _row(
    name: str, path: Mapping[str, Estimate], cycles: Effects, report: AblationReport
) -> list[str]:
    """Both means are over the regions whose model cycles are known."""
    held = [region for region in report.regions if region.name in cycles and region.before.value]
    if not held:
        return []
    mean = mean_percent(path, {region.name: region.before for region in held})
    known = [cycles[region.name] for region in held]
    words = Counter(effect.verdict.word for effect in known)
    verdicts = " ".join(f"{words[word]}{sign}" for word, sign in SIGNS.items() if words[word])
    names = [name] if len(name) <= NAME else [name, ""]
    cells = f"{cell(mean):>{PATH}} {in_per_cent(_mean(known)):>{CYCLES}}"
    return [*names[:-1], f"{names[-1]:<{NAME}} {cells}  {verdicts}".rstrip()]


def _mean(effects: list[PlacementEffect]) -> Interval:
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
        f"Mean over regions, in per cent of each; model cycles with their interval over the prices "
        f"of misses and {effect.layouts[0]} random layouts of each kernel{left_out}. "
        f"Behind it how many regions are which: {SIGNS_NOTE.format(margin=margin)}."
    )


def _contexts(report: AblationReport) -> list[str]:
    """On top of what the units were flipped, where that is not A."""
    texts = [
        f"{unit.name} on top of {_listed(unit.cycles.flipped)}"
        for unit in report.units
        if unit.cycles and set(unit.cycles.flipped) - set(unit.needs)
    ]
    return wrapped(f"Not from A: {'; '.join(texts)}.", "", "  ") if texts else []


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} others"


def _has_path_only(unit: AblatedUnit) -> bool:
    return unit.cycles is None and unit.fate in {Fate.MEASURED, Fate.CLEARED}
