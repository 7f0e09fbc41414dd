# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits ruled out without a kernel of their own, by the files that they touch."""

from collections.abc import Mapping

from kdelta.infer.bisect_model import Clues
from kdelta.infer.reach import Kept, Reach, RuledOut
from kdelta.infer.touched import Change, reach_of_changes
from kdelta.kernels.history import CommitRange
from kdelta.studies.bisect.kernels import Commits


def reach_of_commits(commits: CommitRange, kernels: Commits) -> dict[str, Reach]:
    """What each commit of a range can reach, by what both ends executed."""
    ends = [kernels.tree(commits.good.name), kernels.tree(commits.bad.name)]
    return reach_of_changes(ends, [Change(one.name, one.files) for one in commits.commits])


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
