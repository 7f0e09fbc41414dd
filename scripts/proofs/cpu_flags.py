#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the flags and the vulnerabilities of guests as each CPU file with records of machines.

    scripts/proofs/cpu_flags.py

docs/cases/forced/flags/machines.toml has flags of machines, from public sources, and why guests
differ from them; ../recorded.toml has what machines report of vulnerabilities. A record is what a
guest reports, of one of three kernels. What differs without a reason is wrong.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from campaign import NEW, OLD, ROOT, Proof, markdown
from recorded_machines import (
    FOLDER,
    Found,
    Machine,
    deciding,
    explained,
    found,
    machines,
    mismatched,
    series_of,
)
from recorded_machines import table as machines_table

from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.forced import FORCED_ON
from kdelta.cpus.like import shipped
from kdelta.cpus.representative import without_microcode

SPECS = {"6.1": OLD, "6.12": NEW, "7.2": "deb:linux-image-cloud-amd64@forky"}
_TAINT, _VERSION, _INFO = "/proc/sys/kernel/tainted", "/proc/version", "/proc/cpuinfo"
_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
FOUR_LEVELS = frozenset({"zen2", "zen3", "skylake-server"})
"""CPUs whose page tables have four levels."""
IBRS = "Mitigation: IBRS"
EIBRS = "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional;"


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

    @property
    def name(self) -> str:
        """Return its trial."""
        return f"{self.cpu} {series_of(self.release)}"


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
    return msgspec.toml.decode((FOLDER / "flags/machines.toml").read_bytes(), type=_File)


def cpus() -> list[str]:
    """Return the CPU files that force something."""
    known = (load_cpu(name) for name in shipped())
    return [one.name for one in known if one.arch == FORCED_ON and one.qemu.force]


def trials(_: argparse.Namespace) -> list[str]:
    """Return the guests: each CPU with each kernel."""
    return [f"{cpu} {series}" for cpu in cpus() for series in SPECS]


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[GuestFlags]:
    """Boot kernels as CPUs and yield what they report."""
    files = (_TAINT, _VERSION, _INFO, _VULNERABILITIES)
    for cpu, series in map(str.split, names):
        words = ("run", SPECS[series], "--cpu", cpu, "--json", "-q", "--", "/bin/grep", "-rE", ".")
        done = subprocess.run(
            [ROOT / ".venv/bin/kdelta", *words, *files], capture_output=True, text=True, check=True
        )
        lines = [line.split(":", 1) for line in json.loads(done.stdout)["stdout"].splitlines()]
        fields = (text.partition(":") for path, text in lines if path == _INFO)
        info = {name.strip(): value.split() for name, _, value in fields}
        yield GuestFlags(
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


def unexplained(guests: Sequence[GuestFlags]) -> Iterator[str]:
    """Yield each difference that has no reason, and each reason without a difference."""
    file = listed()
    machine = frozenset(" ".join(one.machine_only for one in file.reason).split())
    own = frozenset(" ".join(one.guest_only for one in file.reason).split())
    used: set[object] = set()
    for guest in guests:
        where = f"{guest.cpu}, {guest.release}"
        if guest.taint:
            yield f"{where}: taint {guest.taint}"
        for record in (one for one in file.record if one.cpu == guest.cpu):
            more, fewer = flag_differences(record, guest)
            used |= {("machine", flag) for flag in more} | {("guest", flag) for flag in fewer}
            if left := sorted(more - machine) + sorted(f"-{flag}" for flag in fewer - own):
                yield f"{where}, {record.name}: {' '.join(left)}"
        for file_name, real, words in word_differences(guest):
            reason = _reason(file.words, guest, file_name)
            used.add(reason)
            if reason is None:
                yield f"{where}: {file_name}: {words}, and a machine: {real}"
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


def table(guests: Sequence[GuestFlags]) -> str:
    """Return the tables of docs/cpus.md: a row for each reason, and the machines."""
    file = listed()
    every: Mapping[str, list[str]] = {"machine": [], "guest": []}
    for guest in guests:
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


PROOF = Proof(
    record=GuestFlags,
    file=FOLDER / "flags/guests.jsonl",
    trials=trials,
    make=made,
    wrong=unexplained,
    pages={
        ROOT / "docs/cpus.md": {"flags": table},
        FOLDER / "README.md": {"machines": lambda _: machines_table()},
    },
)


def check_each_reason_has_a_bound() -> None:
    """Check the reasons of flags and of words."""
    assert all(one.bound for one in listed().reason)
    assert all(one.bound for one in listed().words)


def check_a_guest_looks_like_bare_metal(guests: Sequence[GuestFlags]) -> None:
    """Check what guests of a hypervisor would have."""
    for one in guests:
        assert one.taint == 0
        assert "hypervisor" not in one.flags
        assert ("la57" in one.flags) is (one.cpu not in FOUR_LEVELS)
        assert "fxsave_leak" not in one.bugs
        is_older = one.cpu in {"zen3", "zen4", "zen5"} and one.release.startswith("6.1.")
        assert ("null_seg" in one.bugs) is is_older
        for file, words in one.vulnerabilities.items():
            is_known = file == "gather_data_sampling" or one.cpu == "zen2"
            assert is_known or "microcode" not in words.lower(), (one.name, file)


def check_a_flag_a_taint_and_words_without_a_reason_are_named(
    guests: Sequence[GuestFlags],
) -> None:
    """Check a guest that is made up."""
    one = next(one for one in guests if one.cpu == "zen4")
    odd = msgspec.structs.replace(
        one,
        taint=4,
        flags=(*one.flags, "hypervisor"),
        vulnerabilities={**one.vulnerabilities, "tsa": "Vulnerable: No microcode"},
    )
    first, second, third = unexplained([odd, *guests])
    assert first.endswith("taint 4")
    assert second.endswith("AMD EPYC 9654: -hypervisor")
    assert "tsa: Vulnerable: No microcode, and a machine: Mitigation: Clear" in third


def check_a_machine_reports_what_guests_do_or_the_difference_is_explained(
    guests: Sequence[GuestFlags],
) -> None:
    """Check each machine: what recorded.toml explains is there, and all else has a reason in
    machines.toml, or the machine has no microcode for it.
    """
    reasons = listed().words
    for machine in machines():
        known = set(explained(machine))
        for guest in (one for one in guests if one.cpu == machine.cpu):
            known -= (there := set(_found(machine, guest)))
            for one in there - set(explained(machine)):
                is_bare = without_microcode(machine.reported[one.file])
                is_older = one.file == "old_microcode"
                assert is_bare or is_older or _reason(reasons, guest, one.file), (machine, one)
        assert not known, f"{machine.cpu}, {machine.name}: explained, and no difference: {known}"
        assert mismatched(machine, load_cpu(machine.cpu)) == []
        assert machine.source.startswith("https://")
        assert machine.bare
        assert not set(machine.not_affected) & set(machine.files)
        assert "spectre_v2" in machine.reported
        assert all(each.kind and each.reason for each in machine.differences)


def _found(machine: Machine, guest: GuestFlags) -> Iterator[Found]:
    return found(machine, guest.cpu, guest.release, guest.vulnerabilities)


def check_each_cpu_file_has_a_machine_of_6_1_or_later() -> None:
    """Check which machines there are."""

    def version(kernel: str) -> tuple[int, ...]:
        return tuple(int(number) for number in series_of(kernel).split("."))

    recent = {one.cpu for one in machines() if version(one.kernel) >= (6, 1)}
    assert recent == {one.cpu for one in machines()} == set(cpus())


def check_another_mitigation_is_a_difference_that_is_not_explained(
    guests: Sequence[GuestFlags],
) -> None:
    """Check machines that are made up."""
    (one, *_) = (each for each in machines() if each.cpu == "granite-rapids")
    for file, words in (
        ("spectre_v2", f"{EIBRS} PBRSB-eIBRS: SW sequence; BHI: SW loop, KVM: SW loop"),
        ("spectre_v2", f"{EIBRS} RSB filling; PBRSB-eIBRS: Not affected; BHI: BHI_DIS_S"),
        ("spectre_v2", "Mitigation: Retpolines; IBPB: conditional; BHI: BHI_DIS_S"),
        ("spec_store_bypass", "Vulnerable"),
    ):
        other = msgspec.structs.replace(one, files={**one.files, file: words})
        new = {each for guest in guests for each in {*_found(other, guest)} - {*_found(one, guest)}}
        assert {each.file for each in new} == {file}
        assert {each.series for each in new} == set(SPECS)
        assert not new & set(explained(other))
    (one,) = (each for each in machines() if each.cpu == "zen2")
    other = msgspec.structs.replace(one, files={**one.files, "retbleed": "Vulnerable"})
    assert mismatched(other, load_cpu("zen2")) == ["retbleed: Mitigation: untrained return thunk"]


def check_what_decides() -> None:
    """Check that siblings, firmware and exits of guests decide nothing; what is executed does."""
    for file, one, other, is_same in (
        ("mds", "Mitigation: Clear CPU buffers; SMT disabled", "Mitigation: Clear CPU buffers", 1),
        ("spec_rstack_overflow", "Mitigation: safe RET", "Mitigation: Safe RET", 1),
        (
            "spectre_v2",
            f"{EIBRS} STIBP: always-on; BHI: SW loop, KVM: SW loop",
            f"{EIBRS} BHI: SW loop",
            1,
        ),
        ("spectre_v2", "Mitigation: Enhanced IBRS, RSB filling", f"{EIBRS[:38]} RSB filling", 1),
        ("spectre_v2", "Mitigation: Retpolines; IBRS_FW", "Mitigation: Retpolines", 1),
        ("tsa", "Mitigation: Clear CPU buffers", "Vulnerable: No microcode", 0),
        ("spectre_v2", f"{IBRS}; BHI: Not affected", f"{IBRS}; BHI: Vulnerable", 0),
        ("spectre_v2", IBRS, "Mitigation: Enhanced / Automatic IBRS", 0),
        ("spectre_v2", "Mitigation: Retpolines; RSB filling", "Mitigation: Retpolines", 0),
    ):
        assert (deciding(file, one) == deciding(file, other)) is bool(is_same), (one, other)
    assert series_of("6.12.117+deb12-cloud-amd64") == "6.12"
    assert series_of("6.1.0-56-cloud-amd64") == "6.1"


if __name__ == "__main__":
    sys.exit(PROOF.main())
