# SPDX-License-Identifier: GPL-2.0-or-later
"""RESULTS, the text that a bundle's run.sh writes: parsed, where what is not whole is refused; and
reduced from ticks of a clock to cycles of a core.

The reference loop next to each pass says how many ticks a cycle took just then; passes in which the
frequency moved are left out.
"""

import re
import warnings
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kdelta.measures.clock.bundle import Manifest, read_manifest
from kdelta.measures.clock.model import Quiet, TimedLink
from kdelta.spec.errors import UserError

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_TIME = re.compile(r"(\d+)m([\d.]+)s")
_SIGNAL_BASE = 128
Ticks = np.ndarray[tuple[int, int], np.dtype[np.float64]]
_AGAIN = "copy it again from the machine, or run run.sh there again"
STEADY = 0.005
"""Two reference loops, before and after a pass, that differ by more were not of one frequency: its
steps are of 2 to 4 %, and two loops of one frequency differ by 0.1 %.
"""
CONTENDED = 1.05
"""A width loop that takes so many times its level had not the whole core for itself."""
LEAST_NEAR = 0.01
"""So many of the width loops are near a level that is none by chance."""
REFERENCE_CHAIN = 256
"""Cycles of a turn of the reference loop, as timing.h has it."""
LOW = 0.15
"""The quantile over processes that is taken of each pass: what slows one only ever slows it, and
the least of all is that of a slip.
"""
_NUMBERS = 5  # of a pass: timing.h's
_LEAST_SAMPLES = 3
_LEAST_THERE = 0.5
_NTH = 2
LIMITS = {
    "steal_share": (0.02, 0.10, "the hypervisor gave {:.0%} of the core's time to others"),
    "other_share": (0.02, 0.10, "other programs had {:.0%} of the core's time"),
    "elsewhere_share": (0.50, 1.01, "the other cores were busy for {:.0%} of the time"),
    "reference_spread": (0.25, 1.00, "the frequency moved by {:.0%}"),
    "dropped_share": (0.30, 0.80, "the frequency moved within {:.0%} of the repetitions"),
    "contended_share": (0.20, 1.01, "another thread of the core was busy in {:.0%} of the passes"),
}
"""What is reported of a machine that is not quiet: from which share on, and from which refused."""


class Processor(msgspec.Struct, frozen=True):
    """How long cores were busy, at one moment, in seconds: in all and of these stolen, by core; and
    what the programs of the bundle had used by then.
    """

    busy: dict[int, float]
    idle: dict[int, float]
    stolen: dict[int, float]
    own: float
    uptime: float


class Process(NamedTuple):
    """What one process of a link printed: ticks, (rounds, 5 x passes) as timing.h has them."""

    program: str
    seed: int
    reference_cycles: int
    empty_ticks: int
    ticks: Ticks


class Said(msgspec.Struct, frozen=True):
    """All of a RESULTS file. `level` is what the width loop takes on a core that is alone, in turns
    of the reference loop.
    """

    manifest: Manifest
    facts: dict[str, str]
    kernel: str
    model: str
    cpuinfo: str
    load_average: float
    processors: tuple[Processor, Processor]
    level: float
    processes: tuple[Process, ...]


def cksum(content: bytes) -> int:
    """The checksum of POSIX's cksum: CRC-32 of the bytes and of their number, most significant bit
    first. zlib's CRC takes bits the other way round.
    """
    size = len(content)
    length = size.to_bytes(-(-size.bit_length() // 8), "little")
    crc = zlib.crc32((content + length).translate(_REVERSED), 0xFFFFFFFF)
    return int(f"{crc:032b}"[::-1], 2)


def read_text(content: bytes, source: str) -> Said:
    """Takes it apart. UserError, which names `source`, when it is no such file, or was cut off, or
    changed, or when a program failed.
    """
    if not content.startswith(b"@results 3\n"):
        raise UserError(f"{source} is no result of a bundle", "it is the file RESULTS of run.sh")
    body, _, last = content.rstrip(b"\n").rpartition(b"\n")
    words = last.split()
    if not body.endswith(b"@end") or len(words) != 2 or not all(map(bytes.isdigit, words)):
        raise UserError(f"{source} was cut off: its last line is missing", _AGAIN)
    if (int(words[0]), int(words[1])) != (cksum(body + b"\n"), len(body) + 1):
        raise UserError(f"{source} was changed: its checksum is not that of its last line", _AGAIN)
    try:
        return _read(body.decode(), source)
    except (ValueError, IndexError, KeyError) as error:
        raise UserError(f"{source} is damaged: {error}", _AGAIN) from error


def _read(text: str, source: str) -> Said:
    parts: dict[str, list[str]] = {}
    processes: list[str] = []
    last = ""
    for part in text.split("\n@"):
        head, _, rest = part.partition("\n")
        word, _, more = head.partition(" ")
        if word == "status":
            _check_status(int(more), last, source)
            continue
        last = head
        if word == "run":
            processes.append(part)
        else:
            parts.setdefault(word, []).append(rest)
    machine = parts["machine"][0].splitlines()
    width, reference, turns = map(int, parts["level"][0].split())
    first, second = (_processor(one) for one in parts["processor"])
    return Said(
        manifest=read_manifest(parts["manifest"][0].encode(), source),
        facts=dict([line.partition(" ")[::2] for line in parts["facts"][0].splitlines()]),
        kernel=machine[0],
        model=" ".join(machine[2:]).strip("\0 "),
        cpuinfo=parts["cpuinfo"][0],
        load_average=float(parts["load"][0].split()[0]),
        processors=(first, second),
        level=width / reference * turns,
        processes=tuple(_process(part, source) for part in processes),
    )


def _check_status(status: int, of: str, source: str) -> None:
    if not status:
        return
    name = " ".join(of.split()[:3])
    if name == "facts" and status in (_SIGNAL_BASE + 11, _SIGNAL_BASE + 4):
        raise UserError(
            f"{source}: programs may not read the clock of that machine",
            "its kernel or its hypervisor hides it; see PR_SET_TSC in prctl(2) for x86",
        )
    if status in (126, 127):
        raise UserError(
            f"{source}: {name} could not be executed there",
            "the bundle is for another architecture, or its folder is mounted noexec",
        )
    if status == 3:
        raise UserError(f"{source}: {name} could not use that core", "name another one: CORE=0")
    raise UserError(f"{source}: {name} failed with status {status}", "run run.sh there again")


def _processor(text: str) -> Processor:
    busy, idle, stolen = {}, {}, {}
    lines = text.splitlines()
    for line in lines:
        words = line.split()
        if words and re.fullmatch(r"cpu\d+", words[0]):
            core, jiffies = int(words[0][3:]), [int(word) / 100 for word in words[1:9]]
            jiffies += [0.0] * (8 - len(jiffies))
            idle[core] = jiffies[3] + jiffies[4]
            stolen[core] = jiffies[7]
            busy[core] = sum(jiffies) - idle[core] - stolen[core]
    times = [int(minutes) * 60 + float(seconds) for minutes, seconds in _TIME.findall(text)]
    if len(times) != 4:
        raise ValueError("no times of the shell")
    return Processor(busy, idle, stolen, sum(times), float(lines[-1].split()[0]))


def _process(part: str, source: str) -> Process:
    head, _, rest = part.partition("\n")
    _, name, seed, _process_number = head.split()
    if not rest.startswith("clock "):
        raise UserError(
            f"{source}: {name}, seed {seed}, printed no times",
            "its main() has to end in timing_main() of timing.h",
        )
    first, _, numbers = rest.partition("\n")
    word, _clock, empty, cycles = first.split()
    if word != "clock" or not numbers.rstrip().endswith("done"):
        raise UserError(f"{source}: {name}, seed {seed}, did not come to its end", _AGAIN)
    lines = numbers.rstrip().splitlines()[:-1]
    ticks = np.array(" ".join(lines).split(), dtype=np.float64).reshape(len(lines), -1)
    return Process(name, int(seed), int(cycles), int(empty), ticks)


class Passes(NamedTuple):
    """Of one process, (rounds, passes) each: cycles and ticks a cycle, NaN where the frequency
    moved; and whether the core was not shared before and after.
    """

    cycles: Ticks
    rate: Ticks
    alone: np.ndarray[tuple[int, int], np.dtype[np.bool_]]


def passes_of(process: Process, level: float) -> Passes:
    """What one process said, in cycles."""
    _, before, ticks, after, _ = _columns(process)
    rate = (before + after) / 2 / process.reference_cycles
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.abs(after / before - 1) < STEADY
    rate = np.where(steady & (before > 0), rate, np.nan)
    alone = widths_of(process) < CONTENDED * level
    return Passes((ticks - process.empty_ticks) / rate, rate, np.asarray(alone))


def widths_of(process: Process) -> Ticks:
    """For each pass the wider of the width loops before and after it, in turns of the reference
    loop: (rounds, passes).
    """
    turns = process.reference_cycles / REFERENCE_CHAIN
    wide_before, before, _, after, wide_after = _columns(process)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(wide_before / before, wide_after / after) * turns)


def _columns(process: Process) -> tuple[Ticks, Ticks, Ticks, Ticks, Ticks]:
    """Width and reference loop before each pass, the pass, reference and width loop after it."""
    columns = process.ticks.reshape(len(process.ticks), -1, _NUMBERS)
    wide, before, ticks, after, wide_after = np.moveaxis(columns, 2, 0)
    return wide, before, ticks, after, wide_after


def level_of(said: Said) -> float:
    """What the width loop takes on a core that is alone. The level that processes agreed on, unless
    hardly a loop was near it: then it was a slip of the clock, and a low width serves.
    """
    widths = np.concatenate([widths_of(process).ravel() for process in said.processes])
    near = (widths > said.level / CONTENDED) & (widths < said.level * CONTENDED)
    return said.level if near.mean() > LEAST_NEAR else float(np.quantile(widths, 0.05))


def links_of(
    name: str, sha256: Sequence[str], processes: Sequence[Sequence[Process]], level: float
) -> tuple[TimedLink, ...]:
    """All links of one program, from seed 1 on: of each its file's hash, and what its processes
    said. UserError when the frequency was never steady for long enough.
    """
    links = []
    for seed, (said, file) in enumerate(zip(processes, sha256, strict=True), 1):
        every = [passes_of(process, level) for process in said]
        alone = [np.where(one.alone, one.cycles, np.nan) for one in every]
        is_alone = _enough(alone)
        samples = alone if is_alone else [one.cycles for one in every]
        if not _enough(samples):
            raise UserError(
                f"{name}: the core's frequency moved in nearly every repetition",
                "set it by the governor `performance`, or switch off what moves it",
            )
        rates = np.concatenate([one.rate.ravel() for one in every])
        links.append((seed, file, samples, float(np.nanmedian(rates)), is_alone))
    cycles = _low([np.concatenate(samples) for _, _, samples, _, _ in links])
    halves = [
        _low([np.concatenate(samples[first::2] or samples) for _, _, samples, _, _ in links])
        for first in (0, 1)
    ]
    return tuple(
        TimedLink(
            seed=seed,
            sha256=file,
            iterations=samples[0].shape[1],
            cycles=float(cycles[at]),
            halves=(float(halves[0][at]), float(halves[1][at])),
            samples=int(np.median(_counts(samples))),
            cycles_min=_third_least(np.concatenate(samples)),
            ticks_per_cycle=rate,
            alone=is_alone,
        )
        for at, (seed, file, samples, rate, is_alone) in enumerate(links)
    )


def _counts(samples: Sequence[Ticks]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many there are of each pass."""
    return np.asarray(np.sum([np.count_nonzero(~np.isnan(one), axis=0) for one in samples], axis=0))


def _enough(samples: Sequence[Ticks]) -> bool:
    """Whether at least half of the passes were seen often enough."""
    return bool((_counts(samples) >= _LEAST_SAMPLES).mean() >= _LEAST_THERE)


def _low(links: Sequence[Ticks]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """For each link (samples, passes), of which some are NaN: the mean over passes of the low
    quantile of its samples. What a pass that it lacks would have added is derived from other links:
    by how much that pass is usually above or below the others.
    """
    low = np.full((len(links), links[0].shape[1]), np.nan)
    for at, samples in enumerate(links):
        there = ~np.isnan(samples).all(axis=0)
        low[at, there] = np.nanquantile(samples[:, there], LOW, axis=0)
    known = ~np.isnan(low).all(axis=0)
    usual = np.nanmedian(low[:, known], axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a half may have no times of a link
        above = np.nanmean(low[:, known] - usual, axis=1)
    return np.asarray(usual.mean() + np.nan_to_num(above))


def _third_least(samples: Ticks) -> float:
    """The mean over passes of the third least, or of the most where there are fewer."""
    least = np.sort(samples, axis=0)  # NaN last
    counts = np.count_nonzero(~np.isnan(samples), axis=0)
    there = np.flatnonzero(counts)
    return float(least[np.minimum(_NTH, counts[there] - 1), there].mean())


def quiet_of(said: Said) -> Quiet:
    """How quiet the machine was, by /proc/stat before and after, and by the loops next to
    passes.
    """
    core = int(said.facts["core"])
    first, second = said.processors
    shares = _shares(first, second, core)
    level = level_of(said)
    every = [passes_of(process, level) for process in said.processes]
    cycles = np.concatenate([one.cycles.ravel() for one in every])
    reference = np.concatenate(
        [_columns(process)[1].ravel() / process.reference_cycles for process in said.processes]
    )
    fast, slow = np.quantile(reference, (0.1, 0.9))
    shares |= {
        "reference_spread": float(slow / fast - 1),
        "dropped_share": float(np.isnan(cycles).mean()),
        "contended_share": 1 - float(np.concatenate([one.alone.ravel() for one in every]).mean()),
    }
    remarks = tuple(
        text.format(shares[name])
        for name, (from_, _, text) in LIMITS.items()
        if shares[name] > from_
    )
    return Quiet(
        seconds=second.uptime - first.uptime,
        load_average=said.load_average,
        ok=not remarks,
        said=remarks,
        **shares,
    )


def refuse_busy(quiet: Quiet) -> None:
    """UserError for a machine that was too busy for its times to mean anything."""
    for name, (_, most, text) in LIMITS.items():
        if getattr(quiet, name) > most:
            raise UserError(
                f"the machine was too busy: {text.format(getattr(quiet, name))}",
                "stop what else runs there and try again, or go on with --busy-ok",
            )


def _shares(first: Processor, second: Processor, core: int) -> dict[str, float]:
    busy = {one: second.busy[one] - first.busy[one] for one in second.busy if one in first.busy}
    idle = {one: second.idle[one] - first.idle[one] for one in busy}
    stolen = {one: second.stolen[one] - first.stolen[one] for one in busy}
    own = second.own - first.own
    time = max(busy[core] + idle[core] + stolen[core], 1e-9)
    others = [one for one in busy if one != core]
    others_time = max(sum(busy[one] + idle[one] for one in others), 1e-9)
    return {
        "steal_share": stolen[core] / time,
        "other_share": max(0.0, busy[core] - own) / time,
        "elsewhere_share": sum(busy[one] for one in others) / others_time,
    }
