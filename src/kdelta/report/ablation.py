# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate` as text that can be pasted into a mail."""

from collections.abc import Mapping, Sequence

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import is_seen, share_percent
from kdelta.report.ablation_cycles import cycle_lines, region_lines
from kdelta.report.ablation_model import AblatedUnit, AblationReport, Fate
from kdelta.report.account import AccountWords, Part, account_lines, changed_most
from kdelta.report.cycles import cpu_line
from kdelta.report.layout import (
    WIDTH,
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.layout_text import unlike_lines
from kdelta.report.means import (
    Means,
    about,
    apart_lines,
    averaged,
    bound_text,
    cell,
    left_over,
    unseen_lines,
)
from kdelta.report.model import Side
from kdelta.spec.identity import short

NAME = 24
CELL = 16
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
        lines += cycle_lines(report, [*ranked_units(report), *unseen_units(report)])
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
    text = f"{report.options} options differ, in {total} units. {_most_of_it(report)}"
    text += (
        f"{len(out)} {'unit was' if len(out) == 1 else 'units were'} ruled out without a kernel of "
        "their own."
    )
    return text


def _most_of_it(report: AblationReport) -> str:
    means = means_of(report)
    whole, count = means.whole(), len(averaged(report.regions))
    if whole is None:
        return "No region is steady enough for a mean. "
    where = f"the mean over {count} {'region' if count == 1 else 'regions'}"
    if not is_seen(whole):
        return f"No effect is seen in {where}: it is at most {bound_text(whole)}. "
    shares = []
    for unit in ranked_units(report)[:3]:
        mean = means.of(unit.effects)
        share = share_percent(mean, whole) if mean else None
        if share is not None:
            shares.append(f"{unit.name} {_share(share)}")
    parts = f": {', '.join(shares)}" if shares else ""
    return f"Of the change of {cell(whole)} in {where}{parts}. "


def _share(share: Estimate) -> str:
    value = f"{float(share.value):.0f} %"
    ends = f"{float(share.low):.0f}", f"{float(share.high):.0f}"
    return value if ends[0] == ends[1] else f"{value} ({ends[0]} to {ends[1]} %)"


def means_of(report: AblationReport) -> Means:
    """The means over the report's regions."""
    return Means(report.regions, report.mean)


def ranked_units(report: AblationReport) -> list[AblatedUnit]:
    """The units with an effect in the mean, those with the largest first."""
    means = means_of(report)
    seen = [unit for unit in _measured(report) if means.sees(unit.effects)]
    return sorted(seen, key=lambda unit: (-means.size(unit.effects), unit.name))


def unseen_units(report: AblationReport) -> list[AblatedUnit]:
    """The units that were measured, and the interval of whose mean holds zero, by name."""
    means = means_of(report)
    unseen = [unit for unit in _measured(report) if not means.sees(unit.effects)]
    return sorted(unseen, key=lambda unit: unit.name)


def _measured(report: AblationReport) -> list[AblatedUnit]:
    return [
        unit
        for unit in report.units
        if unit.fate not in RULED_OUT and unit.fate is not Fate.UNRESOLVED
    ]


def _table(report: AblationReport) -> list[str]:
    means = means_of(report)
    heads = "".join(f" {name[:CELL]:>{CELL}}" for name in report.workloads)
    lines = [f"{'unit':<{NAME}}{heads} {'vmlinux':>{BYTES}}  {'most in':<{MOST}}".rstrip()]
    for unit in ranked_units(report):
        most = most_in(unit.effects, report)
        lines += _line(unit.name, unit.effects, report, unit.vmlinux_bytes, most)
    for unit in report.units:
        if unit.fate is Fate.UNRESOLVED:
            lines += wrapped(f"{unit.name:<{NAME}} unresolved: {unit.why}", "", "    ")
        if unit.fate is Fate.TOGETHER:
            lines += wrapped(f"{unit.name}: {unit.why}", "  ", "    ")
    lines += _sums(report, means)
    unseen = [(unit.name, unit.effects) for unit in unseen_units(report)]
    lines += wrapped(about(len(averaged(report.regions)), "A"), "", "")
    return [*lines, *unseen_lines(unseen, means), *apart_lines(report.regions)]


def _sums(report: AblationReport, means: Means) -> list[str]:
    """What units add up to, the whole and what is left, by workload."""
    sides = report.vmlinux_bytes
    grown = None if None in sides else (sides[1] or 0) - (sides[0] or 0)
    explained = means.sums
    whole = means.wholes
    left = means.rests
    lines = _line("sum of these", explained, report, None, "")
    lines += _line("B - A", whole, report, grown, "")
    if word := left_over(means):
        lines += _line(WORDS.remainder, left, report, None, word)
    return lines


def _line(
    name: str,
    effects: Mapping[str, Estimate],
    report: AblationReport,
    size: int | None,
    most: str,
) -> list[str]:
    """A row; what has no room goes to lines of its own."""
    means = means_of(report)
    cells = "".join(
        f" {cell(means.of(effects, workload)):>{CELL}}" for workload in report.workloads
    )
    grown = "" if size is None else f"{size:+d}"
    names = [name] if len(name) <= NAME else [name, ""]
    line = f"{names[-1]:<{NAME}}{cells} {grown:>{BYTES}}".rstrip()
    if not most:
        return [*names[:-1], line]
    if len(f"{names[-1]:<{NAME}}{cells} {'':>{BYTES}}  {most}") < WIDTH:
        return [*names[:-1], f"{names[-1]:<{NAME}}{cells} {grown:>{BYTES}}  {most}"]
    return [*names[:-1], line, f"{'':<{NAME}}  {most}"]


def most_in(effects: Mapping[str, Estimate], report: AblationReport) -> str:
    """The region where an effect is the largest part, if its interval excludes zero."""
    return means_of(report).most_in(effects) or "nowhere"


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
    means, rows = means_of(report), []
    for unit in report.units:
        if unit.switch is None:
            continue
        built = f" of {cell(means.of(unit.effects))}" if unit.fate is Fate.MEASURED else ""
        switched = cell(means.of(unit.switch.effects))
        rows += wrapped(
            f"{unit.name:<{NAME}} {switched}{built} by {unit.switch.words}", "  ", "      "
        )
    title = "at run time: what the command line switches of a unit, mean over all regions"
    return ["", title, *rows] if rows else []


def parts_of(region: str, report: AblationReport) -> list[Part]:
    """A region's units, and what units do only together."""
    units = [(unit.name, unit.effects[region]) for unit in report.units if region in unit.effects]
    return units + [
        (f"together: {' + '.join(pair.units)}", pair.effects[region])
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
