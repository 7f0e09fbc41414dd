# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commit of a history to build next, and what the runs say: all that have an effect, not one.

Effects are signed and add up, so commits that make a kernel slower and such that make it faster
are found alike, each in its own stretch (stretches.py). Of the stretch with the largest
effect the commit is built that halves it, on the way of first parents where that costs little; one
whose paths are those of its ends is left alone. With n candidates a commit is found by log2(n)
builds, and some more where branches begin at kernels that were not measured, where builds fail, and
to confirm it.

A commit that fails to build, to boot or to run is skipped: the next one is taken at a distance that
doubles with each failure, as what breaks a build often does so for a while.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from kdelta.infer.search.additive import Combination, added, minus, pair_of
from kdelta.infer.search.search_model import (
    Alike,
    BisectAnswer,
    Culprit,
    Failed,
    FlipSet,
    GroupAnswer,
    History,
    Measured,
    Observation,
    Outcome,
    Pair,
    PlacedCommits,
    PlannedBuild,
    Step,
    Wants,
    builds_left,
)
from kdelta.infer.search.stretches import (
    Ancestry,
    Bits,
    Stretch,
    StretchAccount,
    StretchJudge,
    kernel,
)

_ROUNDING = 10
"""By so many parts of a bit a kernel may tell less than another one to be on the way of first
parents, where what is built is what was released."""


def never_alike(_below: str, _above: str) -> bool:
    """Where nothing is known of what kernels hold."""
    return False


class Bisect(msgspec.Struct, frozen=True, dict=True):
    """The state of a search: what it was given, and what was observed, in order, the good end and
    the bad one first. Never changed: `observe` gives the next one, and equal observations give
    equal decisions.
    """

    history: History
    observed: tuple[Observation, ...]
    wants: Wants = Wants()
    alike: Alike = never_alike

    def observe(self, flips: FlipSet, outcome: Outcome) -> "Bisect":
        """Return the search after a commit, asked for or not."""
        step = next((one.step for one in self._plan.builds if one.flips == flips), None)
        new = Observation(flips, outcome, step)
        return msgspec.structs.replace(self, observed=(*self.observed, new))

    def next_builds(self) -> tuple[PlannedBuild, ...]:
        """Return the commits that are needed, the next one first; empty when finished."""
        return self._plan.builds

    def answer(self) -> BisectAnswer:
        """What is known so far."""
        return bisect_answer(self._plan)

    @property
    def doubted(self) -> frozenset[Pair]:
        """Return the commits that compare is to judge: both ends of each stretch that is not split
        any more among them.
        """
        self.answer()
        account, judge = self._plan.account, self._plan.judge
        whole = [o for o in account.stretches if o.count == 1 or not judge.matters(o.value)]
        pairs = [pair_of(one.value) for one in whole]
        return judge.regions.unjudged(filter(None, pairs))

    @cached_property
    def _plan(self) -> "_BisectPlan":
        return _BisectPlan(self.history, self.observed, self.wants, self.alike)


def begin_bisect(
    history: History,
    good: Measured,
    bad: Measured,
    wants: Wants | None = None,
    alike: Alike = never_alike,
) -> Bisect:
    """Return a search between two measured ends. Raises ValueError for ends that are no such
    commits.
    """
    for end in (history.good, history.bad):
        if end not in history.parents:
            raise ValueError(f"no commit of the history: {end}")
    ends = Observation(kernel(history.good), good), Observation(kernel(history.bad), bad)
    return Bisect(history, ends, wants or Wants(), alike)


class _Cut(msgspec.Struct, frozen=True):
    """A set that parts a stretch. near: it is close to what failed. told: the bits that a kernel
    of it tells. depth: how many merges it lies in.
    """

    held: Bits
    bits: float
    near: bool
    depth: int

    def rank(self) -> tuple[bool, int, int, float]:
        """What is to be tried first is least."""
        return self.near, -round(self.bits * _ROUNDING), self.depth, -self.bits


class _BisectPlan:
    """What is known at one point, and which commits are wanted next."""

    def __init__(
        self, history: History, observed: Sequence[Observation], wants: Wants, alike: Alike
    ) -> None:
        self.history = history
        self.wants = wants
        self.failed = {
            name: one.outcome
            for one in observed
            if isinstance(one.outcome, Failed)
            for name in one.flips
        }
        self.judge = StretchJudge(observed, wants, alike)
        self.notes: list[str] = []
        self._account_for(history.ruled_out)
        if self.account.contradiction and history.ruled_out:
            below, above = self.account.contradiction
            self.notes.append(
                f"{below} and {above} differ only by commits that were ruled out, and their paths "
                "are not the same: the ruling out was wrong, and all commits were searched"
            )
            self._account_for(frozenset())
        if bases := sum(one.step is Step.BASE for one in observed):
            self.notes.append(
                f"{bases} kernels were measured where branches begin that hold less than the good "
                "end"
            )
        ends = {kernel(history.good), kernel(history.bad)}
        self.spent = len({one.flips for one in observed} - ends)
        self.builds = tuple(self._wanted())
        self.cut_short = bool(self.builds) and builds_left(wants.max_builds, self.spent) == 0
        if self.cut_short:
            self.builds = ()

    def _account_for(self, ruled_out: frozenset[str]) -> None:
        kept = [name for name in self.history.parents if name not in ruled_out]
        self.ancestry = Ancestry(self.history.parents, self.history.good, self.history.bad, kept)
        self.account = StretchAccount(self.ancestry, self.judge)

    def _wanted(self) -> Iterator[PlannedBuild]:
        """The kernels for the largest effect that more can be learnt of."""
        significant = self.account.significant
        for stretch in significant[:1] if self.wants.first else significant:
            found = self._halving(stretch) if stretch.count > 1 else self._confirming(stretch)
            if found:
                yield from found
                return

    def _confirming(self, stretch: Stretch) -> list[PlannedBuild]:
        """The commit itself and its parent, where others were measured in their place."""
        (commit,) = self.ancestry.commits(stretch.bits)
        parents = self.history.parents[commit]
        if len(parents) != 1:
            return []
        known = self.judge.measured.keys() | self.failed.keys()
        wanted = [name for name in (commit, parents[0]) if name not in known]
        if self.failed.keys() & {commit, parents[0]}:
            return []
        texts = {commit: "the commit that was found", parents[0]: "what it is made on"}
        return [PlannedBuild(kernel(name), Step.CONFIRM, texts[name], 1) for name in wanted]

    def _halving(self, stretch: Stretch) -> list[PlannedBuild]:
        """Return the commit that best splits a stretch, after that at which its branch begins if
        need be; nothing if none is left that could be built.
        """
        best: list[PlannedBuild] = []
        worth = 0.0
        for cut in self._cuts(stretch, self._suspects(stretch)):
            if best and (cut.near or cut.bits <= worth):
                break
            needed = self._needed(cut.held, stretch)
            if needed and cut.bits / len(needed) > worth:
                best, worth = needed, cut.bits / len(needed)
        return best

    def _cuts(self, stretch: Stretch, suspects: Bits) -> list["_Cut"]:
        """Sets that part a stretch, those first that tell most."""
        extra = stretch.count / suspects.bit_count() if suspects else 0.0
        total = stretch.count + extra * suspects.bit_count()
        failed = self._failed_in(stretch)
        apart = 1 << (len(failed) - 1) if failed else 0
        found = []
        for held, commits in self.ancestry.at.items():
            inside = held & stretch.bits
            if inside in (0, stretch.bits):
                continue
            bits = _entropy((inside.bit_count() + extra * (inside & suspects).bit_count()) / total)
            depth = min(self.ancestry.depth.get(name, 0) for name in commits)
            near = any((inside ^ other).bit_count() < apart for other in failed)
            found.append(_Cut(held, bits, near, depth))
        return sorted(found, key=_Cut.rank)

    def _failed_in(self, stretch: Stretch) -> list[Bits]:
        held = [self.ancestry.bits[name] & stretch.bits for name in self.failed]
        return [one for one in held if one not in (0, stretch.bits)]

    def _suspects(self, stretch: Stretch) -> Bits:
        """Those that touch an object which has a function that changed."""
        clues = self.history.clues
        objects = {
            path
            for functions in self.judge.changed_functions(stretch.value).values()
            for name in functions
            for path in clues.homes.get(name, ())
        }
        names = [name for name, touched in clues.touches.items() if not objects.isdisjoint(touched)]
        found = self.ancestry.bits_of(names) & stretch.bits
        return 0 if found == stretch.bits else found

    def _needed(self, held: Bits, stretch: Stretch) -> list[PlannedBuild]:
        """What to build so that a set parts a stretch: a commit that holds it, and before it one
        that holds the rest, where nothing says what that is.
        """
        left = stretch.count
        inside = (held & stretch.bits).bit_count()
        above = self._commit_of(held)
        rest = held & ~stretch.bits
        needed = []
        if self.account.state(rest) is None:
            below = self._commit_of(rest)
            if below is None or below in self.judge.measured:
                return []
            text = f"a branch with {inside} of {left} commits begins here"
            needed.append(PlannedBuild(kernel(below), Step.BASE, text, left))
        if above is None:
            return []
        if above not in self.judge.measured:
            text = f"holds {inside} of {left} commits that may have the effect"
            needed.append(PlannedBuild(kernel(above), Step.HALVING, text, left))
        return needed

    def _commit_of(self, held: Bits) -> str | None:
        """A commit that holds these, which was measured or can be tried."""
        commits = self.ancestry.at.get(held, [])
        measured = [name for name in commits if name in self.judge.measured]
        failed = [name for name in commits if name in self.failed]
        fresh = [name for name in commits if name not in self.failed]
        if measured or not fresh or len(failed) >= self.wants.tries:
            return next(iter(measured), None)
        # The last one is farthest from what broke the first.
        return fresh[-1] if failed else fresh[0]


def _entropy(part: float) -> float:
    """What an answer of that probability tells, in bits (Shannon 1948)."""
    if not 0 < part < 1:
        return 0.0
    return -part * math.log2(part) - (1 - part) * math.log2(1 - part)


def bisect_answer(plan: _BisectPlan) -> BisectAnswer:
    """All that is known at that point."""
    history, account = plan.history, plan.account
    single = [one for one in account.significant if one.count == 1]
    several = [one for one in account.significant if one.count > 1]
    values = {one.bits: _value(history, account, one) for one in single}
    explained = added([*values.values(), *(one.value for one in several)])
    whole = minus(kernel(history.bad), kernel(history.good))
    culprits = [_culprit(history, account, one, values[one.bits]) for one in single]
    return BisectAnswer(
        culprits=tuple(sorted(culprits, key=lambda one: one.moved)),
        groups=tuple(_together(plan, one) for one in several),
        placed=tuple(_placed(account)),
        sums=account.judge.regions.sums(whole, explained),
        candidates=len(account.ancestry.candidates),
        builds=plan.spent,
        failed={name: failed.detail or failed.status.value for name, failed in plan.failed.items()},
        notes=tuple(plan.notes),
    )


def _value(history: History, account: StretchAccount, stretch: Stretch) -> Combination:
    """The effect of a single commit: against its parent if both were measured."""
    (commit,) = account.ancestry.commits(stretch.bits)
    parents = history.parents[commit]
    measured = account.judge.measured
    if len(parents) == 1 and commit in measured and parents[0] in measured:
        return minus(kernel(commit), kernel(parents[0]))
    return stretch.value


def _culprit(
    history: History, account: StretchAccount, stretch: Stretch, value: Combination
) -> Culprit:
    (commit,) = account.ancestry.commits(stretch.bits)
    parents = history.parents[commit]
    confirmed = len(parents) == 1 and value == minus(kernel(commit), kernel(parents[0]))
    return Culprit(
        commit=commit,
        effects=account.judge.regions.estimates(value),
        functions=account.judge.changed_functions(value),
        confirmed=confirmed,
        moved=not account.judge.size(value).region,
        text=_how(value, len(parents), confirmed=confirmed),
        between=_two_of(value),
    )


def _two_of(value: Combination) -> tuple[str, str] | None:
    """Return the commits of which one kernel less the other is an effect; None for more kernels."""
    pair = pair_of(value)
    return (next(iter(pair[0])), next(iter(pair[1]))) if pair else None


def _how(value: Combination, parents: int, *, confirmed: bool) -> str:
    if confirmed:
        return "it was measured, and so was its parent"
    names = [next(iter(one)) for one, _ in sorted(value.items(), key=lambda item: item[1])]
    if parents > 1:
        return "the merge itself: what it does besides the commits that it brings"
    if len(names) == 2:
        return f"of all commits between {names[0]} and {names[1]} no other reaches executed code"
    return f"by subtraction from {len(names)} measured kernels, as if effects add up"


def _together(plan: _BisectPlan, stretch: Stretch) -> GroupAnswer:
    account = plan.account
    text = "what is between them failed, so they could not be distinguished"
    if plan.cut_short:
        text = f"not distinguished by {plan.wants.max_builds} builds"
    elif plan.wants.first and stretch is not account.significant[0]:
        text = "not searched: the largest effect was asked for"
    return GroupAnswer(
        units=tuple(account.ancestry.commits(stretch.bits)),
        effects=account.judge.regions.estimates(stretch.value),
        text=text,
    )


def _placed(account: StretchAccount) -> list[PlacedCommits]:
    pairs = [(account.judge.placed(one.value), one) for one in account.stretches]
    return [
        PlacedCommits(
            *pair,
            tuple(account.ancestry.commits(one.bits)),
            account.judge.regions.estimates(one.value),
        )
        for pair, one in pairs
        if pair
    ]
