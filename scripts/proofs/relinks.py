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
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU
from kdelta.host.files import write_atomic
from kdelta.infer.effects import compare
from kdelta.infer.ensembles import DEFAULT_LAYOUTS
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
    """How often each word was said of a region in so many pairs. said: the regions of which
    something else than "same" was, with how often.
    """

    pairs: int = 0
    words: dict[str, int] = {}
    said: dict[str, dict[str, int]] = {}


class Same(msgspec.Struct, frozen=True):
    """All pairs of the links. cycles: verdicts on model cycles; unknown: the same if nobody knew
    that the code is equal.
    """

    path: Words
    cycles: Words
    unknown: Words


class Change(msgspec.Struct, frozen=True):
    """All pairs of a link of the kernel and one of the patched kernel.

    there: verdicts on the region that the patch adds work to; elsewhere: on all others. insns: the
    least and the largest effect on its path, an iteration. relative: the ends of all intervals of
    the effect on its model cycles, as a fraction.
    """

    patch: str
    region: str
    seeds: tuple[int, ...]
    insns: tuple[float, float]
    relative: tuple[float, float]
    path_there: Words
    cycles_there: Words
    path_elsewhere: Words
    cycles_elsewhere: Words


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of the proof."""

    spec: str
    workload: str
    operations: tuple[str, ...]
    cpu: str
    seeds: tuple[int, ...]
    release: str = ""
    predictions: tuple[Prediction, ...] = ()
    same: Same | None = None
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

    def same(self, links: Sequence[Traced]) -> Same:
        """What is said of all pairs of these, which are of the same objects."""
        path, cycles, unknown = _Count(), _Count(), _Count()
        for base, other in itertools.combinations(links, 2):
            path.add(path_words(base.counts, other.counts))
            judged = self.cycles(base, other)
            cycles.add(_cycle_words(judged.effects))
            unknown.add(_cycle_words(self._if_unknown(judged)))
            self._say(f"{path.pairs} pairs: {unknown.words()}")
        return Same(path.found(), cycles.found(), unknown.found())

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

    def change(
        self, patch: str, region: str, seeds: Sequence[int], links: Sequence[Traced]
    ) -> Change:
        """What is said of all pairs of a link of the kernel, and one with the patch and a seed."""
        there, elsewhere = [(_Count(), _Count()) for _ in range(2)]
        insns: list[float] = []
        relative: list[float] = []
        for seed in seeds:
            other = self.traced(self.linked(patch, seed))
            for base in links:
                cycles = self.cycles(base, other)
                words = path_words(base.counts, other.counts), _cycle_words(cycles.effects)
                for at, found in enumerate(words):
                    there[at].add({region: found[region]})
                    elsewhere[at].add({n: word for n, word in found.items() if n != region})
                insns += path_effect(base.counts, other.counts, region)
                for one in cycles.effects:
                    if one.region == region:
                        relative += [one.relative.low, one.relative.high]
            self._say(f"{patch}, {there[0].pairs} pairs: {there[1].words()}")
        return Change(
            patch=patch,
            region=region,
            seeds=tuple(seeds),
            insns=(min(insns), max(insns)),
            relative=(min(relative), max(relative)),
            path_there=there[0].found(),
            cycles_there=there[1].found(),
            path_elsewhere=elsewhere[0].found(),
            cycles_elsewhere=elsewhere[1].found(),
        )


class _Count:
    """Counts words."""

    def __init__(self) -> None:
        self.pairs = 0
        self._said: dict[str, Counter[str]] = {}

    def add(self, words: dict[str, str]) -> None:
        self.pairs += 1
        for region, word in words.items():
            self._said.setdefault(region, Counter())[word] += 1

    def words(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for said in self._said.values():
            total.update(said)
        return dict(sorted(total.items()))

    def found(self) -> Words:
        others = {name: dict(said) for name, said in self._said.items() if set(said) != {"same"}}
        return Words(self.pairs, self.words(), others)


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


def path_effect(
    base: Iterable[RunCounts], other: Iterable[RunCounts], region: str
) -> tuple[float, float]:
    """The ends of its effect's interval, instructions an iteration."""
    for one in compare(tuple(base), tuple(other)).operations:
        if one.name == region and one.costs is not None:
            effect = one.costs.insns.effect
            return float(effect.low), float(effect.high)
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
        proof = Proof(SPEC, record.operations, store, _say)
        plain = proof.traced(proof.linked())
        links = [proof.traced(proof.linked(seed=seed)) for seed in seeds]
        if "predict" in options.only and plain.placed:
            found = [
                one
                for seed, link in zip(seeds, links, strict=True)
                for one in proof.predictions(plain, link, seed)
            ]
            keep(predictions=tuple(found), release=plain.placed.kernel.release)
            _say(f"{sum(one.holds for one in found)} of {len(found)} predictions hold")
        if "same" in options.only:
            keep(same=proof.same(links))
        if "change" in options.only:
            keep(changes=tuple(proof.change(p, r, seeds, links) for p, r in CHANGES.items()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True, help="where the answers are kept")
    parser.add_argument("--links", type=int, default=12, help="how many seeds")
    parser.add_argument("--operations", nargs="*", default=(), help="of the workload; all")
    questions = ("predict", "same", "change")
    parser.add_argument("--only", nargs="*", choices=questions, default=questions)
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
