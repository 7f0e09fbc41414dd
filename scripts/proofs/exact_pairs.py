#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats runs of all pairs on 2 and on 4 CPUs, half of them while QEMU is disturbed, and looks
whether they are equal.

    scripts/proofs/exact_pairs.py --out FOLDER --trials 40

Each trial is one run of the workload `pairs` from a kernel's snapshot. What disturbs it is drawn by
the trial's number. Trials with as many CPUs must be equal: the instructions of each iteration, and
the lines that CPUs contend for. Each leaves a line in FOLDER/trials.jsonl, and the next call goes
on after them. The exit code is 1 if any are unequal.
"""

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path

import msgspec
from trials import record, recorded

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kdelta.counts.conflicts import encode_conflicts  # noqa: E402
from kdelta.workloads.catalog import find_workload  # noqa: E402
from tests.machines.bench import NEW, guest  # noqa: E402
from tests.machines.digests import digests  # noqa: E402
from tests.machines.stress import KINDS, stressed  # noqa: E402
from tests.machines.test_conflicts import conflicts, run_pairs  # noqa: E402

CPUS = (2, 4)
PAIRS = tuple(operation.name for operation in find_workload("pairs").operations)


class Trial(msgspec.Struct, frozen=True):
    """A run: on how many CPUs, under what stress, how long it took, and hashes of what it counted
    and of what its CPUs contended for.
    """

    number: int
    cpus: int
    stress: str
    seconds: float
    counts: str
    conflicts: str


def made(number: int) -> Trial:
    """Make a trial."""
    cpus = CPUS[number % len(CPUS)]
    kind = random.Random(number).choice(KINDS) if number // len(CPUS) % 2 else "none"
    where = guest(NEW, cpus=cpus)
    began = time.monotonic()
    with stressed(kind, number):
        outcome, _ = run_pairs(*PAIRS, where=where)
    seconds = time.monotonic() - began
    assert outcome.counts
    lines = hashlib.sha256(encode_conflicts(tuple(conflicts(outcome).values()))).hexdigest()[:16]
    return Trial(number, cpus, kind, round(seconds, 1), digests(outcome.counts).counts, lines)


def main() -> int:
    """Make the trials that have no record, and return whether any are unequal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/exact-pairs")
    parser.add_argument("--trials", type=int, default=40)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    file = asked.out / "trials.jsonl"
    known = {one.number for one in recorded(file, Trial)}
    for number in range(asked.trials):
        if number not in known:
            trial = made(number)
            record(file, trial)
            print(f"{number}: {trial.cpus} CPUs, {trial.stress}, {trial.seconds} s", flush=True)
    found = recorded(file, Trial)
    unequal = False
    for cpus in CPUS:
        same = [one for one in found if one.cpus == cpus]
        kinds = {(one.counts, one.conflicts) for one in same}
        disturbed = sum(one.stress != "none" for one in same)
        print(f"{cpus} CPUs: {len(same)} runs, {disturbed} disturbed, {len(kinds)} results")
        unequal |= len(kinds) > 1
    return int(unequal)


if __name__ == "__main__":
    sys.exit(main())
