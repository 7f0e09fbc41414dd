# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over a series found, with how it is known, and what it assumed."""

from collections.abc import Iterator

from kdelta.infer.effects.estimate import ZERO, Estimate
from kdelta.infer.effects.means import is_seen
from kdelta.infer.search.additive import Combination, added, difference
from kdelta.infer.search.search_model import InteractionAnswer, ProofAnswer, RegionSum
from kdelta.infer.search.search_words import listed
from kdelta.infer.search.series_model import (
    PatchAnswer,
    PatchFate,
    PatchGroup,
    PatchNeed,
    SeriesAnswer,
    View,
    ViewAnswer,
)
from kdelta.infer.search.series_plan import NOTHING, Leaf, PatchStretch, SeriesPlan, words_of


def answer_of(plan: SeriesPlan) -> SeriesAnswer:
    """All that is known at that point."""
    return SeriesAnswer(
        patches=tuple(_patch(plan, name) for name in plan.order),
        groups=tuple(_groups(plan)),
        needs=tuple(_needs(plan)),
        interactions=tuple(_interactions(plan)),
        sums=_sums(plan),
        proof=_proof(plan),
        builds=plan.spent,
        notes=tuple(_notes(plan)),
        mean=plan.kernels.mean_sum(*_parts(plan)),
    )


def _patch(plan: SeriesPlan, name: str) -> PatchAnswer:
    if name not in plan.searched:
        return PatchAnswer(name, PatchFate.RULED_OUT, "no executed code depends on it", {})
    stretch = next(one for one in plan.stretches if name in one.inside)
    effects = plan.kernels.with_mean(plan.effect(stretch))
    if stretch.leaf is Leaf.ONE:
        views = [_view(plan, view, (name,)) for view in (View.LEFT_OUT, View.ALONE)]
        text = "on top of all before it"
        return PatchAnswer(name, PatchFate.MEASURED, text, effects, views[0], views[1])
    others = len(stretch.inside) - 1
    if stretch.leaf is Leaf.SAME:
        nothing = {r: Estimate(ZERO, one.low, one.high, one.n) for r, one in effects.items()}
        text = f"the same is executed before it and {others} other{'s' * (others > 1)} and after"
        return PatchAnswer(name, PatchFate.CLEARED, text, nothing)
    if stretch.leaf is Leaf.GROUP:
        text = f"not split: {stretch.reason}"
        return PatchAnswer(name, PatchFate.TOGETHER, text, {})
    return PatchAnswer(name, PatchFate.UNRESOLVED, f"no builds are left ({plan.spent} made)", {})


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
                plan.with_dependents(names) if view is View.LEFT_OUT else plan.with_needs(names)
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
    later, earlier = plan.leftovers()
    firsts, seconds = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    yield from _lonely(plan, later, firsts, "with later patches: left out it does otherwise")
    yield from _lonely(plan, earlier, seconds, "with earlier patches: alone it does otherwise")


def _lonely(
    plan: SeriesPlan, leftovers: dict[str, Combination], paired: set[str], text: str
) -> Iterator[InteractionAnswer]:
    for name, effect in leftovers.items():
        if name not in paired:
            yield InteractionAnswer((name,), plan.kernels.with_mean(effect), text)


def _sums(plan: SeriesPlan) -> dict[str, RegionSum]:
    return plan.kernels.sums(*_parts(plan))


def _parts(plan: SeriesPlan) -> tuple[Combination, Combination]:
    """What all patches do, and what those that do something add up to."""
    explained = added(plan.effect(one) for one in plan.stretches if _is_explained(one))
    return difference(plan.everything, NOTHING), explained


def _is_explained(stretch: PatchStretch) -> bool:
    return stretch.leaf is not Leaf.SAME


def _proof(plan: SeriesPlan) -> ProofAnswer:
    pruned = [name for name in plan.order if plan.patches[name].pruned]
    if not pruned:
        return ProofAnswer(None, "nothing was ruled out")
    needed = len(plan.kept) - (len(plan.order) - len(pruned))
    if not plan.proof_needed:
        return ProofAnswer(
            None, f"no proof: the patches that were kept do not apply without the {needed} others"
        )
    if plan.kept in plan.kernels.failed:
        failed = words_of(plan.kernels.failed[plan.kept])
        return ProofAnswer(None, f"no proof: the kernel with all that was kept fails: {failed}")
    if plan.kept not in plan.kernels:
        return ProofAnswer(None, "no proof yet")
    parted = plan.kernels.estimates(difference(plan.everything, plan.kept))
    differing = {r: one for r, one in parted.items() if is_seen(one)}
    with_them = f" and {needed} that they need to apply" if needed else ""
    kept = f"the {len(plan.kept) - needed} patches that were kept{with_them}"
    if plan.proof_held:
        exact = all(one.exact and one.value == 0 for one in parted.values())
        how = "exactly" if exact else "within the spread of perturbations"
        return ProofAnswer(True, f"with {kept} the path is that of the whole series, {how}")
    return ProofAnswer(
        False,
        f"ruling out was wrong: with {kept} the path is not that of the whole series in "
        f"{len(differing)} regions; the {len(pruned)} others are searched, too",
        differing,
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
        yield f"the path differs before and after {listed(names)}, which were ruled out"
    if plan.out_of_builds:
        yield f"the search ended after {plan.spent} builds, as it was asked to"
