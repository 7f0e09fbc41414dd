# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that times a workload or a program, under KVM or emulated.

Nothing repeats there: no instruction is counted, the clock is the host's, and the kernel draws its
random layout as on any machine.
"""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kdelta.guests.cpio import Entry, archive, file, folder
from kdelta.host.command import Log, quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.emulator import find_qemu
from kdelta.host.files import lab_errors, write_atomic
from kdelta.host.gcc import Compiler
from kdelta.host.in_use import use
from kdelta.host.native import build_part
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.machines.device_tree import device_tree
from kdelta.machines.kvm import kvm_machine
from kdelta.measures.clock.results import TimedRun, parse_run
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import MachineOptions

_MEMORY, _HUGE_PAGES = Path("/proc/meminfo"), Path("/dev/hugepages")
_BEGIN, _END = '{"kdelta_bundle":', '{"regions":'
_OF_KERNEL = re.compile(r"\[ *\d+\.\d+\] ")
_FOLDERS = ("dev", "proc", "sys", "tmp")
_LAST_LINES = 3
_REPEATS = ("nokaslr", "norandmaps", "random.")
"""Boot parameters of exact machines that keep a kernel from drawing at random."""


_EMULATED = {"x86_64": "no_timer_check"}
"""Boot parameters where QEMU emulates: on a busy host it delivers timer interrupts too late for a
check of x86, and the kernel would panic.
"""


class ClockGuest(msgspec.Struct, frozen=True):
    """How guests are booted to be timed.

    accel       "kvm" or "tcg"
    memory_mib  that one has
    seconds     that one takes at most
    """

    machine: MachineOptions
    accel: str = "tcg"
    memory_mib: int = MachineOptions().memory_mib
    seconds: float = MachineOptions().timeout_seconds


def initramfs_of(job: bytes, by: Compiler, log: Log = quiet) -> Path:
    """Return an initramfs that does a job, an archive, made unless the cache has it. by: compiles
    its init.
    """
    program = build_part("clock_guest", log, by=by)
    with lab_errors("reading", program):
        init = file("init", program.read_bytes(), executable=True)
    console = Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    content = archive([*map(folder, _FOLDERS), console, init, file("job.cpio", job)])
    path = cache_dir("guests") / f"clock-{hashlib.sha256(content).hexdigest()[:32]}.cpio"
    if not path.is_file() or path.read_bytes() != content:
        write_atomic(path, content)
    use(path)
    return path


def guest_argv(guest: ClockGuest, kernel: Kernel, initramfs: Path) -> list[str]:
    """Return QEMU's arguments for a guest that does its job, then ends it."""
    board = arch_machine(kernel.arch).board(guest.machine.cpu)
    is_kvm = guest.accel == "kvm"
    cpu = "host" if is_kvm else board.cpu_argument(guest.machine.cpu)
    machine = kvm_machine(board) if is_kvm else board.machine
    usual = [one for one in board.append.split() if not one.startswith(_REPEATS)]
    words = [
        f"console={board.serial}", "loglevel=1", *usual,
        "" if is_kvm else _EMULATED.get(kernel.arch, ""),
        f"kdelta.as={guest.machine.runs_as}", guest.machine.append, *kernel.parameters,
    ]  # fmt: skip
    tree = device_tree(kernel, guest.machine.cpu)
    return [
        "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-monitor", "none",
        "-machine", machine, "-accel", guest.accel, "-cpu", cpu,
        "-m", str(guest.memory_mib), *_huge_pages(guest), *board.arguments, "-serial", "stdio",
        "-kernel", kernel.image, "-initrd", str(initramfs),
        "-append", " ".join(filter(None, words)), *(["-dtb", tree.path] if tree else []),
    ]  # fmt: skip


def timed_boot(guest: ClockGuest, kernel: Kernel, initramfs: Path) -> TimedRun:
    """Boot a kernel, time its job, and return what the guest says. LabError for a guest that does
    not come to its end, or whose program fails.
    """
    emulator = find_qemu(target(kernel.arch), guest.machine.qemu)
    argv = guest_argv(guest, kernel, initramfs)
    try:
        with _one_cpu() if guest.accel == "kvm" else contextlib.nullcontext():
            result = emulator.run(*argv, seconds=guest.seconds)
    except LabError as error:
        raise LabError(f"the guest of {kernel.release}: {error.message}", error.hint) from error
    return run_of_console(result.stdout, kernel.release, result.last_words(1))


@contextlib.contextmanager
def _one_cpu() -> Iterator[None]:
    """Keep what is started to the last CPU that this process may use: a virtual CPU that moves
    between processors leaves its caches behind.
    """
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(every)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def _huge_pages(guest: ClockGuest) -> list[str]:
    """Return QEMU's arguments for memory of the host's huge pages, if enough are free: otherwise
    where a guest's pages happen to lie is in its times.
    """
    if guest.accel != "kvm":
        return []
    try:
        facts = dict(line.split(":") for line in _MEMORY.read_text().splitlines())
        pages, kib = (int(facts[name].split()[0]) for name in ("HugePages_Free", "Hugepagesize"))
    except (OSError, ValueError, KeyError):
        return []
    enough = pages * kib >= guest.memory_mib << 10 and os.access(_HUGE_PAGES, os.W_OK)
    return ["-mem-prealloc", "-mem-path", str(_HUGE_PAGES)] if enough else []


def run_of_console(console: str, release: str, otherwise: str = "") -> TimedRun:
    """Return the run in what a guest printed, besides lines of the kernel and of the workload.
    LabError where it is not whole. otherwise: what to report of a guest that printed nothing.
    """
    lines = console.replace("\r\n", "\n").splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if line.startswith(_BEGIN)), None)
    # What comes behind the first end is what a program printed that failed.
    end = next((at for at, line in enumerate(lines) if line.startswith(_END)), None)
    if start is None or end is None:
        printed = [line for line in lines if not line.startswith("{")]
        last = "".join(printed[-_LAST_LINES:]).strip() or otherwise
        raise LabError(f"{release} was booted and timed nothing: {last}")
    within = lines[start : end + 1]
    content = "".join(line for line in within if line.startswith("{"))
    try:
        return parse_run(content.encode(), f"the guest of {release}")
    except UserError as error:
        besides = [line.strip() for line in lines[start:] if not line.startswith("{")]
        besides = [line for line in besides if line and not _OF_KERNEL.match(line)]
        raise LabError("; it printed: ".join([error.message, *besides[-1:]])) from error
