# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect`: both ends, ruling out, the search."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.host.interrupt import interruptible
from kdelta.infer.reach.reach import Reach
from kdelta.infer.search.bisect import Bisect, begin
from kdelta.infer.search.bisect_model import Clues, History, PlannedCommit, Wants
from kdelta.infer.search.search_model import Measured as Run
from kdelta.kernels.sources.history import parse_range, read_range
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.bisect.assemble import BisectSearch, assemble, failed
from kdelta.studies.bisect.kernels import Commits
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.rule_out import clues_of, reach_of_commits, ruled_out
from kdelta.studies.lab.requests import BisectRequest, Progress
from kdelta.studies.search.measure import MeasuredKernel, cycles_name

RATE_MARGIN = Fraction(1, 100)
"""What interrupts and other tasks do a virtual second depends on when they come, too."""

CYCLES_MARGIN = Fraction(1, 100)
"""Of model cycles over drawn layouts, differences of less are not worth the builds."""


async def run_bisect(request: BisectRequest, store: Store, progress: Progress) -> BisectReport:
    """The search between two commits; what of it is there already is not made again."""
    repository = Path(request.repository).expanduser()
    with interruptible():
        commits = read_range(repository, *parse_range(request.range))
    kernels = Commits(request, commits, store, progress)
    good = await kernels.measure(commits.good.name, "the good end")
    _must_have(request.regions, good)
    bad = await kernels.measure(commits.bad.name, "the bad end")
    search = BisectSearch(request, commits, kernels, (good, bad), store)
    if not (good.failure or bad.failure):
        search = msgspec.structs.replace(search, ends=kernels.comparable())
        _must_have(request.regions, search.ends[0])
    if good.failure or bad.failure:
        return failed(search)
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
    found = begin(history, good, bad, _wants(search.request, search.ends[0]), kernels.alike)
    rerun: set[str] = set()
    found = await _sure(found, kernels, rerun)
    while (plan := _next(found)) is not None:
        progress.say(f"{plan.left} commits left")
        label = f"{plan.step.value}: {plan.reason}"
        found = found.observe(plan.commit, (await kernels.measure(plan.commit, label)).outcome)
        found = await _sure(found, kernels, rerun)
    return found


async def _sure(found: Bisect, kernels: Commits, rerun: set[str]) -> Bisect:
    """The search with more runs of the commits of which few leave differences to chance. rerun:
    those that were; the others are entered.
    """
    while doubted := sorted(_doubted(found) - rerun):
        rerun.add(doubted[0])
        found = found.observe(doubted[0], (await kernels.more_runs(doubted[0])).outcome)
    return found


def _doubted(found: Bisect) -> frozenset[str]:
    with interruptible():
        return found.doubted


def _next(found: Bisect) -> PlannedCommit | None:
    """The next commit to measure; what that takes reads kernels."""
    with interruptible():
        return found.next_commit()


def _wants(request: BisectRequest, good: MeasuredKernel) -> Wants:
    margins = {name: RATE_MARGIN for name, region in good.regions.items() if region.rate}
    if request.cpu is not None:
        names = [cycles_name(name, request.cpu) for name in good.regions]
        margins |= {name: CYCLES_MARGIN for name in names if name in good.regions}
    return Wants(
        first=request.first,
        regions=frozenset(request.regions) or None,
        margin=request.margin,
        margins=margins,
        max_builds=request.max_builds,
    )
