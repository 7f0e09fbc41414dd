# SPDX-License-Identifier: GPL-2.0-or-later
"""The smallest set of a series' patches that has the effect of all of them.

Delta debugging in a world where most sets of patches are no kernel: they do not apply, build or
boot without others. Ddmin (A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing
Input, IEEE Trans. Softw. Eng. 28, 2002) cuts the set into parts without regard to that, and then
most of its tests are unresolved. Here every set is the patches up to some point, which as a rule
hang together, and a few known ones after it:

1. Of the patches up to a point and those found so far, the smallest point is looked for at which
   the effect is there, by halving. The last patch before it is needed: without it the effect is
   gone, or there is no kernel. It is found, together with what it is known to need, and the search
   goes on before it, until those that are found have the effect.
2. A set that is no kernel is no effect, so that the halving ends at the patch that is missing:
   that is how needs are learned. Before that the patches are tried that the text of those found
   makes likely.
3. In the end each patch that was found is left out once more, with those that need it: what the
   effect does not miss is no part of the answer. So no patch of the answer can be left out alone;
   that no other set is smaller is not said.

With k of n patches to find that takes about k * log2(n) kernels.
"""

import enum
from collections.abc import Sequence
from functools import cached_property

import msgspec

from kdelta.infer.search.needs import needs_of
from kdelta.infer.search.search_model import Candidate, FlipSet, PlannedBuild, Step
from kdelta.infer.search.search_words import few_of


class SetVerdict(enum.StrEnum):
    """What became of a set of patches."""

    HAS = "has the effect"
    LACKS = "lacks the effect"
    UNRESOLVED = "unresolved"


class Trial(msgspec.Struct, frozen=True):
    """A set of patches, and what became of it; `reason` for one that is unresolved. `built` is
    False where that was known without a build.
    """

    patches: FlipSet
    verdict: SetVerdict
    reason: str = ""
    built: bool = True


class PatchRole(enum.StrEnum):
    """Why a patch is in the answer."""

    CULPRIT = "culprit"
    """Without it the effect is not there."""
    NEEDED = "needed"
    """Without it another one of the answer makes no kernel."""


class Member(msgspec.Struct, frozen=True):
    """A patch of the answer. `text` says how that is known."""

    name: str
    role: PatchRole
    text: str


class MinimalAnswer(msgspec.Struct, frozen=True):
    """The patches, in the order of the series; empty while none are known. `complete` unless tests
    ran out; `confirmed`: that none of them can be left out was tried. `tests`: kernels built for
    it; `refused`: sets of which it was known beforehand that they do not apply.
    """

    members: tuple[Member, ...]
    complete: bool
    confirmed: bool
    tests: int
    refused: int
    note: str = ""


class MinimalSearch(msgspec.Struct, frozen=True, dict=True):
    """The state of a search; `observe` gives the next one. Equal tests give equal decisions.

    patches  all together have an effect; those that were ruled out are best not among them
    known    what was tried already, which costs nothing
    """

    patches: tuple[Candidate, ...]
    known: tuple[Trial, ...] = ()
    max_builds: int | None = None
    tested: tuple[Trial, ...] = ()

    def observe(
        self, patches: FlipSet, verdict: SetVerdict, reason: str = "", *, built: bool = True
    ) -> "MinimalSearch":
        """Return the search after a test."""
        test = Trial(patches, verdict, reason, built)
        return msgspec.structs.replace(self, tested=(*self.tested, test))

    def next_builds(self) -> tuple[PlannedBuild, ...]:
        """Return the set that is to be tested next; empty when finished."""
        wanted = self._plan.wanted
        return () if wanted is None or self._out_of_builds else (wanted,)

    def answer(self) -> MinimalAnswer:
        """What is known so far."""
        plan = self._plan
        is_cut = plan.wanted is not None and self._out_of_builds
        return MinimalAnswer(
            members=tuple(plan.members()),
            complete=plan.found_all,
            confirmed=plan.wanted is None,
            tests=self._spent,
            refused=sum(not one.built for one in self.tested),
            note=f"the search ended after {self._spent} builds" if is_cut else "",
        )

    @property
    def _spent(self) -> int:
        return len({one.patches for one in self.tested if one.built})

    @property
    def _out_of_builds(self) -> bool:
        return self.max_builds is not None and self._spent >= self.max_builds

    @cached_property
    def _plan(self) -> "_MinimalPlan":
        return _MinimalPlan(self.patches, (*self.known, *self.tested))


class _MinimalPlan:
    """What is known at one point: it goes through the search again, test by test, until one is
    missing, which is `wanted`.
    """

    def __init__(self, patches: Sequence[Candidate], tested: Sequence[Trial]) -> None:
        self.patches = {patch.name: patch for patch in patches}
        self.needs = needs_of(tuple(patches))
        self.order = [patch.name for patch in patches]
        self.places = {name: place for place, name in enumerate(self.order)}
        self.tests = {one.patches: one for one in tested}
        self.found: list[Member] = []
        self.dropped: FlipSet = frozenset()
        self.wanted: PlannedBuild | None = None
        self.found_all = False
        try:
            self._find()
            self.found_all = True
            self._confirm()
        except _MissingError as missing:
            self.wanted = missing.build

    # Sets

    def chosen(self) -> FlipSet:
        """The patches that were found, with what they need to apply."""
        return self.needs.closure(one.name for one in self.found if one.name not in self.dropped)

    def ask(self, patches: FlipSet, reason: str) -> Trial:
        """What became of a set; raises _MissingError if unknown."""
        if patches not in self.tests:
            raise _MissingError(PlannedBuild(patches, Step.MINIMAL, reason))
        return self.tests[patches]

    # The search

    def _up_to(self, place: int) -> FlipSet:
        return self.needs.closure(self.order[:place]) | self.chosen()

    def _find(self) -> None:
        high = len(self.order)
        if high and self._test_up_to(high).verdict is not SetVerdict.HAS:
            return
        while self._test_up_to(0).verdict is not SetVerdict.HAS:
            if self._suspected():
                continue
            high = self._first_with_effect(high)
            self._add(high - 1, self._test_up_to(high - 1))
            high -= 1

    def _test_up_to(self, place: int) -> Trial:
        names = self.chosen()
        if not place:
            text = f"{few_of(names)}: is that all?" if names else "no patch at all"
        else:
            with_them = f", and {few_of(names)}" if names else ""
            text = f"all up to {self.order[place - 1]}{with_them}"
        return self.ask(self._up_to(place), text)

    def _first_with_effect(self, high: int) -> int:
        """The smallest place, as far as halving shows, up to which the effect is there."""
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            has = self._test_up_to(middle).verdict is SetVerdict.HAS
            low, high = (low, middle) if has else (middle, high)
        return high

    def _suspected(self) -> bool:
        """Adds what the text makes likely, if those that are found are no kernel and then are."""
        test = self._test_up_to(0)
        if test.verdict is not SetVerdict.UNRESOLVED or not self.found:
            return False
        last = self.found[-1]
        for name in self.patches[last.name].suspects:
            if name in self.chosen():
                continue
            more = self.needs.closure([name]) | self.chosen()
            reason = f"{few_of(self.chosen())} with {name}, which it may need"
            if self.ask(more, reason).verdict is not SetVerdict.UNRESOLVED:
                text = f"{last.name} needs it: without it {test.reason}"
                self.found.append(Member(name, PatchRole.NEEDED, text))
                return True
        return False

    def _add(self, place: int, without: Trial) -> None:
        name = self.order[place]
        if without.verdict is SetVerdict.LACKS:
            role, text = PatchRole.CULPRIT, "without it the effect is not there"
        else:
            role, text = PatchRole.NEEDED, f"without it {without.reason}"
        self.found.append(Member(name, role, text))

    # That nothing of it can be left out

    def _confirm(self) -> None:
        for one in sorted(self.found, key=lambda one: -self.places[one.name]):
            if one.name not in self.dropped:
                self._leave_out(one)

    def _leave_out(self, one: Member) -> None:
        for gone in self._removals(one):
            before = self.dropped
            reason = f"{few_of(self.chosen())}, without {few_of(gone)}"
            self.dropped = before | gone
            left = self.chosen()
            verdict = self.ask(left, reason).verdict if left else SetVerdict.LACKS
            if verdict is SetVerdict.HAS:
                return
            self.dropped = before
            if verdict is SetVerdict.LACKS:
                return

    def _removals(self, one: Member) -> list[FlipSet]:
        """Ways to leave a patch out: with those that do not apply without it; and, if that is no
        kernel and the patch itself was only needed, with the one or all of the others of which the
        same is true: a patch that breaks what the next one fixes has no effect, nor has the next.
        """
        chosen = self.chosen()
        gone = frozenset(n for n in chosen if n == one.name or one.name in self.patches[n].needs)
        if one.role is PatchRole.CULPRIT:
            return [gone]
        needed = [each.name for each in self.found if each.role is PatchRole.NEEDED]
        near = needed[needed.index(one.name) :][:2]
        return list(dict.fromkeys([gone, gone.union(near), gone.union(needed)]))

    def members(self) -> list[Member]:
        """The patches that were found, and what they need to apply."""
        by_name = {one.name: one for one in self.found}
        members = []
        for name in self.order:
            if name not in self.chosen():
                continue
            users = [one for one in self.chosen() if name in self.patches[one].needs]
            needed = Member(name, PatchRole.NEEDED, f"{few_of(users)} does not apply without it")
            members.append(by_name.get(name, needed))
        return members


class _MissingError(Exception):
    """A test that was not made yet."""

    def __init__(self, build: PlannedBuild) -> None:
        super().__init__(build.reason)
        self.build = build
