#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether an operation's figure is the same alone, in reverse order and in random orders.

    scripts/proofs/starts.py [TRIAL]...

Each trial runs the operations of `syscalls` on a kernel in another order and compares each region
with that of the whole table, to the instruction.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Iterator, Sequence

import msgspec
from campaign import CASES, NEW, OLD, Proof, near
from compared import kernel_of
from recorded_machine import RECORDED_LAB

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.progress import Silent
from kdelta.lab.work import workload_work
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.workloads.catalog import find_workload

KERNELS = {"6.1": OLD, "6.12": NEW}
ORDERS = ("alone", "random-0", "random-1", "random-2", "reverse")
SEED, LEAST_EQUAL = 1, 40
WORKLOAD = find_workload("syscalls")
REQUEST = msgspec.structs.replace(RECORDED_LAB, perturbations=1, rerun=True)
Counted = dict[str, RegionCounts]


class Record(msgspec.Struct, frozen=True):
    """A trial. differing: by operation that is not equal in all counts, instructions an iteration
    in the whole table and in the other order.
    """

    name: str
    kernel: str
    seed: int
    operations: int
    differing: dict[str, tuple[float, float]]


def runs_of(order: str) -> list[tuple[str, ...]]:
    """Return the operations of each run of an order."""
    table = tuple(one.name for one in WORKLOAD.operations)
    drawn = random.Random(SEED)
    shuffled = [tuple(drawn.sample(table, len(table))) for _ in range(3)]
    if order == "alone":
        return [(name,) for name in table]
    return [{"table": table, "reverse": table[::-1]}.get(order) or shuffled[int(order[-1])]]


async def counted(store: Store, kernel: Kernel, order: str) -> Counted:
    """Return the regions of an order's runs under perturbation 0."""
    lab, found = Lab(store, Silent(), REQUEST), Counted()
    for operations in runs_of(order):
        done = await lab.one(kernel, workload_work(WORKLOAD, operations, kernel), 0)
        if done.counts is None:
            raise LabError(f"run {done.run.id} ended with {done.run.word}: {done.run.detail}")
        found |= merged_regions(done.counts)
    return found


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Record]:
    """Run each order, and the whole table once a kernel."""
    tables: dict[str, Counted] = {}
    with open_store() as store:
        for name in names:
            series, order = name.split()
            kernel = kernel_of(Lab(store, Silent(), REQUEST), KERNELS[series])
            if series not in tables:
                tables[series] = asyncio.run(counted(store, kernel, "table"))
            found = asyncio.run(counted(store, kernel, order))
            differing = {
                one: (float(region.mean_own_insns()), float(found[one].mean_own_insns()))
                for one, region in tables[series].items()
                if region != found[one]
            }
            yield Record(name, kernel.spec, SEED, len(tables[series]), differing)


def wrong(found: Sequence[Record]) -> Iterator[str]:
    """Yield where too many operations differ, or one by more than 1 %."""
    for one in found:
        if one.operations - len(one.differing) < LEAST_EQUAL:
            yield f"{one.name}: {', '.join(one.differing)} differ"
        for name, (here, there) in one.differing.items():
            if not near(there, here, rel=0.01):
                yield f"{one.name}: {name} {here} and {there}"


PROOF = Proof(
    record=Record,
    file=CASES / "starts/records.jsonl",
    trials=lambda _: [f"{series} {order}" for series in KERNELS for order in ORDERS],
    make=made,
    wrong=wrong,
    summary=lambda one: str(one.differing or "all equal"),
)


def check_all_operations_are_in_each_order(found: Sequence[Record]) -> None:
    """Check the records, and what is run."""
    names = sorted(one.name for one in WORKLOAD.operations)
    assert {one.operations for one in found} == {len(names)}
    assert len({one.kernel for one in found}) == len(KERNELS)
    orders = {order: runs_of(order) for order in (*ORDERS, "table")}
    assert all(sorted(name for run in runs for name in run) == names for runs in orders.values())
    assert len({tuple(runs) for runs in orders.values()}) == len(orders)


if __name__ == "__main__":
    sys.exit(PROOF.main())
