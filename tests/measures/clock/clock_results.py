# SPDX-License-Identifier: GPL-2.0-or-later
"""RESULTS files as run.sh writes them, made up: of one program with two links, whose cycles and
frequency are chosen.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.measures.clock.bundle import Manifest, ManifestProgram
from kdelta.measures.clock.results import cksum

CYCLES = 1024
"""The reference loop's: 4 turns."""

CPUINFO = """processor\t: 0
cpu family\t: 6
model\t\t: 143
model name\t: A  Processor
stepping\t: 8
flags\t\t: fpu tsc constant_tsc nonstop_tsc

processor\t: 1
cpu family\t: 6
model\t\t: 143
model name\t: A  Processor
stepping\t: 8
flags\t\t: fpu tsc constant_tsc nonstop_tsc
"""
FACTS = {"core": "1", "allowed": "2", "machine": "77", "page": "4096", "hypervisor": "1"}
MANIFEST = Manifest(
    arch="x86_64",
    processes=2,
    rounds=4,
    programs=(
        ManifestProgram(
            name="calls-random",
            code="calls",
            arguments=("random", "constant", "4096"),
            sha256=("a" * 64, "b" * 64),
        ),
    ),
)


def a_round(
    passes: Sequence[int], *, rate: float = 1.0, width: int = 500, after: float = 1.0
) -> str:
    """A line of ticks: passes that take so many cycles at `rate` ticks a cycle; `after` is by how
    much the last reference loop is longer than the others.
    """
    words = []
    for number, cycles in enumerate(passes, 1):
        last = after if number == len(passes) else 1.0
        words += [width * rate, CYCLES * rate, cycles * rate, CYCLES * rate * last, width * rate]
    return " ".join(str(round(word)) for word in words)


def run_text(seed: int, process: int, rounds: Sequence[str], *, status: int = 0) -> str:
    body = "\n".join(["clock tsc 0 1024", *rounds, "done"])
    return f"@run calls-random {seed} {process}\n{body}\n@status {status}\n"


def processor(busy: int, idle: int, stolen: int, own: int, *, uptime: float) -> str:
    """/proc/stat of two cores that did the same, in jiffies; own: the programs' time."""
    core = f"{busy} 0 0 {idle} 0 0 0 {stolen} 0 0"
    other = f"0 0 0 {busy + idle + stolen} 0 0 0 0 0 0"
    times = f"0m0.00s 0m0.00s\n0m{own / 100:.2f}s 0m0.00s"
    return f"cpu  {core}\ncpu0 {other}\ncpu1 {core}\n{times}\n{uptime} 1.0\n"


def results(
    runs: Sequence[str] = (),
    *,
    facts: dict[str, str] | None = None,
    facts_status: int = 0,
    cpuinfo: str = CPUINFO,
    end: str | None = None,
) -> bytes:
    """A whole file, with its checksum. `end`: what the processors said afterwards."""
    runs = runs or [
        run_text(seed, process, [a_round((1000 * seed, 2000 * seed))] * 4)
        for process in (1, 2)
        for seed in (1, 2)
    ]
    facts_text = "".join(f"{name} {value}\n" for name, value in (facts or FACTS).items())
    text = "".join(
        [
            "@results 3\n@manifest\n",
            msgspec.json.encode(MANIFEST).decode() + "\n",
            f"@facts\n{facts_text}clock tsc 12345\n@status {facts_status}\n",
            "@machine\n6.1.0-test\nx86_64\n\n",
            f"@cpuinfo\n{cpuinfo}",
            "@load\n0.10 0.20 0.30 1/100 4242\n",
            "@processor\n" + processor(0, 0, 0, 0, uptime=100.0),
            *runs,
            "@processor\n" + (end or processor(100, 0, 0, 100, uptime=101.0)),
            "@level\n500 1024 4\n",
            "@end\n",
        ]
    )
    return signed(text.encode())


def signed(content: bytes) -> bytes:
    """With the line of cksum."""
    return content + f"{cksum(content)} {len(content)}\n".encode()


def write(folder: Path, content: bytes) -> Path:
    path = folder / "RESULTS"
    path.write_bytes(content)
    return path
