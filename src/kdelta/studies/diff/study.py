# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runs of one workload compared: by function, and by what else is recorded."""

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.counts.profile import Profile
from kdelta.counts.source_lines import SourceLines
from kdelta.infer.effects.effects import run_warnings
from kdelta.infer.effects.marks import region_warnings
from kdelta.infer.profiles.annotate import annotated, side_by_side
from kdelta.infer.profiles.calls import matched_calls, source_name
from kdelta.infer.profiles.diff import (
    DiffLine,
    callers_of,
    diff_lines,
    figures_of,
    hints,
    unlike_iterations,
)
from kdelta.infer.profiles.matching import Inlined, Key, Match
from kdelta.infer.profiles.profile import (
    RegionProfile,
    Selection,
    Sort,
    likely_names,
    nameless_text,
    region_profile,
)
from kdelta.infer.profiles.source import by_line, inlined_in, line_changes
from kdelta.kernels.obtain import check_kernels
from kdelta.lab.lab import Lab
from kdelta.lab.plan import COMMAND_REGION
from kdelta.lab.progress import Progress
from kdelta.lab.request import LabRequest
from kdelta.lab.run_facts import mode_of
from kdelta.lab.steps import expect_kernels
from kdelta.lab.work import Work
from kdelta.machines.arch import arch_machine
from kdelta.report.lines import function_name
from kdelta.report.model import ReportedRun
from kdelta.spec.errors import UserError
from kdelta.store.model import Run
from kdelta.studies.diff.model import DiffReport, DiffViews, SideBySide, origins_without_lines
from kdelta.studies.profile.study import kernel_run
from kdelta.studies.profile.views import (
    Views,
    disassembler,
    find_functions,
    lines_of,
    profiles_named,
    unlined_origins,
)
from kdelta.studies.recorded.recorded import (
    Recorded,
    own_regions,
    recorded_run,
    run_counts,
    texts_of,
    which_recorded,
)

_MACHINE = {
    "name": ("machine", "none"),
    "cpu": ("CPU", "none"),
    "memory_mib": ("memory in MiB", "none"),
    "qemu": ("QEMU", "none"),
    "cpus": ("CPUs", 1),
}
"""The facts of a machine that two runs must share, what they are called, and what they are where a
run has none.
"""


class DiffRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What of two runs is compared. regions: those that are looked at, none means
    all that both have. by: what is counted. each: in one pass of each region, or in whole ones
    (False); None is one pass of several regions, and else whole ones. It is one pass in any case
    where they went through different numbers of passes. inlined: match what one side inlined, by
    debug info. lab: how runs are made.
    """

    regions: tuple[str, ...] = ()
    selection: Selection = Selection()
    by: Sort = Sort.INSNS
    each: bool | None = None
    views: Views = Views()
    inlined: bool = False
    lab: LabRequest = LabRequest()

    @property
    def is_recorded(self) -> bool:
        """Whether it takes more than counts."""
        return self.views.any or self.inlined


class _Sides(msgspec.Struct, frozen=True):
    """Both runs, the profiles of the regions that are looked at, and their source lines, if asked
    for.
    """

    runs: tuple[Recorded, Recorded]
    profiles: tuple[list[Profile], list[Profile]]
    lines: tuple[SourceLines, SourceLines] = (SourceLines(), SourceLines())


async def run_diff(a: Run, b: Run, request: DiffRequest, lab: Lab) -> DiffReport:
    """What B's functions did more or less than A's in the regions that both have.

    What counts do not have is taken from recordings, for which the same runs are made again where
    need be. UserError for runs that cannot be compared or made again, for a region that not both
    have, and for a function that did nothing on either side.
    """
    counts = run_counts(a, lab.store), run_counts(b, lab.store)
    must_be_comparable(a, b)
    report = plain_diff((a, b), counts, request)
    lab = lab.with_request(msgspec.structs.replace(request.lab, calls="all"))
    if not request.is_recorded and not all(which_recorded(one, lab) for one in (a, b)):
        return report
    found = await recorded_run(a, lab), await recorded_run(b, lab)
    return await with_recordings(report, found, request, lab.progress)


def plain_diff(
    runs: tuple[Run, Run], counts: tuple[RunCounts, RunCounts], request: DiffRequest
) -> DiffReport:
    """As far as counts have it."""
    a, b = runs
    sides = merged_regions(counts[0]), merged_regions(counts[1])
    names = _common(sides, request.regions)
    ours, theirs = ([region_profile(side[name]) for name in names] for side in sides)
    unlike = unlike_iterations(ours, theirs)
    each = bool(unlike) or (_is_each(ours) if request.each is None else request.each)
    figures = [figures_of(s, request.selection, request.by, each=each) for s in (ours, theirs)]
    return DiffReport(
        a=ReportedRun(a, from_store=True),
        b=ReportedRun(b, from_store=True),
        a_regions=tuple(ours),
        b_regions=tuple(theirs),
        lines=diff_lines(figures[0], figures[1]),
        selection=request.selection,
        by=request.by,
        each=each,
        left_out=tuple(name for name in {**sides[0], **sides[1]} if name not in names),
        notes=(
            *(("A and B are one run, so nothing differs.",) if a.id == b.id else ()),
            *_notes(a, b, sides, unlike),
            *_nameless(request.selection, ours, " in A"),
            *_nameless(request.selection, theirs, " in B"),
        ),
        warnings=(
            *run_warnings([counts[0]], [counts[1]]),
            *(
                f"{who}: {text}"
                for who, side in zip("AB", sides, strict=True)
                for text in region_warnings((side[name] for name in names), COMMAND_REGION)
            ),
        ),
    )


def _nameless(selection: Selection, regions: Sequence[RegionProfile], who: str) -> tuple[str, ...]:
    return nameless_text((line for one in regions for line in one.chosen(selection)), who)


def _is_each(regions: Sequence[RegionProfile]) -> bool:
    """Whether regions are best told by one pass of each: of several, some went through more passes
    than others, and would outweigh these.
    """
    return len({region.iterations for region in regions}) > 1


async def kernels_diff(
    specs: tuple[str, str], what: Work, request: DiffRequest, lab: Lab
) -> DiffReport | Run | None:
    """The same of two kernels under a workload. A run that failed is returned as it is; None if
    there is no kernel, which is reported to progress.
    """
    asked = request.lab
    if request.is_recorded:
        asked = msgspec.structs.replace(asked, calls="all")
    progress = lab.progress
    what.check(specs)
    check_kernels(specs, progress.log)
    expect_kernels(progress, specs)
    progress.expect("run", len(specs))
    runs: list[Run] = []
    for spec in specs:
        done = await kernel_run(spec, what, lab.with_request(asked))
        if done is None or done.counts is None:
            return done.run if done else None
        runs.append(done.run)
    return await run_diff(runs[0], runs[1], request, lab)


async def with_recordings(
    report: DiffReport,
    runs: tuple[Recorded, Recorded],
    request: DiffRequest,
    progress: Progress,
) -> DiffReport:
    """The report with what recordings add to counts."""
    names = [region.name for region in report.a_regions]
    profiles = profiles_named(runs[0], names), profiles_named(runs[1], names)
    sides = _Sides(runs, profiles)
    asked, selection = request.views, request.selection
    if asked.source or request.inlined:
        ours = await lines_of(runs[0], profiles[0], selection, progress)
        theirs = await lines_of(runs[1], profiles[1], selection, progress)
        sides = msgspec.structs.replace(sides, lines=(ours, theirs))
    lines = _lines(report, sides, request)
    jumps_on = _jumps_on(sides)
    views = DiffViews(
        changes=matched_calls(profiles, selection, [line.match for line in lines], jumps_on)
        if asked.calls
        else None,
        annotated=tuple(
            one for name in asked.annotate for one in _annotated(sides, name, lines, selection)
        ),
        hints=hints(lines, *(callers_of(side, selection, jumps_on) for side in profiles)),
        part=asked.part,
    )
    if asked.source:
        by_source = [
            by_line(side, selection, known)
            for side, known in zip(profiles, sides.lines, strict=True)
        ]
        changes = line_changes(
            by_source[0], by_source[1], texts_of(runs[0].kernel), texts_of(runs[1].kernel)
        )
        views = msgspec.structs.replace(views, lines=changes, unlined=_unlined(sides, selection))
    elif request.inlined and (unknown := origins_without_lines(_unlined(sides, selection))):
        said = f"No debug info, so what is inlined there is not known: {', '.join(unknown)}."
        report = msgspec.structs.replace(report, notes=(*report.notes, said))
    return msgspec.structs.replace(report, lines=lines, views=views)


def _jumps_on(sides: _Sides) -> frozenset[Key]:
    """Functions that only go on to others: no paths of calls differ by them."""
    arch = next((one.kernel.arch for one in sides.runs if one.kernel), None)
    prefixes = arch_machine(arch).jumps_on if arch else ()
    keys = (source_name(f) for side in sides.profiles for one in side for f in one.functions)
    return frozenset(key for key in keys if key[1].startswith(prefixes))


def _unlined(sides: _Sides, selection: Selection) -> tuple[tuple[str, ...], tuple[str, ...]]:
    a, b = (
        unlined_origins(known, side, selection)
        for known, side in zip(sides.lines, sides.profiles, strict=True)
    )
    return a, b


def _lines(report: DiffReport, sides: _Sides, request: DiffRequest) -> tuple[DiffLine, ...]:
    """The functions, those that one side inlined matched by debug info if that is asked for."""
    if not request.inlined and not request.views.source:
        return report.lines
    selection, by, each = request.selection, request.by, report.each
    inlined: list[Inlined] = [
        inlined_in(side, selection, known, by=by, each=each)
        for side, known in zip(sides.profiles, sides.lines, strict=True)
    ]
    a, b = (
        figures_of(side, selection, by, each=each) for side in (report.a_regions, report.b_regions)
    )
    return diff_lines(a, b, (inlined[0], inlined[1]))


def _annotated(
    sides: _Sides, name: str, lines: Sequence[DiffLine], selection: Selection
) -> list[SideBySide]:
    """A function on both sides; UserError if neither executed any of that name."""
    found: list[set[Key]] = []
    error: UserError | None = None
    for side in sides.profiles:
        try:
            found.append(set(find_functions(side, name)))
        except UserError as slip:
            error = slip
            found.append(set())
    if error and not any(found):
        raise error
    matches = [line.match for line in lines]
    wanted = [m for m in matches if found[0].intersection(m.a) or found[1].intersection(m.b)]
    return [_both(sides, match, selection) for match in wanted]


def _both(sides: _Sides, match: Match, selection: Selection) -> SideBySide:
    # The function itself comes before its parts and clones.
    shown = [
        [
            annotated(side, key, selection, disassembler(one, key[0]), known.line)
            for key in sorted(keys, key=lambda key: (len(key[1]), key))
        ]
        for side, one, keys, known in zip(
            sides.profiles, sides.runs, (match.a, match.b), sides.lines, strict=True
        )
    ]
    names = [keys[0][1] if keys else match.name for keys in (match.a, match.b)]
    name = function_name(match.name, match.origin, match.moved_from)
    return SideBySide(name, (names[0], names[1]), side_by_side(shown[0], shown[1]))


def must_be_comparable(a: Run, b: Run) -> None:
    """Raise UserError, with all that differs, for runs of different workloads or on different
    machines.
    """
    facts = {
        "workload": (a.workload, b.workload),
        **{
            name: (a.machine.get(fact, without), b.machine.get(fact, without))
            for fact, (name, without) in _MACHINE.items()
        },
    }
    if found := [f"{name} {x} and {y}" for name, (x, y) in facts.items() if x != y]:
        raise UserError(
            f"runs {a.id} and {b.id} cannot be compared: {'; '.join(found)}",
            "kdelta runs lists them; compare runs that differ in their kernels alone",
        )


def _common(
    sides: tuple[Mapping[str, RegionCounts], Mapping[str, RegionCounts]], asked: Sequence[str]
) -> list[str]:
    """The regions that both have: those that are asked for, or all."""
    common = [name for name in own_regions(sides[0]) if name in sides[1]]
    for name, (who, side) in itertools.product(asked, zip("AB", sides, strict=True)):
        if name not in side:
            raise UserError(f"{who} has no region {name!r}", f"it has: {likely_names(name, side)}")
    if not common and not asked:
        raise UserError(
            "the runs have no region in common",
            f"A has: {likely_names('', sides[0])}; B has: {likely_names('', sides[1])}",
        )
    return list(dict.fromkeys(asked)) or common


def _notes(
    a: Run,
    b: Run,
    sides: tuple[Mapping[str, RegionCounts], Mapping[str, RegionCounts]],
    unlike: Mapping[str, tuple[int, int]],
) -> tuple[str, ...]:
    """In what the runs differ besides their kernels."""
    notes = []
    appended = [str(run.machine.get("append", "")) for run in (a, b)]
    if appended[0] != appended[1]:
        notes.append(f"The kernels' command lines differ: {appended[0]!r} and {appended[1]!r}.")
    if mode_of(a) != mode_of(b):
        notes.append(f"A's programs ran in the mode {mode_of(a)}, B's in {mode_of(b)}.")
    if a.perturbation != b.perturbation:
        notes.append(
            f"The runs were perturbed differently, {a.perturbation} and {b.perturbation}: a part "
            "of what differs may be that."
        )
    notes += [
        f"{name} went through {ours} iterations in A and {theirs} in B, so figures are those of "
        "one pass."
        for name, (ours, theirs) in unlike.items()
    ]
    for who, side, other in (("A", *sides), ("B", *sides[::-1])):
        if alone := [name for name in side if name not in other]:
            notes.append(f"Only {who} has the regions {likely_names('', alone)}.")
    return tuple(notes)
