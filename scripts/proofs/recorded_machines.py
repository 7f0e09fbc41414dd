# SPDX-License-Identifier: GPL-2.0-or-later
"""What real machines report of their mitigations: docs/cases/forced/recorded.toml, which explains
each difference between them and guests as their CPUs.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
from campaign import CASES, markdown

from kdelta.cpus.model import CPU
from kdelta.cpus.representative import NOT_AFFECTED, divided, without_microcode

FOLDER = CASES / "forced"
_DECIDE_NOTHING = ("stibp", "ibrs_fw", "pbrsb-eibrs", "kvm")
"""Parts of spectre_v2 that decide nothing between a program and its kernel on one CPU: the sibling
thread, firmware, and exits of virtual machines."""


class Difference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An explained difference between a machine and guests.

    file: of /sys/devices/system/cpu/vulnerabilities.
    guests: series of the kernels of the guests that differ, as "6.12".
    machine_only, guest_only: the parts that only one of the two reports.
    kind: what it comes from, in a word or two.
    """

    file: str
    guests: tuple[str, ...]
    machine_only: tuple[str, ...]
    guest_only: tuple[str, ...]
    kind: str
    reason: str


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A real machine.

    cpu: the CPU file whose CPU it has.
    bare: what shows that it is not virtual.
    date: of the source; empty if unknown.
    not_affected: the files that say so.
    files: the words of the other files.
    """

    cpu: str
    name: str
    kernel: str
    bare: str
    source: str
    not_affected: tuple[str, ...]
    files: Mapping[str, str]
    microcode: str = ""
    date: str = ""
    differences: tuple[Difference, ...] = ()

    @property
    def reported(self) -> dict[str, str]:
        """Return the words of each file."""
        return {**dict.fromkeys(self.not_affected, NOT_AFFECTED), **self.files}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    machine: tuple[Machine, ...]


class Found(msgspec.Struct, frozen=True, order=True):
    """A difference: a machine's file in one series of guests' kernels, and the parts of each."""

    file: str
    series: str
    machine_only: tuple[str, ...]
    guest_only: tuple[str, ...]


def machines() -> tuple[Machine, ...]:
    """Return the machines of docs/cases/forced/recorded.toml."""
    return msgspec.toml.decode((FOLDER / "recorded.toml").read_bytes(), type=_File).machine


def deciding(file: str, words: str) -> frozenset[str]:
    """Return the parts of a file's words which decide what the kernel executes on one CPU.

    That is the first part; of spectre_v2, also IBPB, RSB filling and BHI. Older kernels divide the
    parts of spectre_v2 by commas and name enhanced IBRS alone.
    """
    if file != "spectre_v2":
        return frozenset({divided(words)[0].lower()})
    parts = [part.strip().lower() for part in re.split("[;,]", words)]
    first = parts[0].replace(": enhanced ibrs", ": enhanced / automatic ibrs")
    return frozenset(part for part in (first, *parts[1:]) if not part.startswith(_DECIDE_NOTHING))


def series_of(release: str) -> str:
    """Return the series of a kernel's release: "6.12" of "6.12.117+deb12-cloud-amd64"."""
    return ".".join(release.split(".")[:2])


def found(machine: Machine, cpu: str, release: str, words: Mapping[str, str]) -> Iterator[Found]:
    """Yield the differences from a guest, whose words of files these are, if it is as that CPU."""
    for file in words.keys() & machine.reported.keys() if cpu == machine.cpu else ():
        real, guest = (deciding(file, one) for one in (machine.reported[file], words[file]))
        if real != guest:
            series = series_of(release)
            yield Found(file, series, (*sorted(real - guest),), (*sorted(guest - real),))


def explained(machine: Machine) -> Iterator[Found]:
    """Yield the differences that are explained."""
    for one in machine.differences:
        sides = [tuple(sorted(map(str.lower, side))) for side in (one.machine_only, one.guest_only)]
        yield from (Found(one.file, series, *sides) for series in one.guests)


def mismatched(machine: Machine, cpu: CPU) -> list[str]:
    """Return what the CPU file expects of a file of mitigations and the machine does not report.

    Files with an explained difference are left out, those that the machine's kernel lacks, and
    mitigations that the machine has no microcode for, since the CPU files are of current microcode.
    """
    left_out = {one.file for one in machine.differences}
    return [
        f"{file}: {words}"
        for path in cpu.paths
        for file, words in path.mitigations.items()
        if file in machine.reported and file not in left_out
        if not without_microcode(machine.reported[file])
        if words.lower() not in deciding(file, machine.reported[file])
    ]


def table() -> str:
    """Return the table of the machines."""
    rows = []
    for one in machines():
        differ = [f"{each.file} ({each.kind})" for each in one.differences]
        host = one.source.split("/")[2]
        where = "/".join(one.source.split("/")[3:5]) if host == "github.com" else host
        linked = f"[{where}]({one.source})"
        outcome = f"differs in {', '.join(differ)}" if differ else "agrees"
        rows.append((one.cpu, one.name, one.kernel, linked, outcome))
    return markdown(("CPU", "machine", "kernel", "source", "guests"), rows)
