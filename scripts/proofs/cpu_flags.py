#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the flags and the vulnerabilities of guests as each CPU file with records of machines.

    scripts/proofs/cpu_flags.py [--again]

docs/cases/forced/flags/machines.toml has flags of machines, from public sources, and why guests
differ from them; ../recorded.toml has what machines report of vulnerabilities. What guests of three
kernels report is kept in guests.json there, and made where it is missing, or by --again. What
differs without a reason is printed, and the tables are put into docs/cpus.md.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from forced_cpus import FOLDER, ROOT, SPECS, cpus
from recorded_machines import deciding, machines, series_of
from round_trips import markdown

from kdelta.host.files import write_atomic

MACHINES = FOLDER / "flags/machines.toml"
GUESTS = FOLDER / "flags/guests.json"
PAGE = ROOT / "docs/cpus.md"
START, END = "<!-- flags -->\n", "<!-- end of flags -->\n"
_TAINT, _VERSION, _INFO = "/proc/sys/kernel/tainted", "/proc/version", "/proc/cpuinfo"
_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"


class GuestFlags(msgspec.Struct, frozen=True):
    """What a guest reports of its CPU.

    taint            of its kernel, as a number
    flags, bugs      of /proc/cpuinfo
    vulnerabilities  file -> words
    """

    cpu: str
    release: str
    taint: int
    flags: tuple[str, ...]
    bugs: tuple[str, ...]
    vulnerabilities: dict[str, str]


class FlagRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The flags of a machine, from a public source. kernel: by which they are, as far as known."""

    cpu: str
    name: str
    kernel: str
    source: str
    flags: str


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why flags differ: those that a machine has alone, and those that guests have alone.

    bound: by how much that can move figures, in words.
    """

    kind: str
    bound: str
    machine_only: str = ""
    guest_only: str = ""


class WordsReason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why guests as these CPUs report other words of a vulnerability, by kernel series; no series
    means all.
    """

    file: str
    cpus: tuple[str, ...]
    bound: str
    series: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    record: tuple[FlagRecord, ...]
    reason: tuple[Reason, ...]
    words: tuple[WordsReason, ...]


def listed() -> _File:
    """Return what docs/cases/forced/flags/machines.toml has."""
    return msgspec.toml.decode(MACHINES.read_bytes(), type=_File)


def guests() -> tuple[GuestFlags, ...]:
    """Return what docs/cases/forced/flags/guests.json has."""
    if not GUESTS.exists():
        return ()
    return msgspec.json.decode(GUESTS.read_bytes(), type=tuple[GuestFlags, ...])


def made(cpu: str, spec: str) -> GuestFlags:
    """Boot a kernel as that CPU and return what it reports."""
    files = (_TAINT, _VERSION, _INFO, _VULNERABILITIES)
    words = ("run", spec, "--cpu", cpu, "--json", "-q", "--", "/bin/grep", "-rE", ".", *files)
    done = subprocess.run(
        [str(ROOT / ".venv/bin/kdelta"), *words], capture_output=True, text=True, check=True
    )
    lines = [line.split(":", 1) for line in json.loads(done.stdout)["stdout"].splitlines()]
    fields = (text.partition(":") for path, text in lines if path == _INFO)
    info = {name.strip(): value.split() for name, _, value in fields}
    return GuestFlags(
        cpu=cpu,
        release=next(text.split()[2] for path, text in lines if path == _VERSION),
        taint=next(int(text) for path, text in lines if path == _TAINT),
        flags=tuple(sorted(info["flags"])),
        bugs=tuple(sorted(info["bugs"])),
        vulnerabilities={
            Path(path).name: text for path, text in sorted(lines) if _VULNERABILITIES in path
        },
    )


def flag_differences(record: FlagRecord, guest: GuestFlags) -> tuple[frozenset[str], ...]:
    """Return the flags that the machine has alone, and those that the guest has alone."""
    real, own = frozenset(record.flags.split()), frozenset(guest.flags)
    return real - own, own - real


def unexplained() -> Iterator[str]:
    """Yield each difference that has no reason, and each reason without a difference."""
    file = listed()
    machine = frozenset(" ".join(one.machine_only for one in file.reason).split())
    own = frozenset(" ".join(one.guest_only for one in file.reason).split())
    used: set[object] = set()
    for guest in guests():
        where = f"{guest.cpu}, {guest.release}"
        if guest.taint:
            yield f"{where}: taint {guest.taint}"
        for record in (one for one in file.record if one.cpu == guest.cpu):
            more, fewer = flag_differences(record, guest)
            used |= {("machine", flag) for flag in more} | {("guest", flag) for flag in fewer}
            if left := sorted(more - machine) + sorted(f"-{flag}" for flag in fewer - own):
                yield f"{where}, {record.name}: {' '.join(left)}"
        for name, real, words in word_differences(guest):
            reason = _reason(file.words, guest, name)
            used.add(reason)
            if reason is None:
                yield f"{where}: {name}: {words}, and a machine: {real}"
    yield from (
        f"no guest lacks {flag}" for flag in sorted(machine) if ("machine", flag) not in used
    )
    yield from (f"no guest alone has {flag}" for flag in sorted(own) if ("guest", flag) not in used)
    yield from (f"no difference: {one}" for one in file.words if one not in used)


def word_differences(guest: GuestFlags) -> Iterator[tuple[str, str, str]]:
    """Yield the files of which a guest reports what no recorded machine does: file, the words of
    the first machine, those of the guest.
    """
    recorded = [one.reported for one in machines() if one.cpu == guest.cpu]
    for name, words in guest.vulnerabilities.items():
        real = [one[name] for one in recorded if name in one]
        if real and deciding(name, words) not in [deciding(name, one) for one in real]:
            yield name, real[0], words


def _reason(reasons: tuple[WordsReason, ...], guest: GuestFlags, name: str) -> WordsReason | None:
    series = series_of(guest.release)
    fit = (
        one
        for one in reasons
        if one.file == name and guest.cpu in one.cpus and (not one.series or series in one.series)
    )
    return next(fit, None)


def table() -> str:
    """Return the table of docs/cpus.md: a row for each reason, and the machines."""
    file = listed()
    every: Mapping[str, list[str]] = {"machine": [], "guest": []}
    for guest in guests():
        for record in (one for one in file.record if one.cpu == guest.cpu):
            more, fewer = flag_differences(record, guest)
            every["machine"] += [f"{guest.cpu} {flag}" for flag in more]
            every["guest"] += [f"{guest.cpu} {flag}" for flag in fewer]
    rows = []
    for one in file.reason:
        for side, flags, title in (
            ("machine", one.machine_only, one.kind),
            ("guest", one.guest_only, f"{one.kind} (guests alone)"),
        ):
            names = flags.split()
            on = {pair.split()[0] for pair in every[side] if pair.split()[1] in names}
            if names:
                rows.append((title, " ".join(names), ", ".join(sorted(on)), one.bound))
    words = [
        (one.file, ", ".join(one.series) or "all", ", ".join(one.cpus), one.bound)
        for one in file.words
    ]
    of = [(one.cpu, one.name, one.kernel, f"[record](https://{one.source})") for one in file.record]
    return "\n\n".join(
        (
            markdown(("CPU", "machine", "kernel", "flags"), of),
            markdown(("what", "flags", "CPUs", "how far it moves figures"), rows),
            markdown(("file", "kernels", "CPUs", "how far it moves figures"), words),
        )
    )


def main() -> int:
    """Make what is missing, put the table into the page, and print what has no reason."""
    known = {} if "--again" in sys.argv else {(one.cpu, one.release): one for one in guests()}
    for spec in SPECS:
        for cpu in cpus():
            if not any(one == cpu and spec in _specs_of(release) for one, release in known):
                one = made(cpu, spec)
                known[one.cpu, one.release] = one
                write_atomic(GUESTS, msgspec.json.format(msgspec.json.encode(list(known.values()))))
                print(one.cpu, one.release, one.taint, flush=True)
    text = PAGE.read_text()
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    PAGE.write_text(f"{head}{start}\n{table()}\n\n{end}{tail}")
    wrong = list(unexplained())
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


def _specs_of(release: str) -> tuple[str, ...]:
    """The specs of which a kernel of that release is the one, by the series in their names."""
    series = {"6.1": SPECS[0], "6.12": SPECS[1]}
    return (series.get(series_of(release), SPECS[2]),)


if __name__ == "__main__":
    sys.exit(main())
