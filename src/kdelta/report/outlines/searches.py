# SPDX-License-Identifier: GPL-2.0-or-later
"""Outlines of searches: `ablate` for options, `bisect` for commits, `series` for patches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.estimate import Estimate, Quantity
from kdelta.infer.means import MEAN, is_seen
from kdelta.infer.series_model import PatchFate
from kdelta.report import ablation, bisect, figures, series
from kdelta.report.ablation import RULED_OUT
from kdelta.report.ablation_model import AblatedRegion, AblatedUnit, AblationReport, Fate, Proof
from kdelta.report.account import AccountWords, Part, account_rows, changed_most
from kdelta.report.bisect_model import BisectedRegion, BisectReport, FoundCommit
from kdelta.report.cycles import cpu_line
from kdelta.report.means import (
    about,
    apart,
    apart_text,
    apart_title,
    averaged,
    cell,
    left_over,
    unseen_text,
)
from kdelta.report.model import Facts, Side
from kdelta.report.outline import Case, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.series_model import SeriesReport, SeriesRow
from kdelta.report.stored import Stored

Region = AblatedRegion | BisectedRegion

_REGIONS = 8
_PARTS = 6


def ablate_outline(stored: Stored) -> Outline:
    """The outline of which options account for the difference between two configs."""
    report = stored.one(AblationReport)
    before, after = report.names
    ends = (f"A, {before}", f"B, {after}")
    titled = f"{' '.join(report.workloads)}: {before} -> {after}"
    if report.failure:
        return _failed(titled, report.failure, tuple(zip(ends, report.ends, strict=True)), report)
    cases = tuple(_unit_case(unit) for unit in report.units if unit.fate is not Fate.TOGETHER)
    accounts = [
        _account(region, ablation.parts_of(region.name, report), ablation.WORDS)
        for region in changed_most(report.regions, stored.shown.get("explain", _REGIONS))
    ]
    out = [unit.name for unit in report.units if unit.fate in RULED_OUT]
    means = ablation.means_of(report)
    unseen = [unseen_text(u.name, u.effects, means) for u in ablation.unseen_units(report)]
    return Outline(
        subject=titled,
        short=(ablation.verdict_text(report), *_proved(report.proof)),
        suites=_suites(ends, report.ends, report.regions, Suite("options", cases)),
        tables=(_units(report), _regions("A", "B", report.regions), *accounts),
        failures=parts.failures_of(tuple(zip(ends, report.ends, strict=True))),
        facts=_facts(report.tree, report.workloads, ends, report.ends, report.machine)
        + ((("priced", cpu_line(report.cpu)),) if report.cpu else ()),
        notes=(
            *_listed("no effect seen, the interval of the mean holds 0", unseen),
            *_apart(report.regions),
            *_listed("ruled out without a kernel of their own", out),
            *report.notes,
        ),
        warnings=report.warnings,
    )


def _unit_case(unit: AblatedUnit) -> Case:
    name = ", ".join(unit.options) or unit.name
    if unit.fate is Fate.UNRESOLVED:
        return Case(name, Outcome.UNKNOWN, f"unresolved: {unit.why}")
    return _case(name, unit.effects, unit.how or unit.why or str(unit.fate))


def _units(report: AblationReport) -> Table:
    means = ablation.means_of(report)

    def row(name: str, effects: Mapping[str, Estimate], most: str = "") -> tuple[str, ...]:
        return name, *(cell(means.of(effects, one)) for one in report.workloads), most

    rows = [
        row(unit.name, unit.effects, ablation.most_in(unit.effects, report))
        for unit in ablation.ranked_units(report)
    ]
    rows += [
        (unit.name, *("" for _ in report.workloads), "unresolved")
        for unit in report.units
        if unit.fate is Fate.UNRESOLVED
    ]
    rows.append(row("sum of these", means.sums))
    if word := left_over(means):
        left = means.rests
        rows.append(row(ablation.WORDS.remainder, left, word))
    return Table(
        "options, by what flipping each does",
        ("unit", *report.workloads, "most in"),
        tuple(rows),
        total=row("B - A", means.wholes),
        note=about(len(averaged(report.regions)), "A"),
    )


def _apart(regions: Iterable[AblatedRegion]) -> tuple[str, ...]:
    """The regions that are in no mean."""
    found = [apart_text(one) for one in apart(regions)]
    return (f"{apart_title()}: {'; '.join(found)}",) if found else ()


def bisect_outline(stored: Stored) -> Outline:
    """The outline of which commits account for the difference between two of them."""
    report = stored.one(BisectReport)
    ends = (f"good, {report.names[0]}", f"bad, {report.names[1]}")
    titled = f"{' '.join(report.workloads)}: {report.names[0]}..{report.names[1]}"
    if report.failure:
        return _failed(titled, report.failure, tuple(zip(ends, report.ends, strict=True)), report)
    groups = [
        _case(f"{len(group.commits)} commits together from {group.commits[0].cited}", group.effects)
        for group in report.groups
    ]
    commits = Suite("commits", (*map(_commit_case, report.found), *groups))
    found = [one.commit.cited for one in report.found]
    named = (f"Found: {'; '.join(found)}.",) if found else ()
    out = _reasons([one.why for one in report.ruled_out])
    return Outline(
        subject=f"{titled}: {parts.counted(len(found), 'commit')} found",
        short=(bisect.verdict_text(report), *named),
        suites=_suites(ends, report.ends, report.regions, commits),
        tables=(
            *(_commit(one, report) for one in report.found),
            _regions("good", "bad", report.regions),
        ),
        failures=parts.failures_of(tuple(zip(ends, report.ends, strict=True))),
        facts=_facts(report.repository, report.workloads, ends, report.ends, report.machine),
        notes=(
            *out,
            *bisect.left_texts([one for one in report.regions if is_seen(one.whole)]),
            *report.notes,
        ),
        warnings=report.warnings,
    )


def _reasons(reasons: Sequence[str]) -> Iterator[str]:
    """How many commits were ruled out for each reason."""
    for reason in dict.fromkeys(reasons):
        yield f"{reasons.count(reason)} ruled out without a kernel: {reason}"


def _commit_case(found: FoundCommit) -> Case:
    return _case(found.commit.cited, found.effects, found.how)


def _commit(found: FoundCommit, report: BisectReport) -> Table:
    rows = [
        (
            region.name,
            figures.brief(effect.value, 1),
            figures.percent(100 * bisect.part_of(effect.value, region)),
            figures.spread(effect),
        )
        for region, effect in bisect.changed_regions(found.effects, report)
    ]
    return Table(
        found.commit.cited,
        ("region", "effect", "%", "spread"),
        tuple(rows),
        note=f"{found.commit.author}, {found.commit.date}; {found.how}",
    )


def series_outline(stored: Stored) -> Outline:
    """The outline of what each patch of a series does."""
    report = stored.one(SeriesReport)
    ends = ("without", "with all")
    titled = f"{' '.join(report.workloads)}: {parts.counted(len(report.rows), 'patch', 'patches')}"
    if report.failure:
        return _failed(titled, report.failure, tuple(zip(ends, report.ends, strict=True)), report)
    patches = Suite("patches", tuple(map(_patch_case, report.rows)))
    accounts = [
        _account(region, series.parts_of(region.name, report), series.WORDS)
        for region in changed_most(report.regions, stored.shown.get("explain", _REGIONS))
        if report.minimal is None
    ]
    out = [row.name for row in report.of(PatchFate.RULED_OUT)]
    means = series.means_of(report)
    unseen = [
        unseen_text(row.name, row.answer.effects, means) for row in series.unseen_rows(report)
    ]
    return Outline(
        subject=f"{titled} on {report.tree}",
        short=(series.verdict_text(report), *_proved(report.proof)),
        suites=_suites(ends, report.ends, report.regions, patches),
        tables=(_patches(report), _regions("without", "with all", report.regions), *accounts),
        failures=parts.failures_of(tuple(zip(ends, report.ends, strict=True))),
        facts=_facts(report.tree, report.workloads, ends, report.ends, report.machine),
        notes=(
            *_listed("no effect seen, the interval of the mean holds 0", unseen),
            *_apart(report.regions),
            *_listed("ruled out", out),
            *(f"{one.patch} needs {', '.join(one.needs)}: {one.reason}" for one in report.needs),
            *report.notes,
        ),
        warnings=report.warnings,
    )


def _patch_case(row: SeriesRow) -> Case:
    if row.answer.fate in (PatchFate.UNRESOLVED, PatchFate.TOGETHER):
        return Case(row.name, Outcome.UNKNOWN, row.answer.text or str(row.answer.fate))
    return _case(row.name, row.answer.effects, row.answer.text or row.why or str(row.answer.fate))


def _patches(report: SeriesReport) -> Table:
    means = series.means_of(report)

    def row(name: str, effects: Mapping[str, Estimate]) -> tuple[str, ...]:
        return name, cell(means.of(effects)), series.most_in(effects, report)

    rows = [
        row(one.name, one.answer.effects)
        for one in report.of(PatchFate.MEASURED)
        if series.does_something(one.answer.effects)
    ]
    rows += [
        row(f"group {number} ({len(group.patches)})", group.effects)
        for number, group in enumerate(report.groups, start=1)
    ]
    rows.append(row("sum of these", means.sums))
    if word := left_over(means):
        left = means.rests
        rows.append((series.WORDS.remainder, cell(means.of(left)), word))
    return Table(
        "patches, by what each does on top of those before it",
        ("patch", "mean", "most in"),
        tuple(rows),
        total=row("all patches", means.wholes),
        note=about(len(averaged(report.regions)), "the tree without patches"),
    )


def _suites(
    names: Sequence[str], ends: Sequence[Side], regions: Iterable[Region], more: Suite
) -> tuple[Suite, ...]:
    kernels = parts.kernels_suite(tuple(zip(names, ends, strict=True)))
    cases = tuple(_region_case(region) for region in regions)
    return tuple(one for one in (kernels, Suite("regions", cases), more) if one.cases)


def _region_case(region: Region) -> Case:
    before, after = _ends(region)
    base, other, diff = _printed(region)
    part = figures.percent(Quantity(before, after).percent)
    outcome = parts.sign_outcome([region.whole])
    word = "slower" if outcome is Outcome.SLOWER else "not slower"
    text = f"{base} -> {other} {_unit(region)}, {diff}, {figures.spread(region.whole)}"
    return Case(region.name, outcome, f"{word} ({part})", (text,))


def _ends(region: Region) -> tuple[Estimate, Estimate]:
    if isinstance(region, AblatedRegion):
        return region.before, region.after
    return region.good, region.bad


def _printed(region: Region) -> tuple[str, str, str]:
    """Before, after and their difference, which add up as printed."""
    base, other = figures.pair(Quantity(*_ends(region)))
    return parts.plain(base), parts.plain(other), parts.signed(other - base, region.whole.value)


def _unit(region: Region) -> str:
    unit = region.unit if isinstance(region, BisectedRegion) else "instructions"
    return f"{unit} a virtual second" if region.rate else f"{unit} an iteration"


def _regions(before: str, after: str, regions: Sequence[Region]) -> Table:
    """All regions, those first that changed by more than their spread, and by most."""

    def size(region: Region) -> tuple[bool, Fraction]:
        part = Quantity(*_ends(region)).percent
        return not parts.is_some(region.whole), -abs(part or Fraction(0))

    rows = [
        (
            region.name,
            *_printed(region),
            figures.percent(Quantity(*_ends(region)).percent),
            figures.spread(region.whole),
        )
        for region in sorted(regions, key=size)
    ]
    units = dict.fromkeys(_unit(region) for region in regions)
    return Table(
        "regions",
        ("region", before, after, "diff", "%", "spread"),
        tuple(rows),
        note=f"In {' or '.join(units)}, of the measured tasks.",
        folded=True,
    )


def _account(region: AblatedRegion, named: Iterable[Part], words: AccountWords) -> Table:
    """A region's effect taken apart, in rows that add up to it as printed."""
    rows = account_rows(region, named, words, _PARTS)
    total = figures.scaled(region.whole.value)
    printed = figures.rounded_to_total([effect.value for _, effect in rows], total)

    def row(name: str, hundredths: int, effect: Estimate) -> tuple[str, ...]:
        before = region.before.value
        part = figures.percent(100 * effect.value / before if before else None)
        return name, parts.signed(hundredths, effect.value), figures.spread(effect), part

    return Table(
        f"{region.name}: what accounts for it, in {_unit(region)}",
        ("what", "effect", "spread", "%"),
        tuple(row(name, shown, part) for (name, part), shown in zip(rows, printed, strict=True)),
        total=row(words.total, total, region.whole),
        folded=True,
    )


def _case(name: str, effects: Mapping[str, Estimate], why: str = "") -> Case:
    """What something does, by region."""
    some = {
        region: effect
        for region, effect in effects.items()
        if region != MEAN and parts.is_some(effect)
    }
    outcome = parts.sign_outcome(some.values())
    words = "makes something slower" if outcome is Outcome.SLOWER else "makes nothing slower"
    lines = tuple(
        f"{region} {figures.brief(effect.value, 1)} ({figures.spread(effect)})"
        for region, effect in sorted(some.items(), key=lambda item: -abs(item[1].value))
    )
    return Case(name, outcome, f"{words}; {why}" if why else words, lines)


def _facts(
    source: str,
    workloads: Sequence[str],
    names: Sequence[str],
    ends: Sequence[Side],
    machine: Facts,
) -> tuple[tuple[str, str], ...]:
    return (
        ("tree", source),
        ("workload", ", ".join(workloads)),
        *parts.kernel_facts(tuple(zip(names, ends, strict=True))),
        *(parts.lab_facts(machine) if machine else ()),
    )


def _proved(proof: Proof | None) -> tuple[str, ...]:
    return (f"Proof: {proof.text}",) if proof else ()


def _listed(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{what} ({len(names)}): {', '.join(names)}"


def _failed(
    titled: str,
    failure: str,
    sides: parts.Sides,
    report: AblationReport | BisectReport | SeriesReport,
) -> Outline:
    """The outline of a search that could not even begin."""
    kernels = parts.kernels_suite(sides)
    suites = (kernels, Suite("search", (Case("search", Outcome.FAILED, failure),)))
    return Outline(
        subject=f"{titled}: {failure.partition(chr(10))[0]}",
        short=(failure,),
        suites=suites,
        failures=parts.failures_of(sides),
        facts=(("workload", ", ".join(report.workloads)), *parts.kernel_facts(sides)),
        notes=report.notes,
        warnings=report.warnings,
    )
