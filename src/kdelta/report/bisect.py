# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect` as text that can be pasted into a mail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from kdelta.infer.estimate import ZERO, Estimate
from kdelta.infer.means import NARROW, STEADY, Adds, is_seen
from kdelta.report import figures
from kdelta.report.bisect_model import (
    BisectedRegion,
    BisectReport,
    FoundCommit,
    FoundGroup,
)
from kdelta.report.layout import (
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.means import percents
from kdelta.report.model import Side
from kdelta.spec.errors import LabError
from kdelta.spec.identity import short

NAME = 24
FIGURE = 12
CELL = 10
SPREAD = 7
COMMITS_SHOWN = 8


def bisect_text(report: BisectReport, regions: int = 8, functions: int = 6) -> str:
    """The whole report: `regions` is how many are shown of each commit, those first where its
    effect is largest, and `functions` how many of each of these. Raises LabError if what is printed
    does not add up.
    """
    good, bad = report.names
    lines = [f"kdelta bisect: which commits account for {good}..{bad}", ""]
    lines += _head(report)
    if report.failure:
        lines += ["", *wrapped(report.failure, "", "  ")]
    else:
        lines += ["", *wrapped(verdict_text(report), "", "")]
        for found in report.found:
            lines += _found(found, report, regions, functions)
        for group in report.groups:
            lines += _group(group, report, regions)
        lines += _account(report)
        lines += _placement(report)
        lines += _ruled_out(report)
    lines += _builds(report)
    lines += ["", *(line for note in report.notes for line in wrapped(note, "", "  "))]
    lines += warning_lines(report.warnings)
    return finished(_without_trailing_blank(lines))


def _without_trailing_blank(lines: Sequence[str]) -> list[str]:
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _head(report: BisectReport) -> list[str]:
    lines = labelled("tree", report.repository)
    count = "1 commit" if report.commits == 1 else f"{report.commits} commits"
    lines += labelled("range", f"{count}, {report.candidates} of them searched")
    for label, commit, side in (
        ("good", report.good, report.ends[0]),
        ("bad", report.bad, report.ends[1]),
    ):
        lines += labelled(label, commit.cited)
        lines += labelled("", _side(side))
    lines += labelled("workload", " ".join(report.workloads))
    lines += machine_lines(report.machine)
    failed = failed_lines("good", report.ends[0].failed) + failed_lines(
        "bad", report.ends[1].failed
    )
    return [*lines, "", "failed runs", *failed] if failed else lines


def _side(side: Side) -> str:
    if side.failure:
        return f"no kernel: {side.failure}"
    return f"release {side.release}, identity {short(side.identity)}"


def verdict_text(report: BisectReport) -> str:
    """In words, what was found."""
    if report.good == report.bad:
        return "Good and bad are the same commit: there is nothing to explain."
    where = f" in {' and '.join(report.asked)}" if report.asked else ""
    if not report.found and not report.groups:
        return f"There is no difference to explain{where}: {_no_difference(report)}"
    effects = [one for one in report.found if not one.moved]
    parts = [_counted(len(effects), "commit")] if effects or not report.groups else []
    if report.groups:
        parts.append(_counted(len(report.groups), "group") + " of commits")
    verb = "accounts" if len(effects) + len(report.groups) == 1 else "account"
    text = f"{' and '.join(parts)} {verb} for the difference{where}."
    if report.first:
        text = f"The largest effect{where} was searched for, and no other."
    moved = len(report.found) - len(effects)
    if moved:
        text += f" {_counted(moved, 'commit')} moved work between functions, and no region changed."
    return text


def _no_difference(report: BisectReport) -> str:
    changed = [
        one
        for one in report.regions
        if is_seen(one.whole) and (not report.asked or one.name in report.asked)
    ]
    if not changed:
        regions = "it" if len(report.asked) == 1 else "they" if report.asked else "all regions"
        verb = "has" if len(report.asked) == 1 else "have"
        return f"{regions} {verb} the same path at both ends, within the spread."
    most = max(changed, key=lambda one: abs(part_of(one.whole.value, one)))
    return f"the largest is {_figures(most)}, which is placement or within the margin."


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _figures(region: BisectedRegion) -> str:
    part = figures.percent(100 * part_of(region.whole.value, region))
    return (
        f"{region.name} {figures.number(region.good.value)} -> "
        f"{figures.number(region.bad.value)} ({part})"
    )


def part_of(value: Fraction, region: BisectedRegion) -> Fraction:
    """An effect as a part of the region's cost in the good end; all of it where that is nought."""
    return value / region.good.value if region.good.value else Fraction(bool(value))


def changed_regions(
    effects: Mapping[str, Estimate], report: BisectReport
) -> list[tuple[BisectedRegion, Estimate]]:
    """The regions where an effect is more than its spread, the largest first."""
    rows = [
        (region, effects[region.name])
        for region in report.regions
        if region.name in effects and is_seen(effects[region.name])
    ]
    return sorted(rows, key=lambda row: (row[0].rate, -abs(part_of(row[1].value, row[0]))))


def _found(found: FoundCommit, report: BisectReport, regions: int, functions: int) -> list[str]:
    commit = found.commit
    lines = ["", *wrapped(commit.cited, "", "    ")]
    lines += wrapped(f"{commit.author}, {commit.date}", "  ", "  ")
    lines += wrapped(found.how, "  ", "  ")
    rows = changed_regions(found.effects, report)
    for region, effect in rows[:regions]:
        lines.append(_row(region, effect))
        lines += _functions(found.functions.get(region.name, {}), functions)
    if len(rows) > regions:
        lines.append(f"  and {_counted(len(rows) - regions, 'more region')}")
    if found.moved:
        for name, its in list(found.functions.items())[:regions]:
            lines.append(f"  {name}: no effect; between functions:")
            lines += _functions(its, functions)
    return lines


def _row(region: BisectedRegion, effect: Estimate) -> str:
    value = figures.brief(effect.value, FIGURE)
    part = figures.percent(100 * part_of(effect.value, region)) if region.good.value else "new"
    return f"  {region.name:<{NAME}} {value} {part:>9}  {figures.spread(effect)}"


def _functions(effects: Mapping[str, Estimate], limit: int) -> list[str]:
    ranked = sorted(effects.items(), key=lambda item: (-abs(item[1].value), item[0]))
    shown = [
        f"{name} {figures.brief(effect.value, FIGURE).strip()}" for name, effect in ranked[:limit]
    ]
    if len(ranked) > limit:
        shown.append(f"{len(ranked) - limit} more")
    return wrapped(", ".join(shown), "      ", "      ") if shown else []


def _group(group: FoundGroup, report: BisectReport, regions: int) -> list[str]:
    lines = ["", *wrapped(f"{len(group.commits)} commits together: {group.why}", "", "  ")]
    for commit in group.commits[:COMMITS_SHOWN]:
        lines += wrapped(commit.cited, "  ", "      ")
    if len(group.commits) > COMMITS_SHOWN:
        lines.append(f"  and {len(group.commits) - COMMITS_SHOWN} more")
    rows = changed_regions(group.effects, report)[:regions]
    return [*lines, *(_row(region, effect) for region, effect in rows)]


def _account(report: BisectReport) -> list[str]:
    """Each region that changed: the ends, what was found, and what is left."""
    rows = [one for one in report.regions if is_seen(one.whole)]
    if not rows:
        return []
    rows.sort(key=lambda one: (one.rate, -abs(part_of(one.whole.value, one))))
    heads = "".join(f" {head:>{CELL}}" for head in ("good", "bad", "found"))
    lines = ["", f"  {'region':<{NAME - 6}}{heads} {'':>{SPREAD}} {'left':>{CELL}}"]
    for one in rows:
        if one.explained.value + one.remainder.value != one.whole.value:
            raise LabError(
                f"{one.name}: what was found adds up to {float(one.explained.value)}, and what is "
                f"left is {float(one.remainder.value)}",
                "this is an error of kdelta; please report it with the output of --json",
            )
        found, left = rounded_parts(one)
        cells = [
            figures.plain(figures.scaled(value), CELL, aligned=False)
            for value in (one.good.value, one.bad.value)
        ]
        cells += [
            f"{figures.signed(part, CELL, effect.value, aligned=False)} "
            f"{figures.spread(effect):>{SPREAD}}"
            for part, effect in ((found, one.explained), (left, one.remainder))
        ]
        names = [one.name] if len(one.name) <= NAME - 6 else [one.name, ""]
        lines += [f"  {name}" for name in names[:-1]]
        lines.append(f"  {names[-1]:<{NAME - 6}} {' '.join(cells)}")
    units = dict.fromkeys(
        "instructions a virtual second" if one.rate else f"{one.unit} an iteration" for one in rows
    )
    lines += wrapped(f"In {' or '.join(units)}, of the measured tasks.", "  ", "  ")
    return [*lines, *_left(rows), *_varying(rows)]


def left_texts(regions: Sequence[BisectedRegion]) -> list[str]:
    """Where what was found does not add up to the whole, and where one cannot tell."""
    said = {
        Adds.LEFT_OVER: "more than the spread is left in",
        Adds.CANNOT_TELL: "whether what was found is all of it cannot be told, since the spread of "
        f"what is left is wider than {percents(NARROW)} of the region, in",
    }
    found = {adds: [one.name for one in regions if one.adds is adds] for adds in said}
    return [f"{text} {', '.join(found[adds])}" for adds, text in said.items() if found[adds]]


def _left(regions: Sequence[BisectedRegion]) -> list[str]:
    return [line for text in left_texts(regions) for line in wrapped(text, "  ", "    ")]


def varying_text(region: BisectedRegion) -> str:
    """Between what figures the runs of one kernel vary."""
    varies = region.varies
    low, high = figures.number(varies.low), figures.number(varies.high)
    return f"{region.name}: {low} to {high} in {varies.n} runs of one kernel"


def _varying(regions: Sequence[BisectedRegion]) -> list[str]:
    """The regions whose runs vary, with both figures."""
    texts = [varying_text(one) for one in regions if not one.rate and not one.steady]
    title = f"  runs of one kernel vary by more than {percents(STEADY)}"
    lines = [line for text in texts for line in wrapped(text, "    ", "      ")]
    return [title, *lines] if texts else []


def rounded_parts(region: BisectedRegion) -> tuple[int, int]:
    """What was found and what is left, in hundredths that add up to bad - good as printed."""
    total = figures.scaled(region.bad.value) - figures.scaled(region.good.value)
    parts = [region.explained.value, region.remainder.value]
    if region.remainder.value == ZERO:
        return total, 0
    found, left = figures.rounded_to_total(parts, total)
    return found, left


def _placement(report: BisectReport) -> list[str]:
    rows = []
    for one in report.placement:
        most = changed_regions(one.effects, report)[:1]
        shown = "".join(_row(region, effect).strip() for region, effect in most)
        text = f"{one.below.short}..{one.above.short} ({one.commits}): {' '.join(shown.split())}"
        rows += wrapped(text, "  ", "      ")
    title = "placement: nothing that was executed differs there, only where it lies"
    return ["", title, *rows] if rows else []


def _ruled_out(report: BisectReport) -> list[str]:
    if not report.ruled_out:
        return []
    reasons = Counter(one.why for one in report.ruled_out)
    lines = [
        "",
        f"ruled out without a kernel ({len(report.ruled_out)} of {report.commits} commits)",
    ]
    for why, count in reasons.most_common():
        lines += wrapped(f"{count}: {why}", "  ", "    ")
    return lines


def _builds(report: BisectReport) -> list[str]:
    if not report.builds:
        return []
    built = [build for build in report.builds if build.seconds is not None]
    minutes = sum(build.seconds or 0 for build in built) / 60
    text = f"{_counted(len(report.builds), 'kernel')}, {minutes:.0f} minutes of building"
    lines = ["", *labelled("builds", text)]
    failed = [build for build in report.builds if build.status != "ok"]
    if failed:
        lines.append("skipped")
    for build in failed:
        name = f'{build.commit[:12]} ("{build.subject}")' if build.subject else build.commit[:12]
        detail = build.detail
        if not detail.startswith(build.status):
            detail = f"{build.status}: {detail}"
        lines += wrapped(f"{name}: {detail}", "  ", "      ")
    return lines
