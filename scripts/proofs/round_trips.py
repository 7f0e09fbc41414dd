#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures four round trips in three independent ways, and compares them.

    scripts/proofs/round_trips.py [KERNEL]...

counted: kdelta's plugin counts instructions, as for `compare`. longer: the same program with 4,000
iterations and four times the warm-up, by the guest's own clock. init: an init of its own
(round_trips_init.c) in a guest without plugin and agent, by the time-stamp counter. Each of these
is repeated in three boots. sweep: that init in one boot, with more and more files open, which moves
how many bytes of a page the memory controller has charged in advance. after: unix-round-trip as
kdelta counts it after another operation in the same process, which moves that, too.

One record a trial is written to docs/cases/round-trips; trials that are there are not made again.
The tables of all records are put into its README.md.
"""

import argparse
import asyncio
import re
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Literal

import msgspec
from campaign import Aloud
from recorded_machine import RECORDED_LAB
from telling import a_row_a_line

from kdelta.counts.model import CONTEXTS, RegionCounts, merged_regions
from kdelta.guests.cpio import Entry, archive, file, folder
from kdelta.host.files import write_atomic
from kdelta.host.lock import work_folder
from kdelta.host.native import STATIC_FLAGS, NativeProgram, build_program
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.plan import RunPlan, work_of
from kdelta.lab.work import workload_work
from kdelta.machines.tcg import Guest, command_line
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.workloads.catalog import find_workload

FOLDER = Path(__file__).parents[2] / "docs/cases/round-trips"
SPECS = (
    "deb:linux-image-6.1.0-56-cloud-amd64",
    "deb:linux-image-6.12.117+deb12-cloud-amd64",
    "deb:linux-image-6.12.117+deb12-rt-amd64",
)
RELEASES = (
    "6.1.0-56-cloud-amd64",
    "6.12.117+deb12-cloud-amd64",
    "6.12.117+deb12-rt-amd64",
    "7.2.13+deb14-cloud-amd64",
)
"""Of the records. The last is of a later Debian: its vmlinuz is measured as `image:PATH`."""
OPERATIONS = ("pipe-round-trip", "futex-ping-pong", "tcp-round-trip", "unix-round-trip")
BOOTS = 3
QUARTERS = 4
LEVEL = "1"
"""Of the longer way: 4,000 iterations after four times the usual warm-up."""
INIT_ITERATIONS = 4000
INIT_SECONDS = 600
"""Of the host, for a guest."""
CONSOLE = (5, 1)
BEFORE, AFTER = "epoll-wait-10", "unix-round-trip"
UNCHARGES = "obj_cgroup_uncharge_pages"
"""The function that gives back a page which the memory controller has charged in advance."""

Way = Literal["counted", "longer", "init", "sweep", "after"]
WAYS: tuple[Way, ...] = ("counted", "longer", "init")
TRIALS: tuple[tuple[Way, int], ...] = (
    *((way, boot) for boot in range(BOOTS) for way in WAYS),
    ("sweep", 0),
    ("after", 0),
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A round trip. All figures but `iterations` are of an iteration.

    held: files that the process holds open besides its own. ticks: of the guest's clock. quarters:
    ticks of each quarter, or instructions of all contexts where a plugin counted them. median: the
    median iteration's ticks, or instructions of all contexts and mean further elements of string
    operations. own, interrupts, other: instructions; strings: further elements of string
    operations, of all contexts; uncharges: instructions of obj_cgroup_uncharge_pages; idle: ticks
    without any work. None where the way does not know them.
    """

    operation: str
    iterations: int
    ticks: float
    quarters: tuple[float, ...]
    median: float
    held: int = 0
    own: float | None = None
    interrupts: float | None = None
    other: float | None = None
    strings: float | None = None
    uncharges: float | None = None
    idle: float | None = None


class Record(msgspec.Struct, frozen=True):
    """A trial: all round trips in one boot of a kernel, in one way."""

    kernel: str
    release: str
    identity: str
    way: Way
    boot: int
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.release}-{self.way}-{self.boot}"

    def row(self, operation: str, held: int = 0) -> Row:
        """Of that round trip."""
        return next(row for row in self.rows if (row.operation, row.held) == (operation, held))


def counted_row(region: RegionCounts) -> Row:
    """A region, by iteration."""
    count = region.iteration_count
    costs = {context: region.cost(context) for context in CONTEXTS}
    idle = region.idle_ticks()
    if region.clock_ticks is None or idle is None or region.iterations_lost:
        raise LabError(f"{region.name}: its clock or its iterations are not known")
    iterations = region.iterations
    rows = zip(iterations.own(), iterations.interrupts, iterations.other, strict=True)
    insns = [sum(each) for each in rows]
    strings = sum(cost.string_iterations for cost in costs.values()) / count
    charging = [row.cost.insns for row in region.functions if row.name == UNCHARGES]
    size = count // QUARTERS
    return Row(
        operation=region.name,
        iterations=count,
        ticks=region.clock_ticks / count,
        quarters=tuple(mean(insns[n * size : (n + 1) * size]) for n in range(QUARTERS)),
        median=median(insns) + strings,
        own=costs["own"].insns / count,
        interrupts=costs["interrupts"].insns / count,
        other=costs["other"].insns / count,
        strings=strings,
        uncharges=sum(charging) / count,
        idle=idle / count,
    )


def longer_work(work: RunPlan) -> RunPlan:
    """The same operations, each run only at the longer level."""
    parts = tuple(
        msgspec.structs.replace(
            part,
            jobs=tuple(
                job for job in part.jobs if job.later and job.later[:-1] == ("--level", LEVEL)
            ),
        )
        for part in work.parts
    )
    return msgspec.structs.replace(
        work, parts=parts, identity=identity({"work": work.identity, "level": LEVEL})
    )


def after_work(work: RunPlan) -> RunPlan:
    """Two operations in one process."""
    workload = find_workload("syscalls")
    argv = (workload.program, *workload.arguments, BEFORE, AFTER)
    job = msgspec.structs.replace(work.job, argv=argv)
    return work_of(work.name, job, work.binaries)


async def by_kdelta(lab: Lab, kernel: Kernel, way: Way, boot: int) -> tuple[Row, ...]:
    """What the plugin counted and the program's clock said."""
    work = workload_work(find_workload("syscalls"), OPERATIONS, kernel)
    if way == "longer":
        work = longer_work(work)
    elif way == "after":
        work = after_work(work)
    done = await lab.one(kernel, work, boot)
    if done.counts is None:
        raise LabError(f"run {done.run.id} ended with {done.run.word}: {done.run.detail}")
    regions = merged_regions(done.counts)
    return tuple(counted_row(regions[name]) for name in OPERATIONS if name in regions)


def by_init(guest: Guest, *, sweep: bool) -> tuple[Row, ...]:
    """What the init of its own says on that guest's machine."""
    with work_folder() as place:
        image = place / "initramfs"
        image.write_bytes(init_image(sweep=sweep))
        guest = msgspec.structs.replace(
            guest, initrd=str(image), initrd_identity="", stop_address=0
        )
        argv = without_plugin(command_line(guest, place, None, count=False))
        subprocess.run(argv, check=True, timeout=INIT_SECONDS)
        return init_rows((place / "console").read_text(errors="replace"))


def without_plugin(argv: Sequence[str]) -> list[str]:
    """The command line without -plugin and its value."""
    at = argv.index("-plugin")
    return [*argv[:at], *argv[at + 2 :]]


def init_image(*, sweep: bool) -> bytes:
    """An initramfs with the init and what the kernel needs to start it."""
    here = Path(__file__).parent
    sources = ("round_trips_init.c",)
    program = build_program(NativeProgram("round_trips_init", here, sources, STATIC_FLAGS))
    entries = [folder(name) for name in ("dev", "proc", "sys")]
    console = Entry("dev/console", 0o020600, device=CONSOLE)
    asked = [file("sweep", b"")] if sweep else []
    return archive([*entries, *asked, console, file("init", program.read_bytes(), executable=True)])


def init_rows(console: str) -> tuple[Row, ...]:
    """The rows that an init printed; LabError if it did not come to its end."""
    if "\ntrips done" not in console:
        raise LabError("the init did not come to its end: " + console[-400:])
    found = re.findall(r"^trip (\S+) (\d+) \d+ ([\d ]+?) (\d+)\r?$", console, re.MULTILINE)
    rows = []
    for name, held, numbers, middle in found:
        quarters = [int(number) for number in numbers.split()]
        rows.append(
            Row(
                operation=name,
                held=int(held),
                iterations=INIT_ITERATIONS,
                ticks=sum(quarters) / INIT_ITERATIONS,
                quarters=tuple(QUARTERS * quarter / INIT_ITERATIONS for quarter in quarters),
                median=int(middle),
            )
        )
    return tuple(rows)


def records() -> list[Record]:
    """All that are kept, by kernel and trial."""
    found = [msgspec.json.decode(path.read_bytes(), type=Record) for path in FOLDER.glob("*.json")]
    releases = {release: n for n, release in enumerate(RELEASES)}
    return sorted(
        found,
        key=lambda one: (
            releases.get(one.release, len(releases)),
            TRIALS.index((one.way, one.boot)),
        ),
    )


def insns(row: Row) -> float:
    """What the clock sees of it, by the plugin's count: all contexts and string operations."""
    if row.own is None or row.interrupts is None or row.other is None or row.strings is None:
        raise LabError(f"{row.operation}: no plugin counted it")
    return row.own + row.interrupts + row.other + row.strings


def figures(found: Sequence[Record], release: str, operation: str) -> dict[Way, float]:
    """By way: the mean over its boots. Of what the plugin counted, `insns`."""
    rows: dict[Way, list[float]] = {way: [] for way in WAYS}
    for one in found:
        if one.release == release and one.way in WAYS:
            row = one.row(operation)
            rows[one.way].append(insns(row) if one.way == "counted" else row.ticks)
    return {way: mean(values) for way, values in rows.items()}


def own_insns(found: Sequence[Record], release: str, operation: str) -> float:
    """The tasks' own instructions, as `compare` shows them: the mean over boots."""
    rows = [one.row(operation) for one in found if (one.release, one.way) == (release, "counted")]
    return mean(row.own or 0 for row in rows)


def apart(values: Collection[float]) -> float:
    """How far the largest is above the smallest, in per cent."""
    return 100 * (max(values) / min(values) - 1)


def by_release(found: Sequence[Record]) -> list[str]:
    """The kernels, in their order."""
    return list(dict.fromkeys(one.release for one in found))


def figures_table(found: Sequence[Record]) -> str:
    """Each kernel and round trip in all ways."""
    heads = ("kernel", "round trip", "own", "counted", "longer", "init", "apart")
    rows = []
    for release in by_release(found):
        for operation in OPERATIONS:
            ways = figures(found, release, operation)
            values = (own_insns(found, release, operation), *ways.values())
            texts = [f"{value:,.0f}" for value in values]
            rows.append((release, operation, *texts, f"{apart(ways.values()):.2f} %"))
    return markdown(heads, rows)


def changes_table(found: Sequence[Record]) -> str:
    """What each other kernel changes from the first, in all ways."""
    heads = ("to", "round trip", "own", "counted", "longer", "init")
    first, *others = by_release(found)
    rows = []
    for release in others:
        for operation in OPERATIONS:
            before, after = (figures(found, one, operation) for one in (first, release))
            changes = [after[way] / before[way] for way in WAYS]
            own = [own_insns(found, one, operation) for one in (first, release)]
            texts = [f"{100 * (each - 1):+.1f} %" for each in (own[1] / own[0], *changes)]
            rows.append((release, operation, *texts))
    return markdown(heads, rows)


def levels_table(found: Sequence[Record]) -> str:
    """Median iterations by how many files are held."""
    sweeps = [one for one in found if one.way == "sweep"]
    held = sorted({row.held for one in sweeps for row in one.rows})
    rows = []
    for one in sweeps:
        for operation in OPERATIONS:
            known = [
                r.row(operation) for r in found if (r.release, r.way) == (one.release, "counted")
            ]
            counted = f"{median([row.median for row in known]):,.0f}"
            cells = [f"{one.row(operation, n).median:,.0f}" for n in held]
            rows.append((one.release, operation, counted, *cells))
    return markdown(("kernel", "round trip", "counted", *map(str, held)), rows)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TABLES: Mapping[str, Callable[[Sequence[Record]], str]] = {
    "figures": figures_table,
    "changes": changes_table,
    "levels": levels_table,
}


def with_tables(text: str, found: Sequence[Record]) -> str:
    """The README's text with the tables of these records."""
    for name, made in TABLES.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, mark, rest = text.partition(begin)
        _, end_mark, after = rest.partition(end)
        if not mark or not end_mark:
            raise LabError(f"the README has no place for the table {name}")
        text = f"{before}{begin}\n{made(found)}\n\n{end}{after}"
    return text


async def campaign(specs: Sequence[str]) -> None:
    """Makes the trials that are missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_store() as store:
        lab = Lab(store, Aloud(), msgspec.structs.replace(RECORDED_LAB, jobs=1))
        for spec in specs:
            kernel = lab.kernel(spec)
            if isinstance(kernel, NoKernel):
                raise LabError(f"cannot get {spec}: {kernel.text}")
            for way, boot in TRIALS:
                trial = Record(kernel.spec, kernel.release, kernel.identity, way, boot, ())
                path = FOLDER / f"{trial.name}.json"
                if path.exists():
                    continue
                if way in ("init", "sweep"):
                    rows = by_init(lab.guest(kernel, index=boot), sweep=way == "sweep")
                else:
                    rows = await by_kdelta(lab, kernel, way, boot)
                write_atomic(path, a_row_a_line(msgspec.structs.replace(trial, rows=rows)))
                print(trial.name, *(f"{row.ticks:.1f}" for row in rows), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", default=SPECS, help="kernel specs")
    asyncio.run(campaign(parser.parse_args().kernels))
    readme = FOLDER / "README.md"
    readme.write_text(with_tables(readme.read_text(), records()))
