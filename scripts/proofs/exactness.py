#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats runs while QEMU is disturbed, and looks whether all of them are equal.

    scripts/proofs/exactness.py --traced 1000
    scripts/proofs/exactness.py --pairs 40

traced: a run of one operation from the kernel's snapshot, with its trace. pairs: one of all pairs
on 2 or 4 CPUs, half of them undisturbed. What disturbs a trial, its operation and its perturbation
are drawn by the seed and its number. Trials of one kernel, CPU, operation and perturbation, or with
as many CPUs, must be equal: to the last instruction of their traces; the instructions of each
iteration, and the lines that CPUs contend for. Of a traced trial that differs from the first of its
kind the plugin's file is kept. docs/exactness.md says what was found.
"""

import argparse
import asyncio
import hashlib
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from campaign import BUILD, Proof
from compared import kernel_of

from kdelta.counts.conflicts import encode_conflicts
from kdelta.cpus.catalog import load_cpu
from kdelta.guests.job import job_archive
from kdelta.host.lock import work_folder
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import machine_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_forcing, obtain_snapshot
from kdelta.machines.tcg import Guest, Recording, Setting, Snapshot, run_guest
from kdelta.spec.errors import LabError
from kdelta.spec.run import perturbation
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import NEW, guest
from tests.machines.digests import digests
from tests.machines.stress import KINDS, stressed
from tests.machines.test_conflicts import conflicts, run_pairs

SPEC = "deb:linux-image-cloud-amd64"
OPERATIONS = "mmap-touch-4k,mmap-touch-4k,pipe-round-trip,fork-exit-wait"
PERTURBATIONS, CPUS = 3, (2, 4)
SECONDS = 300.0

T = TypeVar("T")


class Trial(msgspec.Struct, frozen=True):
    """A run. Trials of one cell must have one result, hashes of what was counted; none if the run
    failed, and `detail` says why. Blocks need not be equal: QEMU ends them where its timers do.
    """

    name: str
    cell: tuple[str, ...]
    stress: str
    result: tuple[str, ...]
    blocks: str
    detail: str
    seconds: float


class Bench(msgspec.Struct, frozen=True):
    """The kernel, on its machine, and its snapshot."""

    kernel: Kernel
    guest: Guest
    snapshot: Snapshot


async def bench(options: argparse.Namespace) -> Bench:
    """Boot the kernel; raises LabError if it does not."""
    request = LabRequest()
    machine = machine_like(request.machine, load_cpu(options.cpu))
    with open_store() as store:
        lab = Lab(store, Silent(), msgspec.structs.replace(request, machine=machine))
        kernel = kernel_of(lab, options.kernel)
        found: Guest | GuestOutcome = lab.guest(kernel)
    with work_folder() as folder:
        setting = Setting(folder, SECONDS)
        if isinstance(found, Guest) and found.force:
            found = await obtain_forcing(found, setting)
        snapshot = await obtain_snapshot(found, setting) if isinstance(found, Guest) else found
    if isinstance(found, GuestOutcome) or isinstance(snapshot, GuestOutcome):
        raise LabError(f"{options.kernel} does not boot")
    return Bench(kernel, found, snapshot)


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Trial]:
    """Make trials of both kinds."""
    os.nice(10)
    first: dict[tuple[str, ...], tuple[str, ...]] = {}
    for one in PROOF.records(options.out.absolute() / PROOF.file.name):
        first.setdefault(one.cell, one.result)
    on = asyncio.run(bench(options)) if any(one.startswith("traced") for one in names) else None
    for name in names:
        kind, number = name.split()
        began = time.monotonic()
        if on and kind == "traced":
            one = asyncio.run(traced(on, name, int(number), options, first))
        else:
            one = pairs(name, int(number))
        first.setdefault(one.cell, one.result)
        yield msgspec.structs.replace(one, seconds=round(time.monotonic() - began, 2))


async def traced(
    on: Bench,
    name: str,
    number: int,
    options: argparse.Namespace,
    first: dict[tuple[str, ...], tuple[str, ...]],
) -> Trial:
    """Run an operation with its trace."""
    draw = random.Random(f"{options.seed} {number}")
    operation, turn = draw.choice(options.operations.split(",")), draw.randrange(PERTURBATIONS)
    cell, stress = (options.kernel, options.cpu, operation, str(turn)), draw.choice(options.stress)
    work = workload_work(find_workload("syscalls"), (operation,), on.kernel)
    job = msgspec.structs.replace(work.job, perturbation=perturbation(turn))
    with work_folder() as folder:
        setting = Setting(folder, SECONDS, recording=Recording("on"))
        try:
            with stressed(stress, options.seed + number):
                outcome = await run_guest(on.guest, job_archive(job), setting, on.snapshot)
        except LabError as error:  # such as a run that the plugin refused
            return Trial(name, cell, stress, (), "", str(error), 0)
        if outcome.status != "ok" or not outcome.counts:
            return Trial(name, cell, stress, (), "", outcome.detail, 0)
        found = digests(outcome.counts)
        result = (found.counts, found.trace)
        if first.get(cell, result) != result:
            shutil.copy(outcome.counts, options.out / f"{name.replace(' ', '-')}.counts")
    return Trial(name, cell, stress, result, found.blocks, outcome.detail, 0)


def pairs(name: str, number: int) -> Trial:
    """Run all pairs."""
    cpus = CPUS[number % len(CPUS)]
    stress = random.Random(number).choice(KINDS) if number // len(CPUS) % 2 else "none"
    every = tuple(operation.name for operation in find_workload("pairs").operations)
    with stressed(stress, number):
        outcome, _ = run_pairs(*every, where=guest(NEW, cpus=cpus))
    assert outcome.counts
    lines = hashlib.sha256(encode_conflicts(tuple(conflicts(outcome).values()))).hexdigest()[:16]
    found = digests(outcome.counts)
    result = (found.counts, lines)
    return Trial(name, (NEW, f"{cpus} CPUs"), stress, result, found.blocks, outcome.detail, 0)


def _most(found: Sequence[T]) -> T:
    return Counter(found).most_common(1)[0][0]


def wrong(found: Sequence[Trial]) -> Iterator[str]:
    """Yield the trials that failed, and those that are not as most of their cell are."""
    for cell in {one.cell for one in found}:
        ours = [one for one in found if one.cell == cell]
        for one in ours:
            if not one.result or one.result != _most([each.result for each in ours]):
                yield f"{one.name}: {' '.join(cell)}, {one.stress} {one.detail}"


def answer(found: Sequence[Trial]) -> str:
    """Return how many trials there are by what disturbed them."""
    lines = [f"{len(found)} trials of {len({one.cell for one in found})} cells"]
    lines += [f"{stress:12} {n:6}" for stress, n in Counter(one.stress for one in found).items()]
    cells = {one.cell: [each.blocks for each in found if each.cell == one.cell] for one in found}
    cut = sum(one.blocks != _most(cells[one.cell]) for one in found)
    return "\n".join([*lines, f"{cut} have blocks that end elsewhere, which changes no figure"])


def options(parser: argparse.ArgumentParser) -> None:
    """Add what traced trials are drawn from."""
    parser.add_argument("--kernel", default=SPEC, help="kernel to run")
    parser.add_argument("--cpu", default="zen2", help="CPU that the machine is like")
    parser.add_argument("--operations", default=OPERATIONS, help="to draw from")
    parser.add_argument("--stress", nargs="+", default=[*KINDS, "none"], help="to draw from")


PROOF = Proof(
    record=Trial,
    file=BUILD / "exactness/trials.jsonl",
    trials=lambda given: [
        *(f"traced {number}" for number in range(given.traced)),
        *(f"pairs {number}" for number in range(given.pairs)),
    ],
    make=made,
    wrong=wrong,
    summary=lambda one: f"{' '.join(one.cell)}, {one.stress}, {one.seconds} s",
    answer=answer,
    sizes={"traced": 0, "pairs": 0, "seed": 1},
    options=options,
)


def check_unequal_trials_and_failed_ones_are_wrong() -> None:
    """Check trials that are made up."""
    same = [
        Trial(f"traced {n}", ("k", "op"), "none", ("a", "b"), str(n), "", 1.0) for n in range(3)
    ]
    assert list(wrong(same)) == []
    odd = msgspec.structs.replace(same[0], name="traced 3", result=("a", "c"), stress="all")
    failed = msgspec.structs.replace(same[0], name="traced 4", result=(), detail="panic")
    assert list(wrong([*same, odd, failed])) == [
        "traced 3: k op, all ",
        "traced 4: k op, none panic",
    ]
    assert answer(same).endswith("2 have blocks that end elsewhere, which changes no figure")


if __name__ == "__main__":
    sys.exit(PROOF.main())
