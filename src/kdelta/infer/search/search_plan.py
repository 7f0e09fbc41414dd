# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search knows at one point, and which kernels it wants next."""

import math
from collections.abc import Sequence

from kdelta.infer.search.coded import Coded
from kdelta.infer.search.evidence import (
    Account,
    Culprits,
    Group,
    Lost,
    Question,
    smallest,
    suspicion,
)
from kdelta.infer.search.proof import ProofPlan
from kdelta.infer.search.screening import (
    Prospect,
    by_what_they_need,
    check_sets,
    middle,
    missing,
    pairs_for,
    prospect,
    row_of,
    seen_on_top,
)
from kdelta.infer.search.search_model import (
    Candidate,
    FlipSet,
    Limits,
    Observation,
    PlannedBuild,
    Step,
)
from kdelta.infer.search.search_words import (
    alone_text,
    few_of,
    halving_text,
    interaction_text,
    proof_text,
)


class Plan(ProofPlan):
    """The state of a search for option groups.

    top  the kernel whose units are searched: all that were not ruled out if the proof held, else B
    """

    def __init__(
        self, units: Sequence[Candidate], observed: Sequence[Observation], limits: Limits
    ) -> None:
        super().__init__(units, observed, limits)
        self.priors = {unit.name: min(max(unit.prior, 0.001), 0.999) for unit in units}
        self.top = self.kept if self.proof_held else self.everything
        # Units that were ruled out come last, so that the proof's kernel is one of the row's.
        weights = {name: prior + (name not in self.kept) for name, prior in self.priors.items()}
        self.order = self.needs.in_order(self.top, weights)
        self.account = Account(self.needs, self.kernels, self.order, self.top)
        self.row = row_of(self.order, self.kernels)
        self.coded = self._coded()
        self.lost: list[Lost] = []
        self.prospect: Prospect | None = None
        self.interactions_cut = False
        self.plan(self._wanted())

    def steps(self, step: Step) -> int:
        """How many of the builds were planned as that step."""
        return sum(one.step is step for one in self.observed)

    def _wanted(self) -> list[PlannedBuild]:
        if self.proof_needed and not self.kernels.is_known(self.kept):
            return [PlannedBuild(self.kept, Step.PROOF, proof_text(self.kept))]
        if self.coded and (self.coded.complete or self._prefers_code()):
            return self.coded.wanted()
        interactions = self._interactions()
        return self._deciding() or self._checks() or interactions

    def _coded(self) -> Coded | None:
        """A search by code, where all kernels' functions are known; None where it is no way."""
        parts = self.kernels.parts
        if (
            len(self.order) < self.limits.coded_from
            or not all(parts.values())
            or self.top not in parts
        ):
            return None
        coded = Coded(
            self.needs,
            self.order,
            self.kernels,
            limits=self.limits,
            priors=self.priors,
            settled=self.steps(Step.SETTLE),
        )
        return None if coded.failed else coded

    def _prefers_code(self) -> bool:
        """Whether to search by code: it was begun, or takes fewer builds than the other ways."""
        if self.steps(Step.CODED):
            return True
        if self.coded is None:
            return False
        pending = self.account.undecided()
        if not pending or self.steps(Step.ALONE) or self.steps(Step.HALVING):
            return False
        other = prospect(self.row, self.kernels, self.priors, self.account.evidence, pending)
        return self.coded.expected_builds < min(other.halving, other.one_at_a_time)

    @property
    def decodes(self) -> Coded | None:
        """The search by code that the answer comes from; None where it comes from others."""
        return self.coded if self.coded and self.coded.complete else None

    def _deciding(self) -> list[PlannedBuild]:
        pending = self.account.undecided()
        if not pending:
            return []
        self.prospect = prospect(
            self.row, self.kernels, self.priors, self.account.evidence, pending
        )
        # Builds that parted groups and cleared none must not come on top of one a unit.
        too_late = self.steps(Step.HALVING) + len(pending) > len(self.order) + 1
        if self.steps(Step.ALONE) or not (self.prospect.prefers_halving or too_late):
            return self._alone(pending, Step.ALONE)
        builds: list[PlannedBuild] = []
        stuck: list[str] = []
        for segment in self.row:
            inside = [name for name in segment.units if name in pending]
            if segment.same or not inside:
                continue
            half = middle(segment, self.priors, self.kernels.failed, self.limits.tries)
            if half is None:
                stuck += inside
            else:
                text = halving_text(segment.units, half - segment.below, segment.below)
                builds.append(PlannedBuild(half, Step.HALVING, text))
        return builds or self._alone(stuck, Step.DETOUR)

    def _alone(self, names: Sequence[str], step: Step) -> list[PlannedBuild]:
        pairs = pairs_for(self.needs, self.kernels, self.top, names, self.limits.tries)
        return [
            PlannedBuild(flips, step, alone_text(name, flips, self.needs.below(name), self.top))
            for name in sorted(pairs, key=lambda name: -self.priors[name])
            for flips in missing(pairs[name], self.kernels.measured)
        ]

    def _checks(self) -> list[PlannedBuild]:
        """No more than one build above one at a time, all in all, or two after halving; none once
        something was found not to add up.
        """
        if self.steps(Step.INTERACTION):
            return []
        alone = self.steps(Step.ALONE)
        made = alone + self.steps(Step.HALVING) + self.steps(Step.CHECK)
        left = max(0, len(self.order) + (1 if alone else 2) - made)
        wanted = [flips for flips in self._check_sets() if not self.kernels.is_known(flips)]
        why = "without the others: whether the effects still add up"
        return [PlannedBuild(one, Step.CHECK, f"{few_of(one)}, {why}") for one in wanted[:left]]

    def _check_sets(self) -> list[FlipSet]:
        """One at a time few were seen on top of others: they share one kernel."""
        evidence = self.account.evidence
        culprits, cleared = seen_on_top(self.kernels, self.order, evidence)
        if self.steps(Step.ALONE) and not self.steps(Step.HALVING):
            sets = [self.needs.closure(culprits)] if culprits else []
        else:
            sets = check_sets(self.needs, culprits)
        apart = by_what_they_need(self.needs, self.kernels, cleared, evidence)
        return list(dict.fromkeys([*apart, *sets]))

    def unchecked(self) -> bool:
        """Whether a unit's effect was never seen without other units that matter."""
        return any(flips not in self.kernels for flips in self._check_sets())

    @property
    def interaction_limit(self) -> int:
        """How many builds may be spent on interactions."""
        if self.limits.interaction_builds is not None:
            return self.limits.interaction_builds
        return 2 * (2 * math.ceil(math.log2(max(2, len(self.order)))) + 1)

    def _interactions(self) -> list[PlannedBuild]:
        """Takes each kernel that does not add up until it does or is given up. Interactions found
        on the way go into the account.
        """
        for flips in dict.fromkeys([self.top, *(one.flips for one in self.observed)]):
            while flips <= self.top and self._test(flips):
                outcome = self._smallest_in(flips)
                if isinstance(outcome, Question):
                    if self.steps(Step.INTERACTION) >= self.interaction_limit:
                        self.interactions_cut = True
                        return []
                    text = interaction_text(outcome)
                    return [PlannedBuild(outcome.flips, Step.INTERACTION, text)]
                if isinstance(outcome, Lost):
                    self.lost.append(outcome)
                    break
                effect = self.account.residual(self.needs.closure(outcome.units)) or {}
                self.account.interactions.append(Group(outcome.units, effect))
        return []

    def _smallest_in(self, flips: FlipSet) -> Question | Culprits | Lost:
        """After halving the row's order is kept, whose kernels are there; else suspects stand last,
        where they are found first.
        """
        weights = suspicion(self.account, flips, self.account.residual(flips) or {})
        order = (
            [name for name in self.order if name in flips]
            if self.steps(Step.HALVING)
            else self.needs.in_order(flips, weights)
        )
        return smallest(order, weights, self.needs, self._test, self.kernels.failed)

    def _test(self, flips: FlipSet) -> bool | None:
        residual = self.account.residual(flips)
        if not residual:
            return None if residual is None else False
        return self.kernels.is_relevant(residual, self.limits.relevance)
