# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bundle says of one run: the machine, the kernel, and how long each operation took."""

import errno
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.spec.errors import UserError
from kdelta.spec.limits import TIMES_FILE_BYTES

_BASIS, _PRIME = 0xCBF29CE484222325, 0x100000001B3
_STEADY = 0.01
"""By how much the rate of the clock may differ in a region from that of all: else time jumped."""
_SHORT_NS = 100_000
"""What reading two clocks at one moment is off by is too much of a region that is shorter."""


_EARLIEST = 1_600_000_000
"""Before this, in 2020, no bundle was made."""

_LATEST = 253_402_300_799
"""The end of the year 9999."""

_MOST = 2**63 - 1
_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_OneOrMore = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]

_AGAIN = "run ./bundle run again, or copy its file again"
_UPTIME = re.compile(r"[0-9]{1,11}(?:\.[0-9]{1,9})?")
_REFUSED = frozenset({errno.EPERM, errno.EACCES})


class BootFacts(msgspec.Struct, frozen=True):
    """What a bundle says of the machine and the kernel: contents of files below /proc and /sys, and
    empty where there is no such file. `bundle` is a hash of its program; `when` in seconds since
    1970; `cpu` the one that it ran on, -1 where it could not choose; `arguments` a hash of what the
    program was called with.
    """

    bundle: str
    workload: str
    when: Annotated[int, msgspec.Meta(le=_LATEST)]
    cpu: int
    clock: str
    machine: str
    release: str
    version: str
    build_id: str
    boot_id: str
    command_line: str
    cpu_model: str
    cpu_flags: str
    microcode: str
    online: str
    smt: str
    boost: str
    no_turbo: str
    governor: str
    driver: str
    least_khz: str
    most_khz: str
    temperature: str
    clock_source: str
    paranoid: str
    load: str
    uptime: str
    memory: str
    file_system: int
    page_bytes: int
    arguments: str = ""

    @property
    def booted(self) -> float:
        """Return when its boot began, in seconds since 1970; NaN where it does not say for how long
        it had run.
        """
        first = next(iter(self.uptime.split()), "")
        return self.when - float(first) if _UPTIME.fullmatch(first) else math.nan

    @property
    def kernel(self) -> tuple[str, str]:
        """Return what distinguishes kernels: the build ID, or else the version, and its words."""
        return self.build_id or self.version, self.command_line


class TimedRegion(msgspec.Struct, frozen=True):
    """One region of a run. `samples`: ticks and iterations of each batch; `counters`: by name the
    count, and for how many nanoseconds it was wanted and counted. `user_us`, `system_us`: processor
    time of the region's process, and of those that it waited for.
    """

    region: str
    iterations: _OneOrMore
    ticks: _OneOrMore
    ns: _OneOrMore
    overhead_ticks: _Count
    samples: tuple[tuple[_OneOrMore, _OneOrMore], ...]
    counters: dict[str, tuple[_Count, _Count, _Count]] = {}
    counter_errno: int = 0
    user_us: _Count = 0
    system_us: _Count = 0

    @property
    def holds_its_samples(self) -> bool:
        """Return whether its batches are no more than it, in ticks and in iterations."""
        ticks, iterations = (sum(one[at] for one in self.samples) for at in (0, 1))
        return ticks <= self.ticks and iterations <= self.iterations


class _End(msgspec.Struct, frozen=True):
    regions: int
    status: int
    involuntary_switches: int
    boot_id: str
    hash: str
    online: str | None = None  # at the end


class TimedRun(msgspec.Struct, frozen=True):
    """A run of a bundle.

    ns        by region, nanoseconds of an iteration: the median over batches, and over passes of a
              region that comes again
    counters  by region, of an iteration
    used      by region, nanoseconds of processor time of an iteration, user and system
    seconds   how long all regions took
    jumped    regions in which the clock jumped, whose figures are left out
    content   of its file
    refused   whether the kernel does not let programs count all that was asked for
    """

    path: str
    facts: BootFacts
    ns: dict[str, float]
    counters: dict[str, dict[str, float]]
    jumped: tuple[str, ...] = ()
    content: bytes = b""
    refused: bool = False
    used: dict[str, tuple[float, float]] = {}
    seconds: float = 0.0


def read_run(path: Path) -> TimedRun:
    """Read the file of one run. UserError for one that is none, that was cut off or altered, of a
    run that failed, and of a boot that cannot be distinguished or put in order.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not from a bundle", "a folder has files of ./bundle run alone")
    try:
        with path.open("rb") as file:
            content = file.read(TIMES_FILE_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > TIMES_FILE_BYTES:
        raise UserError(f"{path} is too large for a file from a bundle", _AGAIN)
    run = parse_run(content, str(path))
    if not run.facts.boot_id:
        raise UserError(
            f"{path} does not say which boot it is from",
            "./bundle run needs /proc/sys/kernel/random/boot_id: CONFIG_PROC_SYSCTL",
        )
    if run.facts.when < _EARLIEST:
        raise UserError(
            f"{path} is of a machine whose date was not set: the order of boots is not known",
            "set the date before ./bundle run",
        )
    if math.isnan(run.facts.booted):
        raise UserError(
            f"{path} does not say for how long its machine had run: the order of boots is unknown",
            "./bundle run needs /proc/uptime: CONFIG_PROC_FS",
        )
    return run


def parse_run(content: bytes, path: str) -> TimedRun:
    """Return what the content of such a file says; errors as `read_run`. path: for messages."""
    first, *rest = content.splitlines(keepends=True) or [b""]
    if not first.startswith(b'{"kdelta_bundle":'):
        raise UserError(f"{path} is not from a bundle", "./bundle run >FILE writes one")
    try:
        facts = msgspec.json.decode(first, type=BootFacts)
        end = msgspec.json.decode(rest[-1], type=_End)
        regions = [msgspec.json.decode(line, type=TimedRegion) for line in rest[:-1]]
    except (IndexError, RecursionError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise UserError(f"{path} is cut off or damaged", _AGAIN) from error
    if end.hash != f"{fnv1a(content[: -len(rest[-1])]):016x}" or end.regions != len(regions):
        raise UserError(f"{path} was changed after the run", _AGAIN)
    if end.status:
        raise UserError(f"{path}: the program {_status_words(end.status)}", _AGAIN)
    if end.online not in (None, facts.online):
        raise UserError(
            f"{path}: CPUs went online or offline during the run: from {facts.online} to "
            f"{end.online}",
            _AGAIN,
        )
    if not regions:
        raise UserError(f"{path}: no operation was timed", _AGAIN)
    for one in regions:
        if not one.holds_its_samples:
            raise UserError(f"{path}: the batches of {one.region} are more than it", _AGAIN)
    return msgspec.structs.replace(_timed(path, facts, regions), content=content)


def _status_words(status: int) -> str:
    """Return how a program ended that did not end well; status: as of wait()."""
    if status < 0:
        return "took longer than it may"
    if signal := status & 0x7F:
        return f"was ended by signal {signal}"
    return f"failed with exit code {status >> 8}"


def _timed(path: str, facts: BootFacts, regions: Sequence[TimedRegion]) -> TimedRun:
    long = [one for one in regions if one.ns >= _SHORT_NS] or regions
    ns_per_tick = statistics.median(one.ns / one.ticks for one in long)
    jumped = tuple(
        one.region
        for one in regions
        if abs(one.ns - one.ticks * ns_per_tick) > max(_STEADY * one.ns, 10_000)
    )
    kept = [one for one in regions if one.region not in jumped]
    passes: dict[str, list[TimedRegion]] = {}
    for one in kept:
        passes.setdefault(one.region, []).append(one)
    return TimedRun(
        path=path,
        facts=facts,
        ns={
            name: statistics.median(_median(one) * ns_per_tick for one in of)
            for name, of in passes.items()
        },
        counters={name: _counted(of) for name, of in passes.items()},
        jumped=jumped,
        refused=any(one.counter_errno in _REFUSED for one in regions),
        used={name: _used(of) for name, of in passes.items()},
        seconds=sum(one.ns for one in regions) / 1e9,
    )


def _used(passes: Sequence[TimedRegion]) -> tuple[float, float]:
    """Return the processor time of an iteration over all passes, user and system, in ns."""
    iterations = sum(one.iterations for one in passes)
    user_us, system_us = sum(one.user_us for one in passes), sum(one.system_us for one in passes)
    return 1e3 * user_us / iterations, 1e3 * system_us / iterations


def _median(region: TimedRegion) -> float:
    """Return the median ticks of an iteration; of a region that is one sample, its mean."""
    if not region.samples:
        return max(0, region.ticks - region.overhead_ticks) / region.iterations
    return statistics.median(ticks / count for ticks, count in region.samples)


def _counted(passes: Sequence[TimedRegion]) -> dict[str, float]:
    """Return what was counted of an iteration over all passes, as if it had been counted all the
    time.
    """
    found: dict[str, list[tuple[float, int]]] = {}
    for one in passes:
        for name, (count, wanted, running) in one.counters.items():
            if running:
                found.setdefault(name, []).append((count * wanted / running, one.iterations))
    return {
        name: sum(count for count, _ in of) / sum(iterations for _, iterations in of)
        for name, of in found.items()
    }


def fnv1a(content: bytes) -> int:
    """Return FNV-1a in 64 bits (Fowler, Noll, Vo), as native/clock/timed.c has it."""
    found = _BASIS
    for byte in content:
        found = (found ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return found
