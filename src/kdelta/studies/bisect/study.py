# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect`: both ends, ruling out, the search; what was found, also as a log of git's."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.host.files import expanded
from kdelta.host.interrupt import interruptible
from kdelta.infer.reach.reach import Excluded, NotExcluded, Reach
from kdelta.infer.reach.touched import TouchedFiles, reach_of_changes, touches_config
from kdelta.infer.search.bisect import Bisect, begin_bisect
from kdelta.infer.search.search_model import (
    BisectAnswer,
    Clues,
    History,
    Parents,
    PlannedBuild,
    Wants,
)
from kdelta.infer.search.stretches import made_on
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.sources.history import Commit, CommitRange, parse_range, read_files, read_range
from kdelta.kernels.sources.same_text import is_same
from kdelta.kernels.sources.source import Source
from kdelta.lab.found import in_rounds
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Progress
from kdelta.lab.reports import facts_of_machine
from kdelta.lab.work import titles_of
from kdelta.measures.model import Measure
from kdelta.measures.path.comparable import end_notes
from kdelta.spec.errors import UserError
from kdelta.studies.bisect.kernels import Commits
from kdelta.studies.bisect.model import (
    BisectedCommit,
    BisectReport,
    FoundCommit,
    FoundGroup,
    FoundPlacement,
    RuledOutCommit,
)
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.search.closer import same_configs
from kdelta.studies.search.measure import (
    MeasuredKernel,
    nothing_to_compare,
    regions_between,
    warnings_of,
)
from kdelta.studies.search.model import BisectBuild, BisectedRegion
from kdelta.studies.search.pairs import JudgedChanges

RATE_MARGIN = Fraction(1, 100)
"""What interrupts and other tasks do a virtual second depends on when they come, too."""


NOTHING: frozenset[str] = frozenset()

MOST_ASKED = 16
"""Of so many commits at most it is asked what config they grant, which takes some seconds each.
Where there are more, the kernel or two more that a search by halves takes cost less."""


@in_rounds
async def run_bisect(request: BisectRequest, lab: Lab) -> BisectReport:
    """Return the search between two commits; what of it is there already is not made again."""
    request.timed.check()
    progress = lab.progress
    repository = expanded(request.repository)
    with interruptible():
        commits = read_range(repository, *parse_range(request.range))
    kernels = Commits(request, commits, lab)
    kernels.check_judges()
    kernels.expect(2)
    good = await kernels.measure(commits.good.name, "the good end")
    _must_have(request.regions, good)
    bad = await kernels.measure(commits.bad.name, "the bad end")
    if good.failure or bad.failure:
        report = _begin(kernels)
        failure = nothing_to_compare(kernels.ends, report.names)
        return msgspec.structs.replace(report, failure=failure)
    _must_have(request.regions, kernels.comparable(request.cpu, kernels.measures)[0])
    reached: dict[str, Reach] = {}
    if request.rule_out and commits.commits:
        with interruptible():
            progress.begin(step := "rule out")
            reached = reach_of_commits(commits, kernels, progress)
            progress.end(step, f"{len(ruled_out(reached))} of {len(reached)} commits")
    found = await _searched(kernels, reached, progress)
    judged = await kernels.judge(found.answer())
    return assemble(kernels, found, ruled_out(reached), judged)


def _must_have(regions: Sequence[str], good: MeasuredKernel) -> None:
    """UserError for a region that a measured kernel does not have."""
    lacking = [name for name in regions if name not in good.regions]
    if lacking and not good.failure:
        raise UserError(
            f"there is no region {lacking[0]!r}", f"there is: {', '.join(sorted(good.regions))}"
        )


async def _searched(kernels: Commits, reached: Mapping[str, Reach], progress: Progress) -> Bisect:
    commits = kernels.range
    history = History(
        parents=commits.parents,
        good=commits.good.name,
        bad=commits.bad.name,
        ruled_out=frozenset(ruled_out(reached)),
        clues=clues_of(reached, commits, kernels) if reached else Clues(),
    )
    good, bad = kernels.ends
    wants = _wants(kernels.request, kernels.measures, good)
    found = await kernels.settled(begin_bisect(history, good.run, bad.run, wants, kernels.alike))
    while plans := _next(found):
        plan = plans[0]
        progress.log(f"{plan.left} commits left")
        kernels.expect(plan.left.bit_length())  # as a search by halves
        (commit,) = plan.flips
        measured = await kernels.measure(commit, f"{plan.step.value}: {plan.reason}")
        found = await kernels.settled(found.observe(plan.flips, measured.outcome))
    return found


@interruptible()
def _next(found: Bisect) -> tuple[PlannedBuild, ...]:
    """The next commits to measure; what that takes reads kernels."""
    return found.next_builds()


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


def assemble(
    kernels: Commits, found: Bisect, ruled_out: Mapping[str, str], judged: JudgedChanges
) -> BisectReport:
    """Return the report of a search that came to its end."""
    answer, (good, bad) = found.answer(), kernels.ends
    known = {one.name: _commit(one) for one in (kernels.range.good, *kernels.range.commits)}
    return msgspec.structs.replace(
        _begin(kernels),
        candidates=answer.candidates,
        regions=_regions(kernels, answer),
        found=tuple(
            FoundCommit(
                known[one.commit],
                one.effects,
                one.functions,
                one.confirmed,
                one.moved,
                one.text,
                judged.measured(one.commit[:12]),
            )
            for one in answer.culprits
        ),
        groups=tuple(
            FoundGroup(tuple(known[name] for name in one.units), one.effects, one.text)
            for one in answer.groups
        ),
        placement=tuple(
            FoundPlacement(
                _known(known, one.below), _known(known, one.above), len(one.commits), one.effects
            )
            for one in answer.placed
        ),
        ruled_out=tuple(
            RuledOutCommit(known[name], why) for name, why in ruled_out.items() if name in known
        ),
        logs=_logs(kernels, found, answer, known),
        notes=(
            *kernels.range.notes,
            *answer.notes,
            *judged.notes,
            *end_notes(("good", "bad"), (good.done, bad.done), kernels.request.cpu, kernels.store),
        ),
    )


def _begin(kernels: Commits) -> BisectReport:
    commits, (good, bad) = kernels.range, kernels.ends
    names = [name or "HEAD" for name in kernels.request.range.split("..")]
    subjects = {one.name: one.subject for one in (commits.good, *commits.commits)}
    return BisectReport(
        repository=str(commits.repository),
        names=(names[0], names[1]),
        good=_commit(commits.good),
        bad=_commit(commits.bad),
        ends=(
            good.side(commits.good.short, kernels.store),
            bad.side(commits.bad.short, kernels.store),
        ),
        workloads=titles_of(kernels.request.workloads, kernels.request.program),
        machine=facts_of_machine(good.done or bad.done, kernels.store),
        commits=len(commits.commits),
        builds=tuple(
            BisectBuild(
                commit=commit,
                label=one.label,
                status=one.status,
                detail=one.detail,
                seconds=one.seconds or None,
                identity=one.identity,
                subject=subjects.get(commit, ""),
            )
            for commit, one in zip(kernels.commits, kernels.builds.made, strict=True)
        ),
        notes=commits.notes,
        warnings=warnings_of(kernels.ends),
        asked=kernels.request.regions,
        first=kernels.request.first,
    )


def _commit(one: Commit) -> BisectedCommit:
    return BisectedCommit(one.name, one.subject, one.author, one.date)


def _known(known: Mapping[str, BisectedCommit], name: str) -> BisectedCommit:
    """A commit; of those before the range only the name is known."""
    return known.get(name) or BisectedCommit(name, "", "", "")


def _regions(kernels: Commits, answer: BisectAnswer) -> tuple[BisectedRegion, ...]:
    names = BisectedRegion.__struct_fields__
    return tuple(
        BisectedRegion(**{name: getattr(one, name) for name in names})
        for one in regions_between(kernels.ends, answer.sums)
    )


def _logs(
    kernels: Commits, found: Bisect, answer: BisectAnswer, known: Mapping[str, BisectedCommit]
) -> dict[str, str]:
    """For each commit that was found what `git bisect replay` takes."""
    subjects = {name: one.subject for name, one in known.items()}
    regions = kernels.ends[0].code
    return {
        one.commit: bisect_log(
            kernels.range.parents,
            (kernels.range.good.name, kernels.range.bad.name),
            [
                (commit, commit not in answer.failed)
                for commit in dict.fromkeys(name for seen in found.observed for name in seen.flips)
                if commit not in (kernels.range.good.name, kernels.range.bad.name)
            ],
            one.commit,
            subjects,
            slower=sum(
                e.value / regions[r].value
                for r, e in one.effects.items()
                if r in regions and regions[r].value
            )
            >= 0,
        )
        for one in answer.culprits
    }


def bisect_log(
    parents: Parents,
    ends: tuple[str, str],
    seen: Sequence[tuple[str, bool]],
    culprit: str,
    subjects: Mapping[str, str],
    *,
    slower: bool = True,
) -> str:
    """Return the log of a search for one of the commits that it found, so that `git bisect replay`
    can go on from there.

    ends  the good and the bad commit
    seen  the commits that were looked at, in order, and whether they could be measured

    A commit is on the side of the bad end if it has the culprit; it is left out if it is not below
    the last such commit, as git knows no more than one of them. Where the culprit makes a kernel
    faster, the terms of the log are slow and fast, as "bad" would be wrong.
    """
    old, new = ("good", "bad") if slower else ("slow", "fast")
    good, bad = ends
    holders = _holders(parents, culprit)
    lines = [_comment(new, bad, subjects), _comment(old, good, subjects)]
    # git takes the words of this line only in quotes.
    terms = "" if slower else f"'--term-new={new}' '--term-old={old}' "
    lines.append(f"git bisect start {terms}'{bad}' '{good}'")
    inside = made_on(parents, bad)
    for commit, measured in seen:
        if measured and commit in holders:
            if commit not in inside:
                continue
            inside = made_on(parents, commit)
        word = "skip" if not measured else new if commit in holders else old
        lines += [_comment(word, commit, subjects), f"git bisect {word} {commit}"]
    lines.append(_comment(f"first {new} commit", culprit, subjects))
    return "\n".join(lines) + "\n"


def _comment(word: str, commit: str, subjects: Mapping[str, str]) -> str:
    return f"# {word}: [{commit}] {subjects.get(commit, '')}".rstrip()


def _holders(parents: Parents, culprit: str) -> set[str]:
    """The commits that have it; parents come before what is made on them."""
    found = {culprit}
    for commit, its in parents.items():
        if not found.isdisjoint(its):
            found.add(commit)
    return found
