#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs stress-ng in kernel mode for CPU-minutes, on one CPU and on two, and looks for oopses.

    scripts/proofs/kernel_mode_stress.py VMLINUX --minutes 24 --json FILE

stress-ng is the distribution's, with its libraries, all in the guest's memory and all in ring 0.
Half of the time is on a guest with two CPUs, which run at the same time (no virtual clock), and a
part of that with a storm of non-maskable interrupts. What counts is the time of the host's CPUs.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec
from telling import a_row_a_line

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kdelta.guests.cpio import Entry, file  # noqa: E402
from kdelta.guests.userland import userland  # noqa: E402
from kdelta.host.command import log_to_stderr  # noqa: E402
from kdelta.workloads.catalog import UserlandWanted  # noqa: E402
from tests.kernel_mode.guest import Boot, Machine, Step, boot  # noqa: E402

KINDS = {
    "cpu": "--cpu 2",
    "vm": "--vm 2 --vm-bytes 64M --mmap 1 --mmap-bytes 16M --stack 1",
    "fork": "--fork 2 --vfork 1 --clone 1 --exec 1",
    "signal": "--sigfd 1 --sigsegv 1 --kill 1 --sigfpe 1 --sigio 1 --sigq 1 --sigtrap 1",
    "timer": "--timer 1 --itimer 1 --timerfd 1 --nanosleep 1",
    "pthread": "--pthread 2 --mutex 1 --futex 1",
}
"""What stress-ng is told for each kind of load."""

PROGRAM = "/usr/bin/stress-ng"
LONGER = 5
"""A step may take so many times its own time, on a host with other work."""


class Row(msgspec.Struct, frozen=True):
    """How a kind of load ended. `ops` are stress-ng's bogus operations by stressor."""

    kind: str
    cpus: int
    nmis_a_second: float
    how: str
    seconds: float
    ops: dict[str, int]


class Stressed(msgspec.Struct, frozen=True):
    """All that was run. `cpu_seconds`: the time that the emulator took of the host's CPUs."""

    kernel: str
    packages: tuple[str, ...]
    cpu_seconds: float
    oopses: tuple[str, ...]
    rows: tuple[Row, ...]


def main() -> int:
    """Runs the loads round by round until there were enough minutes."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("kernel", type=Path, help="a vmlinux with CONFIG_KERNEL_MODE")
    words.add_argument("--minutes", type=float, default=24, help="of the host's CPUs, in total")
    words.add_argument("--seconds", type=int, default=30, help="of each kind of load in a round")
    words.add_argument("--mode", choices=("user", "kernel"), default="kernel")
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    wanted = UserlandWanted(packages=("stress-ng",), programs=(PROGRAM,))
    land = userland(wanted, "x86_64", log_to_stderr)
    files = [
        file(one.guest.lstrip("/"), one.host.read_bytes(), executable=True) for one in land.files
    ]
    rows: list[Row] = []
    oopses: list[str] = []
    spent, banner = 0.0, ""
    rounds = ((1, 0.0), (2, 0.0), (2, 20.0))
    while spent < given.minutes * 60:
        for cpus, nmis in rounds:
            ended = _round(
                given.kernel, files, mode=given.mode, seconds=given.seconds, cpus=cpus, nmis=nmis
            )
            spent += ended.cpu_seconds
            banner = ended.banner
            oopses += ended.oopses
            rows += [
                Row(name, cpus, nmis, step.how, step.seconds, _ops(step.lines))
                for name, step in ended.steps.items()
            ]
            if not ended.whole:
                oopses.append("the guest did not power off")
            log_to_stderr(f"{spent / 60:.1f} CPU-minutes, {len(oopses)} oopses")
            found = Stressed(banner, land.packages, round(spent, 1), tuple(oopses), tuple(rows))
            if given.json:
                given.json.write_bytes(a_row_a_line(found))
    bad = [row for row in rows if row.how != "exit-0"]
    for row in bad:
        log_to_stderr(f"{row.kind} on {row.cpus}: {row.how}")
    return 1 if oopses or bad else 0


def _round(
    kernel: Path, files: list[Entry], *, mode: str, seconds: int, cpus: int, nmis: float
) -> Boot:
    common = (PROGRAM, "--metrics-brief", "-t", str(seconds), "--temp-path", "/tmp")
    plan = [
        Step(
            kind,
            (*common, *options.split()),
            "/" if mode == "kernel" else "",
            seconds=seconds * LONGER + 60,
        )
        for kind, options in KINDS.items()
    ]
    machine = Machine(
        kernel,
        cpus=cpus,
        megabytes=1024,
        seconds=len(plan) * seconds * LONGER + 200,
        nmis_a_second=nmis,
        steady=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        return boot(machine, Path(folder), files, plan)


def _ops(lines: tuple[str, ...]) -> dict[str, int]:
    """The operations of each stressor, of the lines that --metrics-brief prints."""
    found = {}
    for line in lines:
        words = line.partition("metrc:")[2].split()
        if len(words) == 8 and words[2].isdigit():
            found[words[1]] = int(words[2])
    return found


if __name__ == "__main__":
    sys.exit(main())
