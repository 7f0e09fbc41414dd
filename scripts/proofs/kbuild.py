#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel compile on two kernels: what each function of the kernel gained and lost, by processes.

    scripts/proofs/kbuild.py --json docs/cases/kbuild/kbuild.json

runs the workload `kbuild` on both kernels: all objects for the listing, and few of them once more
with calls followed in the kernel, for what each process did. Runs are kept, so that what was
interrupted goes on where it was. docs/kbuild.md says what is looked at.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from recorded_machine import RECORDED
from telling import Aloud, a_row_a_line

from kdelta.counts.model import CONTEXTS, RegionCounts, merged_regions
from kdelta.host.files import write_atomic
from kdelta.infer.profiles.diff import DiffLine, diff_lines, figures_of
from kdelta.infer.profiles.processes import Processes
from kdelta.infer.profiles.profile import Part, Selection, Sort, region_profile
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.report.text import table_lines
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.processes.document import region_table
from kdelta.studies.processes.study import run_processes
from kdelta.workloads.catalog import find_workload

SPECS = ("deb:linux-image-cloud-amd64", "deb:linux-image-6.12-cloud-amd64")
OPERATION = "make-j1"
BY_PROCESS = "small-j1"
SHOWN = 30
"""Functions of the listing, those that changed most; the others are summed up."""

SECONDS = 7200.0
KERNEL = Selection(CONTEXTS, (Part.KERNEL, Part.MODULES))


class KbuildRuns(msgspec.Struct, frozen=True):
    """One kernel. insns: instructions by context and whether they are the kernel's; idle_ticks: of
    1 ns of the guest's clock.
    """

    spec: str
    release: str
    own_user: int
    own_kernel: int
    interrupts: int
    other: int
    idle_ticks: int

    @property
    def residency(self) -> int:
        """All that was executed in the kernel."""
        return self.own_kernel + self.interrupts + self.other


class Program(msgspec.Struct, frozen=True, array_like=True):
    """What a program's processes executed, and the kernel for them; how many of them ended."""

    program: str
    ended: int
    user: int
    kernel: int


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A function of the kernel or of a module: instructions in A and in B, of all contexts."""

    origin: str
    name: str
    a: int
    b: int


class Record(msgspec.Struct, frozen=True):
    """All of it: `lines`, most added first, of the sides of an operation; `small` and its
    programs, of BY_PROCESS on B.
    """

    operation: str
    sides: tuple[KbuildRuns, KbuildRuns]
    small: KbuildRuns
    programs: tuple[Program, ...]
    lines: tuple[Line, ...]


class Counted(msgspec.Struct, frozen=True):
    """A region of a run, its sums, and its processes, where calls were followed."""

    region: RegionCounts
    side: KbuildRuns
    processes: tuple[Processes, ...]


def side_of(kernel: Kernel, region: RegionCounts) -> KbuildRuns:
    """The sums of a region."""
    idle = region.idle_ticks()
    if idle is None:
        raise LabError("the guest did not tell its clock")
    return KbuildRuns(
        kernel.spec,
        kernel.release,
        own_user=region.cost("own", kernel=False).insns,
        own_kernel=region.cost("own", kernel=True).insns,
        interrupts=region.cost("interrupts", kernel=True).insns,
        other=region.cost("other", kernel=True).insns,
        idle_ticks=idle,
    )


def lines_of(a: RegionCounts, b: RegionCounts) -> tuple[DiffLine, ...]:
    """What each function of the kernel gained or lost."""
    figures = [figures_of([region_profile(one)], KERNEL, Sort.INSNS, each=False) for one in (a, b)]
    return diff_lines(figures[0], figures[1])


def programs_of(region: Processes) -> list[Program]:
    """The rows of all tasks."""
    return [
        Program(one.program, one.ended, one.user, one.kernel)
        for one in (*region.programs, *region.other)
    ]


class _Runs:
    """Runs of kernels, made or taken from the store."""

    def __init__(self, store: Store, *, again: bool) -> None:
        self._store = store
        self._again = again
        self._tell = Aloud()

    def one(self, spec: str, operation: str, calls: Literal["off", "kernel"]) -> Counted:
        """An operation of a kernel."""
        machine = msgspec.structs.replace(RECORDED, timeout_seconds=SECONDS)
        request = LabRequest(machine=machine, perturbations=1, calls=calls, rerun=self._again)
        lab = Lab(self._store, self._tell, request)
        kernel = lab.kernel(spec)
        if isinstance(kernel, NoKernel):
            raise LabError(kernel.text)
        work = workload_work(find_workload("kbuild"), (operation,), kernel, self._tell.log)
        done = asyncio.run(lab.one(kernel, work, 0))
        if done.counts is None:
            raise LabError(f"run {done.run.id}: {done.run.word}: {done.run.detail}")
        region = merged_regions(done.counts)[operation]
        return Counted(region, side_of(kernel, region), run_processes(done.run, self._store))


def made(operation: str, specs: Sequence[str], *, again: bool) -> tuple[Record, str]:
    """The record of two kernels, and the table by process."""
    with open_store() as store:
        runs = _Runs(store, again=again)
        a, b = (runs.one(spec, operation, "off") for spec in specs)
        small = runs.one(specs[1], BY_PROCESS, "kernel")
    return record_of(operation, a, b, small)


def record_of(operation: str, a: Counted, b: Counted, small: Counted) -> tuple[Record, str]:
    """The same of runs that were made."""
    lines = lines_of(a.region, b.region)
    record = Record(
        operation,
        (a.side, b.side),
        small.side,
        tuple(programs_of(small.processes[0])),
        tuple(Line(one.match.origin, one.match.name, int(one.a), int(one.b)) for one in lines),
    )
    table = [small.side.release, *table_lines(region_table(small.processes[0]))]
    return record, "".join(f"{line}\n" for line in table)


def listing(record: Record) -> str:
    """Added or removed, per cent of the function's own, name; most added first, what is not named
    between what added and what removed, the total last.
    """
    changed = [line for line in record.lines if line.a != line.b]
    ranked = sorted(changed, key=lambda line: -abs(line.b - line.a))
    named, rest = ranked[:SHOWN], ranked[SHOWN:]
    rows = [(line.b - line.a, line.a, _name(line)) for line in named]
    rows.sort(key=lambda row: -row[0])
    between = []
    for sign, word in ((1, "more"), (-1, "less")):
        group = [line for line in rest if sign * (line.b - line.a) > 0]
        summed = sum(line.b - line.a for line in group), sum(line.a for line in group)
        between.append((*summed, f"other functions, {word} ({len(group)})"))
    added = sum(row[0] > 0 for row in rows)
    rows[added:added] = between
    a, b = (side.residency for side in record.sides)
    if a + sum(row[0] for row in rows) != b:
        raise LabError("the listing does not add up to the kernels' residency")
    rows.append((b - a, a, "total"))
    return "".join(
        f"{added:>14,} {100 * added / own if own else 0:>8.1f}% {name}\n"
        for added, own, name in rows
    )


def _name(line: Line) -> str:
    return line.name if line.origin == "kernel" else f"{line.name} {line.origin}"


def main() -> int:
    """What was found, as text; and as JSON if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operation", default=OPERATION, help="what the listing is of")
    parser.add_argument("--json", type=Path, help="keep the record, and next to it the tables")
    parser.add_argument("--rerun", action="store_true", help="see that it repeats")
    parser.add_argument("specs", nargs="*", default=SPECS)
    words = parser.parse_args()
    record, tables = made(words.operation, words.specs, again=words.again)
    text = listing(record)
    print(text, tables, sep="\n")
    if words.json:
        write_atomic(words.json, a_row_a_line(record))
        write_atomic(words.json.with_name("listing.txt"), text.encode())
        write_atomic(words.json.with_name("processes.txt"), tables.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
