#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Count eight system calls in a boot without kdelta's plugin and agent, and compare.

    scripts/proofs/own_calls.py --cpu zen4 --cpu skylake-server --kernel SPEC

own: an init of its own (own_calls_init.c) on the same machine, by the time-stamp counter, which
goes on by one with each instruction: what the kernel does for a call, the commonest of 1,000, at
eight moments. counted: what kdelta says of the same operation, in the kernel, with the elements of
string operations. They have to be equal, to the instruction. Where a call has two figures (of a
clock: its nanoseconds and an offset carry over into a second, or not), the one that is counted has
to be one of them. A record a kernel and CPU.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from campaign import BUILD, NEW, OLD, Aloud, Proof, markdown
from compared import kernel_of

from kdelta.counts.model import merged_regions
from kdelta.cpus.catalog import load_cpu
from kdelta.guests.cpio import Entry, archive, file, folder
from kdelta.host.lock import work_folder
from kdelta.host.native import STATIC_FLAGS, NativeProgram, build_program
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import lab_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.machines.process import emulator
from kdelta.machines.snapshots import known_forcing
from kdelta.machines.tcg import Guest, qemu_argv
from kdelta.spec.errors import LabError
from kdelta.workloads.catalog import find_workload

CONSOLE, INIT_SECONDS = (5, 1), 600
OPERATIONS = (
    *("getppid", "gettimeofday-syscall", "clock_gettime-syscall", "uname"),
    *("read-zero-1b", "write-null-1b", "write-null-4k", "write-null-64k"),
)
LEAST_TIMES = 900
"""Of 1,000 calls, how many have the figure that counts."""


class Row(msgspec.Struct, frozen=True):
    """A call: instructions of the kernel and elements of strings, in both ways; of how many of
    1,000 calls the own figure is, at least.
    """

    operation: str
    own: tuple[int, ...]
    times: int
    counted: float


class Trial(msgspec.Struct, frozen=True):
    """A kernel as a CPU."""

    name: str
    rows: tuple[Row, ...]


async def by_kdelta(lab: Lab, kernel: Kernel) -> dict[str, float]:
    """Return what the plugin counts in the kernel, in the commonest iteration."""
    work = workload_work(find_workload("syscalls"), OPERATIONS, kernel)
    done = await lab.one(kernel, work, 0)
    if done.counts is None:
        raise LabError(f"run {done.run.id} ended with {done.run.word}: {done.run.detail}")
    regions = merged_regions(done.counts)
    found = {}
    for name in OPERATIONS:
        cost = regions[name].cost("own", kernel=True)
        found[name] = (cost.insns + cost.string_iterations) / regions[name].iteration_count
    return found


async def by_init(guest: Guest) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return what the init of its own says on that guest's machine: the figures, and of how many
    calls one is, at least.
    """
    init = build_program(
        NativeProgram("own_calls_init", Path(__file__).parent, ("own_calls_init.c",), STATIC_FLAGS)
    )
    console = Entry("dev/console", 0o020600, device=CONSOLE)
    image = archive([folder("dev"), console, file("init", init.read_bytes(), executable=True)])
    with work_folder() as place:
        (place / "initramfs").write_bytes(image)
        guest = msgspec.structs.replace(
            guest, initrd=str(place / "initramfs"), initrd_identity="", stop_address=0
        )
        argv = qemu_argv(guest, place, None, count=False)
        plugin = argv.index("-plugin")
        del argv[plugin : plugin + 2]
        forced = guest.forcing is not None and guest.forcing.array
        async with emulator(argv, place, INIT_SECONDS, debugged=bool(forced)) as qemu:
            if guest.forcing is not None and forced:
                await qemu.run_to(guest.forcing.start, 1)
                await guest.forcing.write(qemu.debugger)
                await qemu.debugger.let_go()
            await qemu.wait_exit()
        said = (place / "console").read_text(errors="replace")
    if "calls done" not in said:
        raise LabError("the init did not come to its end: " + said[-400:])
    found = re.findall(r"^call (\S+) (-?\d+) (\d+) -?\d+\r?$", said, re.MULTILINE)
    return {
        name: (
            tuple(sorted({int(mode) for one, mode, _ in found if one == name})),
            min(int(times) for one, _, times in found if one == name),
        )
        for name, _, _ in found
    }


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Trial]:
    """Count each call in both ways."""
    with open_store() as store:
        for name in names:
            spec, cpu = name.split(" as ")
            lab = Lab(store, Aloud(), lab_like(LabRequest(jobs=1), load_cpu(cpu)))
            kernel = kernel_of(lab, spec)
            counted = asyncio.run(by_kdelta(lab, kernel))
            guest = lab.guest(kernel)
            own = asyncio.run(by_init(known_forcing(guest) or guest))
            yield Trial(name, tuple(Row(one, *own[one], counted[one]) for one in OPERATIONS))


def wrong(found: Sequence[Trial]) -> Iterator[str]:
    """Yield what differs, and what is no figure."""
    for one in found:
        for row in one.rows:
            if row.counted not in row.own or len(row.own) > 2 or row.times < LEAST_TIMES:
                own = f"own {row.own} ({row.times} of 1000)"
                yield f"{one.name}: {row.operation}: {own}, counted {row.counted:g}"


def table(found: Sequence[Trial]) -> str:
    """Return what is counted."""
    rows = [(one.name, *(f"{row.counted:g}" for row in one.rows)) for one in found]
    return markdown(("kernel", *OPERATIONS), rows)


def options(parser: argparse.ArgumentParser) -> None:
    """Add which kernels and CPUs are looked at."""
    parser.add_argument("--kernel", action="append", help="a kernel spec; repeatable")
    parser.add_argument("--cpu", action="append", help="a CPU file; repeatable")


PROOF = Proof(
    record=Trial,
    file=BUILD / "own-calls/trials.jsonl",
    trials=lambda given: [
        f"{spec} as {cpu}"
        for spec in given.kernel or (OLD, NEW)
        for cpu in given.cpu or ("zen4", "skylake-server")
    ],
    make=made,
    wrong=wrong,
    answer=table,
    options=options,
)


if __name__ == "__main__":
    sys.exit(PROOF.main())
