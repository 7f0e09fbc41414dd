#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that is left to other tasks, planted: is it all counted?

    scripts/proofs/left_work.py [PATCH]...

Patches give each getppid 20,000 instructions of work: in the call, in a callback of RCU, and in a
kworker for 64 calls at a time. By `compare`'s figures, what a call executes itself and what it
leaves to others must be, within 2 %, all that the guest executes for it. That is counted in another
way: a program with regions of all tasks, one with the calls and one with none, for equal virtual
time.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from campaign import CASES, ROOT, Aloud, Proof, near
from compared import compared, effects_of, qemu_of

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import lab_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.store.store import Store

FOLDER = CASES / "left-work"
SMALL = f"deb-src:linux-source-6.12 +base:{CASES}/options/speed.config +sections"
PATCHES = ("now", "rcu", "batch")
CALLS = 4000
"""In left_work.c."""
PLANTED, NEAR = 20_000, 0.02
"""Instructions a call; and the part of the whole by which the two ways may differ."""


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
        """Return own work and what is left, of both kernels."""
        return self.own[0] + self.left[0], self.own[1] + self.left[1]

    @property
    def wholes(self) -> tuple[float, float]:
        """Return the means of all that the guests executed for a call."""
        base, other = self.whole
        return sum(base) / len(base), sum(other) / len(other)

    @property
    def off(self) -> float:
        """Return by which part the planted kernel's sum differs from all that was executed."""
        return self.sums[1] / self.wholes[1] - 1


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Record]:
    """Compare the small kernel with and without each patch, and run the program on both."""
    with open_store() as store:
        for patch in names:
            specs = (SMALL, f"{SMALL} +{FOLDER}/{patch}.patch")
            found = compared(store, *specs, operations=("getppid",))
            (row,) = effects_of(found)
            assert row.costs
            own, left = row.costs.insns, row.costs.left
            yield Record(
                *(patch, found.other.done[0].run.kernel_release, qemu_of(found)),
                *(row.verdict.word.value, row.verdict.reason, own.effect.n),
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


def wrong(found: Sequence[Record]) -> Iterator[str]:
    """Yield where what was planted is not counted."""
    for one in found:
        if abs(one.off) >= NEAR:
            yield f"{one.patch}: off by {100 * one.off:+.2f} %"
        before, after = one.own if one.patch == "now" else one.left
        if one.word != "slower" or not near(after - before, PLANTED, rel=NEAR):
            yield f"{one.patch}: {one.word} by {after - before:+.0f}"


def summary(one: Record) -> str:
    """Return what a call costs, by both ways."""
    return (
        f"{one.word} {one.reason}; own {one.own[0]:.0f} to {one.own[1]:.0f}, "
        f"left {one.left[0]:.0f} to {one.left[1]:.0f}; "
        f"all {one.wholes[0]:.0f} to {one.wholes[1]:.0f}; off {100 * one.off:+.2f} %"
    )


PROOF = Proof(
    record=Record,
    file=FOLDER / "records.jsonl",
    trials=lambda _: PATCHES,
    make=made,
    name_of=lambda one: one.patch,
    wrong=wrong,
    summary=summary,
)


def check_work_that_is_lost_is_wrong(found: Sequence[Record]) -> None:
    """Check that records without the planted work are wrong."""
    for one in found:
        lost = msgspec.structs.replace(one, left=(0.0, 0.0), own=one.own[:1] * 2)
        assert abs(lost.off) > NEAR
        assert len(list(wrong([lost]))) == 2


if __name__ == "__main__":
    sys.exit(PROOF.main())
