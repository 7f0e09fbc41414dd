# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest left of a run: why it failed, and which boot parameters its kernel took."""

import mmap
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdelta.counts.binaries import load_binary
from kdelta.counts.model import RunCounts
from kdelta.cpus.forced import features
from kdelta.cpus.representative import not_taken
from kdelta.host.files import lab_errors
from kdelta.infer.effects.same import partings
from kdelta.kernels.arches import kernel_arch
from kdelta.kernels.config.kconfig import OFF, PREFIX, parse_config
from kdelta.kernels.config.lab_config import missing_options
from kdelta.kernels.kbuild.built import load_built
from kdelta.kernels.model import Kernel
from kdelta.lab.attachments import KERNEL_LOG
from kdelta.lab.smp import cpus_used
from kdelta.machines.arch import arch_machine
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.parameters import parameter, unknown_parameters
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run

_PAGE_BYTES = 4096
_TRAP = re.compile(
    r"traps: \S+ trap invalid opcode ip:([0-9a-f]+) sp:\S+ error:\S+ in ([^\[]+)\[([0-9a-f]+)\+"
)
_PREFIXES = b"\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67"
_REX = range(0x40, 0x50)
_COMMAND_LINE = re.compile(r"^cmdline (.*)$", re.MULTILINE)

_COMPLAINT = re.compile(r"(?:Malformed early option '|for parameter `)([^']*)'")

_COMPLAINS = re.compile(r"^<[0-4]>\[[^\]]*\] *(.*)$", re.MULTILINE)
"""A line of the log that is a warning, or worse."""

_CPU_LIST = re.compile(r"[\d,:/-]*?(\d+)")
"""A list of CPUs, and the number that it ends with."""

_ALWAYS = ("HOME=/", "TERM=linux")
"""The environment that a kernel gives its init without being asked to (init/main.c)."""

_NEWER_CPU = "--qemu-cpu Haswell-noTSX has those of x86-64-v3"

_HINT = (
    "Documentation/admin-guide/kernel-parameters.txt of that kernel has those that there are; some "
    "need an option of its config. --append sets any words, unchecked"
)


def advice(
    outcome: GuestOutcome, kernel: Kernel, binaries: Mapping[str, bytes], guest: Guest
) -> str:
    """What follows a failed run's reason: empty, or a clause that starts with a semicolon."""
    if outcome.status is RunStatus.BOOT_FAILED:
        return about_config(kernel) + _about_target(kernel, guest)
    is_illegal = re.search(r"\bsignal 4\b", outcome.detail)
    return _about_instruction(outcome.console, binaries) if is_illegal else ""


def about_config(kernel: Kernel) -> str:
    """What a kernel's config lacks of what guests need, as a clause; empty if that is nothing."""
    if not kernel.config:
        return ""
    config = Path(kernel.config).read_text(errors="replace")
    missing = missing_options(config, kernel.image_format, kernel.arch)
    named = [f"{option.option} ({option.needed_for})" for option in missing]
    return f"; its config lacks {', '.join(named)}" if named else ""


def _about_target(kernel: Kernel, guest: Guest) -> str:
    """Which CPUs a kernel was compiled for, if that was asked for, and which one the guest has."""
    built = load_built(kernel.built) if kernel.built else None
    words = " ".join(built.variables.values()).split() if built else []
    if not (flags := [word for word in words if word.startswith(("-march=", "-mcpu="))]):
        return ""
    more = f": {_NEWER_CPU}" if kernel.arch == "x86_64" else ""
    cpu = guest.cpu or guest.board.cpu
    return (
        f"; it was compiled with {' '.join(flags)}, and the guest's CPU, {cpu}, may lack "
        f"instructions of that{more}"
    )


def _about_instruction(console: str, binaries: Mapping[str, bytes]) -> str:
    feature = ""
    if found := _TRAP.search(console):
        address, name, start = int(found[1], 16), found[2], int(found[3], 16)
        for path, content in binaries.items():
            if Path(path).name == name:
                feature = needed_feature(code_at(content, start, address))
    cpu = "; the machine's CPU does not have an instruction of this program"
    return f"{cpu}: {feature}" if feature else cpu


def code_at(content: bytes, start: int, address: int) -> bytes:
    """The instruction bytes at an address of a binary whose code is mapped from `start` on."""
    binary = load_binary("", content)
    for vaddr, data in binary.segments if binary else ():
        at = address - (start - vaddr // _PAGE_BYTES * _PAGE_BYTES) - vaddr
        if 0 <= at < len(data):
            return data[at : at + 15]
    return b""


def needed_feature(code: bytes) -> str:
    """The CPU feature that an instruction belongs to, as far as its encoding shows."""
    rest = code.lstrip(_PREFIXES)
    if rest[:1] == b"\x62":
        return "AVX-512"
    if rest[:1] in {b"\xc4", b"\xc5"}:
        return "AVX, AVX2, FMA or BMI (x86-64-v3)"
    if rest and rest[0] in _REX:
        rest = rest[1:]
    known = {
        b"\x0f\x38\xf0": "MOVBE (x86-64-v3)",
        b"\x0f\x38\xf1": "MOVBE (x86-64-v3)",
        b"\x0f\xc7": "RDRAND or RDSEED, which would bring the host's entropy into the guest",
        b"\x0f\xbd": "LZCNT (x86-64-v3)",
        b"\x0f\x38\xc8": "SHA",
        b"\x0f\x38\xdc": "AES",
        b"\x0f\x38\xde": "AES",
        b"\x0f\x3a\x44": "PCLMULQDQ",
    }
    return next((name for prefix, name in known.items() if rest.startswith(prefix)), "")


def must_fit_in_command_line(kernel: Kernel, command_line: str) -> None:
    """Raise UserError for a command line that is longer than the kernel can take: some hang then,
    and print nothing.
    """
    most = kernel_arch(kernel.arch).command_line_bytes - 1
    if len(command_line) > most:
        raise UserError(
            f"cannot boot {kernel.release} as asked: its command line has {len(command_line)} "
            f"bytes, and kernels for {kernel.arch} take {most} at most",
            f"boot parameters are {len(' '.join(kernel.parameters))} of these bytes; name fewer, "
            "or shorter ones",
        )


def must_be_taken(kernel: Kernel, messages: Mapping[str, bytes]) -> None:
    """Raise UserError if the kernel of a guest that sent these messages did not take one of its
    boot parameters. What kdelta sets itself is not looked at.
    """
    if not kernel.parameters or "hello" not in messages:
        return
    command_line = _COMMAND_LINE.search(_text(messages, "hello"))
    if command_line is None or " ".join(kernel.parameters) not in command_line[1]:
        raise UserError(
            f"cannot boot {kernel.spec}: the kernel ignores its command line, or cuts it off",
            "CONFIG_CMDLINE_OVERRIDE or CONFIG_CMDLINE_FORCE in its config ignores it",
        )
    own = arch_machine(kernel.arch).own_parameters
    given = [word for word in _unknown(kernel, messages) if parameter(word)[0] not in own]
    if unknown := [word for word in given if not _boot_stage_reads(kernel, parameter(word)[0])]:
        raise _given_to_init(kernel, unknown, messages)
    complaints = _COMPLAINT.findall(_text(messages, KERNEL_LOG))
    if refused := [word for word in kernel.parameters if parameter(word)[0] in complaints]:
        raise UserError(
            f"cannot boot {kernel.spec} as asked: {kernel.release} cannot read the value of "
            f"{refused[0]}",
            _HINT,
        )


def _given_to_init(
    kernel: Kernel, words: Sequence[str], messages: Mapping[str, bytes]
) -> UserError:
    """Return the error for parameters that a kernel gave to its init: it does so with those that it
    does not know, and with those whose value it refuses. Its log or its config shows which, if
    anything does.
    """
    cannot = f"cannot boot {kernel.spec} as asked: {kernel.release}"
    for word in words:
        if because := _refusal(kernel, parameter(word)[0], messages):
            beyond, hint = _beyond_cpus(word, messages)
            return UserError(f"{cannot} refuses {word}: {because}{beyond}", hint or _HINT)
    return UserError(
        f"{cannot} does not know {' '.join(words)}, or refuses the value: it leaves that to its "
        "init, and neither its log nor its config shows which",
        _HINT,
    )


def _refusal(kernel: Kernel, name: str, messages: Mapping[str, bytes]) -> str:
    """Return what shows that the kernel knows a parameter of that name; empty if nothing does."""
    lines = (found[1] for found in _COMPLAINS.finditer(_text(messages, KERNEL_LOG)))
    logged = [f"it logs {line!r}" for line in lines if re.search(rf"\b{re.escape(name)}\b", line)]
    config = Path(kernel.config).read_text(errors="replace") if kernel.config else ""
    option = PREFIX.replace("_", "") + name.replace("_", "").upper()
    granted = [
        f"its config has {known}={value}"
        for known, value in parse_config(config).items()
        if known.replace("_", "") == option and value != OFF
    ]
    return ", and ".join(logged + granted)


def _beyond_cpus(word: str, messages: Mapping[str, bytes]) -> tuple[str, str]:
    """Return that a parameter names a CPU which the guest does not have, as a clause, and how it
    gets one; both empty if it does not.
    """
    cpus, listed = cpus_used(messages), _CPU_LIST.fullmatch(parameter(word)[1] or "")
    if not cpus or not listed or int(listed[1]) < cpus:
        return "", ""
    return f"; the guest's last CPU is number {cpus - 1}", f"take --smp {int(listed[1]) + 1}"


def _boot_stage_reads(kernel: Kernel, name: str) -> bool:
    """Return whether a kernel's boot stage (arch/x86/boot/compressed) has such a name: what follows
    it in the image is packed.
    """
    path = Path(kernel.image)
    if kernel.image_format != "bzImage":
        return False
    with (
        lab_errors("reading", path),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image,
    ):
        return image.find(b"\0%s\0" % name.encode()) >= 0


class NotForcedError(LabError):
    """A kernel that did not take the features that the CPU's file forces."""


def clears(guest: Guest) -> bool:
    """Return whether a boot parameter takes features away and the CPU's file forces some: to a
    kernel, what is forced counts.
    """
    words = [parameter(word)[0] for word in guest.command_line.split()]
    return bool(guest.force) and "clearcpuid" in words


def must_not_clear(kernel: Kernel, guest: Guest) -> None:
    """Raise UserError where a boot parameter takes away what the CPU's file forces."""
    if clears(guest):
        raise UserError(
            f"cannot boot {kernel.release} as asked: clearcpuid= does nothing to features that the "
            "CPU's file forces",
            "take a copy of the CPU's file without them in `force`, or no --cpu",
        )


def must_be_forced(kernel: Kernel, guest: Guest, messages: Mapping[str, bytes]) -> None:
    """NotForcedError if the kernel of a guest that sent these messages did not take the features
    that the CPU's file forces.
    """
    if not guest.force or "cpuinfo" not in messages:
        return
    names = guest.forcing.names if guest.forcing else guest.force
    said = (_text(messages, name) for name in ("cpuinfo", "vulnerabilities"))
    signs = not_taken((features()[name] for name in names), *said)
    if signs and guest.forcing and not guest.forcing.array:
        raise NotForcedError(
            f"cannot force features in {kernel.release}: its symbols do not list cpu_caps_set, and "
            f"it ignores setcpuid=: {', '.join(signs)}",
            "build it with CONFIG_KALLSYMS_ALL=y, or take Linux 6.15 or later; a copy of the CPU's "
            "file without `force` does without, and so does --qemu-cpu",
        )
    if signs:
        raise NotForcedError(
            f"cannot force features in {kernel.release}: it did not take {', '.join(signs)}",
            "it does not know them, or numbers them in another way; take a copy of the CPU's file "
            "without them in `force`, or --qemu-cpu, with which nothing is forced",
        )


def not_reported(kernel: Kernel, messages: Mapping[str, bytes]) -> tuple[str, ...]:
    """Warnings of boot parameters of which the kernel does not report whether it knows them. Those
    that it reports as unknown are here such as it looks for itself.
    """
    dotted = [word for word in kernel.parameters if "." in parameter(word)[0]]
    warnings = (
        ("kernels do not report whether they know names with a dot", dotted),
        (
            "the kernel reports as unknown what it looks for itself, whether it has it or not",
            _unknown(kernel, messages),
        ),
    )
    return tuple(
        f"{' '.join(words)} may be without effect on {kernel.release}: {why}"
        for why, words in warnings
        if words
    )


def _unknown(kernel: Kernel, messages: Mapping[str, bytes]) -> list[str]:
    """The boot parameters that the kernel gave its init."""
    arguments = _text(messages, "arguments").split("\0")[1:]
    environment = _text(messages, "environment").split("\0")
    handed = [text for text in (*arguments, *environment) if text and text not in _ALWAYS]
    return unknown_parameters(kernel.parameters, handed)


def _text(messages: Mapping[str, bytes], name: str) -> str:
    return messages.get(name, b"").decode("utf-8", "replace")


def must_agree(earlier: RunCounts, counts: RunCounts, first: Run, second: Run) -> None:
    """LabError for two runs that are the same and counted differently."""
    found = list(partings(earlier, counts))
    if found:
        raise LabError(
            f"runs {first.id} and {second.id} are the same and counted differently: {found[0]}"
            + (f" (and {len(found) - 1} more places)" if len(found) > 1 else ""),
            "exactness is broken; please report it with the output of kdelta doctor",
        )
