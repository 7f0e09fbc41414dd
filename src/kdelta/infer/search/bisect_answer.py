# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over commits found, and how far that explains the difference between the ends."""

from collections.abc import Sequence

import msgspec

from kdelta.infer.search.additive import Combination, added, difference
from kdelta.infer.search.bisect_model import (
    BisectAnswer,
    BisectStep,
    Culprit,
    History,
    PlacedCommits,
    Seen,
    Together,
    Wants,
)
from kdelta.infer.search.search_model import Failed
from kdelta.infer.search.stretches import Stretch, StretchAccount, kernel


class SearchedCommits(msgspec.Struct, frozen=True):
    """What was searched and observed; `cut_short`: the builds did not suffice."""

    history: History
    observed: tuple[Seen, ...]
    wants: Wants
    cut_short: bool


def answer_of(
    found: SearchedCommits, account: StretchAccount, notes: Sequence[str]
) -> BisectAnswer:
    """All that is known at that point."""
    history, observed = found.history, found.observed
    single = [one for one in account.significant if one.count == 1]
    several = [one for one in account.significant if one.count > 1]
    values = {one.bits: _value(history, account, one) for one in single}
    explained = added([*values.values(), *(one.value for one in several)])
    whole = difference(kernel(history.bad), kernel(history.good))
    failed = {
        one.commit: one.outcome.detail or one.outcome.status.value
        for one in observed
        if isinstance(one.outcome, Failed)
    }
    culprits = [_culprit(history, account, one, values[one.bits]) for one in single]
    return BisectAnswer(
        culprits=tuple(sorted(culprits, key=lambda one: one.moved)),
        groups=tuple(_together(account, one, found) for one in several),
        placed=tuple(_placed(account)),
        sums=account.judge.regions.sums(whole, explained),
        candidates=len(account.ancestry.candidates),
        builds=len({one.commit for one in observed} - {history.good, history.bad}),
        failed=failed,
        notes=(*notes, *_notes(observed)),
    )


def _value(history: History, account: StretchAccount, stretch: Stretch) -> Combination:
    """The effect of a single commit: against its parent if both were measured."""
    (commit,) = account.ancestry.commits(stretch.bits)
    parents = history.parents[commit]
    measured = account.judge.measured
    if len(parents) == 1 and commit in measured and parents[0] in measured:
        return difference(kernel(commit), kernel(parents[0]))
    return stretch.value


def _culprit(
    history: History, account: StretchAccount, stretch: Stretch, value: Combination
) -> Culprit:
    (commit,) = account.ancestry.commits(stretch.bits)
    parents = history.parents[commit]
    confirmed = len(parents) == 1 and value == difference(kernel(commit), kernel(parents[0]))
    return Culprit(
        commit=commit,
        effects=account.judge.effects(value),
        functions=account.judge.changed_functions(value),
        confirmed=confirmed,
        moved=not account.judge.size(value).region,
        text=_how(value, len(parents), confirmed=confirmed),
    )


def _how(value: Combination, parents: int, *, confirmed: bool) -> str:
    if confirmed:
        return "it was measured, and so was its parent"
    names = [next(iter(one)) for one, _ in sorted(value.items(), key=lambda item: item[1])]
    if parents > 1:
        return "the merge itself: what it does besides the commits that it brings"
    if len(names) == 2:
        return f"of all commits between {names[0]} and {names[1]} no other reaches executed code"
    return f"by subtraction from {len(names)} measured kernels, as if effects add up"


def _together(account: StretchAccount, stretch: Stretch, found: SearchedCommits) -> Together:
    text = "what is between them failed, so they could not be distinguished"
    if found.cut_short:
        text = f"not distinguished by {found.wants.max_builds} builds"
    elif found.wants.first and stretch is not account.significant[0]:
        text = "not searched: the largest effect was asked for"
    return Together(
        commits=tuple(account.ancestry.commits(stretch.bits)),
        effects=account.judge.effects(stretch.value),
        text=text,
    )


def _placed(account: StretchAccount) -> list[PlacedCommits]:
    found = []
    for one in account.stretches:
        if pair := account.judge.placed(one.value):
            commits = tuple(account.ancestry.commits(one.bits))
            found.append(PlacedCommits(*pair, commits, account.judge.effects(one.value)))
    return found


def _notes(observed: Sequence[Seen]) -> list[str]:
    notes = []
    bases = sum(one.step is BisectStep.BASE for one in observed)
    if bases:
        notes.append(
            f"{bases} kernels were measured where branches begin that hold less than the good end"
        )
    return notes
