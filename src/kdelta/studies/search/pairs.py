# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures besides the path say of two kernels that a study has, as they are: nothing is built
for it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from kdelta.counts.model import RunCounts, only_region
from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.by_region import region_effect, region_runs
from kdelta.infer.effects.effects import FIRM, compare_runs
from kdelta.infer.search.search_model import FlipSet, JudgedPath
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.work import Work
from kdelta.measures.model import Judgement, Measure, RunPair, RunSide, measured
from kdelta.measures.path.judges import JudgedEffects
from kdelta.measures.path.measure import Path
from kdelta.measures.path.shared import are_alike
from kdelta.report.measured import MeasuredEffects


class PathOfPairs:
    """Compares kernels by the path of a workload; runs of one kernel serve all its pairs."""

    def __init__(self, work: Work, lab: Lab) -> None:
        self._path = Path(work, lab, states=False)
        self._lab = lab

    async def between(self, base: RunSide, other: RunSide) -> dict[str, JudgedPath]:
        """Return by region what compare says of the other kernel, without lookups by address."""
        judged = (await self._path.measure(self._lab, RunPair(base, other))).detail
        assert isinstance(judged, JudgedEffects)
        further = {one.operation: (one.base, one.other) for one in judged.more}
        sides = region_runs(base.counts), region_runs(other.counts)
        alike = are_alike(base.kernel, other.kernel)
        found = {}
        for one in judged.effects.operations:
            name, more = one.name, further.get(one.name, ((), ()))
            ours, theirs = (
                {**known.get(name, {}), **region_runs(_counts_of(name, its)).get(name, {})}
                for known, its in zip(sides, more, strict=True)
            )
            effect = region_effect(ours, theirs, alike=alike) if ours and theirs else None
            if effect is not None:
                code = {row.name: row.cost.effect.value for row in by_code(one)}
                found[name] = JudgedPath(effect, one.verdict.word in FIRM, code)
        return found


def _counts_of(region: str, done: Sequence[RunResult]) -> list[RunCounts]:
    return [only_region(one.counts, region) for one in done if one.counts is not None]


Pairs = Mapping[str, RunPair]
"""The runs of two kernels by workload."""


MeasuredPair = tuple[MeasuredEffects, ...]
"""What measures say of two kernels, their regions named as the study names them."""


class JudgedChanges(msgspec.Struct, frozen=True):
    """What measures say of each change that a study found, by its name; and what is to be known."""

    pairs: dict[str, MeasuredPair] = {}
    notes: tuple[str, ...] = ()

    def measured(self, name: str) -> MeasuredPair:
        """Return what measures say of a change; nothing where they were not asked."""
        return self.pairs.get(name, ())


class PairJudge:
    """Asks measures of pairs of kernels, of each pair once. Those on top of one kernel follow each
    other, so that a measure may keep what it knows of it.

    named  what a region of a workload is called
    """

    def __init__(
        self, measures: Sequence[Measure], lab: Lab, named: Callable[[str, str], str]
    ) -> None:
        self._measures = measures
        self._lab = lab
        self._named = named
        self._known: dict[tuple[str, str], MeasuredPair] = {}
        self._changes: dict[str, MeasuredPair] = {}

    @property
    def judged(self) -> JudgedChanges:
        """Return all that was asked. A note names the changes that it is about, unless that is
        all.
        """
        about: dict[str, list[str]] = {}
        for name, pair in self._changes.items():
            for note in dict.fromkeys(note for one in pair for note in one.notes):
                about.setdefault(note, []).append(name)
        notes = (
            note if len(names) == len(self._changes) else f"{', '.join(names)}: {note}"
            for note, names in about.items()
        )
        return JudgedChanges(dict(self._changes), tuple(notes))

    async def ask(self, name: str, pairs: Pairs, regions: Collection[str]) -> MeasuredPair:
        """Return what is known of a change: one kernel after another, in these regions."""
        key = next((_identities(pair) for pair in pairs.values()), ("", ""))
        if key not in self._known:
            self._known[key] = await self._between(pairs, regions)
        self._changes[name] = self._known[key]
        return self._known[key]

    async def _between(self, pairs: Pairs, regions: Collection[str]) -> MeasuredPair:
        found: dict[str, MeasuredEffects] = {}
        for workload, pair in pairs.items():
            every = await measured(self._measures, self._lab, pair)
            for measure, judged in zip(self._measures, every, strict=True):
                if judged is not None:
                    about = f"{workload}: " if len(pairs) > 1 else ""
                    more = self._as_named(judged, workload, about, regions)
                    known = found.get(measure.name)
                    found[measure.name] = _added(known, more) if known else more
        return tuple(found.values())

    def _as_named(
        self, judged: Judgement, workload: str, about: str, regions: Collection[str]
    ) -> MeasuredEffects:
        """Return effects as the study names their regions. about: stands before the notes."""
        named = [one.renamed(self._named(one.region, workload)) for one in judged.found.effects]
        return msgspec.structs.replace(
            judged.found,
            effects=tuple(one for one in named if one.region in regions),
            notes=tuple(f"{about}{note}" for note in judged.found.notes),
            left_out=tuple(self._named(name, workload) for name in judged.found.left_out),
            others=tuple(
                msgspec.structs.replace(one, region=self._named(one.region, workload))
                for one in judged.found.others
            ),
        )


def _identities(pair: RunPair) -> tuple[str, str]:
    base, other = (one.kernel.identity if one.kernel else "" for one in (pair.base, pair.other))
    return base, other


def _added(one: MeasuredEffects, more: MeasuredEffects) -> MeasuredEffects:
    return msgspec.structs.replace(
        one,
        effects=(*one.effects, *more.effects),
        notes=(*one.notes, *more.notes),
        left_out=(*one.left_out, *more.left_out),
        others=(*one.others, *more.others),
    )


def pairs_of(base: Mapping[str, RunSide], other: Mapping[str, RunSide]) -> dict[str, RunPair]:
    """Return the runs of two kernels, of the workloads that went well under both."""
    return {
        name: RunPair(
            one,
            other[name],
            compare_runs(
                one.counts, other[name].counts, alike=are_alike(one.kernel, other[name].kernel)
            ),
        )
        for name, one in base.items()
        if name in other
    }


def kernels_below(name: str, kernels: Collection[FlipSet]) -> FlipSet | None:
    """Return what is flipped in both of two kernels that differ by this one alone, as few as there
    can be; None without such kernels.
    """
    below = [flips for flips in kernels if name not in flips and flips | {name} in kernels]
    return min(below, key=lambda flips: (len(flips), sorted(flips)), default=None)


def not_known(measures: Sequence[Measure], why: str, of: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a note for each measure that was not asked, of these changes or of any."""
    which = f" of {', '.join(of)}" if of else ""
    return tuple(f"{measure.name} are not known{which}: {why}" for measure in measures)
