# SPDX-License-Identifier: GPL-2.0-or-later
"""Two programs timed on this host, under the kernel that runs here."""

from collections.abc import Iterator, Sequence

import msgspec

from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.effects import OPEN, Effects, Word
from kdelta.infer.effects.gate import Judged
from kdelta.lab.options import TimedHere
from kdelta.lab.plan import COMMAND_REGION
from kdelta.lab.progress import Progress
from kdelta.measures.clock.boots import TimedKernels
from kdelta.measures.clock.fit import expected_by, fitted
from kdelta.measures.clock.here import TimedProgram, pairs_here
from kdelta.measures.clock.judged import NAME, UNIT, WHERE, timed_effects
from kdelta.measures.clock.settings import unset
from kdelta.report.measured import MeasuredEffects, judge_effect
from kdelta.spec.errors import KdeltaError

_LEAST_PAIRS = 2


class TimedPrograms(msgspec.Struct, frozen=True):
    """What was found, and what of the machine moves times."""

    found: MeasuredEffects
    warnings: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[Judged, ...]:
        """Return the verdicts as a gate sees them: of programs that were not timed that, too."""
        if not self.found.effects:
            why = self.found.notes[0]
            return (Judged(f"{COMMAND_REGION}{WHERE}", Word.UNRESOLVED, why),)
        return tuple(judge_effect(one, self.found) for one in self.found.effects)


def time_programs(
    programs: tuple[TimedProgram, TimedProgram],
    asked: TimedHere,
    path: Effects,
    progress: Progress,
) -> TimedPrograms:
    """Return the times of the old and the new program, in pairs of runs until all is decided, next
    to the verdicts on their paths. That one fails here is reported, and no error.
    """
    step = "time both programs here"
    progress.begin(step)

    def doing(words: str) -> None:
        progress.doing(step, words)

    timed, notes = None, []
    found = MeasuredEffects(NAME, UNIT, (), WHERE)
    try:
        with interruptible():
            for timed in pairs_here(programs, asked.most_pairs, doing):
                if len(timed.pairs) < _LEAST_PAIRS:
                    continue
                found = timed_effects(timed, float(asked.margin))
                if not any(one.word in OPEN for one in found.effects):
                    break
    except KdeltaError as error:
        notes.append(f"not timed: {error.message}")
        if timed is not None and found.effects:
            notes = [f"a pair was not timed, and is the last: {error.message}"]
    progress.end(step, f"{len(timed.pairs)} pairs of runs" if timed and found.effects else "failed")
    if timed is None or not found.effects:
        notes = notes or ["not timed: there is no region that both programs have"]
        return TimedPrograms(msgspec.structs.replace(found, notes=tuple(notes)))
    found = fitted(found, expected_by(path), float(asked.margin))
    notes += found.notes
    names = [one.name for one in path.operations]
    notes += _notes(timed, names, [one.region for one in found.effects])
    facts = timed.pairs[0].base.runs[0].facts
    found = msgspec.structs.replace(found, notes=tuple(notes))
    return TimedPrograms(found, tuple(unset(facts)))


def _notes(timed: TimedKernels, path: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    facts = timed.pairs[0].base.runs[0].facts
    model = f", {facts.cpu_model}" if facts.cpu_model else ""
    yield (
        f"timed on this host{model}, under {facts.release}, which runs here; {len(timed.pairs)} "
        "pairs of runs on one CPU, each in an order that was drawn"
    )
    if untimed := [one for one in path if one not in names]:
        yield (
            f"not timed on their own: {', '.join(untimed)}; -DKDELTA_TIMED makes a program time "
            "its regions"
        )
    if jumped := timed.jumped:
        yield f"left out where the clock jumped: {', '.join(jumped)}"
