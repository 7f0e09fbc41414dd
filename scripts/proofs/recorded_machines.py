#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares what real machines report of their mitigations with what guests with forced CPUs do.

    scripts/proofs/recorded_machines.py

docs/cases/forced/recorded.toml has the machines, from public sources, and explains each difference
between them and the records of the guests in the same folder. This prints the differences that are
not explained, or explained but not found, and puts the table into the folder's README.md.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from forced_cpus import FOLDER, Record, records
from round_trips import markdown

from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU
from kdelta.cpus.representative import NOT_AFFECTED, parts_of, without_microcode

START, END = "<!-- machines -->\n", "<!-- end of machines -->\n"

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
        """The words of each file."""
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
        return frozenset({parts_of(words)[0].lower()})
    parts = [part.strip().lower() for part in re.split("[;,]", words)]
    first = parts[0].replace(": enhanced ibrs", ": enhanced / automatic ibrs")
    return frozenset(part for part in (first, *parts[1:]) if not part.startswith(_DECIDE_NOTHING))


def series_of(release: str) -> str:
    """Return the series of a kernel's release: "6.12" of "6.12.117+deb12-cloud-amd64"."""
    return ".".join(release.split(".")[:2])


def found(machine: Machine, guests: Iterable[Record]) -> Iterator[Found]:
    """Yield the differences from the guests as that CPU, in the files that both have."""
    for guest in guests:
        for file, (_, words) in guest.mitigations.items():
            if guest.cpu == machine.cpu and file in machine.reported:
                real, forced = (deciding(file, one) for one in (machine.reported[file], words))
                if real != forced:
                    series = series_of(guest.release)
                    yield Found(file, series, (*sorted(real - forced),), (*sorted(forced - real),))


def explained(machine: Machine) -> Iterator[Found]:
    """Yield the differences that are explained."""
    for one in machine.differences:
        sides = [tuple(sorted(map(str.lower, side))) for side in (one.machine_only, one.guest_only)]
        yield from (Found(one.file, series, *sides) for series in one.guests)


def unlike_its_file(machine: Machine, cpu: CPU) -> list[str]:
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


def with_table(text: str) -> str:
    """Return the README's text with the table between its marks."""
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    return f"{head}{start}\n{table()}\n\n{end}{tail}"


def main() -> int:
    """Compare all, and put the table into the README."""
    wrong = []
    for one in machines():
        differ = set(found(one, records())) ^ set(explained(one))
        wrong += [f"{one.cpu}, {one.name}: {each}" for each in sorted(differ)]
        unlike = unlike_its_file(one, load_cpu(one.cpu))
        wrong += [f"{one.cpu}, {one.name}: its CPU file has {each}" for each in unlike]
    readme = FOLDER / "README.md"
    readme.write_text(with_table(readme.read_text()))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
