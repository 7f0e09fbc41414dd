# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a kernel in plain QEMU, without plugin and virtual clock, and runs steps in it.

A step is a command in one of the two modes;
programs/init.c runs them one after the other, and says on a serial line of its own how each ended.
"""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.guests.cpio import Entry, archive, file
from kdelta.host.native import NativeProgram, build_program

PROGRAMS = Path(__file__).parent / "programs"
INSIDE = "/kernel"
"""The folder of the guest whose programs start in kernel mode, in steps of that mode."""

CPU = (
    "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+fsgsbase,+smep,+smap,+pku,+avx,+avx2,"
    # Without xsaveopt, kernels with xsave do not get through their boot in QEMU 7.2.
    "+xsave,+xsaveopt"
)
# no_timer_check: on a busy host the boot's check of the timer may find it too slow, and panics.
APPEND = "console=ttyS0 panic=-1 oops=panic nokaslr random.trust_cpu=off no_timer_check"
NAMES = tuple(
    sorted(path.stem for path in PROGRAMS.glob("*.c") if path.stem not in {"init", "unsafe"})
)
"""The programs that prove one thing each."""

UNSAFE = {
    "control-register": False,
    "port": False,
    "model-specific-register": False,
    "halt": False,
    "read-kernel": False,
    "write-kernel": False,
    "gate": False,
    "call-kernel-code": False,
    "no-interrupts": True,
    "gate-with-code": True,
    "swapgs": True,
}
"""What programs/unsafe.c tries, which ring 0 does not catch. Whether it is the end of all."""

_FLAGS = ("-static", "-no-pie", "-pthread")


class Step(msgspec.Struct, frozen=True):
    """A command of the guest. `directory` is whose programs run in kernel mode; "": none's."""

    name: str
    argv: tuple[str, ...]
    directory: str = ""
    seconds: int = 60


class Machine(msgspec.Struct, frozen=True):
    """What the guest's QEMU is told. `seconds` is when it is ended, whatever it does.

    `steady`: its time is what it executes, 16 ns an instruction, however busy the host is. Two CPUs
    at the same time, or interrupts of the host's making, cannot be had so.
    """

    kernel: Path
    cpu: str = CPU
    cpus: int = 1
    megabytes: int = 512
    append: str = ""
    seconds: float = 300.0
    nmis_a_second: float = 0.0
    steady: bool = True


class Ended(msgspec.Struct, frozen=True):
    """How a step ended (exit-N, signal-N, timeout, or nothing), and the lines that it said."""

    name: str
    how: str
    seconds: float
    lines: tuple[str, ...]

    def said(self, word: str) -> list[str]:
        """What follows this word in lines that begin with it."""
        return [line[len(word) + 1 :] for line in self.lines if line.startswith(f"{word} ")]


class Boot(msgspec.Struct, frozen=True):
    """What a boot left. `whole`: all steps were gone through, and the guest powered off.

    `cpu_seconds` is what its emulator took of the host's CPUs.
    """

    steps: dict[str, Ended]
    console: str
    whole: bool
    cpu_seconds: float

    @property
    def banner(self) -> str:
        """What the kernel says of itself in its first line; empty if it said nothing."""
        found = re.search(r"Linux version .*", self.console)
        return found.group() if found else ""

    @property
    def core(self) -> bytes:
        """The core file that the program of that name said; empty if it said none."""
        whole = bytearray()
        for line in self.steps["core"].said("core") if "core" in self.steps else ():
            offset, _, data = line.partition(" ")
            whole.extend(bytes(int(offset) - len(whole)))
            whole.extend(bytes.fromhex(data))
        return bytes(whole)

    @property
    def oopses(self) -> list[str]:
        """Lines of the console that tell of a kernel that is not well."""
        return [line for line in self.console.splitlines() if _UNWELL.search(line)]


_UNWELL = re.compile(
    r"\bBUG:|Oops|Kernel panic|WARNING:|double fault|soft lockup|hung_task|blocked for more than|"
    r"unable to handle|Bad page|scheduling while atomic|list_add corruption|rcu: INFO|"
    r"general protection fault:"
)
_ALL = "@@ all"
_LAST_SECONDS = 10.0
_END = re.compile(r"@@ end (\S+) (\S+) ([\d.]+)")


def program(name: str) -> Path:
    """A program of this folder, compiled as the project's own C parts are."""
    of = NativeProgram(f"proof-{name}", PROGRAMS, (f"{name}.c",), _FLAGS)
    return build_program(of, strict=True)


def programs(names: Iterable[str]) -> list[Entry]:
    """Programs of this folder as files of the guest that may be in kernel mode."""
    return [
        file(f"{INSIDE[1:]}/{name}", program(name).read_bytes(), executable=True) for name in names
    ]


def steps(names: Iterable[str], directory: str = "") -> list[Step]:
    """A step for each of these programs."""
    return [Step(name, (f"{INSIDE}/{name}",), directory) for name in names]


def boot(machine: Machine, folder: Path, entries: Iterable[Entry], plan: Sequence[Step]) -> Boot:
    """Boots the kernel with these files and goes through the plan; consoles stay in `folder`."""
    lines = [
        f"{step.directory or '-'} {step.seconds} {step.name} {' '.join(step.argv)}\n"
        for step in plan
    ]
    init = file("init", program("init").read_bytes(), executable=True)
    entries = [*entries, init, file("plan", "".join(lines).encode())]
    initramfs = folder / "initramfs"
    initramfs.write_bytes(archive(entries))
    seconds = _run(machine, folder, initramfs)
    initramfs.unlink()
    report = _text(folder / "report")
    return Boot(
        steps=_ended(report),
        console=_text(folder / "console"),
        whole=_ALL in report,
        cpu_seconds=seconds,
    )


def _run(machine: Machine, folder: Path, initramfs: Path) -> float:
    """Until the guest is gone, or out of time; how long it kept the host's CPUs busy."""
    ports = [f"file:{folder / name}" for name in ("console", "report")]
    control = folder / "control"
    argv = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "pc", "-cpu", machine.cpu, "-smp", str(machine.cpus),
        *_accelerator(machine),
        "-m", str(machine.megabytes), "-kernel", str(machine.kernel), "-initrd", str(initramfs),
        "-append", f"{APPEND} {machine.append}".strip(),
        *(word for port in ports for word in ("-serial", port)),
        "-qmp", f"unix:{control},server=on,wait=off",
    ]  # fmt: skip
    (folder / "qemu.sh").write_text(" ".join(argv) + "\n")
    with (folder / "qemu.log").open("wb") as log:
        qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + machine.seconds
        try:
            while _runs(qemu.pid) and time.monotonic() < deadline:
                # Not before: firmware and early kernels do not survive one.
                report = _text(folder / "report")
                if _ALL in report:  # QEMU 7.2 with a thread a CPU may stay when its guest is gone
                    deadline = min(deadline, time.monotonic() + _LAST_SECONDS)
                elif machine.nmis_a_second and report:
                    _nmis(control, machine.nmis_a_second, deadline)
                time.sleep(0.1)
        finally:
            if _runs(qemu.pid):
                os.kill(qemu.pid, signal.SIGKILL)
            _, status, used = os.wait4(qemu.pid, 0)
            qemu.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def symbol(vmlinux: Path, name: str) -> str:
    """The address of one of the kernel's symbols, in hexadecimal; ValueError if it has none."""
    with vmlinux.open("rb") as opened:
        table = ELFFile(opened).get_section_by_name(".symtab")
        found = table.get_symbol_by_name(name) if isinstance(table, SymbolTableSection) else None
    if not found:
        raise ValueError(f"{vmlinux} has no symbol {name}")
    return f"{found[0]['st_value']:x}"


def differences(user: Boot, kernel: Boot) -> dict[str, tuple[str, str]]:
    """Of what the programs tell of the CPU, what is not the same: by name, in the one and the other
    mode. Facts of a mode alone are of ways to call that the other does not have.
    """
    facts = [
        {
            f"{step.name}: {name}": what
            for step in one.steps.values()
            for name, _, what in (fact.partition(" ") for fact in step.said("fact"))
        }
        for one in (user, kernel)
    ]
    there = [name for name in facts[0] if name in facts[1]]
    return {
        name: (facts[0][name], facts[1][name]) for name in there if facts[0][name] != facts[1][name]
    }


def _accelerator(machine: Machine) -> list[str]:
    if machine.cpus > 1:
        return ["-accel", "tcg,thread=multi"]
    if machine.nmis_a_second or not machine.steady:
        return ["-accel", "tcg"]
    return ["-accel", "tcg,thread=single", "-icount", "shift=4,sleep=off", "-rtc", "clock=vm"]


def _runs(pid: int) -> bool:
    """Whether a child has not ended yet. It is left to be waited for, with what it used."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, flags) is None


def _nmis(control: Path, a_second: float, deadline: float) -> None:
    """Sends non-maskable interrupts until the guest is gone, or QEMU answers no more."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_LAST_SECONDS)
        try:
            line.connect(str(control))
            line.recv(4096)
            line.sendall(b'{"execute":"qmp_capabilities"}\n')
            while time.monotonic() < deadline:
                line.sendall(b'{"execute":"inject-nmi"}\n')
                line.recv(65536)
                time.sleep(1 / a_second)
        except (TimeoutError, ConnectionError):
            return


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\r", "")
    except FileNotFoundError:
        return ""


def _ended(report: str) -> dict[str, Ended]:
    """The steps of what the guest's init said, the last of them maybe without an end."""
    found: dict[str, Ended] = {}
    for part in report.split("@@ start ")[1:]:
        name, _, rest = part.partition("\n")
        end = _END.search(rest)
        lines = (rest[: end.start()] if end else rest).splitlines()
        said = tuple(line for line in lines if line)
        if end is None:
            found[name] = Ended(name, "nothing", 0.0, said)
        else:
            found[name] = Ended(name, end.group(2), float(end.group(3)), said)
    return found
