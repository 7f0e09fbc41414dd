#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A router whose speed changes without a cause: the published tables, on a current kernel.

    scripts/proofs/router.py docs/cases/router

builds Linux 6.12 for a Cortex-A9 with functions aligned to nothing in particular, 32 and 64 bytes,
each as it is, with two chips more in a driver's table, and with PCRYPT; runs NAT on each, judges
what each step did, and predicts from one run of the first what the others miss. Then the spread
over random orders, and an order that is looked for, linked and measured. Kernels and runs are kept:
what was interrupted goes on where it was. docs/cases/README.md says what came out.
"""

import argparse
import asyncio
import itertools
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec
import numpy as np
from predict import layout_in, misses_in
from telling import Aloud, a_row_a_line

from kdelta.counts.model import merged_regions
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU
from kdelta.host.files import write_atomic
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import machine_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.measures.cycles.effects import Traced, traced_runs
from kdelta.measures.cycles.measure import cycles_of
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.layout.model import LayoutReport
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.study import run_layout
from kdelta.studies.place.model import PlaceReport
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place
from kdelta.workloads.catalog import find_workload

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "src/kdelta/workloads/nat/router.config"
CHIPS = ROOT / "docs/cases/router/two-chips.patch"
BASE = f"deb-src:linux-source-6.12 +ARCH=arm +{CONFIG} +sections"
CPU_NAME = "cortex-a9"
WORKLOAD = "nat"
TICK = 50  # misses between two labels of the plot
WIDTH, HEIGHT, PLOT, BINS = 640, 160, 210, 40  # of a plot: pixels, and bars
COLOURS = ("#1f2328", "#c2560b", "#0b5fc0", "#1a7f37", "#8250df", "#b3261e", "#9a6700")
OPERATIONS = ("udp-64b", "udp-1400b", "frames-64b")
ALIGNMENTS = (0, 32, 64)
"""Of functions, in bytes; 0: as the compiler likes them."""

CHANGES = {"": "", "two chips": f" +{CHIPS}", "PCRYPT": " +CONFIG_CRYPTO_PCRYPT=y"}
"""A change that no packet meets -> what asks for it."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A region in one kernel. insns: of own work, a packet. L1I misses a packet by LRU: measured
    while it ran; predicted from the run of the kernel of no alignment and no change, by where this
    kernel has its functions (None where it lacks some), and for an alignment alone by that, before
    anything was built (else None).
    """

    alignment: int
    change: str
    region: str
    insns: float
    measured: float
    predicted: float | None
    aligned: float | None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """From one kernel to another, for one region, as `compare --cycles` judges it: the path's
    effect in instructions a packet, that on model cycles as a fraction over all layouts, and how
    the two links themselves differ. misses, cycles_a_packet: of both links, with the CPU's own
    replacement; from the lowest prices to the highest. functions: whose instructions differ, and by
    how many.
    """

    base: str
    other: str
    region: str
    code: str
    path: str
    insns: tuple[float, float]
    cycles: str
    by_lru: str
    relative: tuple[float, float]
    shipped: tuple[float, float]
    misses: tuple[float, float]
    base_cycles: tuple[float, float]
    other_cycles: tuple[float, float]
    functions: dict[str, float]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of the study. spread, spread_by_lru: by region, L1I misses a packet in each
    random layout, as the CPU replaces and by LRU; shipped, shipped_by_lru: in the kernel's own.
    placed: by LRU as linked, and what the order was predicted and measured to have.
    """

    spec: str
    release: str
    cpu: str
    workload: str
    cells: tuple[Cell, ...] = ()
    steps: tuple[Step, ...] = ()
    spread: dict[str, tuple[float, ...]] = {}
    shipped: dict[str, float] = {}
    spread_by_lru: dict[str, tuple[float, ...]] = {}
    shipped_by_lru: dict[str, float] = {}
    placed: dict[str, tuple[float, float, float]] = {}


class Study:
    """All that is asked."""

    def __init__(self, cpu: CPU, store: Store) -> None:
        self.cpu = cpu
        self._store = store
        self._workload = find_workload(WORKLOAD)
        lab = LabRequest(jobs=2)
        self._lab = msgspec.structs.replace(lab, machine=machine_like(lab.machine, cpu))
        self.counted = cpu.least_recent.l1i  # what runs count is counted by LRU

    def kernel(self, spec: str) -> Kernel:
        """The kernel, built."""
        found = Lab(self._store, Aloud(), self._lab).kernel(spec)
        if isinstance(found, NoKernel):
            raise LabError(found.text)
        return found

    def traced(self, spec: str) -> Traced:
        """Its runs, the first of which is traced."""
        kernel = self.kernel(spec)
        work = workload_work(self._workload, OPERATIONS, kernel)
        found = asyncio.run(traced_runs([kernel], [work], Lab(self._store, Aloud(), self._lab)))[0]
        if found.placed is None:
            raise LabError(f"{spec} did not run: {found.done[0].run.detail}")
        return found

    def layout(self, cpu: CPU) -> LayoutReport:
        """The spread over random orders, and what alignment would do."""
        request = LayoutRequest(
            kernel=_spec(0, ""),
            cpu=cpu,
            workload=WORKLOAD,
            operations=OPERATIONS,
            lab=self._once,
        )
        return asyncio.run(run_layout(request, Lab(self._store, Aloud())))

    @property
    def _once(self) -> LabRequest:
        return LabRequest(perturbations=1)

    def cells(self) -> Iterator[Cell]:
        """All kernels, the regions of each."""
        base = self.traced(_spec(0, ""))
        report = self.layout(self.cpu.least_recent)
        alone = {
            (one.bytes, region.name): one.same_order["l1i"]
            for region in report.regions
            for one in region.aligned
        }
        for alignment in ALIGNMENTS:
            for change in CHANGES:
                found = self.traced(_spec(alignment, change))
                for cell in self._cells_of(base, found, alignment, change):
                    aligned = None if change else alone.get((alignment, cell.region))
                    yield msgspec.structs.replace(cell, aligned=aligned)

    def _cells_of(self, base: Traced, one: Traced, alignment: int, change: str) -> Iterator[Cell]:
        assert base.placed
        assert one.placed
        layout = layout_in(base.placed, one.placed.kernel).layout
        predicted = None if layout is None else misses_in(base.placed, layout, self.counted)
        counts = merged_regions(one.placed.counts)
        for region, misses in misses_in(one.placed, one.placed.shipped(), self.counted).items():
            packets = counts[region].iteration_count
            yield Cell(
                alignment=alignment,
                change=change,
                region=region,
                insns=counts[region].cost("own").insns / packets,
                measured=misses[0] / packets,
                predicted=predicted[region][0] / packets if predicted else None,
                aligned=None,
            )

    def steps(self) -> Iterator[Step]:
        """Each change under each alignment, and each alignment alone."""
        for alignment in ALIGNMENTS:
            others = [(alignment, change) for change in CHANGES if change]
            others += [(other, "") for other in ALIGNMENTS if not alignment and other]
            yield from self._judged((alignment, ""), others)

    def _judged(self, base: tuple[int, str], others: Sequence[tuple[int, str]]) -> Iterator[Step]:
        request = CompareRequest(
            base=_spec(*base),
            others=tuple(_spec(*one) for one in others),
            workload=WORKLOAD,
            operations=OPERATIONS,
            cpus=(self.cpu,),
            lab=LabRequest(jobs=2),
        )
        found = asyncio.run(run_compare(request, Lab(self._store, Aloud())))
        for name, one in zip(others, found, strict=True):
            yield from _steps_of(one, _name(*base), _name(*name))

    def placed(self, file: Path) -> PlaceReport:
        """An order that is looked for, linked and measured."""
        request = PlaceRequest(
            kernel=_spec(0, ""),
            cpu=self.cpu,
            file=file,
            workloads=(WORKLOAD,),
            operations=OPERATIONS,
            apply=True,
            lab=self._once,
        )
        return asyncio.run(run_place(request, Lab(self._store, Aloud())))


def _steps_of(found: Comparison, base: str, other: str) -> Iterator[Step]:
    judged = cycles_of(found.judged)
    if found.effects is None or judged is None:
        raise LabError(f"{base} and {other} did not both run")
    cycles = {one.region: one for one in judged.effects}
    for one in found.effects.operations:
        if one.costs is None or one.name not in cycles:
            raise LabError(f"{one.name} cannot be compared: {one.verdict.reason}")
        effect, on_cpu = one.costs.insns.effect, cycles[one.name]
        yield Step(
            base=base,
            other=other,
            region=one.name,
            code=judged.codes[one.name],
            path=one.verdict.word,
            insns=(float(effect.low), float(effect.high)),
            cycles=on_cpu.verdict.word,
            by_lru=on_cpu.lru.word if on_cpu.lru else "",
            relative=(on_cpu.relative.low, on_cpu.relative.high),
            shipped=(on_cpu.as_linked.relative.low, on_cpu.as_linked.relative.high),
            misses=(on_cpu.misses["l1i"].base.as_linked, on_cpu.misses["l1i"].other.as_linked),
            base_cycles=(on_cpu.hidden.base.as_linked, on_cpu.exposed.base.as_linked),
            other_cycles=(on_cpu.hidden.other.as_linked, on_cpu.exposed.other.as_linked),
            functions={
                its.name: float(its.cost.effect.value)
                for its in one.functions
                if its.cost.effect.value
            },
        )


def _spec(alignment: int, change: str) -> str:
    flag = f" +align:{alignment}" if alignment else ""
    return f"{BASE}{flag}{CHANGES[change]}"


def _name(alignment: int, change: str) -> str:
    words = [f"aligned to {alignment}" if alignment else "not aligned", change]
    return ", ".join(filter(None, words))


def main() -> None:
    """Asks all questions, keeps the answers, and prints the tables."""
    options = _options()
    cpu = load_cpu(CPU_NAME)
    with open_store() as store:
        study = Study(cpu, store)
        record = Record(
            spec=BASE.replace(f"{ROOT}/", ""),
            release=study.kernel(BASE).release,
            cpu=CPU_NAME,
            workload=WORKLOAD,
        )

        def keep(**fields: object) -> None:
            nonlocal record
            record = msgspec.structs.replace(record, **fields)
            write_atomic(options.folder / "router.json", a_row_a_line(record))

        report, by_lru = study.layout(cpu), study.layout(cpu.least_recent)
        keep(
            spread={one.name: one.draws["l1i"] for one in report.regions},
            shipped={one.name: one.misses["l1i"].as_linked for one in report.regions},
            spread_by_lru={one.name: one.draws["l1i"] for one in by_lru.regions},
            shipped_by_lru={one.name: one.misses["l1i"].as_linked for one in by_lru.regions},
        )
        keep(cells=tuple(study.cells()))
        keep(steps=tuple(study.steps()))
        with tempfile.TemporaryDirectory() as folder:
            applied = study.placed(Path(folder) / "router.order").applied
        regions = applied.regions if applied else ()
        keep(placed={one.name: (one.as_linked, one.predicted, one.measured) for one in regions})
    text = tables(record)
    write_atomic(options.folder / "tables.txt", text.encode())
    sys.stdout.write(text)
    plot(record, options.folder / "spread.svg")


def tables(record: Record) -> str:
    """The published tables, of the model: misses a packet, measured (and predicted)."""
    lines = []
    for region in sorted({one.region for one in record.cells}):
        lines.append(f"{region}, L1I misses a packet on {record.cpu}, measured (predicted)")
        lines.append("".join(f"{text:>26}" for text in ("", *(name or "-" for name in CHANGES))))
        for alignment in ALIGNMENTS:
            row = [f"{_name(alignment, ''):>26}"]
            for change in CHANGES:
                (cell,) = [
                    one
                    for one in record.cells
                    if (one.region, one.alignment, one.change) == (region, alignment, change)
                ]
                known = "?" if cell.predicted is None else f"{cell.predicted:.1f}"
                row.append(f"{f'{cell.measured:.1f} ({known})':>26}")
            lines.append("".join(row))
        lines.append("")
    lines += [
        f"{one.base} -> {one.other}: {one.region}: path {one.path} {one.insns[0]:+.2f} to "
        f"{one.insns[1]:+.2f} insns; model cycles {one.cycles}, as linked "
        f"{100 * one.shipped[0]:+.2f} to {100 * one.shipped[1]:+.2f} %, L1I misses "
        f"{one.misses[0]:.1f} to {one.misses[1]:.1f}"
        for one in record.steps
    ]
    for region, (shipped, predicted, measured) in record.placed.items():
        lines.append(
            f"{region}: L1I misses a packet {shipped:.1f} as linked, in the order that was found "
            f"{predicted:.1f} predicted, {measured:.1f} measured"
        )
    return "\n".join(lines) + "\n"


def plot(record: Record, file: Path) -> None:
    """The spread over random orders as histograms, with what was linked and measured, by LRU."""
    title = f"Random orders of Linux {record.release}: {WORKLOAD} on {record.cpu}, by LRU"
    drawn = [
        _histogram(record, region, PLOT * at) for at, region in enumerate(record.spread_by_lru)
    ]
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 20}" '
        f'height="{PLOT * len(drawn) + 30}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/><text x="10" y="18" font-size="13">'
        f"{escape(title)}</text>{''.join(drawn)}</svg>\n"
    )


def _histogram(record: Record, region: str, top: int) -> str:
    links = {"as linked": record.shipped_by_lru[region]}
    links |= {
        _name(one.alignment, one.change): one.measured
        for one in record.cells
        if one.region == region and (one.alignment or one.change == "PCRYPT")
        if not (one.alignment and one.change)
    }
    if region in record.placed:
        links["the order that was found"] = record.placed[region][2]
    draws = record.spread_by_lru[region]
    low, high = (end(*draws, *links.values()) for end in (min, max))
    counts, _ = np.histogram(draws, BINS, (low, high))
    bar, tall = WIDTH / BINS, HEIGHT / counts.max()

    def x(misses: float) -> float:
        return 10 + WIDTH * (misses - low) / (high - low)

    parts = [
        f'<rect x="{10 + bar * at:.1f}" y="{HEIGHT - count * tall:.1f}" width="{bar - 1:.1f}" '
        f'height="{count * tall:.1f}" fill="#9ab"/>'
        for at, count in enumerate(counts.tolist())
    ]
    for at, ((name, misses), colour) in enumerate(
        zip(links.items(), itertools.cycle(COLOURS), strict=False)
    ):
        parts.append(
            f'<path d="M{x(misses):.1f} 0V{HEIGHT}" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{WIDTH + 6}" y="{14 * (at + 1)}" text-anchor="end" fill="{colour}">'
            f"{escape(name)} {misses:.1f}</text>"
        )
    parts += [
        f'<text x="{x(tick):.1f}" y="{HEIGHT + 14}" text-anchor="middle">{tick}</text>'
        for tick in range(math.ceil(low / TICK) * TICK, int(high) + 1, TICK)
    ]
    parts.append(f'<text x="10" y="{HEIGHT + 28}">L1I misses a packet, {escape(region)}</text>')
    return f'<g transform="translate(0 {top + 30})">{"".join(parts)}</g>'


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="for router.json, tables.txt and spread.svg")
    return parser.parse_args()


if __name__ == "__main__":
    main()
