# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of kernels that an ablation measured: A to B, and each option group that two of them
show.

Nothing is built for it. An option group whose effect was inferred from kernels with other option
groups flipped as well has a path effect only.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.search.search_model import FlipSet
from kdelta.lab.lab import TRACES, Lab, RunResult
from kdelta.lab.reports import merged_unlike, unlike
from kdelta.measures.cycles.comparable import comparable_cycles
from kdelta.measures.cycles.effects import Traced, cycles_between
from kdelta.measures.cycles.placement import placed_run
from kdelta.report.model import Mismatch
from kdelta.spec.errors import LabError
from kdelta.studies.ablate.model import GroupCycles
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.search.measure import Bench, MeasuredKernel

Kernels = Mapping[FlipSet, MeasuredKernel]
"""A, B, and what ran well between them, by the option groups that are flipped."""


class FoundCycles(msgspec.Struct, frozen=True):
    """Effects on model cycles: from A to B by region, and of each option group that they are known
    of; what A or B did otherwise than on the CPU; and what is to be known about them.
    """

    whole: dict[str, PlacementEffect]
    units: dict[str, GroupCycles]
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()


class CycleStudy:
    """Replays traced runs of pairs of kernels on a CPU. A kernel's traces are large: those of two
    are held at a time.
    """

    def __init__(self, request: AblateRequest, cpu: CPU, bench: Bench, lab: Lab) -> None:
        self._request = request
        self._cpu = cpu
        self._bench = bench
        self._lab = lab
        self._base: tuple[MeasuredKernel, dict[str, Traced]] | None = None
        self._notes: dict[str, None] = {}

    def find(self, kernels: Kernels, units: Sequence[str]) -> FoundCycles:
        """All that these kernels show; option groups: all of them, so that B is where they are
        flipped.
        """
        before, after = kernels[frozenset()], kernels[frozenset(units)]
        whole = self._between(before, after)
        pairs = {name: pair_of(name, kernels) for name in units}
        found = {}
        # Those on top of one kernel follow each other, and those on top of A are the first.
        for name, below in sorted(pairs.items(), key=lambda pair: _order(pair[1])):
            if below is None:
                continue
            more = kernels[below | {name}]
            is_whole = kernels[below] is before and more is after
            effects = whole if is_whole else self._between(kernels[below], more)
            found[name] = GroupCycles(tuple(sorted(below)), effects)
        return FoundCycles(whole, found, self._unlike(before, after), tuple(self._notes))

    def _between(self, base: MeasuredKernel, other: MeasuredKernel) -> dict[str, PlacementEffect]:
        if self._base is None or self._base[0] is not base:
            self._base = base, self._traced(base)
        ours, theirs = self._base[1], self._traced(other)
        found: dict[str, PlacementEffect] = {}
        for workload in (name for name in ours if name in theirs):
            with interruptible():
                cycles = cycles_between(
                    ours[workload],
                    theirs[workload],
                    self._cpu,
                    layouts=self._request.layouts,
                    margin=self._request.margin,
                    progress=self._lab.progress,
                )
            if cycles is None:
                continue
            sides = ours[workload].done, theirs[workload].done
            cycles = comparable_cycles(cycles, self._cpu, sides, self._lab.store)
            for effect in cycles.effects:
                name = self._bench.named(effect.region, workload)
                if name in base.regions:
                    found[name] = msgspec.structs.replace(effect, region=name)
            self._notes.update(dict.fromkeys(cycles.notes))
        return found

    def _traced(self, measured: MeasuredKernel) -> dict[str, Traced]:
        """By workload; of which none was traced, that is left out."""
        if measured.kernel is None:
            raise LabError(f"{measured.label} is no kernel", "please report this")
        found = {}
        for workload, done in _by_workload(measured).items():
            recorded = next((one for one in done if TRACES in one.run.attachments), None)
            if recorded is not None:
                with interruptible():
                    placed = placed_run(measured.kernel, recorded, self._lab.store)
                found[workload] = Traced(done, placed)
        return found

    def _unlike(self, before: MeasuredKernel, after: MeasuredKernel) -> tuple[Mismatch, ...]:
        """What both did otherwise is reported once."""
        return merged_unlike(
            msgspec.structs.replace(
                one, regions=tuple(self._bench.named(region, workload) for region in one.regions)
            )
            for who, end in (("A", before), ("B", after))
            for workload, done in _by_workload(end).items()
            for one in unlike(self._cpu, done[0], self._lab.store, who)
        )


def pair_of(unit: str, kernels: Kernels) -> FlipSet | None:
    """The option groups that are flipped in both of two kernels which differ by this one alone, as
    few as there can be; None without such kernels.
    """
    below = [flips for flips in kernels if unit not in flips and flips | {unit} in kernels]
    return min(below, key=_order, default=None)


def _order(flips: FlipSet | None) -> tuple[int, list[str]]:
    return len(flips or ()), sorted(flips or ())


def _by_workload(measured: MeasuredKernel) -> dict[str, tuple[RunResult, ...]]:
    """The runs that went well."""
    names = dict.fromkeys(one.run.workload for one in measured.done if one.counts is not None)
    return {
        name: tuple(one for one in measured.done if one.counts and one.run.workload == name)
        for name in names
    }
