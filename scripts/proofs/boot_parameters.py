#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Known causes as boot parameters: each compared with the same kernel without it.

    scripts/proofs/boot_parameters.py [--all] [TRIAL]...

compares the kernel with and without the boot parameter of each trial in some operations, or in all,
writes one record a trial to docs/cases/boot-parameters, and puts the table of all records there
into its README.md. Runs are
kept in the store, so that a script that was interrupted goes on where it was.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from recorded_machine import RECORDED
from telling import Aloud, a_row_a_line

from kdelta.counts.model import KERNEL
from kdelta.cpus.catalog import load_cpu
from kdelta.host.files import write_atomic
from kdelta.infer.effects.effects import OperationEffect, Word
from kdelta.infer.effects.functions import FunctionEffect
from kdelta.lab.cpus import machine_like
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.reports import attachment
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import LabError
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare

SPEC = "deb:linux-image-6.12-cloud-amd64"
FOLDER = Path(__file__).parents[2] / "docs/cases/boot-parameters"
OPERATIONS = (
    *("getppid", "chdir", "open-close", "stat", "read-tmpfs-4k", "write-null-1b", "poll-10"),
    *("mmap-touch-4k", "page-fault", "fork-exit-wait", "signal-handler", "pipe-round-trip"),
)
BEGIN, END = "<!-- the table: begin -->", "<!-- the table: end -->"
FUNCTIONS = 8
"""Functions of an operation that are kept: those that changed most."""

HEADINGS = (
    *("parameter", "machine", "slower", "faster", "same", "other words", "changed most"),
    "functions that account for it",
)
SHOWN = 3
"""Functions of an operation that the table names."""


class Trial(msgspec.Struct, frozen=True):
    """A parameter, and the CPU that the machine looks like; none is QEMU's usual one."""

    name: str
    parameter: str
    cpu: str = ""


TRIALS = (
    Trial("pti-on", "pti=on"),
    Trial("pti-off-skylake", "pti=off", "skylake-server"),
    Trial("mitigations-off-skylake", "mitigations=off", "skylake-server"),
    Trial("spectre_v2-off", "spectre_v2=off"),
    Trial("init_on_alloc-0", "init_on_alloc=0"),
    Trial("hardened_usercopy-off", "hardened_usercopy=off"),
    Trial("randomize_kstack_offset-off", "randomize_kstack_offset=off"),
    Trial("randomize_kstack_offset-on", "randomize_kstack_offset=on"),
    Trial("cgroup_disable-memory", "cgroup_disable=memory"),
    Trial("audit-0", "audit=0"),
    Trial("audit-1", "audit=1"),
    Trial("without-effect", "rootflags=noatime,nodiratime,errors=remount-ro"),
)


class Row(msgspec.Struct, frozen=True):
    """An operation: its verdict; instructions an iteration of both sides, their difference between
    low and high; how many runs of each side these are from; and the differences of the functions
    that changed most, which with `rest` add up to it.
    """

    operation: str
    word: str
    base: float
    other: float
    diff: float
    low: float
    high: float
    n: tuple[int, int]
    functions: tuple[tuple[str, float], ...]
    rest: float

    @property
    def per_cent(self) -> float:
        """The difference, of the base."""
        return 100 * self.diff / self.base if self.base else 0.0


class Record(msgspec.Struct, frozen=True):
    """A trial. chose: vulnerabilities of which the kernel says another thing with the parameter, as
    (name, without, with). identities: of the kernel without and with it.
    """

    trial: Trial
    base: str
    other: str
    identities: tuple[str, str]
    qemu: str
    chose: tuple[tuple[str, str, str], ...]
    warnings: tuple[str, ...]
    rows: tuple[Row, ...]


def made(trial: Trial, operations: Sequence[str], store: Store) -> Record:
    """The comparison of a trial; LabError if one side did not run."""
    machine = RECORDED
    if trial.cpu:
        machine = machine_like(machine, load_cpu(trial.cpu))
    request = CompareRequest(
        base=SPEC,
        others=(f"{SPEC} +cmdline:{trial.parameter}",),
        operations=tuple(operations),
        lab=LabRequest(machine=machine),
    )
    (found,) = asyncio.run(run_compare(request, Lab(store, Aloud())))
    return record_of(trial, found, store)


def record_of(trial: Trial, found: Comparison, store: Store) -> Record:
    """What is kept of a comparison."""
    base, other = found.base.kernel, found.other.kernel
    if base is None or other is None or found.effects is None:
        raise LabError(f"{trial.name}: one side did not run; kdelta runs lists its runs")
    before, after = (_chose(one.done[0].run, store) for one in (found.base, found.other))
    return Record(
        trial,
        base.spec,
        other.spec,
        (base.identity, other.identity),
        str(found.base.done[0].run.machine["qemu"]),
        tuple((name, text, after[name]) for name, text in before.items() if after[name] != text),
        found.effects.warnings,
        tuple(_row(one) for one in found.effects.operations if one.costs),
    )


def _chose(run: Run, store: Store) -> Mapping[str, str]:
    text = attachment(run, "vulnerabilities", store)
    return dict(re.findall(r"^([\w-]+): *(.*\S)", text, re.MULTILINE))


def _row(one: OperationEffect) -> Row:
    if one.costs is None:
        raise LabError(f"{one.name} is not comparable")
    insns = one.costs.insns
    changed = [(_name(each), float(each.cost.effect.value)) for each in one.functions]
    ranked = sorted(changed, key=lambda pair: -abs(pair[1]))
    named = tuple((name, round(diff, 4)) for name, diff in ranked[:FUNCTIONS] if diff)
    return Row(
        one.name,
        one.verdict.word.value,
        round(float(insns.base.value), 4),
        round(float(insns.other.value), 4),
        round(float(insns.effect.value), 4),
        round(float(insns.effect.low), 4),
        round(float(insns.effect.high), 4),
        (insns.base.n, insns.other.n),
        named,
        round(float(insns.effect.value) - sum(diff for _, diff in named), 4),
    )


def _name(one: FunctionEffect) -> str:
    return one.name if one.origin == KERNEL else f"{one.name} {one.origin}"


def table(records: Sequence[Record]) -> str:
    """A row a trial: how many operations changed, and where the one is that changed most."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for one in records:
        words = [row.word for row in one.rows]
        slower, faster, same = (words.count(w.value) for w in (Word.SLOWER, Word.FASTER, Word.SAME))
        changed = [row for row in one.rows if row.word in (Word.SLOWER.value, Word.FASTER.value)]
        most = max(changed, key=lambda row: abs(row.per_cent), default=None)
        cells = (
            f"`{one.trial.parameter}`",
            one.trial.cpu or "qemu64",
            *map(str, (slower, faster, same, len(words) - slower - faster - same)),
            _figure(most) if most else "",
            _functions(most) if most else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figure(row: Row) -> str:
    return f"`{row.operation}` {row.base:.2f} -> {row.other:.2f} ({row.per_cent:+.1f} %)"


def _functions(row: Row) -> str:
    named = [f"`{name}` {diff:+.2f}" for name, diff in row.functions[:SHOWN]]
    rest = row.diff - sum(diff for _, diff in row.functions[:SHOWN])
    return ", ".join((*named, f"others {rest:+.2f}"))


def records() -> list[Record]:
    """Those that are kept, in the order of the trials."""
    paths = [FOLDER / f"{trial.name}.json" for trial in TRIALS]
    return [msgspec.json.decode(p.read_bytes(), type=Record) for p in paths if p.is_file()]


def put_into_readme(text: str) -> None:
    """The table in place of the one that is there."""
    path = FOLDER / "README.md"
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    write_atomic(path, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}".encode())


def main() -> int:
    """The records of the trials that are asked for, and the table of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="compare in all operations")
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help="make these only")
    words = parser.parse_args()
    known = {trial.name: trial for trial in TRIALS}
    if unknown := [name for name in words.trials if name not in known]:
        parser.error(f"no trial {unknown[0]}; there are {', '.join(known)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_store() as store:
        for name in words.trials or known:
            record = made(known[name], () if words.all else OPERATIONS, store)
            write_atomic(FOLDER / f"{name}.json", a_row_a_line(record))
            print(table([record]).splitlines()[-1], flush=True)
    put_into_readme(table(records()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
