# SPDX-License-Identifier: GPL-2.0-or-later
"""What simulating a cache costs: QEMU's own example plugin next to kdelta, on one region.

The example has no regions: it counts from QEMU's start to its end. So its region is the difference
of two runs that differ in nothing but how often the operation is repeated, and so are all times.
Seconds are processor time, user and system: QEMU's own, or of the replay.

The counts differ a little: the example looks where an instruction begins, kdelta at all of it. Made
to look at the last byte, too, the example has kdelta's misses within 0.2 %, instead of 1.5 % fewer.
It goes by where the host has the guest's memory; in one block of that, sets are the guest's own.
"""

import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kdelta.counts.simulated import read_simulated
from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import Trace
from kdelta.counts.trace_file import read_traces
from kdelta.cpus.model import Cache
from kdelta.guests.job import Job, job_archive
from kdelta.host.lock import work_folder
from kdelta.machines.arch import arch_machine
from kdelta.machines.chunks import read_messages
from kdelta.machines.process import emulator
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import NOTHING_MORE, Guest, Recording, Snapshot, command_line, resume
from kdelta.replay.functions import placement_of
from kdelta.replay.hierarchy import PreparedHierarchy
from kdelta.replay.layouts import as_linked, shuffles
from kdelta.replay.simulate import PreparedTrace

from .bench import OLD, guest, new_setting, syscalls_job
from .qemu_example import Example

CACHE = Cache(sets=64, ways=8, line_bytes=64)
OPERATION = "open-close"
LAYOUTS = 32
SCALES = (8000, 100)  # per cent of the usual iterations
EQUAL_RUNS = 10
SECONDS = 600.0
ALONE, EXAMPLE, SIMULATING = "QEMU alone", "the example", "kdelta, simulating"


class Way(NamedTuple):
    """How a run is watched: by the example, by kdelta, or not at all."""

    example: Path | None = None
    recording: Recording | None = None


class Ran(NamedTuple):
    """What one run took, and what was counted: by the example from QEMU's start to its end, by
    kdelta in the region, in all contexts. What a way does not count is 0.
    """

    seconds: float
    insns: int = 0
    misses: int = 0
    data_misses: int = 0
    trace: Trace | None = None
    read_seconds: float = 0.0


class Pair(NamedTuple):
    """The same with many iterations and with few."""

    long: Ran
    short: Ran

    @property
    def seconds(self) -> float:
        """Of what only the long run has."""
        return self.long.seconds - self.short.seconds

    @property
    def insns(self) -> int:
        """Those that were simulated: the example's are more, by the iterations that warm up."""
        return self.long.insns - self.short.insns

    @property
    def misses(self) -> int:
        return self.long.misses - self.short.misses

    @property
    def data_misses(self) -> int:
        return self.long.data_misses - self.short.data_misses


class Replayed(NamedTuple):
    """Seconds for what is done once (reading the trace and preparing it) and for one more layout;
    misses as linked, those of data where the trace has it.
    """

    once: float
    layout: float
    misses: int
    data_misses: int = 0


def ways(example: Example) -> dict[str, Way]:
    """All that is measured, by name."""
    found = {ALONE: Way(), EXAMPLE: Way(example.whole)}
    if example.code_only:
        found[f"{EXAMPLE}, code alone"] = Way(example.code_only)
    recordings = {
        "kdelta, counting": NOTHING_MORE,
        SIMULATING: Recording(simulate=CACHE),
        "kdelta, tracing": Recording("on"),
        "kdelta, tracing data too": Recording("data"),
    }
    return found | {name: Way(recording=how) for name, how in recordings.items()}


async def watched(where: Guest, snapshot: Snapshot, job: Job, way: Way) -> Ran:
    """One run from the snapshot to QEMU's end."""
    with work_folder() as work:
        (work / "job").write_bytes(job_archive(job))
        (work / "rules").write_text(arch_machine(where.arch).rules())
        argv = _command(where, snapshot, work, way)
        before = children_seconds()
        async with emulator(argv, work, SECONDS) as qemu:
            await resume(qemu, snapshot)
            await qemu.wait_exit()
        return _found(work, way, children_seconds() - before)


def _command(where: Guest, snapshot: Snapshot, work: Path, way: Way) -> list[str]:
    recording = way.recording or NOTHING_MORE
    argv = command_line(where, work, snapshot, count=True, recording=recording)
    if way.recording:
        return argv
    at = argv.index("-plugin")
    del argv[at : at + 2]
    if way.example:
        size = CACHE.sets * CACHE.ways * CACHE.line_bytes
        # Its cache of data cannot be turned off, and so it has the same geometry.
        geometry = "".join(
            f",{kind}cachesize={size},{kind}assoc={CACHE.ways},{kind}blksize={CACHE.line_bytes}"
            for kind in "id"
        )
        argv += ["-plugin", f"{way.example}{geometry},evict=lru,limit=1"]
        argv += ["-d", "plugin", "-D", str(work / "log")]
    return argv


def children_seconds() -> float:
    """Processor time, user and system, of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _found(work: Path, way: Way, seconds: float) -> Ran:
    if way.example:
        return Ran(seconds, *example_counts((work / "log").read_text()))
    if not way.recording:
        return Ran(seconds)
    counts = work / "counts"
    ran = Ran(seconds, insns=_ticks(counts))
    if way.recording.simulate:
        return ran._replace(misses=sum(one.total() for one in read_simulated(counts)))
    if way.recording.trace != "off":
        started = time.process_time()
        (trace,) = read_traces(counts)
        return ran._replace(trace=trace, read_seconds=time.process_time() - started)
    return ran


def _ticks(counts: Path) -> int:
    """Instructions of the region by the guest's own clock, string operations' iterations too."""
    (line,) = read_messages(counts)["region-clock"].decode().splitlines()
    _, ticks, overhead = line.split()
    return int(ticks) - int(overhead)


def example_counts(log: str) -> tuple[int, int, int]:
    """Instructions, misses of code and of data, from what the example says at its end."""
    row = re.search(r"^0 +\d+ +(\d+) +\S+% +(\d+) +(\d+) ", log, re.MULTILINE)
    if row is None:
        raise ValueError(f"the example said: {log[:200]!r}")
    data_misses, insns, misses = (int(number) for number in row.groups())
    return insns, misses, data_misses


def replayed(ran: Ran, snapshot: Snapshot) -> Replayed:
    """The trace of a run replayed as linked, and under random layouts on one core."""
    assert ran.trace
    assert not ran.trace.truncated
    has_data = ran.trace.data_virtual is not None
    started = time.process_time()
    placement = placement_of([ran.trace], parse_symbols(snapshot.symbols.read_bytes()))
    (placed,) = placement.placed
    linked, random = as_linked(placement)[None, :], shuffles(placement, LAYOUTS, 1)
    data_misses = 0
    if has_data:
        prepared = PreparedHierarchy(ran.trace, placed, CACHE)
        middle = time.process_time()
        big = Cache(sets=1024, ways=16, line_bytes=64)
        found = prepared.replay(random, l1i=CACHE, l2=big, threads=1)
        ended = time.process_time()
        found = prepared.replay(linked, l1i=CACHE, l2=big, threads=1)
        misses, data_misses = found.l1i.total.sum(), int(found.l1d.sum())
    else:
        plain = PreparedTrace(ran.trace, placed)
        middle = time.process_time()
        plain.replay(random, CACHE, threads=1)
        ended = time.process_time()
        misses = plain.replay(linked, CACHE, threads=1).total.sum()
    once = ran.read_seconds + middle - started
    return Replayed(once, (ended - middle) / LAYOUTS, int(misses), data_misses)


def job_of(scale: int) -> Job:
    """The operation with so many per cent of its usual iterations."""
    return syscalls_job("--clock", "--scale", str(scale), OPERATION, seconds=600)


class Measured(NamedTuple):
    """rounds: each way in turn, in each round. replays: of the first round's traces. again: what
    equal short runs counted, the last half of them under other load.
    """

    rounds: list[dict[str, Pair]]
    replays: dict[str, Replayed]
    again: dict[str, list[Ran]]


async def measured(
    example: Example, rounds: int, load: Callable[[], AbstractContextManager[None]]
) -> Measured:
    """Runs all of it; some minutes."""
    where = guest(OLD, memory_mib=1024)
    snapshot = await obtain_snapshot(where, new_setting(SECONDS))
    assert isinstance(snapshot, Snapshot)
    table = ways(example)
    found = []
    replays: dict[str, Replayed] = {}
    for _ in range(rounds):
        pairs = {}
        for name, way in table.items():
            runs = [await watched(where, snapshot, job_of(scale), way) for scale in SCALES]
            if runs[0].trace and name not in replays:
                replays[name] = replayed(runs[0], snapshot)
            # A trace takes some 100 MiB.
            pairs[name] = Pair(*(run._replace(trace=None) for run in runs))
        found.append(pairs)
    again: dict[str, list[Ran]] = {EXAMPLE: [], SIMULATING: []}
    for name, runs in again.items():
        for index in range(EQUAL_RUNS):
            with load() if index >= EQUAL_RUNS // 2 else nullcontext():
                runs.append(await watched(where, snapshot, job_of(SCALES[1]), table[name]))
    return Measured(found, replays, again)


def nanoseconds(pairs: dict[str, Pair], name: str) -> float:
    """An instruction that is simulated costs: QEMU's own share, and what the way adds to it.

    kdelta leaves the iterations alone that warm up; so what it adds is of fewer instructions.
    """
    alone = pairs[ALONE].seconds / pairs[EXAMPLE].insns
    if name == ALONE:
        return alone * 1e9
    return (alone + (pairs[name].seconds - pairs[ALONE].seconds) / pairs[name].insns) * 1e9


def lines(found: Measured) -> Iterator[str]:
    """What was found, in words."""
    last = found.rounds[-1]
    yield (
        f"{OPERATION}, {last[EXAMPLE].insns} instructions; 32 KiB, 8 ways, 64-byte lines, LRU;"
        f" processor time, {len(found.rounds)} rounds in turns, median (least to most)"
    )
    for name in last:
        each = _spread([nanoseconds(pairs, name) for pairs in found.rounds])
        more = ""
        if last[name].misses:
            more = f"; misses in 1000 instructions: {_rate(last[name].misses, last[name].insns)}"
        if last[name].data_misses:
            more += f", of data {_rate(last[name].data_misses, last[name].insns)}"
        yield f"  {name}: {each} ns an instruction{more}"
    for name in last:
        if name.startswith(EXAMPLE):
            yield f"  {name}, over kdelta simulating: {_ratios(found, name, added=False)} times"
            yield f"    and beyond QEMU alone: {_ratios(found, name, added=True)} times"
    for name, replay in found.replays.items():
        insns = last[name].long.insns
        yield (
            f"  replay of {name!r}: read and prepared once {replay.once:.2f} s, one more layout"
            f" {replay.layout * 1e3:.2f} ms, which the example takes"
            f" {nanoseconds(last, EXAMPLE) * insns / 1e9 / replay.layout:.0f} times; misses in 1000"
            f" instructions: {_rate(replay.misses, insns)}"
            + (f", of data {_rate(replay.data_misses, insns)}" if replay.data_misses else "")
        )
    for name, runs in found.again.items():
        counts = {(run.insns, run.misses) for run in runs}
        yield f"  {len(runs)} equal runs, half of them under load, {name}: {_different(counts)}"


def _spread(values: Sequence[float], digits: int = 1) -> str:
    low, middle, high = (f"{f(values):.{digits}f}" for f in (min, median, max))
    return f"{middle} ({low} to {high})"


def _ratios(found: Measured, name: str, *, added: bool) -> str:
    each = []
    for pairs in found.rounds:
        alone = nanoseconds(pairs, ALONE) if added else 0.0
        each.append((nanoseconds(pairs, name) - alone) / (nanoseconds(pairs, SIMULATING) - alone))
    return _spread(each)


def _rate(misses: int, insns: int) -> str:
    return f"{misses / insns * 1000:.3f}"


def _different(counts: set[tuple[int, int]]) -> str:
    if len(counts) == 1:
        return "one count"
    insns, misses = zip(*counts, strict=True)
    return (
        f"{len(counts)} different counts, {max(insns) - min(insns)} instructions and"
        f" {max(misses) - min(misses)} misses apart"
    )
