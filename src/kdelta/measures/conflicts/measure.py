# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs of a guest contend for, as a measure: accesses to lines that another CPU writes."""

from collections.abc import Iterable, Sequence

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.conflicts import Conflicts
from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.infer.conflicts.changes import (
    Contended,
    Contention,
    RegionChange,
    compare_all,
)
from kdelta.infer.conflicts.interrupts import sent_interrupts
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate, estimate
from kdelta.lab.attachments import CONFLICTS, conflicts_of
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.request import LabRequest
from kdelta.measures.conflicts.words import because
from kdelta.measures.model import Judgement, Measure, MeasureRequest, RunPair, RunSide
from kdelta.report.measured import Effect
from kdelta.store.model import Run
from kdelta.store.store import Store

_WORDS = {
    Contention.MORE: Word.SLOWER,
    Contention.MORE_OFTEN: Word.SLOWER,
    Contention.FEWER: Word.FASTER,
    Contention.LESS_OFTEN: Word.FASTER,
    Contention.OTHERS: Word.MIXED,
    Contention.PLACEMENT: Word.PLACEMENT_ONLY,
    Contention.SAME: Word.SAME,
    Contention.UNRESOLVED: Word.UNRESOLVED,
}


def of_request(asked: MeasureRequest) -> "CpuConflicts | None":
    """Return the measure, where guests have several CPUs."""
    return CpuConflicts() if asked.guest_cpus > 1 else None


class RecordedRegion(msgspec.Struct, frozen=True):
    """A region of a run that recorded accesses of its CPUs."""

    run: Run
    counts: RegionCounts
    conflicts: Conflicts

    @property
    def contended(self) -> Contended:
        """Return what CPUs contended for."""
        return Contended(self.conflicts, sent_interrupts(self.counts))


def recorded_regions(store: Store, done: Iterable[RunResult]) -> list[RecordedRegion]:
    """Return the regions of these runs, of those that went well and recorded accesses."""
    found = []
    for one in done:
        if one.counts is None or CONFLICTS not in one.run.attachments:
            continue
        regions = merged_regions(one.counts)
        found += [
            RecordedRegion(one.run, regions[conflicts.region], conflicts)
            for conflicts in conflicts_of(store, one.run)
            if conflicts.region in regions  # not the whole command where it marks regions
        ]
    return found


def contended_in(recorded: Iterable[RecordedRegion]) -> dict[str, list[Contended]]:
    """Return by region what CPUs contended for in each run."""
    return by_key((one.conflicts.region, one.contended) for one in recorded)


def _contended_of(store: Store, done: Iterable[RunResult]) -> dict[str, list[Contended]]:
    return contended_in(recorded_regions(store, done))


class CpuConflicts(Measure):
    """How often an iteration accesses lines that one CPU writes and another one accesses in each;
    interrupts that CPUs send each other count as an access each.
    """

    name = "conflicts"
    unit = "contended accesses"
    weighs = False  # what waiting costs is not known
    searched = True

    def recording(self, asked: LabRequest) -> LabRequest:
        return msgspec.structs.replace(asked, conflicts=True)

    def lacks(self, lab: Lab, side: RunSide) -> str:
        return "" if _contended_of(lab.store, side.done) else "no run recorded accesses of its CPUs"

    def judge(self, lab: Lab, pair: RunPair) -> Judgement | None:
        base, other = (_contended_of(lab.store, side.done) for side in (pair.base, pair.other))
        if not base or not other:
            return None
        wanted = base.keys() if pair.regions is None else pair.regions
        changes = compare_all([base[name] for name in wanted if name in base], other.values())
        return Judgement(
            self.found(_effect(one, base[one.region], other[one.region]) for one in changes)
        )

    def figures(self, lab: Lab, side: RunSide) -> dict[str, Estimate]:
        found = _contended_of(lab.store, side.done)
        return {name: estimate([one.accesses for one in runs]) for name, runs in found.items()}


def _effect(change: RegionChange, base: Sequence[Contended], other: Sequence[Contended]) -> Effect:
    ours, theirs = (estimate([one.accesses for one in runs]) for runs in (base, other))
    return Effect(
        region=change.region,
        word=_WORDS[change.contention],
        base=Interval(float(ours.low), float(ours.high)),
        other=Interval(float(theirs.low), float(theirs.high)),
        reason=because(change),
    )
