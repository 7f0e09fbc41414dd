#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that is left to other tasks, planted: is it all counted?

    scripts/proofs/left_work.py

Patches give each getppid 20,000 instructions of work: in the call, in a callback of RCU, and in a
kworker for 64 calls at a time. By `compare`'s figures, what a call executes itself and what it
leaves to others must be, within 2 %, all that the guest executes for it. That is counted in another
way: a program with regions of all tasks, one with the calls and one with none, for equal virtual
time. One JSON record a patch; those that are there are not made again.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from telling import Aloud, a_row_a_line

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.host.files import write_atomic
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import lab_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/cases/left-work"
SMALL = f"deb-src:linux-source-6.12 +base:{ROOT}/docs/cases/options/speed.config +sections"
PATCHES = ("now", "rcu", "batch")
CALLS = 4000
"""In left_work.c."""
NEAR = 0.02
"""The part of the whole by which the two ways may differ."""


class Record(msgspec.Struct, frozen=True):
    """A patch, in instructions a call: the word and the effect on own work and on what is left;
    and all of the guest's beyond an idle one's, of both kernels and by each run.
    """

    patch: str
    release: str
    qemu: str
    word: str
    reason: str
    n: int
    own: tuple[float, float]
    left: tuple[float, float]
    whole: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def sums(self) -> tuple[float, float]:
        """Own work and what is left, of both kernels."""
        return self.own[0] + self.left[0], self.own[1] + self.left[1]

    @property
    def wholes(self) -> tuple[float, float]:
        """The means of all that the guests executed for a call."""
        base, other = self.whole
        return sum(base) / len(base), sum(other) / len(other)

    @property
    def off(self) -> float:
        """By which part the planted kernel's sum differs from all that was executed."""
        return self.sums[1] / self.wholes[1] - 1


def measured(patch: str, store: Store) -> Record:
    """Compare the small kernel with and without the patch, and run the program on both."""
    specs = (SMALL, f"{SMALL} +{FOLDER}/{patch}.patch")
    request = CompareRequest(base=specs[0], others=specs[1:], operations=("getppid",))
    (found,) = asyncio.run(run_compare(request, Lab(store, Aloud())))
    if found.effects is None:
        raise LabError(f"{specs[1]}: one side did not run; kdelta runs lists its runs")
    (row,) = found.effects.operations
    assert row.costs
    own, left = row.costs.insns, row.costs.left
    run = found.other.done[0].run
    return Record(
        patch,
        run.kernel_release,
        str(run.machine["qemu"]),
        row.verdict.word.value,
        row.verdict.reason,
        own.effect.n,
        (_rounded(own.base.value), _rounded(own.other.value)),
        (_rounded(left.base.value), _rounded(left.other.value)) if left else (0.0, 0.0),
        asyncio.run(_wholes(specs, store)),
    )


def _rounded(value: object) -> float:
    return round(float(value), 2)  # type: ignore[arg-type]


async def _wholes(
    specs: tuple[str, str], store: Store
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "left_work"
        source = Path(__file__).with_suffix(".c")
        include = f"-I{ROOT}/native/include"
        subprocess.run(["gcc", "-O2", "-static", include, "-o", path, source], check=True)
        lab = Lab(store, Aloud(), lab_like(LabRequest(), None))
        found = [lab.kernel(spec) for spec in specs]
        kernels = [one for one in found if isinstance(one, Kernel)]
        work = Work(program=Program((str(path),), find=False))
        runs = await lab.runs(kernels, [work.plan(kernel) for kernel in kernels])
    base, other = (
        tuple(_whole(merged_regions(one.counts)) for one in done if one.counts) for done in runs
    )
    return base, other


def _whole(regions: dict[str, RegionCounts]) -> float:
    """What a guest executed for a call, beyond what an idle one did."""
    calls, idle = (
        sum(row.cost.insns for row in regions[name].functions) for name in ("calls", "idle")
    )
    return round((calls - idle) / CALLS, 2)


def records(folder: Path) -> list[Record]:
    """Those that are kept."""
    paths = sorted(folder.glob("*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=Record) for path in paths]


def summary(one: Record) -> str:
    """Two lines: what a call costs, by both ways."""
    return (
        f"{one.patch}: {one.word} {one.reason}\n"
        f"  own {one.own[0]:.0f} to {one.own[1]:.0f}, left {one.left[0]:.0f} to {one.left[1]:.0f};"
        f" all {one.wholes[0]:.0f} to {one.wholes[1]:.0f}; off {100 * one.off:+.2f} %"
    )


def main() -> int:
    """Measures what is missing; 1 if the two ways differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    with open_store() as store:
        for patch in PATCHES:
            path = words.out / f"{patch}.json"
            if not path.exists():
                write_atomic(path, a_row_a_line(measured(patch, store)))
    found = records(words.out)
    print("\n".join(map(summary, found)))
    return int(any(abs(one.off) > NEAR for one in found))


if __name__ == "__main__":
    sys.exit(main())
