# SPDX-License-Identifier: GPL-2.0-or-later
"""RESULTS, the text that a bundle's run.sh writes, parsed; what is not whole is refused."""

import re
import zlib
from typing import NamedTuple

import msgspec
import numpy as np

from kdelta.spec.errors import UserError
from kdelta.workloads.calibration.bundle import Manifest, read_manifest

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_TIME = re.compile(r"(\d+)m([\d.]+)s")
_SIGNAL_BASE = 128
Ticks = np.ndarray[tuple[int, int], np.dtype[np.float64]]


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
    of the reference loop. `specials` is a line each: kind, argument, turns, cycles of the
    reference loop, and triples of ticks.
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
    specials: tuple[tuple[str, int, int, int, tuple[int, ...]], ...]


def cksum(content: bytes) -> int:
    """The checksum of POSIX's cksum: CRC-32 of the bytes and of their number, most significant bit
    first. zlib's CRC takes bits the other way round.
    """
    size, length = len(content), b""
    while size:
        length += bytes([size & 255])
        size >>= 8
    crc = zlib.crc32((content + length).translate(_REVERSED), 0xFFFFFFFF)
    return int(f"{crc:032b}"[::-1], 2)


def read_text(content: bytes, source: str) -> Said:
    """Takes it apart. UserError, which names `source`, when it is no such file, or was cut off, or
    changed, or when a program failed.
    """
    if not content.startswith(b"@results 2\n"):
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


_AGAIN = "copy it again from the machine, or run run.sh there again"


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
    first, second = (_processor(one) for one in parts["processor"])
    facts = [line.partition(" ")[::2] for line in parts["facts"][0].splitlines()]
    return Said(
        manifest=read_manifest(parts["manifest"][0].encode(), source),
        facts=dict(facts),
        kernel=machine[0],
        model=" ".join(machine[2:]).strip("\0 "),
        cpuinfo=parts["cpuinfo"][0],
        load_average=float(parts["load"][0].split()[0]),
        processors=(first, second),
        level=_level(parts["level"][0]),
        processes=tuple(_process(part, source) for part in processes),
        specials=tuple(
            _special(line) for line in parts["specials"][0].splitlines() if line[0] == "s"
        ),
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


def _level(text: str) -> float:
    width, reference, turns = map(int, text.split())
    return width / reference * turns


def _process(part: str, source: str) -> Process:
    head, _, rest = part.partition("\n")
    _, name, seed, _process_number = head.split()
    if not rest.startswith("clock "):
        raise UserError(
            f"{source}: {name}, seed {seed}, printed no times",
            "its main() has to end in timing_main(): docs/calibration, Held-out programs",
        )
    first, _, numbers = rest.partition("\n")
    word, _clock, empty, cycles = first.split()
    if word != "clock" or not numbers.rstrip().endswith("done"):
        raise UserError(f"{source}: {name}, seed {seed}, did not come to its end", _AGAIN)
    lines = numbers.rstrip().splitlines()[:-1]
    ticks = np.array(" ".join(lines).split(), dtype=np.float64).reshape(len(lines), -1)
    return Process(name, int(seed), int(cycles), int(empty), ticks)


def _special(line: str) -> tuple[str, int, int, int, tuple[int, ...]]:
    _, kind, argument, turns, cycles, *ticks = line.split()
    return kind, int(argument), int(turns), int(cycles), tuple(map(int, ticks))
