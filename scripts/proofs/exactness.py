#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats traced runs while QEMU is disturbed, and looks whether all of them are equal.

    scripts/proofs/exactness.py --out FOLDER --trials 1000

Each trial is one run of one operation from the kernel's snapshot. What disturbs it, the operation
and the perturbation are drawn by the seed and the trial's number. A trial's record is a file of its
own in FOLDER, so a campaign that was interrupted goes on where it was; of a trial that differs from
the first of its kind the plugin's file is kept as well. Trials of one operation and
perturbation must be equal to the last instruction of their traces; the exit code is 1 if any are
not. docs/exactness.md says what was found.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TypeVar

import msgspec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kdelta.cpus.catalog import load_cpu  # noqa: E402
from kdelta.guests.job import job_archive  # noqa: E402
from kdelta.host.files import write_atomic  # noqa: E402
from kdelta.host.lock import work_folder  # noqa: E402
from kdelta.kernels.kbuild.failure import NoKernel  # noqa: E402
from kdelta.kernels.model import Kernel  # noqa: E402
from kdelta.lab.cpus import machine_like  # noqa: E402
from kdelta.lab.lab import Lab, open_store  # noqa: E402
from kdelta.lab.progress import Silent  # noqa: E402
from kdelta.lab.request import LabRequest  # noqa: E402
from kdelta.lab.work import workload_work  # noqa: E402
from kdelta.machines.outcome import GuestOutcome  # noqa: E402
from kdelta.machines.snapshots import obtain_forcing, obtain_snapshot  # noqa: E402
from kdelta.machines.tcg import Guest, Recording, Setting, Snapshot, run  # noqa: E402
from kdelta.spec.errors import LabError  # noqa: E402
from kdelta.spec.run import perturbation  # noqa: E402
from kdelta.workloads.catalog import find_workload  # noqa: E402
from tests.machines.digests import Digests, digests  # noqa: E402
from tests.machines.stress import KINDS, stressed  # noqa: E402

SPEC = "deb:linux-image-cloud-amd64"
OPERATIONS = ("mmap-touch-4k", "mmap-touch-4k", "pipe-round-trip", "fork-exit-wait")
PERTURBATIONS = 3
SECONDS = 300.0

T = TypeVar("T")


class Drawn(msgspec.Struct, frozen=True):
    """What a trial is."""

    kernel: str
    cpu: str
    operation: str
    perturbation: int
    stress: str

    @property
    def cell(self) -> tuple[str, ...]:
        """Trials of the same cell must be equal."""
        return (self.kernel, self.cpu, self.operation, str(self.perturbation))


class Trial(msgspec.Struct, frozen=True):
    """What came of it; digests: None if the run failed, and `detail` says why."""

    number: int
    seed: int
    drawn: Drawn
    digests: Digests | None
    detail: str
    seconds: float


class Bench(msgspec.Struct, frozen=True):
    """The kernel, on its machine, and its snapshot."""

    kernel: Kernel
    guest: Guest
    snapshot: Snapshot


def _drawn(options: argparse.Namespace, number: int) -> Drawn:
    draw = random.Random(f"{options.seed} {number}")
    return Drawn(
        kernel=options.kernel,
        cpu=options.cpu,
        operation=draw.choice(options.operations.split(",")),
        perturbation=draw.randrange(PERTURBATIONS),
        stress=draw.choice(options.stress.split(",")),
    )


async def _bench(options: argparse.Namespace) -> Bench:
    request = LabRequest()
    machine = machine_like(request.machine, load_cpu(options.cpu))
    with open_store() as store:
        lab = Lab(store, Silent(), msgspec.structs.replace(request, machine=machine))
        kernel = lab.kernel(options.kernel)
        if isinstance(kernel, NoKernel):
            sys.exit(kernel.text)
        guest = lab.guest(kernel)
    with work_folder() as folder:
        if guest.force:
            forced = await obtain_forcing(guest, Setting(folder, SECONDS))
            if isinstance(forced, GuestOutcome):
                sys.exit(f"{options.kernel} does not boot: {forced.detail}")
            guest = forced
        snapshot = await obtain_snapshot(guest, Setting(folder, SECONDS))
    if isinstance(snapshot, GuestOutcome):
        sys.exit(f"{options.kernel} does not boot: {snapshot.detail}")
    return Bench(kernel, guest, snapshot)


async def _trial(
    bench: Bench, drawn: Drawn, number: int, seed: int, *, first: Digests | None, kept: Path
) -> Trial:
    started = time.monotonic()
    work = workload_work(find_workload("syscalls"), (drawn.operation,), bench.kernel)
    job = msgspec.structs.replace(work.job, perturbation=perturbation(drawn.perturbation))
    with work_folder() as folder:
        setting = Setting(folder, SECONDS, recording=Recording("on"))
        found, detail = None, ""
        try:
            with stressed(drawn.stress, seed + number):
                outcome = await run(bench.guest, job_archive(job), setting, bench.snapshot)
            detail = outcome.detail
            if outcome.status == "ok" and outcome.counts:
                found = digests(outcome.counts)
                if first and found != first:
                    shutil.copy(outcome.counts, kept)
        except LabError as error:  # such as a run that the plugin refused
            detail = str(error)
    seconds = round(time.monotonic() - started, 2)
    return Trial(number, seed, drawn, found, detail, seconds)


def _result(trial: Trial) -> tuple[str, str] | None:
    """What must be equal. Blocks are not: they also end where the emulator's timers do."""
    return (trial.digests.counts, trial.digests.trace) if trial.digests else None


def _report(out: Path) -> bool:
    """Prints how many trials are equal to most of their cell, by stress; whether all are."""
    files = sorted(out.glob("trial-*.json"))
    trials = [msgspec.json.decode(file.read_bytes(), type=Trial) for file in files]
    cells = {trial.drawn.cell for trial in trials}
    usual = {cell: _most([_result(t) for t in trials if t.drawn.cell == cell]) for cell in cells}
    blocks = {cell: _most([t.digests for t in trials if t.drawn.cell == cell]) for cell in cells}
    counts = Counter((t.drawn.stress, _result(t) == usual[t.drawn.cell]) for t in trials)
    for stress in sorted({t.drawn.stress for t in trials}):
        print(f"{stress:12} {counts[stress, True]:6} equal {counts[stress, False]:6} unequal")
    wrong = [trial for trial in trials if _result(trial) != usual[trial.drawn.cell]]
    for trial in wrong:
        print(f"trial {trial.number}: {' '.join(trial.drawn.cell)} {trial.detail}")
    failed = sum(trial.digests is None for trial in trials)
    print(f"{len(trials)} trials, {len(cells)} cells: {len(wrong)} unequal, {failed} failed")
    cut = sum(t.digests != blocks[t.drawn.cell] for t in trials if t not in wrong)
    print(f"{cut} equal trials have blocks that end elsewhere, which changes no figure")
    return not (wrong or failed)


def _most(found: list[T]) -> T:
    return Counter(found).most_common(1)[0][0]


async def _campaign(options: argparse.Namespace) -> None:
    bench = await _bench(options)
    first: dict[tuple[str, ...], Digests] = {}
    for number in range(options.first, options.first + options.trials):
        file = options.out / f"trial-{number:06}.json"
        if file.exists():
            trial = msgspec.json.decode(file.read_bytes(), type=Trial)
        else:
            drawn = _drawn(options, number)
            known, kept = first.get(drawn.cell), file.with_suffix(".counts")
            trial = await _trial(bench, drawn, number, options.seed, first=known, kept=kept)
            write_atomic(file, msgspec.json.encode(trial) + b"\n")
        if trial.digests:
            first.setdefault(trial.drawn.cell, trial.digests)


def main() -> None:
    """Makes the trials that are missing, and reports on all that are in the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--trials", type=int, default=1000, help="number of trials")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is drawn")
    parser.add_argument("--kernel", default=SPEC, help="kernel to run")
    parser.add_argument("--cpu", default="zen2", help="CPU that the machine is like")
    parser.add_argument("--operations", default=",".join(OPERATIONS), help="to draw from")
    parser.add_argument("--stress", default=",".join((*KINDS, "none")), help="to draw from")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    os.nice(10)
    asyncio.run(_campaign(options))
    sys.exit(not _report(options.out))


if __name__ == "__main__":
    main()
