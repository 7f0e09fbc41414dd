# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel as linked and the one that was relinked, by measures besides the path, which are
passed what the model predicted of the order.
"""

from collections.abc import Iterator, Sequence

import msgspec

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import MARGIN, Effects, OperationEffect, Verdict, Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.work import Work
from kdelta.measures.model import Judgement, Measure, RunPair, RunSide
from kdelta.measures.registry import measures_of
from kdelta.report.measured import Effect, MeasuredEffects
from kdelta.spec.errors import UserError
from kdelta.studies.layout.traced_kernel import TracedKernel
from kdelta.studies.place.model import Applied, PlacedRegion
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.together import prefix_of
from kdelta.studies.search.pairs import PairJudge, not_known, pairs_of


def place_measures(request: PlaceRequest, works: Sequence[Work]) -> list[Measure]:
    """Return the measures of what is run. UserError for a clock of which there is nothing to
    time.
    """
    request.timed.check()
    if request.timed.clock and not request.apply:
        raise UserError(
            "--clock times the kernel that --apply relinks, and --apply is not there",
            "add --apply, or leave out --clock",
        )
    return measures_of(request, works)


def must_measure(measures: Sequence[Measure], kernels: Sequence[Kernel], lab: Lab) -> None:
    """Raise UserError where these kernels cannot be measured here."""
    for measure in measures:
        measure.check(lab, kernels)


async def with_measures(
    done: Applied,
    measures: Sequence[Measure],
    kernels: tuple[TracedKernel, TracedKernel],
    predicted: Sequence[PlacedRegion],
    lab: Lab,
) -> Applied:
    """Return what the relinked kernel does with what measures say of it, and of the kernel as
    linked before it. predicted: what was of its regions.
    """
    if not done.regions:
        why = "the relinked kernel was not built, or did not run well"
        notes = not_known(measures, why)
        return msgspec.structs.replace(done, notes=(*done.notes, *notes))
    sides = [_sides(one) for one in kernels]
    names = tuple(sides[0])
    for measure in measures:
        measure.expect(lab.progress, len(names))
    judge = PairJudge(measures, lab, lambda region, workload: prefix_of(workload, names) + region)
    pairs = {
        name: _with_prediction(pair, prefix_of(name, names), predicted)
        for name, pair in pairs_of(*sides).items()
    }
    found = await judge.ask("relinked", pairs, [one.name for one in predicted])
    notes = (*done.notes, *judge.judged.notes)
    return msgspec.structs.replace(done, measured=found, notes=notes)


def _sides(kernel: TracedKernel) -> dict[str, RunSide]:
    return {
        done.run.workload: RunSide(kernel.spec, kernel.kernel, (done,), kernel.failure)
        for done in kernel.done
    }


def _with_prediction(pair: RunPair, prefix: str, predicted: Sequence[PlacedRegion]) -> RunPair:
    """Return a pair with the words of one exact run a side, and what the model predicted."""
    linked = (
        Effect(one.name.removeprefix(prefix), Word.PLACEMENT_ONLY, as_linked=predicted_change(one))
        for one in predicted
        if one.name.startswith(prefix)
    )
    model = Judgement(MeasuredEffects("model cycles", "model cycles", tuple(linked)))
    return msgspec.structs.replace(pair, path=_exact(pair.path), judged=(model,))


def _exact(path: Effects) -> Effects:
    """Return the effects of one run a side, each with a word of its own: a relinked kernel executes
    what it did but for lookups by address.
    """
    return msgspec.structs.replace(path, operations=tuple(_worded(path.operations)))


def _worded(operations: Sequence[OperationEffect]) -> Iterator[OperationEffect]:
    for one in operations:
        if one.base is None or one.other is None:
            yield one
            continue
        more = one.other.value - one.base.value
        word = Word.SLOWER if more > 0 else Word.FASTER
        word = Word.SAME if abs(more) <= MARGIN * one.base.value else word
        yield msgspec.structs.replace(one, verdict=Verdict(word))


def predicted_change(region: PlacedRegion) -> Interval:
    """Return the fraction by which model cycles were to change, for all costs of misses."""
    pairs = (
        (region.as_linked.low, region.predicted.low),
        (region.as_linked.high, region.predicted.high),
    )
    parts = [after / before - 1 if before else 0.0 for before, after in pairs]
    return Interval(min(parts), max(parts))
