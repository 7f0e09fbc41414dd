# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect`: both ends, ruling out, the search."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.host.interrupt import interruptible
from kdelta.infer.reach.reach import Excluded, NotExcluded, Reach
from kdelta.infer.reach.touched import TouchedFiles, reach_of_changes, touches_config
from kdelta.infer.search.bisect import Bisect, begin
from kdelta.infer.search.bisect_model import Clues, History, PlannedCommit, Wants
from kdelta.infer.search.search_model import Measured as Run
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.sources.history import Commit, CommitRange, parse_range, read_files, read_range
from kdelta.kernels.sources.same_text import is_same
from kdelta.kernels.sources.source import Source
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Progress
from kdelta.measures.model import Measure
from kdelta.spec.errors import UserError
from kdelta.studies.bisect.assemble import BisectSearch, assemble, failed
from kdelta.studies.bisect.kernels import Commits
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.search.closer import same_configs
from kdelta.studies.search.measure import MeasuredKernel

RATE_MARGIN = Fraction(1, 100)
"""What interrupts and other tasks do a virtual second depends on when they come, too."""


NOTHING: frozenset[str] = frozenset()

MOST_ASKED = 16
"""Of so many commits at most it is asked what config they grant, which takes some seconds each.
Where there are more, the kernel or two more that a search by halves takes cost less."""


async def run_bisect(request: BisectRequest, lab: Lab) -> BisectReport:
    """The search between two commits; what of it is there already is not made again."""
    progress = lab.progress
    repository = Path(request.repository).expanduser()
    with interruptible():
        commits = read_range(repository, *parse_range(request.range))
    kernels = Commits(request, commits, lab)
    kernels.expect(2)
    good = await kernels.measure(commits.good.name, "the good end")
    _must_have(request.regions, good)
    bad = await kernels.measure(commits.bad.name, "the bad end")
    search = BisectSearch(request, commits, kernels, (good, bad), lab.store)
    if good.failure or bad.failure:
        return failed(search)
    search = msgspec.structs.replace(search, ends=kernels.comparable())
    _must_have(request.regions, search.ends[0])
    reached: dict[str, Reach] = {}
    if request.rule_out and commits.commits:
        with interruptible():
            progress.begin(step := "rule out")
            reached = reach_of_commits(commits, kernels, progress)
            progress.end(step, f"{len(ruled_out(reached))} of {len(reached)} commits")
    found = await _searched(search, reached, progress)
    good, bad = [await kernels.measure(one, "") for one in (commits.good.name, commits.bad.name)]
    return assemble(msgspec.structs.replace(search, ends=(good, bad)), found, ruled_out(reached))


def _must_have(regions: Sequence[str], good: MeasuredKernel) -> None:
    """UserError for a region that a measured kernel does not have."""
    lacking = [name for name in regions if name not in good.regions]
    if lacking and not good.failure:
        raise UserError(
            f"there is no region {lacking[0]!r}", f"there is: {', '.join(sorted(good.regions))}"
        )


async def _searched(
    search: BisectSearch, reached: Mapping[str, Reach], progress: Progress
) -> Bisect:
    commits, kernels = search.commits, search.kernels
    history = History(
        parents=commits.parents,
        good=commits.good.name,
        bad=commits.bad.name,
        ruled_out=frozenset(ruled_out(reached)),
        clues=clues_of(reached, commits, kernels) if reached else Clues(),
    )
    good, bad = (Run(end.code, end.parts, end.runs) for end in search.ends)
    wants = _wants(search.request, kernels.measures, search.ends[0])
    found = begin(history, good, bad, wants, kernels.alike)
    rerun: set[str] = set()
    found = await _sure(found, kernels, rerun)
    while (plan := _next(found)) is not None:
        progress.log(f"{plan.left} commits left")
        kernels.expect(plan.left.bit_length())  # as a search by halves
        measured = await kernels.measure(plan.commit, f"{plan.step.value}: {plan.reason}")
        found = await _sure(found.observe(plan.commit, measured.outcome), kernels, rerun)
    return found


async def _sure(found: Bisect, kernels: Commits, rerun: set[str]) -> Bisect:
    """The search with more runs of the commits of which few leave differences to chance. rerun:
    those that were; the others are entered.
    """
    while doubted := sorted(_doubted(found) - rerun):
        rerun.add(doubted[0])
        found = found.observe(doubted[0], (await kernels.more_runs(doubted[0])).outcome)
    return found


@interruptible()
def _doubted(found: Bisect) -> frozenset[str]:
    return found.doubted


@interruptible()
def _next(found: Bisect) -> PlannedCommit | None:
    """The next commit to measure; what that takes reads kernels."""
    return found.next_commit()


def _wants(request: BisectRequest, measures: Sequence[Measure], good: MeasuredKernel) -> Wants:
    margins = {name: RATE_MARGIN for name, region in good.regions.items() if region.rate}
    for measure in measures:
        names = [f"{name}{measure.where}" for name in good.regions]
        margins |= {name: measure.margin for name in names if name in good.regions}
    return Wants(
        first=request.first,
        regions=frozenset(request.regions) or None,
        margin=request.margin,
        margins=margins,
        max_builds=request.max_builds,
    )


def reach_of_commits(
    commits: CommitRange, kernels: Commits, progress: Progress
) -> dict[str, Reach]:
    """What each commit of a range can reach, by what both ends executed."""
    ends = [kernels.tree(commits.good.name), kernels.tree(commits.bad.name)]
    configs = [kernels.config(commits.good.name), kernels.config(commits.bad.name)]
    changes = [TouchedFiles(one.name, one.files) for one in commits.commits]
    reached = reach_of_changes(ends, changes)
    kept = {name for name, found in reached.items() if isinstance(found, NotExcluded)}
    parsed = ends[0].parsed | ends[1].parsed
    same = _same_files([one for one in commits.commits if one.name in kept], commits, configs)
    changes = [
        TouchedFiles(one.name, one.files, same.get(one.name, NOTHING) - parsed)
        for one in commits.commits
    ]
    reached = reach_of_changes(ends, changes) if same else reached
    granted = _same_configs(commits, kernels, changes, reached, progress)
    return reach_of_changes(ends, changes, granted) if granted else reached


def _same_configs(
    commits: CommitRange,
    kernels: Commits,
    changes: Sequence[TouchedFiles],
    reached: Mapping[str, Reach],
    progress: Progress,
) -> frozenset[str]:
    """The commits before and after which the config is the same, of those that touch what it is
    made from; nothing if these are too many to ask.
    """
    asked = [
        one for one in changes if touches_config(one) and isinstance(reached[one.name], NotExcluded)
    ]
    if not 0 < len(asked) <= MOST_ASKED:
        return NOTHING
    parents = commits.parents

    def states(name: str) -> tuple[Source, Source] | None:
        before = kernels.source(parents[name][0]) if len(parents[name]) == 1 else None
        after = kernels.source(name)
        return (before, after) if before and after else None

    return same_configs(kernels.spec(commits.good.name), asked, states, progress)


def _same_files(
    wanted: Sequence[Commit], commits: CommitRange, configs: Sequence[Config]
) -> dict[str, frozenset[str]]:
    """The files of each commit that are the same to a build before and after it. Of a merge that is
    not asked: it has several befores.
    """
    pairs = [(one, file) for one in wanted if len(one.parents) == 1 for file in sorted(one.files)]
    before = read_files(commits.repository, [(one.parents[0], file) for one, file in pairs])
    after = read_files(commits.repository, [(one.name, file) for one, file in pairs])
    found: dict[str, set[str]] = {}
    for (one, file), old, new in zip(pairs, before, after, strict=True):
        if old is not None and new is not None and is_same(file, old, new, configs):
            found.setdefault(one.name, set()).add(file)
    return {name: frozenset(files) for name, files in found.items()}


def ruled_out(reached: Mapping[str, Reach]) -> dict[str, str]:
    """The commits that no executed code depends on, and why."""
    return {name: found.why for name, found in reached.items() if isinstance(found, Excluded)}


def clues_of(reached: Mapping[str, Reach], commits: CommitRange, kernels: Commits) -> Clues:
    """Which executed objects the others touch, and which functions those have."""
    touches = {
        name: frozenset(thing.path for thing in found.alive)
        for name, found in reached.items()
        if isinstance(found, NotExcluded) and not found.undecided
    }
    homes: dict[str, set[str]] = {}
    for end in (commits.good.name, commits.bad.name):
        for path, thing in kernels.side(end).digest.objects.items():
            for function in thing.functions:
                homes.setdefault(function, set()).add(path)
    return Clues(touches, {name: frozenset(paths) for name, paths in homes.items()})
