# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate` as text that can be pasted into a mail."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from kdelta.infer.estimate import Estimate
from kdelta.report import figures
from kdelta.report.ablation_cycles import cycle_lines, region_lines
from kdelta.report.ablation_model import (
    AblatedRegion,
    AblatedUnit,
    AblationReport,
    Fate,
)
from kdelta.report.account import AccountWords, Part, account_lines, changed_most
from kdelta.report.cycles import cpu_line
from kdelta.report.layout import (
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.layout_text import unlike_lines
from kdelta.report.model import Side
from kdelta.spec.identity import short

NAME = 24
MEAN = 10
MOST = 25
BYTES = 9

WORDS = AccountWords("units", "B - A is", "total", "not accounted for")

RULED_OUT = (Fate.DEAD, Fate.IDENTICAL)


def ablation_text(report: AblationReport, regions: int = 8, units: int = 6) -> str:
    """The whole report: `regions` is how many of those that changed most are taken apart, `units`
    how many units are named in each. Raises LabError if what is printed does not add up.
    """
    lines = [f"kdelta ablate: which options account for {report.names[0]} -> {report.names[1]}", ""]
    lines += _head(report)
    if report.failure:
        lines += ["", *wrapped(report.failure, "", "  ")]
    else:
        lines += ["", *wrapped(verdict_text(report), "", ""), "", *_table(report)]
        lines += cycle_lines(report, ranked_units(report))
        lines += _ruled_out(report.units)
        lines += _switches(report)
        for region in changed_most(report.regions, regions):
            lines += account_lines(
                region,
                parts_of(region.name, report),
                WORDS,
                limit=units,
                beside=region_lines(report, region.name),
            )
        lines += _interactions(report)
        if report.proof is not None:
            lines += ["", *labelled("proof", report.proof.text)]
    if report.cpu:
        lines += unlike_lines(report.cpu.name, report.unlike)
    lines += _builds(report)
    lines += ["", *_notes(report.notes)] if report.notes else []
    lines += warning_lines(report.warnings)
    return finished(lines)


def _head(report: AblationReport) -> list[str]:
    lines = labelled("tree", report.tree)
    for label, name, side in zip(("A", "B"), report.names, report.ends, strict=True):
        lines += labelled(label, _side(name, side))
    lines += labelled("workload", ", ".join(report.workloads))
    if report.machine:
        lines += machine_lines(report.machine)
    if report.cpu:
        lines += labelled("priced", cpu_line(report.cpu))
    failed = [
        line
        for label, side in zip(("A", "B"), report.ends, strict=True)
        for line in failed_lines(label, side.failed)
    ]
    return [*lines, "", "failed runs", *failed] if failed else lines


def _side(name: str, side: Side) -> str:
    if side.failure:
        return f"{name}: no kernel: {side.failure}"
    return f"{name}: release {side.release}, identity {short(side.identity)}"


def verdict_text(report: AblationReport) -> str:
    """In words: which units do most of it, and how many do nothing."""
    total = sum(unit.fate is not Fate.TOGETHER for unit in report.units)
    out = [unit for unit in report.units if unit.fate in RULED_OUT]
    ranked = [unit for unit in ranked_units(report) if mean_percent(unit.effects, report, None)]
    whole = _whole_mean(report, None)
    text = f"{report.options} options differ, in {total} units. "
    if ranked and whole:
        shares = []
        for unit in ranked[:3]:
            part = mean_percent(unit.effects, report, None) / whole * 100
            shares.append(f"{unit.name} {float(part):.0f} %")
        text += f"Of the change of {figures.percent(whole)} over all regions: {', '.join(shares)}. "
    text += (
        f"{len(out)} {'unit was' if len(out) == 1 else 'units were'} ruled out without a kernel of "
        "their own."
    )
    return text


def ranked_units(report: AblationReport) -> list[AblatedUnit]:
    """The units that were measured, those with the largest mean effect first."""
    measured = [unit for unit in report.units if unit.fate not in RULED_OUT]
    return sorted(
        measured, key=lambda unit: (-abs(mean_percent(unit.effects, report, None)), unit.name)
    )


def _of(report: AblationReport, workload: str | None) -> list[AblatedRegion]:
    return [
        region
        for region in report.regions
        if not region.rate and region.before.value and workload in (None, region.workload)
    ]


def mean_percent(
    effects: Mapping[str, Estimate], report: AblationReport, workload: str | None
) -> Fraction:
    """The mean over regions, of one workload or of all, of an effect in per cent of A: what adds up
    over units.
    """
    regions = _of(report, workload)
    parts = [
        effects[region.name].value / region.before.value
        for region in regions
        if region.name in effects
    ]
    return 100 * sum(parts, Fraction(0)) / len(regions) if regions else Fraction(0)


def _whole_mean(report: AblationReport, workload: str | None) -> Fraction:
    return mean_percent({region.name: region.whole for region in report.regions}, report, workload)


def _table(report: AblationReport) -> list[str]:
    heads = "".join(f" {name[:MEAN]:>{MEAN}}" for name in report.workloads)
    lines = [f"{'unit':<{NAME}}{heads} {'vmlinux':>{BYTES}}  {'most in':<{MOST}}".rstrip()]
    for unit in ranked_units(report):
        lines += _row(unit, report)
    for unit in report.units:
        if unit.fate is Fate.TOGETHER:
            lines += wrapped(f"{unit.name}: {unit.why}", "  ", "    ")
    sides = report.vmlinux_bytes
    grown = None if None in sides else (sides[1] or 0) - (sides[0] or 0)
    explained = {region.name: region.explained for region in report.regions}
    whole = {region.name: region.whole for region in report.regions}
    lines.append(_line("sum of these", explained, report, None, ""))
    lines.append(_line("B - A", whole, report, grown, ""))
    lines += wrapped(
        "Mean over the workload's regions, in per cent of A, of the instructions of the measured "
        "tasks; a minus is faster.",
        "",
        "",
    )
    return lines


def _row(unit: AblatedUnit, report: AblationReport) -> list[str]:
    if unit.fate is Fate.UNRESOLVED:
        return [f"{unit.name:<{NAME}} unresolved: {unit.why}"]
    most = most_in(unit.effects, report)
    names = [unit.name] if len(unit.name) <= NAME else [unit.name, ""]
    return [*names[:-1], _line(names[-1], unit.effects, report, unit.vmlinux_bytes, most)]


def _line(
    name: str,
    effects: Mapping[str, Estimate],
    report: AblationReport,
    size: int | None,
    most: str,
) -> str:
    cells = "".join(
        f" {figures.percent(mean_percent(effects, report, workload)):>{MEAN}}"
        for workload in report.workloads
    )
    grown = "" if size is None else f"{size:+d}"
    return f"{name:<{NAME}}{cells} {grown:>{BYTES}}  {most}".rstrip()


def most_in(effects: Mapping[str, Estimate], report: AblationReport) -> str:
    """The region where an effect is the largest part, if it is more than its spread."""
    best, part = None, Fraction(0)
    for region in _of(report, None):
        effect = effects.get(region.name)
        if effect is None or not (effect.low > 0 or effect.high < 0):
            continue
        size = effect.value / region.before.value
        if abs(size) > abs(part):
            best, part = region, size
    return f"{best.name} {figures.percent(100 * part)}" if best else "nowhere"


def _ruled_out(units: Sequence[AblatedUnit]) -> list[str]:
    lines = []
    for fate, title in (
        (Fate.DEAD, "ruled out: no executed code depends on it; with the objects that it reaches"),
        (
            Fate.IDENTICAL,
            "ruled out: the executed objects that it reaches came out the same, compiled with it",
        ),
    ):
        found = [unit for unit in units if unit.fate is fate]
        if found:
            shown = ", ".join(f"{unit.name} ({unit.objects})" for unit in found)
            lines += ["", f"{title} ({len(found)})", *wrapped(shown, "  ", "  ")]
    return lines


def _switches(report: AblationReport) -> list[str]:
    rows = []
    for unit in report.units:
        if unit.switch is None:
            continue
        switched = mean_percent(unit.switch.effects, report, None)
        built = mean_percent(unit.effects, report, None) if unit.fate is Fate.MEASURED else None
        compared = "" if built is None else f" of {figures.percent(built)}"
        rows += wrapped(
            f"{unit.name:<{NAME}} {figures.percent(switched)}{compared} by {unit.switch.words}",
            "  ",
            "      ",
        )
    title = "at run time: what the command line switches of a unit, mean over all regions"
    return ["", title, *rows] if rows else []


def parts_of(region: str, report: AblationReport) -> list[Part]:
    """A region's units, and what units do only together."""
    units = [
        (unit.name, unit.effects[region].value) for unit in report.units if region in unit.effects
    ]
    return units + [
        (f"together: {' + '.join(pair.units)}", pair.effects[region].value)
        for pair in report.interactions
        if region in pair.effects
    ]


def _interactions(report: AblationReport) -> list[str]:
    rows = []
    for pair in report.interactions:
        most = most_in(pair.effects, report)
        rows += wrapped(f"{' + '.join(pair.units)}: most in {most}", "  ", "      ")
    return (
        ["", "interactions: together they do more or less than each alone", *rows] if rows else []
    )


def _builds(report: AblationReport) -> list[str]:
    if not report.builds:
        return []
    built = [build for build in report.builds if build.seconds is not None]
    seconds = sum(build.seconds or 0 for build in built)
    units = sum(unit.fate is not Fate.TOGETHER for unit in report.units)
    text = f"{len(report.builds)} kernels"
    if len(built) < len(report.builds):
        text += f", {len(report.builds) - len(built)} of them from the cache"
    if built:
        text += f", {seconds / 60:.0f} minutes of building"
    if units:
        text += f"; one at a time would be {units + 2}"
    lines = ["", *labelled("builds", text)]
    for build in report.builds:
        if build.status != "ok":
            shown = f"{build.label}: {build.detail}"
            if not build.detail.startswith(build.status):
                shown = f"{build.label}: {build.status}: {build.detail}"
            lines += wrapped(shown, "  ", "      ")
    return lines


def _notes(notes: Sequence[str]) -> list[str]:
    return [line for note in notes for line in wrapped(note, "", "  ")]
