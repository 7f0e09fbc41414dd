# SPDX-License-Identifier: GPL-2.0-or-later
"""Which trees of a series of patches to build next, and what their kernels say of each patch.

A build takes minutes and a run seconds, so builds are what is saved:

1. The proof: the patches that were not ruled out, and those that they need to apply, must give the
   path of all. If they do, the others are settled; if not, all are searched.
2. In order: the patches up to some point always apply, and what each adds to those before it adds
   up to the whole, exactly. The series is halved, and a stretch is not split if the same is
   executed before and after it, in every region and every function. So two patches of one stretch
   that cancel in each function would not be seen; and few builds are needed where few matter.
   A point at which the tree does not build or boot is passed over: what stands between two points
   that do is a group, and why is kept.
3. Left out and alone: asked for each patch that does something, together with what needs it and
   what it needs. Where such a tree fails, those that may be why come or go with it.
4. What a patch does left out or alone and not in order is an interaction with later or earlier
   ones; two whose leftovers are the same are named, and a kernel with these two alone decides.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import msgspec

from kdelta.infer.effects.estimate import ZERO, Estimate
from kdelta.infer.search.additive import Combination, added, minus
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    FlipSet,
    InteractionAnswer,
    Limits,
    Measured,
    Observation,
    Outcome,
    Pair,
    PatchAnswer,
    PatchGroup,
    PatchNeed,
    PatchOutcome,
    PlannedBuild,
    Proof,
    SeriesAnswer,
    View,
    ViewAnswer,
)
from kdelta.infer.search.search_words import few_of
from kdelta.infer.search.series_plan import TRIES, Leaf, SeriesPlan, failure_clause


class SeriesSearch(msgspec.Struct, frozen=True, dict=True):
    """The state of a search: what it was given, and what was observed, in order, the tree without
    and that with all patches first. Never changed: `observe` gives the next one, and equal
    observations give equal decisions.
    """

    patches: tuple[Candidate, ...]
    observed: tuple[Observation, ...]
    views: frozenset[View]
    limits: Limits

    def observe(self, patches: FlipSet, outcome: Outcome, *, built: bool = True) -> "SeriesSearch":
        """Return the search after a set of patches, asked for or not. Raises ValueError for names
        that are no patch's.
        """
        if not patches <= {patch.name for patch in self.patches}:
            raise ValueError(f"no patches of the series: {sorted(patches)}")
        known = any(one.flips == patches and not one.built for one in self.observed)
        new = Observation(patches, outcome, built=built and not known)
        return msgspec.structs.replace(self, observed=(*self.observed, new))

    def next_builds(self) -> tuple[PlannedBuild, ...]:
        """Return kernels that are needed, the next one first; empty when finished. Only the first
        is certain: each outcome may change the rest.
        """
        return self._plan.builds

    def answer(self) -> SeriesAnswer:
        """What is known so far."""
        return series_answer(self._plan)

    def kernels(self) -> dict[tuple[str, ...], tuple[FlipSet, FlipSet]]:
        """Return the trees before and with each patch, or group of patches, that does something."""
        plan = self._plan
        return {
            one.inside: (plan.prefix(one.low), plan.prefix(one.high))
            for one in plan.stretches
            if plan.matters(one)
        }

    @property
    def doubted(self) -> frozenset[Pair]:
        """Return the trees that compare is to judge: those of a proof that does not hold, and
        those before and with each patch, or stretch of patches that is not split, among them.
        """
        self.answer()
        plan = self._plan
        leaves = [one for one in plan.stretches if one.inside and one.leaf is not Leaf.OPEN]
        deciding = [(plan.prefix(one.low), plan.prefix(one.high)) for one in leaves]
        return plan.kernels.unjudged([*plan.failed_proof, *deciding])

    @cached_property
    def _plan(self) -> SeriesPlan:
        return SeriesPlan(self.patches, self.observed, self.views, self.limits)


def begin_series(
    patches: Sequence[Candidate],
    without: Measured,
    everything: Measured,
    views: Collection[View] = (View.ORDER,),
    limits: Limits | None = None,
) -> SeriesSearch:
    """Return a search from the tree without patches to that with all of them. Raises ValueError for
    needs that name no earlier patch, and for two patches of one name.
    """
    earlier: set[str] = set()
    for patch in patches:
        if patch.name in earlier or not earlier.issuperset(patch.needs):
            raise ValueError(f"{patch.name}: a name that is taken, or a need that is not earlier")
        earlier.add(patch.name)
    observed = [Observation(frozenset(), without)]
    if patches:
        observed.append(Observation(frozenset(earlier), everything))
    return SeriesSearch(
        tuple(patches), tuple(observed), frozenset(views), limits or Limits(tries=TRIES)
    )


def series_answer(plan: SeriesPlan) -> SeriesAnswer:
    """All that is known at that point."""
    return SeriesAnswer(
        patches=tuple(_patch(plan, name) for name in plan.order),
        groups=tuple(_groups(plan)),
        needs=tuple(_needs(plan)),
        interactions=tuple(_interactions(plan)),
        sums=plan.kernels.sums(*_parts(plan)),
        proof=_proof(plan),
        builds=plan.spent,
        notes=tuple(_notes(plan)),
        mean=plan.kernels.mean_sum(*_parts(plan)),
    )


def _patch(plan: SeriesPlan, name: str) -> PatchAnswer:
    if name not in plan.searched:
        return PatchAnswer(name, PatchOutcome.RULED_OUT, "no executed code depends on it", {})
    stretch = next(one for one in plan.stretches if name in one.inside)
    effects = plan.kernels.with_mean(plan.effect(stretch))
    if stretch.leaf is Leaf.ONE:
        views = [_view(plan, view, (name,)) for view in (View.LEFT_OUT, View.ALONE)]
        text = "on top of all before it"
        code = plan.kernels.code(plan.prefix(stretch.low), plan.prefix(stretch.high))
        return PatchAnswer(name, PatchOutcome.MEASURED, text, effects, views[0], views[1], code)
    others = len(stretch.inside) - 1
    if stretch.leaf is Leaf.SAME:
        nothing = {r: Estimate(ZERO, one.low, one.high, one.n) for r, one in effects.items()}
        text = f"the same is executed before it and {others} other{'s' * (others > 1)} and after"
        return PatchAnswer(name, PatchOutcome.CLEARED, text, nothing)
    if stretch.leaf is Leaf.GROUP:
        text = f"not split: {stretch.reason}"
        return PatchAnswer(name, PatchOutcome.TOGETHER, text, {})
    return PatchAnswer(name, PatchOutcome.UNRESOLVED, f"no builds are left ({plan.spent} made)", {})


def _view(plan: SeriesPlan, view: View, names: tuple[str, ...]) -> ViewAnswer | None:
    if view not in plan.views or names not in plan.viewed():
        return None
    found = plan.attempt(view, names)
    effects = {} if found.effect is None else plan.kernels.with_mean(found.effect)
    text = found.reason
    if found.effect is None and found.wanted is not None:
        text = "no builds are left"
    return ViewAnswer(effects, found.others, text)


def _groups(plan: SeriesPlan) -> Iterator[PatchGroup]:
    for stretch in plan.stretches:
        if stretch.leaf not in (Leaf.GROUP, Leaf.OPEN):
            continue
        views = [_view(plan, view, stretch.inside) for view in (View.LEFT_OUT, View.ALONE)]
        effects = plan.kernels.with_mean(plan.effect(stretch))
        reason = stretch.reason or "no builds are left to take them apart"
        yield PatchGroup(stretch.inside, effects, reason, views[0], views[1])


def _needs(plan: SeriesPlan) -> Iterator[PatchNeed]:
    """What was learned by kernels that failed; what does not apply is known beforehand."""
    for names in plan.viewed():
        for view in (View.LEFT_OUT, View.ALONE):
            if view not in plan.views:
                continue
            found = plan.attempt(view, names)
            static = (
                plan.with_dependents(names) if view is View.LEFT_OUT else plan.needs.closure(names)
            )
            learned = tuple(name for name in found.others if name not in static)
            if not learned or found.effect is None:
                continue
            if view is View.LEFT_OUT:
                for name in learned:
                    yield PatchNeed(name, names, found.reason)
            else:
                for name in names:
                    yield PatchNeed(name, learned, found.reason)


def _interactions(plan: SeriesPlan) -> Iterator[InteractionAnswer]:
    pairs = plan.pairs()
    for pair in pairs:
        found = plan.together(pair)
        if found.effect is not None:
            effects = plan.kernels.with_mean(found.effect)
            yield InteractionAnswer(pair, effects, "these two alone, less what each does alone")
        else:
            effects = plan.kernels.with_mean(plan.leftovers()[0][pair[0]])
            why = f" ({found.reason})" if found.reason else ""
            yield InteractionAnswer(pair, effects, f"by what each leaves over{why}")
    texts = (
        "with later patches: left out it does otherwise",
        "with earlier patches: alone it does otherwise",
    )
    for side, leftovers in enumerate(plan.leftovers()):
        paired = {pair[side] for pair in pairs}
        for name, effect in leftovers.items():
            if name not in paired:
                yield InteractionAnswer((name,), plan.kernels.with_mean(effect), texts[side])


def _parts(plan: SeriesPlan) -> tuple[Combination, Combination]:
    """What all patches do, and what those that do something add up to."""
    explained = added(plan.effect(one) for one in plan.stretches if one.leaf is not Leaf.SAME)
    return minus(plan.everything, NOTHING), explained


def _proof(plan: SeriesPlan) -> Proof:
    pruned = sum(patch.pruned for patch in plan.candidates.values())
    if not pruned:
        return Proof(None, "nothing was ruled out")
    count = len(plan.order) - pruned
    needed = len(plan.kept) - count
    if not plan.proof_needed:
        return Proof(
            None, f"no proof: the patches that were kept do not apply without the {needed} others"
        )
    failed = plan.kernels.failed.get(plan.kept)
    with_them = f" and {needed} that they need to apply" if needed else ""
    kept = f"with the {count} patches that were kept{with_them} the path is"
    return plan.proof(
        f" fails: {failure_clause(failed)}" if failed else "",
        f"{kept} that of the whole series,",
        f"{kept} not that of the whole series",
        f"{pruned} others are searched, too",
    )


def _notes(plan: SeriesPlan) -> Iterator[str]:
    cleared = [one for one in plan.stretches if one.leaf is Leaf.SAME and len(one.inside) > 1]
    if cleared:
        count = sum(len(one.inside) for one in cleared)
        yield (
            f"{count} patches were cleared in stretches: effects that cancel in every function of "
            "one would not be seen"
        )
    ruled = [one for one in plan.stretches if not one.inside and one.low < one.high]
    moved = [
        one for one in ruled if not plan.kernels.same(plan.prefix(one.low), plan.prefix(one.high))
    ]
    if moved:
        names = [name for one in moved for name in plan.order[one.low : one.high]]
        yield f"the path differs before and after {few_of(names)}, which were ruled out"
    if plan.out_of_builds:
        yield f"the search ended after {plan.spent} builds, as it was asked to"
