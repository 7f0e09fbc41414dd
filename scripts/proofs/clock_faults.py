#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Try what goes wrong while guests are timed, 20 times each: nothing is attributed to the wrong
kernel, and nothing is lost.

hangs       QEMU stops for ever at a random moment: an error that names the kernel, and no process
            is left
panics      the kernel panics at a random moment: an error that names it
suspended   QEMU stands still for three seconds at a random moment, as on a host that is suspended:
            the figures stay those of other boots
offline     a CPU goes offline in the middle: the run is refused
killed      kdelta is killed at a random moment: no process is left, each file that is there is
            whole, and of the kernel whose folder it is in
two at once two comparisons the other way round: each file is of the kernel whose folder it is in

    scripts/proofs/clock_faults.py --trials 20
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from campaign import BUILD, NEW, OLD, Proof
from compared import obtained

from kdelta.kernels.model import Kernel
from kdelta.lab.plan import guest_compiler
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.measures.clock import guests
from kdelta.measures.clock.guests import ClockGuest, initramfs_of, timed_boot
from kdelta.measures.clock.jobs import timed_job
from kdelta.measures.clock.results import TimedRun, read_run
from kdelta.spec.errors import KdeltaError, LabError
from kdelta.spec.run import MachineOptions

SEED = 1
SPECS = (OLD, NEW)
MACHINE = MachineOptions()
OPERATIONS = ("getppid", "stat", "pipe-round-trip")
BOOT_SECONDS = 8.0
"""Within which guests are disturbed: most of their time on an idle host."""
HANGS_SECONDS, STANDS_SECONDS = 30.0, 3.0
MOST_TIMES = 10
"""A region has 20 ms or more. One that three seconds were added to takes 100 times as long."""


class Trial(msgspec.Struct, frozen=True):
    """One trial. good: whether it ended as it must; words: how it ended."""

    name: str
    after_seconds: float
    good: bool
    words: str


def booted(kernel: Kernel, work: Work, seconds: float = 300.0) -> TimedRun:
    """Boot and time."""
    job = timed_job(work, kernel, LabRequest(machine=MACHINE))
    image = initramfs_of(job.archive, guest_compiler(kernel.arch, MACHINE))
    guest = ClockGuest(MACHINE, memory_mib=job.memory_mib, seconds=seconds)
    return timed_boot(guest, kernel, image)


def children(of: int) -> list[int]:
    """Return the processes that all threads of that one have started."""
    tasks = Path(f"/proc/{of}/task")
    if not tasks.is_dir():
        return []
    words = " ".join((one / "children").read_text() for one in tasks.iterdir())
    return [int(word) for word in words.split()]


def qemus(image: str = "clock-") -> list[int]:
    """Return the QEMUs that boot such an initramfs."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = one.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"qemu" in words[0] and any(image.encode() in word for word in words):
            found.append(int(one.parent.name))
    return found


def disturbed(
    after: float, disturb: Callable[[int], None], run: Callable[[], TimedRun]
) -> TimedRun:
    """Run with QEMU disturbed so many seconds after its start."""

    def watch() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (found := children(os.getpid())):
            time.sleep(0.01)
        time.sleep(after)
        for pid in children(os.getpid()) if found else ():
            disturb(pid)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return run()
    finally:
        watcher.join()


def hangs(kernel: Kernel, after: float) -> tuple[bool, str]:
    """Stop QEMU for ever."""
    work = Work(operations=OPERATIONS)
    try:
        run = disturbed(
            after,
            lambda pid: os.kill(pid, signal.SIGSTOP),
            lambda: booted(kernel, work, HANGS_SECONDS),
        )
    except LabError as error:
        return kernel.release in error.message and not children(os.getpid()), error.message
    return run.facts.release == kernel.release, "it had ended before"


def scripted(script: str) -> Work:
    """Return a shell script as what is timed."""
    return Work(program=Program(command=("/bin/sh", "-c", script), files=("/usr/bin/sleep",)))


def panics(kernel: Kernel, after: float) -> tuple[bool, str]:
    """Let the kernel panic while it is timed."""
    script = f"sleep {after / 4:.2f}; echo c >/proc/sysrq-trigger; sleep 100"
    try:
        booted(kernel, scripted(script))
    except KdeltaError as error:
        return kernel.release in error.message, error.message
    return False, "it was timed"


def stands(pid: int) -> None:
    """Let a process stand still."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STANDS_SECONDS)
    os.kill(pid, signal.SIGCONT)


def suspended(usual: dict[str, dict[str, float]]) -> Callable[[Kernel, float], tuple[bool, str]]:
    """Return the trial; usual: by release the times of an undisturbed boot."""

    def trial(kernel: Kernel, after: float) -> tuple[bool, str]:
        work = Work(operations=OPERATIONS)
        if kernel.release not in usual:
            usual[kernel.release] = booted(kernel, work).ns
        run = disturbed(after, stands, lambda: booted(kernel, work))
        of = {name: ns / usual[kernel.release][name] for name, ns in run.ns.items()}
        good = run.facts.release == kernel.release and set(run.ns) | set(run.jumped) == set(
            OPERATIONS
        )
        words = ", ".join(f"{name} {times:.2f} times" for name, times in of.items())
        words += f"; jumped: {', '.join(run.jumped)}" if run.jumped else ""
        return good and all(1 / MOST_TIMES < one < MOST_TIMES for one in of.values()), words

    return trial


def offline(kernel: Kernel, after: float) -> tuple[bool, str]:
    """Take a CPU away while two are timed."""
    plain = guests.guest_argv
    script = f"sleep {after / 4:.2f}; echo 0 >/sys/devices/system/cpu/cpu1/online; sleep 0.2"
    try:
        guests.guest_argv = lambda *words: [*plain(*words), "-smp", "2"]
        booted(kernel, scripted(script))
    except KdeltaError as error:
        return "CPUs went online or offline" in error.message, error.message
    finally:
        guests.guest_argv = plain
    return False, "it was timed"


def compare(base: str, other: str, pairs: int) -> subprocess.Popen[str]:
    """Start a comparison with a clock."""
    argv = [sys.executable, "-m", "kdelta", "compare", base, other, "--clock", "emulated"]
    argv += ["--pairs", str(pairs), "-o", "getppid"]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def folder_of(process: subprocess.Popen[str]) -> Path:
    """Return where a comparison keeps what guests write, once it says so."""
    assert process.stderr
    for line in process.stderr:
        if found := re.search(r"is kept in (\S+)", line):
            return Path(found[1])
    raise LabError("the comparison ended before it timed anything")


def whose(folder: Path, sides: Sequence[Kernel]) -> tuple[bool, int]:
    """Return whether all files are whole and of the kernel of their folder, and how many."""
    count, good = 0, True
    for name, kernel in zip(("base", "other"), sides, strict=True):
        for path in (folder / name).glob("*"):
            count += 1
            good &= read_run(path).facts.release == kernel.release
    return good, count


def killed(both: Sequence[Kernel], after: float) -> tuple[bool, str]:
    """Kill kdelta while it times guests."""
    process = compare(SPECS[0], SPECS[1], 6)
    folder = folder_of(process)
    time.sleep(3 * after)
    mine = children(process.pid)
    process.kill()
    process.communicate()
    time.sleep(0.5)
    left = [pid for pid in mine if pid in qemus()]
    good, count = whose(folder, both)
    return good and not left, f"{count} boots are whole; {len(left)} processes are left"


def two_at_once(both: Sequence[Kernel]) -> tuple[bool, str]:
    """Run two comparisons side by side, of the same kernels the other way round."""
    started = [compare(SPECS[0], SPECS[1], 2), compare(SPECS[1], SPECS[0], 2)]
    folders = [folder_of(one) for one in started]
    for one in started:
        one.communicate()
    found = [whose(folders[0], both), whose(folders[1], both[::-1])]
    codes = [one.returncode for one in started]
    good = all(one for one, _ in found) and [count for _, count in found] == [4, 4]
    return good and codes == [0, 0], f"boots: {[count for _, count in found]}; exit codes: {codes}"


FAULTS = ("hangs", "panics", "suspended", "offline", "killed", "two at once")


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Trial]:
    """Try each fault at a moment that is drawn."""
    both = [obtained(spec) for spec in SPECS]
    stand = suspended({})
    faults: dict[str, Callable[[int, float], tuple[bool, str]]] = {
        "hangs": lambda at, after: hangs(both[at % 2], after),
        "panics": lambda at, after: panics(both[at % 2], after),
        "suspended": lambda at, after: stand(both[at % 2], after),
        "offline": lambda at, after: offline(both[at % 2], after),
        "killed": lambda _at, after: killed(both, after),
        "two at once": lambda _at, _after: two_at_once(both),
    }
    for name in names:
        fault, number = name.rsplit(maxsplit=1)
        after = round(random.Random(f"{SEED} {name}").uniform(0, BOOT_SECONDS), 2)
        yield Trial(name, after, *faults[fault](int(number), after))


PROOF = Proof(
    record=Trial,
    file=BUILD / "clock-faults/trials.jsonl",
    trials=lambda given: [f"{fault} {n}" for fault in FAULTS for n in range(given.trials)],
    make=made,
    wrong=lambda found: (f"{one.name}: {one.words}" for one in found if not one.good),
    summary=lambda one: one.words,
    answer=lambda found: str(Counter(one.name.rpartition(" ")[0] for one in found if one.good)),
    sizes={"trials": 20},
)


if __name__ == "__main__":
    sys.exit(PROOF.main())
