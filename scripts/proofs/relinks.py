#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves on real relinks of one kernel that placement is predicted rightly, and verdicts hold.

    scripts/proofs/relinks.py --json docs/cases/relinks/relinks.json

relinks a kernel with some seeds and runs each link; runs and kernels are kept, so that what was
interrupted goes on where it was. docs/proofs.md says what is looked at.
"""

import argparse
import asyncio
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from predict import layout_in, misses_in
from recorded_machine import RECORDED
from telling import a_row_a_line

from kdelta.counts.model import merged_regions
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU
from kdelta.host.files import write_atomic
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN, CodeChange, PlacementEffect
from kdelta.infer.cycles.prices import prices_of
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import machine_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.measures.cycles.effects import Cycles, Traced, traced_runs
from kdelta.measures.cycles.measure import cycles_of
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.workloads.catalog import find_workload

SPEC = "deb-src:linux-source-6.12 +base:docs/cases/options/speed.config"
CHANGES = {
    "docs/cases/relinks/chdir-slower.patch": "chdir",
    "docs/cases/relinks/close-same.patch": "open-close",
}
"""A patch -> the region that it adds work to."""

AROUND = ("getppid", "uname", "chdir", "open-close", "stat", "pipe-round-trip")
"""The operations that are run for these."""

WORKLOAD = "syscalls"
CPU_NAME = "generic-x86-64"
LEAST_LINES = 50
PART = 0.01
"""A prediction holds if it is wrong by no more than this part of the misses, or so many lines."""


class Prediction(msgspec.Struct, frozen=True, array_like=True):
    """The L1I misses of a region's own work in the link of a seed: predicted from the run of the
    kernel as it was linked, and measured in that link's own run. insns, interrupts: instructions of
    own work and of interrupts in both runs, that of the prediction first.
    """

    seed: int
    region: str
    predicted: int
    measured: int
    insns: tuple[int, int]
    interrupts: tuple[int, int]

    @property
    def off(self) -> int:
        """By how many lines it is wrong."""
        return abs(self.predicted - self.measured)

    @property
    def holds(self) -> bool:
        """Whether that is within the bound."""
        return self.off <= max(LEAST_LINES, PART * self.measured)


class Words(msgspec.Struct, frozen=True):
    """How often each word was given to a region in so many pairs. said: region -> what else than
    "same" was, and how often.
    """

    pairs: int = 0
    words: dict[str, int] = {}
    said: dict[str, dict[str, int]] = {}

    def and_of(self, words: Mapping[str, str]) -> "Words":
        """With those of one more pair: region -> word."""
        said = {name: Counter(known) for name, known in self.said.items()}
        for name, word in words.items():
            if word != "same":
                said.setdefault(name, Counter())[word] += 1
        return Words(
            pairs=self.pairs + 1,
            words=dict(sorted((Counter(self.words) + Counter(words.values())).items())),
            said={name: dict(known) for name, known in sorted(said.items())},
        )


class Same(msgspec.Struct, frozen=True):
    """All pairs of the links, as `compare` judges them. unknown: the verdicts on model cycles if
    without knowing that the code is equal. bases: the seeds whose pairs with all later ones are
    here.
    """

    bases: tuple[int, ...] = ()
    path: Words = Words()
    cycles: Words = Words()
    unknown: Words = Words()


class Change(msgspec.Struct, frozen=True):
    """All pairs of a link of the kernel and one of the patched kernel, as `compare` judges them.

    there: verdicts on the region that the patch adds work to; elsewhere: on all others. insns: the
    least and the largest effect on its path, an iteration. relative: the ends of all intervals of
    the effect on its model cycles, as a fraction. bases: seeds of the links without the patch.
    more: in how many pairs an operation was run alone, since chance might have made its
    verdict.
    """

    patch: str
    region: str
    operations: tuple[str, ...]
    bases: tuple[int, ...] = ()
    insns: tuple[float, float] = (math.inf, -math.inf)
    relative: tuple[float, float] = (math.inf, -math.inf)
    path_there: Words = Words()
    cycles_there: Words = Words()
    path_elsewhere: Words = Words()
    cycles_elsewhere: Words = Words()
    more: dict[str, int] = {}

    def and_of(self, found: Comparison) -> "Change":
        """With one more pair."""
        path, cycles = _path_words(found), _cycle_words(_cycles(found).effects)
        insns = _path_effect(found, self.region)
        (there,) = [one for one in _cycles(found).effects if one.region == self.region]
        more = Counter(self.more) + Counter(one.operation for one in found.more)
        return msgspec.structs.replace(
            self,
            insns=(min(self.insns[0], insns.low), max(self.insns[1], insns.high)),
            relative=(
                min(self.relative[0], there.relative.low),
                max(self.relative[1], there.relative.high),
            ),
            path_there=self.path_there.and_of({self.region: path[self.region]}),
            cycles_there=self.cycles_there.and_of({self.region: cycles[self.region]}),
            path_elsewhere=self.path_elsewhere.and_of(self._elsewhere(path)),
            cycles_elsewhere=self.cycles_elsewhere.and_of(self._elsewhere(cycles)),
            more=dict(sorted(more.items())),
        )

    def _elsewhere(self, words: Mapping[str, str]) -> dict[str, str]:
        return {name: word for name, word in words.items() if name != self.region}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of the proof."""

    spec: str
    workload: str
    operations: tuple[str, ...]
    cpu: str
    seeds: tuple[int, ...]
    release: str = ""
    predictions: tuple[Prediction, ...] = ()
    same: Same = Same()
    changes: tuple[Change, ...] = ()


class Proof:
    """Links one kernel with some seeds, and asks its questions of the links."""

    def __init__(
        self,
        spec: str,
        operations: tuple[str, ...],
        store: Store,
        log: Callable[[str], None],
        *,
        perturbations: int = 3,
    ) -> None:
        self.cpu: CPU = load_cpu(CPU_NAME)
        self._spec = spec
        self._operations = operations
        self._store = store
        self._log = log
        machine = machine_like(RECORDED, self.cpu)
        self._lab = LabRequest(machine=machine, perturbations=perturbations, jobs=1)

    def spec(self, patch: str = "", seed: int | None = None) -> str:
        """Of the kernel, patched or not, in the order of a seed; without one, as it is linked."""
        link = "+sections" if seed is None else f"+shuffle:{seed}"
        return " ".join(word for word in (self._spec, f"+{patch}" if patch else "", link) if word)

    def linked(self, seed: int | None = None) -> Kernel:
        """The kernel in the order of a seed; without one, as it is linked."""
        found = Lab(self._store, _Telling(self._log), self._lab).kernel(self.spec(seed=seed))
        if isinstance(found, NoKernel):
            raise LabError(found.text)
        return found

    def compared(self, base: str, others: Sequence[str]) -> tuple[Comparison, ...]:
        """Kernel specs, as `compare --cycles` judges them."""
        request = CompareRequest(
            base=base,
            others=tuple(others),
            workload=WORKLOAD,
            operations=self._operations,
            cpus=(self.cpu,),
            lab=self._lab,
        )
        found = asyncio.run(run_compare(request, Lab(self._store, _Telling(self._log))))
        for one in found:
            if one.effects is None or cycles_of(one.judged) is None:
                raise LabError(f"{one.base.spec} and {one.other.spec} did not both run")
        return found

    def traced(self, kernel: Kernel) -> Traced:
        """Its runs, the first of which is traced."""
        self._log(f"runs of {kernel.spec}")
        work = workload_work(find_workload(WORKLOAD), self._operations, kernel)
        found = asyncio.run(traced_runs([kernel], [work], Lab(self._store, Silent(), self._lab)))[0]
        if found.placed is None:
            raise LabError(f"{kernel.spec} did not run: {found.done[0].run.detail}")
        return found

    def predictions(self, base: Traced, other: Traced, seed: int) -> Iterator[Prediction]:
        """Of each region; only where its functions lie is taken of the other link."""
        if base.placed is None or other.placed is None:
            return
        layout = layout_in(base.placed, other.placed.kernel).layout
        if layout is None:
            raise LabError(f"{other.placed.kernel.spec} lacks functions that were executed")
        predicted = misses_in(base.placed, layout, self.cpu.l1i)
        counts = [merged_regions(side.placed.counts) for side in (base, other) if side.placed]
        measured = misses_in(other.placed, other.placed.shipped(), self.cpu.l1i)
        for region, misses in measured.items():
            sides = [regions[region] for regions in counts]
            yield Prediction(
                seed=seed,
                region=region,
                predicted=predicted[region][0],
                measured=misses[0],
                insns=(sides[0].cost("own").insns, sides[1].cost("own").insns),
                interrupts=(sides[0].cost("interrupts").insns, sides[1].cost("interrupts").insns),
            )

    def all_predictions(
        self, kernel: Kernel, links: Sequence[Traced], seeds: Sequence[int]
    ) -> tuple[Prediction, ...]:
        """Of each region of each link, from a run of this kernel."""
        base = self.traced(kernel)
        pairs = zip(seeds, links, strict=True)
        found = tuple(one for seed, link in pairs for one in self.predictions(base, link, seed))
        self._log(f"{sum(one.holds for one in found)} of {len(found)} predictions hold")
        return found

    def same(self, seeds: Sequence[int], known: Same) -> Iterator[Same]:
        """What is reported of all pairs of links of the same objects; after each seed that is
        paired with all later ones.
        """
        for number, seed in enumerate(seeds[:-1], 1):
            if seed in known.bases:
                continue
            path, cycles, unknown = known.path, known.cycles, known.unknown
            later = [self.spec(seed=one) for one in seeds[number:]]
            for found in self.compared(self.spec(seed=seed), later):
                path = path.and_of(_path_words(found))
                cycles = cycles.and_of(_cycle_words(_cycles(found).effects))
                unknown = unknown.and_of(_cycle_words(self._if_unknown(_cycles(found))))
            known = Same((*known.bases, seed), path, cycles, unknown)
            self._log(f"{path.pairs} pairs: {path.words}, {cycles.words}, {unknown.words}")
            yield known

    def _if_unknown(self, judged: Cycles) -> tuple[PlacementEffect, ...]:
        regions = [
            msgspec.structs.replace(one, code=CodeChange.DIFFERENT) for one in judged.regions
        ]
        return placement_effects(regions, prices_of(self.cpu), DEFAULT_MARGIN)

    def change(self, known: Change, base: int, patched: Sequence[int]) -> Change:
        """What is known of a change, and what is reported of the link of one seed more with each of
        these of the patched kernel.
        """
        others = [self.spec(known.patch, seed) for seed in patched]
        for found in self.compared(self.spec(seed=base), others):
            known = known.and_of(found)
        self._log(f"{known.patch}: {known.cycles_there.words}, {known.path_elsewhere.words}")
        return msgspec.structs.replace(known, bases=(*known.bases, base))


class _Telling(Silent):
    """Tells what takes long."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def log(self, line: str) -> None:
        self._log(line)


def _path_words(found: Comparison) -> dict[str, str]:
    """region -> the verdict on its path."""
    return (
        {one.name: str(one.verdict.word) for one in found.effects.operations}
        if found.effects
        else {}
    )


def _cycles(found: Comparison) -> Cycles:
    cycles = cycles_of(found.judged)
    if cycles is None:
        raise LabError(f"{found.other.spec} has no model cycles")
    return cycles


def _path_effect(found: Comparison, region: str) -> Interval:
    """Of its effect, instructions an iteration."""
    for one in found.effects.operations if found.effects else ():
        if one.name == region and one.costs is not None:
            effect = one.costs.insns.effect
            return Interval(float(effect.low), float(effect.high))
    raise LabError(f"{region} cannot be compared")


def _cycle_words(effects: Iterable[PlacementEffect]) -> dict[str, str]:
    return {one.region: str(one.verdict.word) for one in effects}


def main() -> None:
    """Asks all questions, or some of them, and keeps the answers."""
    options = _options()
    seeds = tuple(range(1, options.links + 1))
    record = Record(
        spec=SPEC,
        workload=WORKLOAD,
        operations=tuple(options.operations),
        cpu=CPU_NAME,
        seeds=seeds,
    )
    if options.json.is_file():
        known = msgspec.json.decode(options.json.read_bytes(), type=Record)
        if (known.seeds, known.operations) == (record.seeds, record.operations):
            record = known

    def keep(**fields: object) -> None:
        nonlocal record
        record = msgspec.structs.replace(record, **fields)
        write_atomic(options.json, a_row_a_line(record))

    with open_store() as store:
        proof = Proof(SPEC, record.operations, store, _log)
        if "predict" in options.only:
            links = [proof.traced(proof.linked(seed)) for seed in seeds]
            plain = proof.linked()
            keep(predictions=proof.all_predictions(plain, links, seeds), release=plain.release)
        if "same" in options.only:
            for same in proof.same(seeds, record.same):
                keep(same=same)
        if "change" in options.only:
            proof = Proof(SPEC, AROUND, store, _log)
            changes = {one.patch: one for one in record.changes}
            for seed, (patch, region) in itertools.product(seeds, CHANGES.items()):
                change = changes.get(patch, Change(patch, region, AROUND))
                if seed not in change.bases:
                    changes[patch] = proof.change(change, seed, seeds[: options.patched])
                    keep(changes=tuple(changes.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True, help="where the answers are kept")
    parser.add_argument("--links", type=int, default=12, help="how many seeds")
    parser.add_argument("--patched", type=int, default=12, help="how many of them with a patch")
    parser.add_argument("--operations", nargs="*", default=(), help="of the workload; all")
    questions = ("predict", "same", "change")
    parser.add_argument("--only", nargs="*", choices=questions, default=questions)
    return parser.parse_args()


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
