#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions that are asked in public, and the words that kdelta has for them.

    scripts/proofs/public_cases.py

runs each command of CASES as a user does, and writes what it printed and its exit code to one JSON
record a case. It fails if a command ends with another code, or does not print what is right.
Records that are there are not made again, and runs are kept.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from kdelta.host.files import write_atomic

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/cases/public"
K61 = "deb:linux-image-cloud-amd64@bookworm"
K612 = "deb:linux-image-6.12-cloud-amd64@bookworm"

LOOP = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
static volatile long count;
static void end(int signal) { (void)signal; printf("%ld\\n", count); exit(0); }
int main(void)
{
    struct itimerval time = { { 0, 0 }, { 0, 50000 } };
    signal(SIGALRM, end);
    setitimer(ITIMER_REAL, &time, 0);
    for (;; count++)
        getppid();
}
"""
"""A benchmark that a timer ends, whose program each case finds as ./loop."""


class Case(msgspec.Struct, frozen=True):
    """A command without the program's name, the code that it ends with, and patterns of what it
    prints, blanks and line ends being one blank each; `never`: of what it does not.
    """

    name: str
    words: tuple[str, ...]
    prints: tuple[str, ...]
    never: tuple[str, ...] = ()
    code: int = 0


def operations(*names: str) -> tuple[str, ...]:
    """The options that name these."""
    return tuple(word for name in names for word in ("-o", name))


CASES = (
    Case(
        "psi-off",
        ("compare", K61, "+cmdline:psi=0", *operations("pipe-round-trip", "getppid")),
        (
            r"^Linux 6\.1\.\d+ with psi=0 against 6\.1\.\d+ without, 2 operations",
            r"Faster by most: pipe-round-trip -2\d\.\d% \(-\d+ psi_group_change\)",
            r"differ in boot parameters",
            r"same( within 0\.\d+%)?: getppid",
        ),
        never=("base other", "other against base"),
    ),
    Case(
        "clock-by-a-port",
        (
            "gate", K612, "+cmdline:clocksource=acpi_pm",
            *operations("gettimeofday-syscall", "clock_gettime-syscall"),
        ),
        (r"^slower: .*\+1 in 0x608",),
        code=1,
    ),
    Case(
        "clocks",
        (
            "compare", K612, "+cmdline:clocksource=acpi_pm", ",", "+cmdline:clocksource=hpet",
            *operations("getppid", "gettimeofday-vdso"),
        ),
        (
            r"with clocksource=acpi_pm against 6\.12\.\d+ without",
            r"with clocksource=hpet against 6\.12\.\d+ without",
            r"operation without acpi_pm hpet",
            r"gettimeofday-vdso \d+ \+\d{3}\.\d% \+\d{3}\.\d%",
        ),
    ),
    Case(
        "no-accounting-of-kernel-memory",
        ("compare", K61, "+cmdline:cgroup.memory=nokmem", *operations("open-close")),
        (r"1 faster", r"open-close -\d\.\d+%"),
        never=("may be without effect",),
    ),
    Case(
        "what-changes-nothing",
        ("compare", K612, "+cmdline:printk.time=1", *operations("getppid")),
        (r"printk\.time=1: nothing that was looked at differs",),
    ),
    Case(
        "variant-after-a-variant",
        ("compare", K612, "+cmdline:consoleblank=0", "+", "+cmdline:psi=0", *operations("getppid")),
        (r"^Linux 6\.12\.\d+ with psi=0 against 6\.12\.\d+ without, both with consoleblank=0",),
    ),
    Case(
        "work-of-other-tasks",
        ("compare", K61, K612, *operations("mmap-munmap", "open-close")),
        (
            r"^Linux 6\.12\.\d+ against 6\.1\.\d+, 2 operations",
            r"mmap-munmap -2\d\.\d% \(-2\d{3} in the task, \+\d{3,4} left to others",
            r"open-close .* -1\d\d in the task, -5\d\d left to others",
        ),
    ),
    Case(
        "psi-off-newer",
        ("compare", K612, "+cmdline:psi=0", *operations("pipe-round-trip", "getppid")),
        (
            r"^Linux 6\.12\.\d+ with psi=0 against 6\.12\.\d+ without, 2 operations",
            r"Faster by most: pipe-round-trip -1\d(\.\d)?% \(-\d+ psi_group_change",
            r"same: getppid",
        ),
        never=("base other", "other against base"),
    ),
    Case(
        "what-the-processor-does",
        (
            "compare", K612, "+cmdline:spec_store_bypass_disable=on", *operations("getppid"),
            "--cpu", "skylake-server",
        ),
        (
            r"as on Intel Skylake.* 1 same\.",
            r"the guests show spec_store_bypass as 'Mitigation: Speculative Store Bypass disabled'",
            r"What the CPU itself does otherwise for that is in no figure",
        ),
    ),
    Case(
        "poisoned-slabs",
        ("compare", K612, "+cmdline:slub_debug=P", *operations("mmap-touch-4m")),
        (r"1 slower", r"mmap-touch-4m \d+ \d+ \+[01]\.\d+% \+-"),
    ),
    Case(
        "without-a-security-module",
        ("compare", K612, "+cmdline:security=yama", *operations("stat")),
        (r"1 faster", r"stat -5\.\d+% \(-\d+ common_perm_cond"),
    ),
    Case(
        "cleared-when-allocated",
        ("compare", K612, "+cmdline:init_on_alloc=0", *operations("mmap-touch-4k", "chdir")),
        (r"2 faster|1 faster, 1 mixed|2 mixed", r"-\d+k? string bytes|memset|clear_page"),
    ),
    Case(
        "small-pages",
        ("compare", K612, "+cmdline:transparent_hugepage=never", *operations("mmap-touch-4m")),
        (r"1 slower", r"mmap-touch-4m \+2\d\d\d%"),
    ),
    Case(
        "random-stacks",
        ("compare", K612, "+cmdline:randomize_kstack_offset=off", *operations("getppid")),
        (r"1 faster", r"getppid -\d\.\d+%"),
    ),
    Case(
        "no-memory-controller",
        (
            "compare", K612, "+cmdline:cgroup_disable=memory",
            *operations("page-fault", "open-close"),
        ),
        (r"2 faster", r"__mod_memcg_lruvec_state", r"__memcg_slab_post_alloc_hook"),
    ),
    Case(
        "audited-calls",
        ("gate", K612, "+cmdline:audit=1", *operations("getppid")),
        (r"^slower: .*getppid \+\d+",),
        code=1,
    ),
    Case(
        "checked-slabs",
        (
            "compare", K612, "+cmdline:slab_debug=FZ",
            *operations("open-close", "getppid"),
        ),
        (r"1 slower, 1 same", r"open-close \+\d+", r"same: getppid"),
    ),
    Case(
        "until-a-timer",
        ("gate", K61, K612, "--", "./loop"),
        (r"a clock ends it: the other run did 2\.\d+ % more iterations, and each executes -2\.",),
        code=125,
    ),
    Case(
        "until-a-timer-diff",
        ("diff", K61, K612, "--", "./loop"),
        (r"a clock ends it: the other run did 2\.\d+ % more iterations",),
        never=("exact",),
    ),
)  # fmt: skip


class Record(msgspec.Struct, frozen=True):
    """What a case's command printed, a line each, and how it ended."""

    name: str
    command: str
    code: int
    printed: tuple[str, ...]


def wrong(case: Case, record: Record) -> list[str]:
    """Return what of a record is not as it is to be."""
    text = " ".join(" ".join(record.printed).split())
    found = [f"ended with {record.code}, not {case.code}"] if record.code != case.code else []
    found += [f"does not print {one}" for one in case.prints if not re.search(one, text)]
    return found + [f"prints {one}" for one in case.never if re.search(rf"\b{one}\b", text)]


def made(case: Case, folder: str) -> Record:
    """Run a case's command in a folder that has the program."""
    command = [str(ROOT / ".venv/bin/kdelta"), *case.words]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    lines = tuple(line.rstrip() for line in done.stdout.splitlines())
    return Record(case.name, " ".join(["kdelta", *case.words]), done.returncode, lines)


def record_of(case: Case) -> Record | None:
    """Return the record that is kept."""
    path = FOLDER / f"{case.name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Record) if path.exists() else None


def main() -> int:
    """Make what is missing; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=[one.name for one in CASES], default=[])
    names = parser.parse_args().case
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "loop.c")
        source.write_text(LOOP)
        subprocess.run(["gcc", "-O2", "-o", Path(folder, "loop"), source], check=True)
        for case in (one for one in CASES if not names or one.name in names):
            record = record_of(case)
            if record is None:
                record = made(case, folder)
                text = msgspec.json.format(msgspec.json.encode(record), indent=1)
                write_atomic(FOLDER / f"{case.name}.json", text + b"\n")
            found = wrong(case, record)
            failed += bool(found)
            print(f"{case.name}: {'; '.join(found) or 'as it is to be'}", file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
