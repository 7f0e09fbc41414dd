#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions that are asked in public, and the words that kdelta has for them.

    scripts/proofs/public_cases.py [CASE]...

runs each command of CASES as a user does; a record is what it printed, and its exit code. It fails
if a command ends with another code, or does not print what is right.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

import msgspec
from campaign import CASES as FOLDER
from campaign import NEW, OLD, ROOT, Proof

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
    """Return the options that name these."""
    return tuple(word for name in names for word in ("-o", name))


CASES = (
    Case(
        "psi-off",
        ("compare", OLD, "+cmdline:psi=0", *operations("pipe-round-trip", "getppid")),
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
            "gate", NEW, "+cmdline:clocksource=acpi_pm",
            *operations("gettimeofday-syscall", "clock_gettime-syscall"),
        ),
        (r"^slower: .*\+1 in 0x608",),
        code=1,
    ),
    Case(
        "clocks",
        (
            "compare", NEW, "+cmdline:clocksource=acpi_pm", ",", "+cmdline:clocksource=hpet",
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
        ("compare", OLD, "+cmdline:cgroup.memory=nokmem", *operations("open-close")),
        (r"1 faster", r"open-close -\d\.\d+%"),
        never=("may be without effect",),
    ),
    Case(
        "what-changes-nothing",
        ("compare", NEW, "+cmdline:printk.time=1", *operations("getppid")),
        (r"printk\.time=1: nothing that was looked at differs",),
    ),
    Case(
        "variant-after-a-variant",
        ("compare", NEW, "+cmdline:consoleblank=0", "+", "+cmdline:psi=0", *operations("getppid")),
        (r"^Linux 6\.12\.\d+ with psi=0 against 6\.12\.\d+ without, both with consoleblank=0",),
    ),
    Case(
        "work-of-other-tasks",
        ("compare", OLD, NEW, *operations("mmap-munmap", "open-close")),
        (
            r"^Linux 6\.12\.\d+ against 6\.1\.\d+, 2 operations",
            r"mmap-munmap -2\d\.\d% \(-2\d{3} in the task, \+\d{3,4} left to others",
            r"open-close .* -1\d\d in the task, -5\d\d left to others",
        ),
    ),
    Case(
        "psi-off-newer",
        ("compare", NEW, "+cmdline:psi=0", *operations("pipe-round-trip", "getppid")),
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
            "compare", NEW, "+cmdline:spec_store_bypass_disable=on", *operations("getppid"),
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
        ("compare", NEW, "+cmdline:slub_debug=P", *operations("mmap-touch-4m")),
        (r"1 slower", r"mmap-touch-4m \d+ \d+ \+[01]\.\d+% \+-"),
    ),
    Case(
        "without-a-security-module",
        ("compare", NEW, "+cmdline:security=yama", *operations("stat")),
        (r"1 faster", r"stat -5\.\d+% \(-\d+ common_perm_cond"),
    ),
    Case(
        "cleared-when-allocated",
        ("compare", NEW, "+cmdline:init_on_alloc=0", *operations("mmap-touch-4k", "chdir")),
        (r"2 faster|1 faster, 1 mixed|2 mixed", r"-\d+k? string bytes|memset|clear_page"),
    ),
    Case(
        "small-pages",
        ("compare", NEW, "+cmdline:transparent_hugepage=never", *operations("mmap-touch-4m")),
        (r"1 slower", r"mmap-touch-4m \+2\d\d\d%"),
    ),
    Case(
        "random-stacks",
        ("compare", NEW, "+cmdline:randomize_kstack_offset=off", *operations("getppid")),
        (r"1 faster", r"getppid -\d\.\d+%"),
    ),
    Case(
        "no-memory-controller",
        (
            "compare", NEW, "+cmdline:cgroup_disable=memory",
            *operations("page-fault", "open-close"),
        ),
        (r"2 faster", r"__mod_memcg_lruvec_state", r"__memcg_slab_post_alloc_hook"),
    ),
    Case(
        "audited-calls",
        ("gate", NEW, "+cmdline:audit=1", *operations("getppid")),
        (r"^slower: .*getppid \+\d+",),
        code=1,
    ),
    Case(
        "checked-slabs",
        (
            "compare", NEW, "+cmdline:slab_debug=FZ",
            *operations("open-close", "getppid"),
        ),
        (r"1 slower, 1 same", r"open-close \+\d+", r"same: getppid"),
    ),
    Case(
        "until-a-timer",
        ("gate", OLD, NEW, "--", "./loop"),
        (r"a clock ends it: the other run did 2\.\d+ % more iterations, and each executes -2\.",),
        code=125,
    ),
    Case(
        "until-a-timer-diff",
        ("diff", OLD, NEW, "--", "./loop"),
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


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Record]:
    """Run the commands in a folder that has the program."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with tempfile.TemporaryDirectory() as folder:
        gcc = ["gcc", "-O2", "-x", "c", "-", "-o", f"{folder}/loop"]
        subprocess.run(gcc, input=LOOP, text=True, check=True)
        for case in (one for one in CASES if one.name in names):
            command = [str(ROOT / ".venv/bin/kdelta"), *case.words]
            done = subprocess.run(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
            )
            lines = tuple(line.rstrip() for line in done.stdout.splitlines())
            yield Record(case.name, " ".join(["kdelta", *case.words]), done.returncode, lines)


def wrong(found: Sequence[Record]) -> Iterator[str]:
    """Yield what of records is not as it is to be."""
    cases = {case.name: case for case in CASES}
    for one in found:
        case, text = cases[one.name], " ".join(" ".join(one.printed).split())
        if one.code != case.code:
            yield f"{one.name}: ended with {one.code}, not {case.code}"
        for pattern in case.prints:
            if not re.search(pattern, text):
                yield f"{one.name}: does not print {pattern}"
        for pattern in case.never:
            if re.search(rf"\b{pattern}\b", text):
                yield f"{one.name}: prints {pattern}"


PROOF = Proof(
    record=Record,
    file=FOLDER / "public/records.jsonl",
    trials=lambda _: [case.name for case in CASES],
    make=made,
    wrong=wrong,
)


def check_records_are_of_these_commands(found: Sequence[Record]) -> None:
    """Check the command lines."""
    for case, one in zip(CASES, found, strict=True):
        assert one.command.split()[1:] == " ".join(case.words).split()


def check_other_words_and_another_code_are_wrong(found: Sequence[Record]) -> None:
    """Check records that are made up."""
    for case, one in zip(CASES, found, strict=True):
        empty = msgspec.structs.replace(one, printed=("Linux: 1 same, exact, base, other",))
        assert len(list(wrong([empty]))) >= len(case.prints)
        (code,) = wrong([msgspec.structs.replace(one, code=7)])
        assert code == f"{one.name}: ended with 7, not {case.code}"


if __name__ == "__main__":
    sys.exit(PROOF.main())
