#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what forced features of the CPU change, on each x86-64 CPU file and three kernels.

    scripts/proofs/forced_cpus.py

A trial is a CPU and a kernel: two runs as that CPU, and one in which nothing is forced, of three
operations. What the kernel says of its mitigations, the mean instructions of an iteration (kernel
and user, without interrupts), and the functions that the difference is in, are one record in
docs/cases/forced; trials that are there are not made again. The tables are put into its README.md.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from round_trips import markdown  # noqa: E402
from telling import a_row_a_line  # noqa: E402

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions  # noqa: E402
from kdelta.cpus.catalog import load_cpu  # noqa: E402
from kdelta.cpus.forced import FORCED_ON  # noqa: E402
from kdelta.cpus.like import shipped  # noqa: E402
from kdelta.cpus.representative import said_of  # noqa: E402
from kdelta.host.files import write_atomic  # noqa: E402
from kdelta.infer.effects.same import partings  # noqa: E402
from kdelta.lab.explain import must_be_forced  # noqa: E402
from kdelta.machines.outcome import GuestOutcome  # noqa: E402
from kdelta.machines.tcg import Guest  # noqa: E402
from tests.machines.bench import NEW, OLD, counts_of, guest, kernel, made_as, run_job, syscalls_job  # noqa: E402

FOLDER = ROOT / "docs/cases/forced"
SPECS = (OLD, NEW, "deb:linux-image-cloud-amd64@forky")
OPERATIONS = ("getppid", "open-close", "page-fault")
NAMED = 4
"""Functions that a record names, those with the largest differences."""


class Change(msgspec.Struct, frozen=True):
    """An operation: instructions an iteration without and with what is forced, and by function."""

    operation: str
    plain: float
    forced: float
    functions: dict[str, float]


class Record(msgspec.Struct, frozen=True):
    """A trial. mitigations: by file, without and with what is forced, where they differ."""

    cpu: str
    release: str
    forced: tuple[str, ...]
    repeats: bool
    mitigations: dict[str, tuple[str, str]]
    changes: tuple[Change, ...]


class _Ran(NamedTuple):
    counts: RunCounts
    mitigations: dict[str, str]


def cpus() -> list[str]:
    """The CPU files that force something."""
    known = (load_cpu(name) for name in shipped())
    return [one.name for one in known if one.arch == FORCED_ON and one.qemu.force]


def _ran(where: Guest) -> tuple[_Ran, GuestOutcome]:
    outcome = run_job(syscalls_job("--clock", *OPERATIONS), where)
    said = dict(said_of(outcome.messages["vulnerabilities"].decode()))
    return _Ran(counts_of(outcome), said), outcome


def by_function(region: RegionCounts) -> Counter[str]:
    """Instructions an iteration of the tasks themselves, by function."""
    found: Counter[str] = Counter()
    for one in region.functions:
        if one.context == "own":
            found[one.name] += one.cost.insns
    return Counter({name: insns / region.iteration_count for name, insns in found.items()})


def change(operation: str, plain: RegionCounts, forced: RegionCounts) -> Change:
    """What is forced, in one operation."""
    before, after = by_function(plain), by_function(forced)
    moved = {name: after[name] - before[name] for name in before | after}
    largest = sorted(moved, key=lambda name: -abs(moved[name]))[:NAMED]
    return Change(
        operation=operation,
        plain=round(before.total(), 2),
        forced=round(after.total(), 2),
        functions={name: round(moved[name], 2) for name in largest if abs(moved[name]) >= 0.5},
    )


def trial(cpu: str, spec: str) -> Record:
    """Runs that CPU on that kernel; LabError if the kernel did not take what is forced."""
    where = made_as(cpu, spec)
    first, outcome = _ran(where)
    must_be_forced(kernel(spec), where, outcome.messages)
    second, _ = _ran(where)
    qemu = load_cpu(cpu).qemu
    plain, _ = _ran(guest(spec, append=qemu.append, cpu=qemu.cpu))
    regions = [merged_regions(one.counts) for one in (plain, first)]
    assert where.forcing
    return Record(
        cpu=cpu,
        release=kernel(spec).release,
        forced=where.forcing.names,
        repeats=not list(partings(first.counts, second.counts)),
        mitigations={
            name: (plain.mitigations.get(name, ""), text)
            for name, text in first.mitigations.items()
            if plain.mitigations.get(name) != text
        },
        changes=tuple(change(name, *(one[name] for one in regions)) for name in OPERATIONS),
    )


def records() -> list[Record]:
    """What docs/cases/forced keeps."""
    files = sorted(FOLDER.glob("*.json"))
    return [msgspec.json.decode(file.read_bytes(), type=Record) for file in files]


def tables(found: Sequence[Record]) -> str:
    """Each operation, and the mitigations."""
    parts = []
    for operation in OPERATIONS:
        rows = []
        for one in found:
            (seen,) = (each for each in one.changes if each.operation == operation)
            named = ", ".join(f"{name} {moved:+.2f}" for name, moved in seen.functions.items())
            rows.append((one.cpu, one.release, f"{seen.plain:,.2f}", f"{seen.forced:,.2f}", named))
        heads = ("CPU", "kernel", "nothing forced", "forced", "most of it")
        parts.append(f"### {operation}\n\n{markdown(heads, rows)}")
    said = [
        (one.cpu, one.release, name, before, after)
        for one in found
        for name, (before, after) in one.mitigations.items()
    ]
    heads = ("CPU", "kernel", "file", "nothing forced", "forced")
    return "\n\n".join([*parts, f"### Mitigations\n\n{markdown(heads, said)}"])


def with_tables(text: str, found: Sequence[Record]) -> str:
    """The README's text with the tables of these records after its mark."""
    head, mark, _ = text.partition("<!-- tables -->\n")
    return f"{head}{mark}\n{tables(found)}\n"


def main() -> None:
    """Makes the trials that are missing, and the tables."""
    for name in cpus():
        for spec in SPECS:
            path = FOLDER / f"{name}-{kernel(spec).release}.json"
            if not path.exists():
                made = trial(name, spec)
                write_atomic(path, a_row_a_line(made))
                print(path.stem, "repeats" if made.repeats else "DOES NOT REPEAT", flush=True)
    readme = FOLDER / "README.md"
    readme.write_text(with_tables(readme.read_text(), records()))


if __name__ == "__main__":
    main()
