# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels between A and B to build next, and what their runs say of each unit.

A build takes minutes and a run seconds, so builds are what is saved:

1. The proof: all units that were not ruled out, flipped together, must give B's path. If they do,
   the others are settled; if not, all are searched.
2. Each unit is decided one at a time or by halves (infer/search/screening.py),
   whichever is expected to take fewer builds, given how likely units are to matter and what was
   seen so far. One at a time is never left again.
3. After halving a few builds check that effects are the same without the units they were seen
   with. One at a time, the sum against the whole is that check.
4. Where effects do not add up, the units that interact are found (evidence.py).

Plackett-Burman and other balanced designs are not used: with n units they take more than n builds,
no fewer than one at a time. What they save is spread, and that is had for less by more runs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from kdelta.infer.effects.estimate import ZERO, Adds, Estimate, around
from kdelta.infer.search.additive import Combination, added, minus
from kdelta.infer.search.coded import Coded
from kdelta.infer.search.decode import Term
from kdelta.infer.search.evidence import Evidence, Group
from kdelta.infer.search.needs import Needs, needs_of
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    Failed,
    FlipSet,
    GroupAnswer,
    How,
    InteractionAnswer,
    Limits,
    Measured,
    Observation,
    Outcome,
    Pair,
    PlannedBuild,
    Proof,
    RegionSum,
    SearchAnswer,
    Step,
    UnitAnswer,
)
from kdelta.infer.search.search_plan import Plan
from kdelta.infer.search.search_words import few_of
from kdelta.spec.run import RunStatus

Distance = Callable[[FlipSet, FlipSet], float]
"""What building one set right after another costs, such as the objects that both differ by."""


def _units_apart(one: FlipSet, other: FlipSet) -> float:
    return len(one ^ other)


class Search(msgspec.Struct, frozen=True, dict=True):
    """The state of a search: what it was given, and what was observed, in order, A and B first.
    Never changed: `observe` gives the next one, and equal observations give equal decisions.
    """

    units: tuple[Candidate, ...]
    observed: tuple[Observation, ...]
    limits: Limits = Limits()

    def observe(self, flips: FlipSet, outcome: Outcome, built: FlipSet | None = None) -> "Search":
        """Return the search after a kernel, asked for or not. `built` is what was flipped in truth,
        where the tree grants the flips only with more of them. Raises ValueError for sets that are
        not closed under needs.
        """
        needs = needs_of(self.units)
        for names in (flips, built or flips):
            if not (names <= frozenset(needs.names) and needs.is_closed(names)):
                raise ValueError(f"no set of flips that can be built: {sorted(names)}")
        step = {build.flips: build.step for build in self._plan.builds}.get(flips)
        new = [Observation(flips, outcome, step)]
        if built is not None and built != flips:
            more = ", ".join(sorted(built - flips))
            refused = Failed(RunStatus.CONFIG_REFUSED, f"granted only with {more}")
            new = [Observation(flips, refused, step), Observation(built, outcome)]
        return msgspec.structs.replace(self, observed=(*self.observed, *new))

    def next_builds(self, distance: Distance = _units_apart) -> tuple[PlannedBuild, ...]:
        """Kernels that are needed, the next one first, neighbours close to each other; empty when
        finished. Only the first is certain: each outcome may change the rest.

        `distance` is what building one set right after another costs; without it, how many units
        they differ by.
        """
        builds = list(self._plan.builds)
        last = self.observed[-1].flips if len(self.observed) > 2 else NOTHING
        ordered = []
        while builds:
            nearest = min(builds, key=lambda build: distance(last, build.flips))
            builds.remove(nearest)
            ordered.append(nearest)
            last = nearest.flips
        return tuple(ordered)

    @property
    def doubted(self) -> frozenset[Pair]:
        """Return the kernels that compare is to judge: those of a proof that does not hold
        and those that decide about a unit among them.
        """
        self.answer()
        plan = self._plan
        deciding = [] if plan.decodes else [one.pair for one in plan.account.evidence.values()]
        return plan.kernels.unjudged([*plan.failed_proof, *filter(None, deciding)])

    def answer(self) -> SearchAnswer:
        """What is known so far."""
        return answer_of(self._plan)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(self.units, self.observed, self.limits)


def begin(
    units: Sequence[Candidate], a: Measured, b: Measured, limits: Limits | None = None
) -> Search:
    """Return a search from A, where nothing is flipped, to B, where all units are, the pruned among
    them.

    Units that share objects should stand close to each other. Raises ValueError for needs that
    name no unit or go in a circle.
    """
    everything = frozenset(Needs(units).names)
    observed = [Observation(NOTHING, a)]
    if everything:
        observed.append(Observation(everything, b))
    return Search(tuple(units), tuple(observed), limits or Limits())


def strategy_of(plan: Plan) -> str:
    """Which way the units are searched, and why."""
    count = len(plan.order)
    if plan.proof_needed and not plan.kernels.is_known(plan.kept):
        return "the proof first"
    if count < 2:
        return "none: the whole is one option group" if count else "none: no option group is left"
    if plan.decodes or plan.steps(Step.CODED):
        coded, settled = plan.steps(Step.CODED), plan.steps(Step.SETTLE)
        return (
            f"by code: {coded} kernels distinguish {count} option groups, {settled} settle the rest"
        )
    return _one_way_or_the_other(plan, count)


def _one_way_or_the_other(plan: Plan, count: int) -> str:
    halving, alone = plan.steps(Step.HALVING), plan.steps(Step.ALONE)
    if halving and alone:
        return f"by halves ({halving} builds), then one at a time, as many option groups matter"
    if halving:
        return f"by halves: few of {count} option groups were expected to matter"
    if plan.prospect and not alone:
        expected = plan.prospect
        way = "by halves" if expected.prefers_halving else "one at a time"
        return (
            f"{way}: about {expected.halving:.0f} builds are expected by halves, "
            f"{expected.one_at_a_time:.0f} one at a time"
        )
    return "one at a time: many groups were expected to matter" if alone else "the whole decides"


def answer_of(plan: Plan) -> SearchAnswer:
    """Return all that is known at that point."""
    return SearchAnswer(
        units=tuple(_unit(plan, name) for name in plan.needs.names),
        groups=tuple(_groups(plan)),
        interactions=tuple(_interactions(plan)),
        sums=_sums(plan),
        proof=_proof(plan),
        builds=plan.spent,
        strategy=strategy_of(plan),
        notes=tuple(_notes(plan)),
        mean=None if plan.decodes else plan.kernels.mean_sum(*_parts(plan)),
    )


def _groups(plan: Plan) -> Iterator[GroupAnswer]:
    terms = plan.decodes.together() if plan.decodes else []
    for units, effects in _joint_effects(plan, terms, plan.account.groups):
        names = tuple(name for name in plan.order if name in units)
        yield GroupAnswer(names, effects, "no kernels that ran distinguish them")


def _interactions(plan: Plan) -> Iterator[InteractionAnswer]:
    terms = plan.decodes.interactions() if plan.decodes else []
    for units, effects in _joint_effects(plan, terms, plan.account.interactions):
        names = tuple(name for name in plan.needs.names if name in units)
        extra = plan.needs.closure(units) - units
        after = f" after {few_of(extra)}" if extra else ""
        yield InteractionAnswer(names, effects, f"together{after}, from A, less what each does")


def _joint_effects(
    plan: Plan, terms: Sequence[Term], groups: Sequence[Group]
) -> list[tuple[FlipSet, dict[str, Estimate]]]:
    """What units do together: terms where functions were decoded, else groups of the account."""
    if plan.decodes:
        return [(term, plan.decodes.estimates(term)) for term in terms]
    return [(group.units, plan.kernels.with_mean(group.effect)) for group in groups]


def _decoded(coded: Coded, name: str) -> UnitAnswer:
    term = next(term for term in coded.decoding.classes if name in term)
    does = term in coded.effects
    if does and len(term) > 1:
        return UnitAnswer(name, How.UNRESOLVED, "no kernels distinguish it from others", {})
    text = (
        f"by function, from {len(coded.sets)} kernels with many groups flipped each"
        if does
        else f"no function of {len(coded.sets)} kernels with many groups flipped each speaks for it"
    )
    return UnitAnswer(name, How.DECODED if does else How.CLEARED, text, coded.estimates(term))


def _unit(plan: Plan, name: str) -> UnitAnswer:
    if name not in plan.top:
        return UnitAnswer(name, How.RULED_OUT, "the kernel without it has B's path", {})
    evidence = plan.account.evidence.get(name)
    if plan.decodes and (evidence is None or evidence.how not in {How.ALONE, How.DIFFERENCE}):
        return _decoded(plan.decodes, name)
    if evidence is None:
        return UnitAnswer(name, How.UNRESOLVED, _why_unresolved(plan, name), {})
    if evidence.how is How.CLEARED:
        around = plan.kernels.with_mean(minus(evidence.more, evidence.below))
        effects = {
            region: Estimate(ZERO, one.low, one.high, one.n) for region, one in around.items()
        }
    else:
        effects = plan.kernels.with_mean(evidence.effect)
    return UnitAnswer(name, evidence.how, _how_text(plan, name, evidence), effects)


def _how_text(plan: Plan, name: str, evidence: Evidence) -> str:
    below = evidence.below - plan.needs.below(name)
    needed = plan.needs.below(name) & evidence.below
    after = f", after {few_of(needed)}" if needed else ""
    context = f"on top of {few_of(below)}" if below else "from A"
    if evidence.how is How.ALONE:
        return f"alone from A{after}"
    if evidence.how is How.DIFFERENCE:
        others = plan.top - evidence.more
        if len(others) < len(below):
            left_out = f" but {few_of(others)}" if others else ""
            return f"alone, on top of all the others{left_out}"
        return f"alone, {context}"
    if evidence.how is How.CLEARED:
        count = len(evidence.group) - 1
        return f"nothing changes with it and {count} other{'s' * (count > 1)}, {context}"
    return "what the others leave of the whole, if effects add up"


def _why_unresolved(plan: Plan, name: str) -> str:
    if plan.out_of_builds:
        return f"no builds are left ({plan.spent} made)"
    failed = plan.kernels.failed
    if not failed:
        return "not looked at yet"
    # The smallest kernel that failed says most about a unit in it, or about one that it needs.
    wanted = plan.needs.closure([name])
    flips = min(failed, key=lambda one: (name not in one, not one & wanted, len(one), sorted(one)))
    one = failed[flips]
    detail = f": {one.detail}" if one.detail else ""
    return f"{few_of(flips)} flipped: {one.status.value}{detail}"


def _sums(plan: Plan) -> dict[str, RegionSum]:
    """Of A to B; what the kept units leave of that, where the proof held, is in the remainder."""
    if plan.decodes:
        return _decoded_sums(plan, plan.decodes)
    return plan.kernels.sums(*_parts(plan))


def _parts(plan: Plan) -> tuple[Combination, Combination]:
    """B less A, and what units, groups and interactions add up to."""
    return minus(plan.everything, NOTHING), plan.account.explained(plan.top) or added([])


def _decoded_sums(plan: Plan, coded: Coded) -> dict[str, RegionSum]:
    """The same where units were distinguished by function; those measured alone count as that."""
    whole = plan.kernels.estimates(minus(plan.everything, NOTHING))
    parts = [_unit(plan, name).effects for name in plan.order]
    parts += [coded.estimates(term) for term in (*coded.together(), *coded.interactions())]
    sums = {}
    for region, one in whole.items():
        value = sum((part[region].value for part in parts if region in part), ZERO)
        far = coded.reach(region)
        sums[region] = RegionSum(
            one,
            around(value, far, one.n),
            around(one.value - value, far, one.n),
            plan.kernels.first[region],
            plan.kernels.widest(region),
        )
    return sums


def _proof(plan: Plan) -> Proof:
    if not plan.proof_needed:
        return Proof(None, "nothing was ruled out")
    failed = plan.kernels.failed.get(plan.kept)
    count = len(plan.kept)
    return plan.proof(
        f": {failed.status.value}: {failed.detail}" if failed else "",
        f"with all {count} option groups that were kept, A has B's path",
        f"with all {count} groups that were kept, the path is not B's",
        f"{len(plan.everything) - count} others are searched too",
    )


def _notes(plan: Plan) -> list[str]:
    unexplained = plan.decodes.left_over() if plan.decodes else {}
    left_over = [name for name, one in _sums(plan).items() if one.adds is Adds.LEFT_OVER]
    small = "each too little to be looked for, or not found"
    why = "for which no builds were left" if plan.out_of_builds else small
    notes = {
        "option groups were cleared together: effects that cancel exactly in all "
        "would not be seen":
            any(one.how is How.CLEARED for one in plan.account.evidence.values()),
        "effects were distinguished by function in kernels with many groups flipped: what two "
        "do only together can look like one's":
            plan.decodes is not None,
        f"functions of {few_of(unexplained)} changed in a way that no few groups explain":
            bool(unexplained),
        "some effects were seen only with other groups flipped: whether they are the same from "
        "A was not checked":
            plan.decodes is None and plan.unchecked(),
        f"the search ended after {plan.spent} builds, as it was asked to":
            plan.out_of_builds,
        f"after {plan.interaction_limit} builds no more interacting groups are looked for":
            plan.interactions_cut,
        f"more than the spread is left over in {few_of(left_over)}: groups that interact, {why}":
            bool(left_over) and not plan.builds,
    }  # fmt: skip
    lost = [f"which of {few_of(one.units)} interact is open: kernels failed" for one in plan.lost]
    return [*(note for note, applies in notes.items() if applies), *lost]
