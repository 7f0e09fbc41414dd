# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether an operation's figure is the same alone, in reverse order and in random orders.

Each trial runs operations of `syscalls` in another order and compares each region with that of the
whole table, to the instruction. One JSON record a trial; trials that are there are not made again.
"""

import argparse
import asyncio
import json
import random
from pathlib import Path

import msgspec
from recorded_machine import RECORDED_LAB

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.work import workload_work
from kdelta.spec.errors import LabError
from kdelta.workloads.catalog import find_workload

WORKLOAD = "syscalls"
Counted = dict[str, RegionCounts]


def orders(operations: tuple[str, ...], seed: int) -> dict[str, list[tuple[str, ...]]]:
    """The trials: by name, which operations each of its runs has, in their order."""
    drawn = random.Random(seed)
    trials = {"table": [operations], "reverse": [tuple(reversed(operations))]}
    for number in range(3):
        trials[f"random-{number}"] = [tuple(drawn.sample(operations, len(operations)))]
    trials["alone"] = [(name,) for name in operations]
    return trials


async def counted(lab: Lab, kernel: Kernel, runs: list[tuple[str, ...]]) -> Counted:
    """The regions of these runs under perturbation 0."""
    found: Counted = {}
    for operations in runs:
        work = workload_work(find_workload(WORKLOAD), operations, kernel)
        done = await lab.one(kernel, work, 0)
        if done.counts is None:
            raise LabError(f"run {done.run.id} ended with {done.run.word}: {done.run.detail}")
        found |= merged_regions(done.counts)
    return found


def differing(table: Counted, found: Counted) -> dict[str, list[float]]:
    """By operation that is not equal in all counts: instructions an iteration in both."""
    return {
        name: [float(one.mean_own_insns()) for one in (region, found[name])]
        for name, region in table.items()
        if region != found[name]
    }


async def campaign(spec: str, out: Path, seed: int) -> None:
    """Makes what is missing."""
    operations = tuple(one.name for one in find_workload(WORKLOAD).operations)
    out.mkdir(parents=True, exist_ok=True)
    with open_store() as store:
        request = msgspec.structs.replace(RECORDED_LAB, perturbations=1, rerun=True)
        lab = Lab(store, Silent(), request)
        kernel = lab.kernel(spec)
        if not isinstance(kernel, Kernel):
            raise LabError(f"cannot get {spec}: {kernel.text}")
        trials = orders(operations, seed)
        table = await counted(lab, kernel, trials.pop("table"))
        for name, runs in trials.items():
            record = out / f"{kernel.release}-{name}.json"
            if not record.exists():
                found = differing(table, await counted(lab, kernel, runs))
                told = {"kernel": kernel.spec, "trial": name, "seed": seed}
                told |= {"operations": len(table), "differing": found}
                record.write_text(json.dumps(told, indent=1) + "\n")
            print(name, json.loads(record.read_text())["differing"] or "all equal", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel", help="a kernel spec")
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asyncio.run(campaign(asked.kernel, asked.out, asked.seed))
