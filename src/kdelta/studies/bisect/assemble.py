# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection found, as a report, and as `git bisect log` has it."""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.infer.search.bisect import Bisect
from kdelta.infer.search.bisect_model import BisectAnswer
from kdelta.kernels.sources.history import Commit, CommitRange
from kdelta.lab.reports import machine_facts
from kdelta.lab.work import titles_of
from kdelta.measures.path.comparable import end_notes
from kdelta.store.store import Store
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
from kdelta.studies.search.measure import Ends, nothing_to_compare, warnings_of
from kdelta.studies.search.model import BisectedRegion


class BisectSearch(msgspec.Struct, frozen=True, eq=False):
    """What is searched, and the two measured ends, the good one first."""

    request: BisectRequest
    commits: CommitRange
    kernels: Commits
    ends: Ends
    store: Store


Parents = Mapping[str, tuple[str, ...]]


def failed(search: BisectSearch) -> BisectReport:
    """The report of one of whose ends there is nothing to go by."""
    report = _begin(search)
    return msgspec.structs.replace(report, failure=nothing_to_compare(search.ends, report.names))


def assemble(search: BisectSearch, found: Bisect, ruled_out: Mapping[str, str]) -> BisectReport:
    """The report of a search that came to its end."""
    answer, (good, bad) = found.answer(), search.ends
    known = {one.name: _commit(one) for one in (search.commits.good, *search.commits.commits)}
    return msgspec.structs.replace(
        _begin(search),
        candidates=answer.candidates,
        regions=_regions(search, answer),
        found=tuple(
            FoundCommit(
                known[one.commit], one.effects, one.functions, one.confirmed, one.moved, one.text
            )
            for one in answer.culprits
        ),
        groups=tuple(
            FoundGroup(tuple(known[name] for name in one.commits), one.effects, one.text)
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
        logs=_logs(search, found, answer, known),
        notes=(
            *search.commits.notes,
            *answer.notes,
            *end_notes(("good", "bad"), (good.done, bad.done), search.request.cpu, search.store),
        ),
    )


def _begin(search: BisectSearch) -> BisectReport:
    commits, (good, bad) = search.commits, search.ends
    names = [name or "HEAD" for name in search.request.range.split("..")]
    subjects = {one.name: one.subject for one in (commits.good, *commits.commits)}
    return BisectReport(
        repository=str(commits.repository),
        names=(names[0], names[1]),
        good=_commit(commits.good),
        bad=_commit(commits.bad),
        ends=(
            good.side(commits.good.short, search.store),
            bad.side(commits.bad.short, search.store),
        ),
        workloads=titles_of(search.request.workloads, search.request.program),
        machine=machine_facts(good.done or bad.done, search.store),
        commits=len(commits.commits),
        builds=tuple(
            msgspec.structs.replace(one, subject=subjects.get(one.commit, ""))
            for one in search.kernels.builds
        ),
        notes=commits.notes,
        warnings=warnings_of(search.ends),
        asked=search.request.regions,
        first=search.request.first,
    )


def _commit(one: Commit) -> BisectedCommit:
    return BisectedCommit(one.name, one.subject, one.author, one.date)


def _known(known: Mapping[str, BisectedCommit], name: str) -> BisectedCommit:
    """A commit; of those before the range only the name is known."""
    return known.get(name) or BisectedCommit(name, "", "", "")


def _regions(search: BisectSearch, answer: BisectAnswer) -> tuple[BisectedRegion, ...]:
    good, bad = search.ends
    units = {
        f"{name}{measure.where}": measure.unit
        for measure in search.kernels.measures
        for name in good.regions
    }
    return tuple(
        BisectedRegion(
            workload=region.workload,
            name=name,
            good=region.path.code,
            bad=bad.regions[name].path.code,
            whole=answer.sums[name].whole,
            explained=answer.sums[name].explained,
            remainder=answer.sums[name].remainder,
            rate=region.rate,
            unit=units.get(name, "instructions"),
            widest=answer.sums[name].widest,
        )
        for name, region in good.regions.items()
        if name in bad.regions and name in answer.sums
    )


def _logs(
    search: BisectSearch, found: Bisect, answer: BisectAnswer, known: Mapping[str, BisectedCommit]
) -> dict[str, str]:
    """For each commit that was found what `git bisect replay` takes."""
    subjects = {name: one.subject for name, one in known.items()}
    regions = search.ends[0].code
    return {
        one.commit: bisect_log(
            search.commits.parents,
            (search.commits.good.name, search.commits.bad.name),
            [
                (commit, commit not in answer.failed)
                for commit in dict.fromkeys(seen.commit for seen in found.observed)
                if commit not in (search.commits.good.name, search.commits.bad.name)
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
    """The log of a search for one of the commits that it found, so that `git bisect replay` can go
    on from there.

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
    below = _below(parents, bad)
    for commit, measured in seen:
        if measured and commit in holders:
            if commit not in below:
                continue
            below = _below(parents, commit)
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


def _below(parents: Parents, commit: str) -> set[str]:
    """A commit and those that it is made on."""
    found, pending = {commit}, [commit]
    while pending:
        new = set(parents.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found
