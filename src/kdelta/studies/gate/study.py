# SPDX-License-Identifier: GPL-2.0-or-later
"""Yes or no for CI and `git bisect run`: is the other kernel slower?"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.effects import OPEN, OperationEffect, Word
from kdelta.infer.effects.gate import Decision, Judged, decide_gate, judge_path
from kdelta.lab.lab import Lab
from kdelta.lab.work import Work
from kdelta.measures.model import RunSide
from kdelta.measures.path.judges import NOT_IN_STATES
from kdelta.report.measured import MODEL_CYCLES, MeasuredEffects, judge_effect
from kdelta.store.model import Run
from kdelta.studies.compare.study import Comparison, SameKernelError, run_compare
from kdelta.studies.gate.request import GateRequest


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
        return GateAnswer(decide_gate((), (error.message,)), ())
    judged = tuple(
        one
        for comparison in found
        for one in judge(comparison, request.exact_margin, asked.judged_margin, request.left_out)
    )
    failures = dict.fromkeys(text for comparison in found for text in failures_of(comparison))
    notes = dict.fromkeys(text for one in found for of in one.judged for text in _notes(of.found))
    if request.left_out:
        notes[f"left out: {', '.join(request.left_out)}"] = None
    return GateAnswer(
        decide_gate(judged, tuple(failures), request.mixed), judged, tuple(notes), found
    )


def _notes(found: MeasuredEffects) -> Iterator[str]:
    """Yield what is to be known of a measure; of model cycles, what was not replayed."""
    if found.measure != MODEL_CYCLES:
        yield from found.notes
    for one in found.effects if found.measure == MODEL_CYCLES else ():
        if not one.base:
            yield f"{found.where.strip()}, {one.region}: not replayed: {one.reason}"


def judge(
    comparison: Comparison,
    exact: Fraction,
    margin: Fraction | None = None,
    left_out: Sequence[str] = (),
) -> Iterator[Judged]:
    """Yield the verdicts of a comparison as a gate sees them, those on larger effects first. The
    margins are those of `judge_path`; operations that are left out have none.
    """
    if comparison.effects is None:
        return
    operations = [one for one in comparison.effects.operations if one.name not in left_out]
    measured = [one.found.without(left_out) for one in comparison.judged]
    decided = {
        effect.region
        for one in measured
        for effect in one.effects
        if one.weighs and effect.word not in OPEN
    }
    for operation in sorted(operations, key=_percent, reverse=True):
        if operation.verdict.reason == NOT_IN_STATES:
            yield Judged(operation.name, Word.UNRESOLVED, NOT_IN_STATES)
            continue
        judged = judge_path(operation, exact, margin)
        # What a mixed operation has more of may be weighed by another measure.
        if judged.word is not Word.MIXED or operation.name not in decided:
            yield judged
    for found in measured:
        known = [one for one in found.effects if one.change or one.word not in OPEN]
        for effect in sorted(known, key=lambda one: -one.change.low if one.change else 0.0):
            yield judge_effect(effect, found)
        untold = {one.region: one.reason for one in found.effects if one not in known}
        names = {one.region for one in known} | set(found.left_out)
        for one in (one for one in operations if one.costs and one.name not in names):
            reason = untold.get(one.name) or f"its {found.measure} are not known"
            yield Judged(f"{one.name}{found.where}", Word.UNRESOLVED, reason)


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
