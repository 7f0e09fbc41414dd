# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits ruled out without a kernel of their own, by the files that they touch."""

from collections.abc import Mapping, Sequence

from kdelta.infer.reach.reach import Kept, Reach, RuledOut
from kdelta.infer.reach.touched import TouchedFiles, reach_of_changes, touches_config
from kdelta.infer.search.bisect_model import Clues
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.sources.history import Commit, CommitRange, read_files
from kdelta.kernels.sources.same_text import is_same
from kdelta.kernels.sources.source import Source
from kdelta.studies.bisect.kernels import Commits
from kdelta.studies.lab.requests import Progress
from kdelta.studies.search.closer import same_configs

NOTHING: frozenset[str] = frozenset()

MOST_ASKED = 16
"""Of so many commits at most it is asked what config they grant, which takes some seconds each.
Where there are more, the kernel or two more that a search by halves takes cost less."""


def reach_of_commits(
    commits: CommitRange, kernels: Commits, progress: Progress
) -> dict[str, Reach]:
    """What each commit of a range can reach, by what both ends executed."""
    ends = [kernels.tree(commits.good.name), kernels.tree(commits.bad.name)]
    configs = [kernels.config(commits.good.name), kernels.config(commits.bad.name)]
    changes = [TouchedFiles(one.name, one.files) for one in commits.commits]
    reached = reach_of_changes(ends, changes)
    kept = {name for name, found in reached.items() if isinstance(found, Kept)}
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
    asked = [one for one in changes if touches_config(one) and isinstance(reached[one.name], Kept)]
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
    return {name: found.why for name, found in reached.items() if isinstance(found, RuledOut)}


def clues_of(reached: Mapping[str, Reach], commits: CommitRange, kernels: Commits) -> Clues:
    """Which executed objects the others touch, and which functions those have."""
    touches = {
        name: frozenset(thing.path for thing in found.alive)
        for name, found in reached.items()
        if isinstance(found, Kept) and not found.undecided
    }
    homes: dict[str, set[str]] = {}
    for end in (commits.good.name, commits.bad.name):
        for path, thing in kernels.side(end).digest.objects.items():
            for function in thing.functions:
                homes.setdefault(function, set()).add(path)
    return Clues(touches, {name: frozenset(paths) for name, paths in homes.items()})
