#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves on real relinks of one kernel that placement is predicted rightly, and verdicts hold.

    scripts/proofs/relinks.py --json docs/cases/relinks/relinks.json

links a kernel anew with some seeds and runs each link; runs and kernels are kept, so that what was
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

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU
from kdelta.host.files import write_atomic
from kdelta.infer.effects import compare
from kdelta.infer.ensembles import DEFAULT_LAYOUTS, Interval
from kdelta.infer.placement import placement_effects
from kdelta.infer.placement_model import DEFAULT_MARGIN, Code, PlacementEffect
from kdelta.infer.prices import prices_of
from kdelta.kernels.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.compare import workload_work
from kdelta.studies.cycles import Cycles, Traced, cycles_between, traced_runs
from kdelta.studies.lab import Lab, misses_of, open_store
from kdelta.studies.predict import layout_in, misses_in
from kdelta.studies.requests import LabRequest, Silent, machine_like
from kdelta.workloads.catalog import find_workload

SPEC = "deb-src:linux-source-6.12 +docs/cases/options/speed.config"
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
    """How often each word was said of a region in so many pairs. said: region -> what else than
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
    """All pairs of the links. cycles: verdicts on model cycles of these regions, all where none is
    named; unknown: the same if nobody knew that the code is equal. Paths are judged of all.
    """

    regions: tuple[str, ...] = ()
    path: Words = Words()
    cycles: Words = Words()
    unknown: Words = Words()


class Change(msgspec.Struct, frozen=True):
    """All pairs of a link of the kernel and one of the patched kernel.

    there: verdicts on the region that the patch adds work to; elsewhere: on all others. insns: the
    least and the largest effect on its path, an iteration. relative: the ends of all intervals of
    the effect on its model cycles, as a fraction. seeds: of the patched links.
    """

    patch: str
    region: str
    operations: tuple[str, ...]
    seeds: tuple[int, ...] = ()
    insns: tuple[float, float] = (math.inf, -math.inf)
    relative: tuple[float, float] = (math.inf, -math.inf)
    path_there: Words = Words()
    cycles_there: Words = Words()
    path_elsewhere: Words = Words()
    cycles_elsewhere: Words = Words()

    def and_of(
        self,
        path: Mapping[str, str],
        cycles: Mapping[str, str],
        insns: Interval,
        relative: Interval,
    ) -> "Change":
        """With one more pair: its words by region, and both effects."""
        return msgspec.structs.replace(
            self,
            insns=(min(self.insns[0], insns.low), max(self.insns[1], insns.high)),
            relative=(min(self.relative[0], relative.low), max(self.relative[1], relative.high)),
            path_there=self.path_there.and_of({self.region: path[self.region]}),
            cycles_there=self.cycles_there.and_of({self.region: cycles[self.region]}),
            path_elsewhere=self.path_elsewhere.and_of(self._elsewhere(path)),
            cycles_elsewhere=self.cycles_elsewhere.and_of(self._elsewhere(cycles)),
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
        say: Callable[[str], None],
        *,
        perturbations: int = 3,
        layouts: int = DEFAULT_LAYOUTS,
    ) -> None:
        self.cpu: CPU = load_cpu(CPU_NAME)
        self._spec = spec
        self._operations = operations
        self._store = store
        self._say = say
        self._layouts = layouts
        machine = machine_like(LabRequest().machine, self.cpu)
        self._lab = LabRequest(machine=machine, perturbations=perturbations, jobs=1)

    def linked(self, patch: str = "", seed: int | None = None) -> Kernel:
        """The kernel, patched or not, in the order of a seed; without one, as it is linked."""
        words = [self._spec, f"+{patch}" if patch else "", "+sections"]
        if seed is not None:
            words[-1] = f"+shuffle:{seed}"
        lab = Lab(self._lab, self._store, _Telling(self._say))
        found = lab.kernel(" ".join(word for word in words if word))
        if isinstance(found, NoKernel):
            raise LabError(found.text)
        return found

    def traced(self, kernel: Kernel) -> Traced:
        """Its runs, the first of which is traced; the misses that it had are measured, too."""
        self._say(f"runs of {kernel.spec}")
        work = workload_work(find_workload(WORKLOAD), self._operations, kernel)
        first = msgspec.structs.replace(
            self._lab, perturbations=1, trace=True, simulate=self.cpu.l1i
        )
        asyncio.run(Lab(first, self._store, Silent()).runs([kernel], [work]))
        found = asyncio.run(traced_runs(self._lab, self._store, Silent(), [kernel], [work]))[0]
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
        for found in misses_of(self._store, other.placed.run, self.cpu.l1i):
            sides = [regions[found.region] for regions in counts]
            yield Prediction(
                seed=seed,
                region=found.region,
                predicted=predicted[found.region][0],
                measured=found.misses[0],
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
        self._say(f"{sum(one.holds for one in found)} of {len(found)} predictions hold")
        return found

    def same(self, links: Sequence[Traced], known: Same) -> Iterator[Same]:
        """What is said of all pairs of these, which are of the same objects; after each pair that
        is not known yet.
        """
        pairs = itertools.combinations([_of_regions(one, known.regions) for one in links], 2)
        for base, other in itertools.islice(pairs, known.path.pairs, None):
            judged = self.cycles(base, other)
            known = Same(
                regions=known.regions,
                path=known.path.and_of(path_words(base.counts, other.counts)),
                cycles=known.cycles.and_of(_cycle_words(judged.effects)),
                unknown=known.unknown.and_of(_cycle_words(self._if_unknown(judged))),
            )
            self._say(f"{known.path.pairs} pairs: {known.unknown.words}")
            yield known

    def cycles(self, base: Traced, other: Traced) -> Cycles:
        """As `compare --cpu` finds them."""
        found = cycles_between(
            base,
            other,
            self.cpu,
            layouts=self._layouts,
            margin=DEFAULT_MARGIN,
            progress=Silent(),
        )
        if found is None:
            raise LabError("a kernel has no traced run")
        return found

    def _if_unknown(self, judged: Cycles) -> tuple[PlacementEffect, ...]:
        regions = [msgspec.structs.replace(one, code=Code.DIFFERENT) for one in judged.regions]
        return placement_effects(regions, prices_of(self.cpu), DEFAULT_MARGIN)

    def change(self, known: Change, seed: int, links: Sequence[Traced]) -> Change:
        """What is known of a change, and what is said of all pairs of these links and the patched
        kernel's with one more seed.
        """
        other = self.traced(self.linked(known.patch, seed))
        for base in links:
            cycles = self.cycles(base, other)
            (there,) = [one for one in cycles.effects if one.region == known.region]
            known = known.and_of(
                path_words(base.counts, other.counts),
                _cycle_words(cycles.effects),
                path_effect(base.counts, other.counts, known.region),
                there.relative,
            )
        self._say(f"{known.patch}, {known.cycles_there.pairs} pairs: {known.cycles_there.words}")
        return msgspec.structs.replace(known, seeds=(*known.seeds, seed))


def _of_regions(one: Traced, regions: Sequence[str]) -> Traced:
    """With the traces of these regions alone; no regions means all."""
    if one.placed is None or not regions:
        return one
    kept = [
        (trace, place)
        for trace, place in zip(one.placed.traces, one.placed.places, strict=True)
        if trace.region in regions
    ]
    placed = msgspec.structs.replace(
        one.placed, traces=tuple(t for t, _ in kept), places=tuple(p for _, p in kept)
    )
    return msgspec.structs.replace(one, placed=placed)


class _Telling(Silent):
    """Tells what takes long."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def say(self, line: str) -> None:
        self._say(line)


def path_words(base: Iterable[RunCounts], other: Iterable[RunCounts]) -> dict[str, str]:
    """region -> the verdict on its path."""
    effects = compare(tuple(base), tuple(other))
    return {one.name: str(one.verdict.word) for one in effects.operations}


def path_effect(base: Iterable[RunCounts], other: Iterable[RunCounts], region: str) -> Interval:
    """Of its effect, instructions an iteration."""
    for one in compare(tuple(base), tuple(other)).operations:
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
        write_atomic(options.json, msgspec.json.format(msgspec.json.encode(record)))

    with open_store() as store:
        if {"predict", "same"} & set(options.only):
            proof = Proof(SPEC, record.operations, store, _say)
            links = [proof.traced(proof.linked(seed=seed)) for seed in seeds]
        if "predict" in options.only:
            plain = proof.linked()
            keep(predictions=proof.all_predictions(plain, links, seeds), release=plain.release)
        if "same" in options.only:
            regions = tuple(options.regions)
            before = record.same if record.same.regions == regions else Same(regions)
            for same in proof.same(links, before):
                keep(same=same)
        if "change" in options.only:
            proof = Proof(SPEC, AROUND, store, _say)
            links = [proof.traced(proof.linked(seed=seed)) for seed in seeds]
            changes = {one.patch: one for one in record.changes}
            for seed, (patch, region) in itertools.product(
                seeds[: options.patched], CHANGES.items()
            ):
                change = changes.get(patch, Change(patch, region, AROUND))
                if seed not in change.seeds:
                    changes[patch] = proof.change(change, seed, links)
                    keep(changes=tuple(changes.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True, help="where the answers are kept")
    parser.add_argument("--links", type=int, default=12, help="how many seeds")
    parser.add_argument("--patched", type=int, default=12, help="how many of them with a patch")
    parser.add_argument("--operations", nargs="*", default=(), help="of the workload; all")
    parser.add_argument(
        "--regions", nargs="*", default=(), help="of which all pairs are judged; all"
    )
    questions = ("predict", "same", "change")
    parser.add_argument("--only", nargs="*", choices=questions, default=questions)
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
