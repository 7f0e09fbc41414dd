# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series` as text that can be pasted into a mail."""

from collections.abc import Mapping, Sequence

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import MEAN, is_seen
from kdelta.infer.minimal import Role
from kdelta.infer.series_model import PatchFate, PatchGroup, View, ViewAnswer
from kdelta.report import figures
from kdelta.report.account import AccountWords, Part, account_lines, changed_most
from kdelta.report.layout import (
    WIDTH,
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.means import (
    Means,
    about,
    apart_lines,
    averaged,
    cell,
    left_over,
    unseen_lines,
)
from kdelta.report.model import Side
from kdelta.report.series_held import held_lines
from kdelta.report.series_model import KeptBranch, Minimal, SeriesReport, SeriesRow
from kdelta.spec.identity import short

NAME = 30
CELL = 15
SHOWN_NEEDS = 12

WORDS = AccountWords("patches", "all do", "all patches", "patches without effect")

HEADS = {View.ORDER: "in order", View.LEFT_OUT: "left out", View.ALONE: "alone"}
VIEWS = tuple(HEADS)


def series_text(report: SeriesReport, regions: int = 8, patches: int = 6) -> str:
    """The whole report: `regions` is how many of those that changed most are taken apart, `patches`
    how many are named in each. Raises LabError if what is printed does not add up.
    """
    count = len(report.rows)
    what = "a patch does" if count == 1 else f"each of {count} patches does"
    lines = [f"kdelta series: what {what}", ""]
    lines += _head(report)
    if report.failure:
        lines += ["", *wrapped(report.failure, "", "  ")]
    else:
        lines += ["", *wrapped(verdict_text(report), "", "")]
        lines += _minimal(report, report.minimal) if report.minimal else ["", *_table(report)]
        lines += _ruled_out(report)
        lines += held_lines(report)
        lines += _needs(report)
        if report.minimal is None:
            for region in changed_most(report.regions, regions):
                parts = parts_of(region.name, report)
                lines += account_lines(region, parts, WORDS, limit=patches)
        lines += _interactions(report)
        if report.proof is not None:
            lines += ["", *labelled("proof", report.proof.text)]
        lines += _kept(report.kept) if report.kept else []
    lines += _builds(report)
    if report.notes:
        lines += ["", *(line for note in report.notes for line in wrapped(note, "", "  "))]
    lines += warning_lines(report.warnings)
    return finished(lines)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _head(report: SeriesReport) -> list[str]:
    lines = labelled("tree", report.tree)
    lines += labelled("patches", " ".join(report.words))
    for label, side in zip(("without", "with all"), report.ends, strict=True):
        lines += labelled(label, _side(side))
    lines += labelled("workload", ", ".join(report.workloads))
    if report.machine:
        lines += machine_lines(report.machine)
    failed = [
        line
        for label, side in zip(("without", "with all"), report.ends, strict=True)
        for line in failed_lines(label, side.failed)
    ]
    return [*lines, "", "failed runs", *failed] if failed else lines


def _side(side: Side) -> str:
    if side.failure:
        return f"no kernel: {side.failure}"
    return f"release {side.release}, identity {short(side.identity)}"


def means_of(report: SeriesReport) -> Means:
    """The means over the report's regions."""
    return Means(report.regions, report.mean)


def verdict_text(report: SeriesReport) -> str:
    """In words: what all do, which patches do most of it, and how many do nothing."""
    whole, count = means_of(report).whole(), len(averaged(report.regions))
    changed = [one for one in report.regions if not one.rate and is_seen(one.whole)]
    if whole is None:
        text = "No region is steady enough for a mean. "
    elif not changed:
        text = "All patches together change no region's path. "
    else:
        text = (
            f"All patches together change the path by {cell(whole)} in the mean over "
            f"{_count(count, 'region', 'regions')}; {len(changed)} differ. "
        )
    doing = [row for row in report.of(PatchFate.MEASURED) if does_something(row.answer.effects)]
    if report.minimal is None:
        text += f"{_count(len(doing), 'patch is', 'patches are')} known to do something. "
    out = len(report.of(PatchFate.RULED_OUT))
    text += f"{_count(out, 'patch was', 'patches were')} ruled out without a kernel of their own."
    return text


def does_something(effects: Mapping[str, Estimate]) -> bool:
    """Whether an effect is more than its spread in any region."""
    return any(is_seen(one) for region, one in effects.items() if region != MEAN)


def _table(report: SeriesReport) -> list[str]:
    views = [view for view in VIEWS if view in report.views or view is View.ORDER]
    heads = "".join(f" {HEADS[view]:>{CELL}}" for view in views)
    most = "  most in" if len(views) == 1 else ""
    lines = [f"{'patch':<{NAME}}{heads}{most}"]
    rows = [row for row in report.of(PatchFate.MEASURED) if does_something(row.answer.effects)]
    for row in rows:
        cells = [row.answer.effects, _cells(row.answer.left_out), _cells(row.answer.alone)]
        lines += _line(row.name, cells, views, report)
    for number, group in enumerate(report.groups, start=1):
        cells = [group.effects, _cells(group.left_out), _cells(group.alone)]
        lines += _line(f"group {number} ({len(group.patches)})", cells, views, report)
    means = means_of(report)
    explained = means.sums
    whole = means.wholes
    left = means.rests
    lines += _line("sum of these", [explained, {}, {}], views, report)
    lines += _line("all patches", [whole, {}, {}], views, report)
    if word := left_over(means):
        lines += _line(WORDS.remainder, [left, {}, {}], views, report)
        lines.append(f"    {word}")
    lines += _groups(report.groups)
    lines += wrapped(about(len(averaged(report.regions)), "the tree without patches"), "", "")
    unseen = [(row.name, row.answer.effects) for row in unseen_rows(report)]
    return [*lines, *unseen_lines(unseen, means), *apart_lines(report.regions)]


def unseen_rows(report: SeriesReport) -> list[SeriesRow]:
    """The patches that were measured, or cleared with others, and do nothing in any region."""
    measured = [*report.of(PatchFate.MEASURED), *report.of(PatchFate.CLEARED)]
    return [row for row in measured if not does_something(row.answer.effects)]


def _cells(view: ViewAnswer | None) -> Mapping[str, Estimate] | None:
    return None if view is None or not view.effects else view.effects


def _line(
    name: str,
    cells: Sequence[Mapping[str, Estimate] | None],
    views: Sequence[View],
    report: SeriesReport,
) -> list[str]:
    shown = ""
    for view, effects in zip(VIEWS, cells, strict=True):
        if view in views:
            shown += f" {_cell(effects, report):>{CELL}}"
    most = most_in(cells[0] or {}, report)
    names = [name] if len(name) <= NAME else [name, ""]
    line = f"{names[-1]:<{NAME}}{shown}".rstrip()
    if len(views) == 1 and len(most) <= WIDTH - 1 - NAME - len(shown) - 2:
        return [*names[:-1], f"{line}  {most}".rstrip()]
    return [*names[:-1], line, *([f"    most in {most}"] if most else [])]


def _cell(effects: Mapping[str, Estimate] | None, report: SeriesReport) -> str:
    """A mean effect; "-" where it is not known, and nothing where it is not asked."""
    if effects is None:
        return "-"
    return cell(means_of(report).of(effects)) if effects else ""


def most_in(effects: Mapping[str, Estimate], report: SeriesReport) -> str:
    """The region where an effect is the largest part, if its interval excludes zero."""
    return means_of(report).most_in(effects)


def _groups(groups: Sequence[PatchGroup]) -> list[str]:
    lines = []
    for number, group in enumerate(groups, start=1):
        text = f"group {number}: {', '.join(group.patches)}; {group.reason}"
        lines += wrapped(text, "", "  ")
    return lines


def _minimal(report: SeriesReport, minimal: Minimal) -> list[str]:
    answer = minimal.answer
    within = figures.percent(100 * minimal.within).lstrip("+")
    if not answer.members:
        return ["", *wrapped(f"no set was found that has the effect. {answer.note}", "", "  ")]
    count = len(answer.members)
    what = f"{_count(count, 'patch has', 'patches have')} the effect of all, within {within} of it"
    if not answer.complete:
        what = f"{_count(count, 'patch is', 'patches are')} known to be needed, not all that are"
    lines = ["", *wrapped(f"{what}:", "", "  ")]
    for one in answer.members:
        word = "" if one.role is Role.CULPRIT else "needed: "
        lines += wrapped(f"{one.name}: {word}{one.text}", "  ", "      ")
    if minimal.effects:
        alone = cell(means_of(report).of(minimal.effects))
        most = most_in(minimal.effects, report)
        text = f"together, without the others: {alone} in the mean, most in {most}"
        lines += wrapped(text, "", "  ")
    text = f"{_count(answer.tests, 'kernel', 'kernels')} tried for it"
    if answer.refused:
        text += f", {_count(answer.refused, 'set', 'sets')} refused without one"
    if answer.confirmed:
        text += "; left out one by one, none of them can be spared"
    lines += wrapped(f"{text}. {answer.note}".rstrip(), "", "  ")
    return lines


def _ruled_out(report: SeriesReport) -> list[str]:
    rows = report.of(PatchFate.RULED_OUT)
    if not rows:
        return []
    reasons: dict[str, list[SeriesRow]] = {}
    for row in rows:
        reasons.setdefault(row.why, []).append(row)
    lines = ["", f"ruled out ({len(rows)}); with the objects that each reaches"]
    for why, some in reasons.items():
        shown = ", ".join(f"{row.name} ({row.objects})" for row in some)
        lines += wrapped(f"{why or 'ruled out'}: {shown}", "  ", "    ")
    return lines


def _needs(report: SeriesReport) -> list[str]:
    if not report.needs:
        return []
    lines = ["", f"what needs what ({len(report.needs)})"]
    for need in report.needs[:SHOWN_NEEDS]:
        text = f"{need.patch} needs {', '.join(need.needs)}: {need.reason}"
        lines += wrapped(text, "  ", "      ")
    if len(report.needs) > SHOWN_NEEDS:
        lines.append(f"  and {len(report.needs) - SHOWN_NEEDS} more, which --json has")
    return lines


def _interactions(report: SeriesReport) -> list[str]:
    lines = []
    for one in report.interactions:
        most = most_in(one.effects, report) or "nowhere"
        lines += wrapped(f"{' + '.join(one.units)}: most in {most}; {one.text}", "  ", "      ")
    title = "interactions: together they do more or less than each alone"
    return ["", title, *lines] if lines else []


def parts_of(region: str, report: SeriesReport) -> list[Part]:
    """A region's patches and groups of them."""
    patches = [
        (row.name, row.answer.effects[region])
        for row in report.of(PatchFate.MEASURED)
        if region in row.answer.effects
    ]
    return patches + [
        (f"group {number} ({len(group.patches)} patches)", group.effects[region])
        for number, group in enumerate(report.groups, start=1)
        if region in group.effects
    ]


def _kept(kept: KeptBranch) -> list[str]:
    text = f"{kept.branch}, {_count(len(kept.kept), 'commit', 'commits')}, tip {kept.tip[:12]}"
    lines = ["", *labelled("kept", text)]
    for word, names in (("dropped", kept.dropped), ("marked", kept.marked)):
        if names:
            lines += labelled("", f"{word}, since slower: {', '.join(names)}")
    return lines


def _builds(report: SeriesReport) -> list[str]:
    if not report.builds:
        return []
    built = [build for build in report.builds if build.seconds is not None]
    text = f"{len(report.builds)} kernels"
    if len(built) < len(report.builds):
        text += f", {len(report.builds) - len(built)} of them from the cache"
    if built:
        text += f", {sum(build.seconds or 0 for build in built) / 60:.0f} minutes of building"
    if report.rows:
        text += f"; each patch by itself would be {len(report.rows) + 1}"
    lines = ["", *labelled("builds", text)]
    for build in report.builds:
        if build.status != "ok":
            shown = f"{build.label}: {build.detail}"
            if not build.detail.startswith(build.status):
                shown = f"{build.label}: {build.status}: {build.detail}"
            lines += wrapped(shown, "  ", "      ")
    return lines
