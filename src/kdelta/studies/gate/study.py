# SPDX-License-Identifier: GPL-2.0-or-later
"""Yes or no for CI and `git bisect run`: is the other kernel slower?"""

from collections.abc import Collection, Iterator
from fractions import Fraction

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.effects import OPEN, OperationEffect, Word
from kdelta.infer.effects.gate import Decision, Judged, decide, judge_path
from kdelta.lab.judges import NOT_IN_STATES
from kdelta.lab.lab import Lab
from kdelta.lab.work import Work
from kdelta.measures.cycles.cut import cut_note
from kdelta.store.model import Run
from kdelta.studies.compare.study import Comparison, RunSide, SameKernelError, run_compare
from kdelta.studies.gate.request import GateRequest

_NOT_SLOWER = frozenset({Word.FASTER, Word.SAME, Word.NOT_SLOWER, Word.UNRESOLVED})
"""Words by which, or by whose interval, a region passes: what has no price is in none of them."""


class GateAnswer(msgspec.Struct, frozen=True):
    """What a gate decided, all verdicts that it looked at, and the comparisons that these are from.
    `notes`: of regions whose trace was cut off, and how far what is reported of them is of their
    first part.
    """

    decision: Decision
    judged: tuple[Judged, ...]
    notes: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()


async def run_gate(request: GateRequest, lab: Lab) -> GateAnswer:
    """Compares, and decides. Raises what a comparison does."""
    asked = request.compare
    if request.left_out and asked.program is None:
        Work(asked.workload, request.left_out).check((asked.base, *asked.others))
    try:
        found = await run_compare(request.compare, lab)
    except SameKernelError as error:
        return GateAnswer(decide((), (error.message,)), ())
    judged = tuple(
        one
        for comparison in found
        for one in judge(
            _without(comparison, request.left_out), request.exact_margin, asked.path_margin
        )
    )
    failures = dict.fromkeys(text for comparison in found for text in failures_of(comparison))
    notes = dict.fromkeys(text for comparison in found for text in _notes(comparison))
    if request.left_out:
        notes[f"left out: {', '.join(request.left_out)}"] = None
    return GateAnswer(decide(judged, tuple(failures), request.mixed), judged, tuple(notes), found)


def judge(
    comparison: Comparison, exact: Fraction, margin: Fraction | None = None
) -> Iterator[Judged]:
    """The verdicts of a comparison as a gate sees them, those on larger effects first. The margins
    are those of `judge_path`.
    """
    if comparison.effects is None:
        return
    decided = _decided_by_cycles(comparison)
    for operation in sorted(comparison.effects.operations, key=_percent, reverse=True):
        if operation.verdict.reason == NOT_IN_STATES:
            yield Judged(operation.name, Word.UNRESOLVED, NOT_IN_STATES)
            continue
        judged = judge_path(operation, exact, margin)
        if judged.word is not Word.MIXED or operation.name not in decided:
            yield judged
    if comparison.cpu:
        effects = comparison.cycles.effects if comparison.cycles else ()
        for effect in sorted(effects, key=lambda one: -one.relative.low):
            yield _on_cycles(effect, comparison.cpu)
        yield from _without_cycles(comparison, comparison.cpu)


def _without(comparison: Comparison, names: Collection[str]) -> Comparison:
    """The comparison without the operations of these names."""
    effects, cycles = comparison.effects, comparison.cycles
    if effects is not None:
        kept = tuple(one for one in effects.operations if one.name not in names)
        effects = msgspec.structs.replace(effects, operations=kept)
    if cycles is not None:
        regions = tuple(one for one in cycles.effects if one.region not in names)
        cycles = msgspec.structs.replace(cycles, effects=regions)
    return msgspec.structs.replace(comparison, effects=effects, cycles=cycles)


def _decided_by_cycles(comparison: Comparison) -> set[str]:
    """Regions whose bytes of string operations the CPU's costs could weigh."""
    effects = comparison.cycles.effects if comparison.cycles else ()
    return {one.region for one in effects if one.verdict.word not in OPEN}


def failures_of(comparison: Comparison) -> Iterator[str]:
    """What could not be built, booted or run, in a line each."""
    for word, side in (("base", comparison.base), ("other", comparison.other)):
        yield from (f"{word}: {_first_line(text)}" for text in _failures(side))
    further: dict[str, str] = {}
    for more in comparison.more:
        for word, done in (("base", more.base), ("other", more.other)):
            for one in (one for one in done if one.counts is None):
                line = f"{word}, {more.operation}: {_first_line(_failure(one.run))}"
                further.setdefault(one.run.id, line)
    yield from further.values()


def _notes(comparison: Comparison) -> Iterator[str]:
    if comparison.cycles and comparison.cpu:
        for one in comparison.cycles.cut:
            yield f"on {comparison.cpu.name}, {cut_note(one)}"


def _failures(side: RunSide) -> Iterator[str]:
    if side.kernel is None:
        yield side.failure
    yield from (_failure(done.run) for done in side.done if done.counts is None)


def _failure(run: Run) -> str:
    return run.word + (f": {run.detail}" if run.detail else "")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _percent(operation: OperationEffect) -> Fraction:
    """By how much the path got longer; from zero to something is more than any per cent."""
    if operation.costs is None:
        return Fraction(0)
    part = operation.costs.insns.percent
    return operation.costs.insns.effect.value * 100 if part is None else part


def _on_cycles(effect: PlacementEffect, cpu: CPU) -> Judged:
    verdict, name = effect.verdict, f"{effect.region} on {cpu.name}"
    if verdict.word is Word.SLOWER:
        low, high = (f"{100 * end:+.3g}%" for end in (effect.relative.low, effect.relative.high))
        return Judged(f"{name} {low} to {high} model cycles", Word.SLOWER, name=name)
    reason = verdict.reason
    if verdict.layouts is not None:
        reason += f"; --layouts {verdict.layouts} would probably do"
    if (grows := effect.grows_unpriced) and verdict.word in _NOT_SLOWER:
        text = f"{', '.join(grows)}: more of it, and it has no price on {cpu.name}"
        return Judged(name, Word.UNRESOLVED, text)
    return Judged(name, verdict.word, reason, bounded=effect.within_bound)


def _without_cycles(comparison: Comparison, cpu: CPU) -> Iterator[Judged]:
    """The regions that both kernels have, and of whose model cycles nothing is known."""
    operations = comparison.effects.operations if comparison.effects else ()
    cycles = comparison.cycles
    known = {one.region for one in cycles.effects} if cycles else set()
    untraced = {one.name: one.verdict for one in cycles.cut if one.verdict} if cycles else {}
    for one in operations:
        if one.costs is not None and one.name not in known:
            verdict = untraced.get(one.name)
            reason = verdict.reason if verdict else "its model cycles are not known"
            yield Judged(f"{one.name} on {cpu.name}", Word.UNRESOLVED, reason)
