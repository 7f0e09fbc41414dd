#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on clock times, tried on boots of real kernels in emulated guests.

    scripts/proofs/clock_boots.py --pairs 300

boots Debian's cloud kernel without and with two things that it does by default, in pairs whose
order is drawn, and writes a line of JSON a boot to docs/cases/clock/boots.jsonl. Pairs that are
there are not made again. What both execute is compared once (paths.json). Studies are drawn from
the boots and judged as `kdelta compare --clock` does; what they came to is in studies.json and in
docs/clock-statistics.md. It fails if verdicts are wrong in more than 5 % of the studies.
"""

import argparse
import asyncio
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from campaign import Aloud
from clock_series import MARGIN, percent, put_into_page, share, table_head, table_line, welch
from numpy.typing import NDArray
from telling import a_row_a_line

from kdelta.host.files import write_atomic
from kdelta.infer.clock.decide import ALPHA, decide_all
from kdelta.infer.clock.e_values import Floats, log_e_values
from kdelta.infer.effects.effects import FIRM, Word
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.plan import guest_compiler
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.measures.clock.guests import ClockGuest, initramfs_of, timed_boot
from kdelta.measures.clock.jobs import timed_job
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/cases/clock"
DEBIAN = "deb:linux-image-cloud-amd64"
KERNELS = {
    "A": f"{DEBIAN} +cmdline:randomize_kstack_offset=off +cmdline:init_on_alloc=0",
    "B": f"{DEBIAN} +cmdline:randomize_kstack_offset=on +cmdline:init_on_alloc=1",
}
"""B is what Debian's kernel does without being told."""

OPERATIONS = ("getppid", "stat", "open-close", "pipe-round-trip", "mmap-munmap", "write-null-1b")
PAIRS, SEED = 300, 1
MACHINE = MachineOptions()

STUDIES, STUDY_PAIRS = 1000, 30
"""Studies of each kind, and pairs of one at most."""

WELCH = (10, 30)
"""Boots of each kernel that are tested back to back."""

BEGIN, END = "<!-- the boots: begin -->", "<!-- the boots: end -->"
Random = np.random.Generator
Logs = Mapping[str, Floats]
"""Of each kernel, a row an operation, a column a boot."""
Words = dict[str, tuple[Word, int]]
"""By operation the first verdict, and after how many pairs."""


class Booted(msgspec.Struct, frozen=True):
    """A boot: of which pair and kernel, and whether it was the first of the pair; when it began, in
    seconds since 1970; the host's load of the last minute; nanoseconds of an iteration.
    """

    pair: int
    kernel: str
    first: bool
    when: float
    load: float
    boot_id: str
    ns: dict[str, float]


class Executed(msgspec.Struct, frozen=True):
    """What an operation executes: the word of `compare`, instructions an iteration of A, and how
    many more per cent B has.
    """

    operation: str
    word: str
    base: float
    per_cent: float


class Paths(msgspec.Struct, frozen=True):
    """What both kernels execute."""

    kernels: dict[str, str]
    release: str
    qemu: str
    rows: tuple[Executed, ...]


class Row(msgspec.Struct, frozen=True):
    """What studies of a kind said of an operation, in shares of them.

    pairs      to a verdict of slower or faster, the median of those; 0 without any
    welch      by boots a side, what Welch's test says of boots back to back: slower, faster
    deviation  of the differences of all pairs, as logarithms; quartiles: with their median
    """

    kind: str
    operation: str
    slower: float
    faster: float
    same: float
    pairs: float
    welch: dict[str, tuple[float, float]]
    deviation: float
    quartiles: tuple[float, float, float]


class Studies(msgspec.Struct, frozen=True):
    """What studies of each kind came to. any_false: by kind the share of studies with an operation
    that is called what it is not.
    """

    boots: int
    studies: int
    seed: int
    any_false: dict[str, float]
    rows: tuple[Row, ...]


def order_of(pair: int) -> tuple[str, str]:
    """Return which kernel is booted first, and which second."""
    return ("A", "B") if random.Random(f"{SEED} {pair}").random() < 0.5 else ("B", "A")


def records(folder: Path = FOLDER) -> list[Booted]:
    """Return the boots that are kept, in the order of time."""
    path = folder / "boots.jsonl"
    lines = path.read_bytes().splitlines() if path.is_file() else []
    return [msgspec.json.decode(line, type=Booted) for line in lines]


def obtained(specs: Mapping[str, str]) -> dict[str, Kernel]:
    """Return the kernels of these specs."""
    kernels: dict[str, Kernel] = {}
    for name, spec in specs.items():
        found = obtain(parse_kernel_spec(spec), print)
        if isinstance(found, NoKernel):
            raise LabError(f"there is no {spec}")
        kernels[name] = found
    return kernels


def image_of(kernel: Kernel, operations: tuple[str, ...]) -> Path:
    """Return the initramfs by which guests of that kernel time these system calls."""
    compiler = guest_compiler(kernel.arch, MACHINE)
    job = timed_job(Work(operations=operations), kernel, LabRequest(machine=MACHINE))
    return initramfs_of(job.archive, compiler)


def booting() -> Callable[[int, str], Booted]:
    """Return what boots a kernel for a pair."""
    kernels = obtained(KERNELS)
    image = image_of(kernels["A"], OPERATIONS)

    def boot(pair: int, letter: str) -> Booted:
        when, load = round(time.time(), 1), round(os.getloadavg()[0], 2)
        run = timed_boot(ClockGuest(MACHINE), kernels[letter], image)
        ns = {name: round(one, 1) for name, one in run.ns.items()}
        first = letter == order_of(pair)[0]
        return Booted(pair, letter, first, when, load, run.facts.boot_id, ns)

    return boot


def record(folder: Path, pairs: int, minutes: float) -> None:
    """Boot the pairs that are missing, for so long."""
    until = time.time() + 60 * minutes
    pair = len(records(folder)) // 2
    boot = booting() if pair < pairs else None
    while boot and pair < pairs and time.time() < until:
        both = [boot(pair, letter) for letter in order_of(pair)]
        with (folder / "boots.jsonl").open("ab") as file:
            file.write(b"".join(msgspec.json.encode(one) + b"\n" for one in both))
        pair += 1
        print(f"{pair} of {pairs} pairs", flush=True)


def whole(boots: Sequence[Booted]) -> list[Booted]:
    """Return the boots of pairs in which all was timed: regions in which the clock jumped are not
    in a record.
    """
    lacking = {one.pair for one in boots if len(one.ns) < len(OPERATIONS)}
    return [one for one in boots if one.pair not in lacking]


def executed() -> Paths:
    """Return what both kernels execute."""
    request = CompareRequest(
        base=KERNELS["A"],
        others=(KERNELS["B"],),
        operations=OPERATIONS,
        lab=LabRequest(machine=MACHINE),
    )
    with open_store() as store:
        (found,) = asyncio.run(run_compare(request, Lab(store, Aloud())))
    if found.effects is None or found.base.kernel is None:
        raise LabError("one side did not run; kdelta runs lists its runs")
    rows = []
    for one in found.effects.operations:
        if one.costs is None:
            raise LabError(f"{one.name} is not comparable: {one.verdict.reason}")
        base, effect = float(one.costs.insns.base.value), float(one.costs.insns.effect.value)
        word, per_cent = one.verdict.word.value, round(100 * effect / base, 3)
        rows.append(Executed(one.name, word, round(base, 2), per_cent))
    qemu = str(found.base.done[0].run.machine["qemu"])
    return Paths(KERNELS, found.base.kernel.release, qemu, tuple(rows))


def logarithms(boots: Sequence[Booted]) -> Logs:
    """Return the logarithms of each kernel's times."""
    found = {}
    for kernel in KERNELS:
        ours = [one.ns for one in boots if one.kernel == kernel]
        times: Floats = np.array([[ns[name] for ns in ours] for name in OPERATIONS])
        found[kernel] = np.log(times)
    return found


def taken(random: Random, figures: Floats, count: int) -> Floats:
    """Return the figures of so many boots or pairs, in the order of time."""
    columns = np.sort(random.choice(figures.shape[1], count, replace=False))
    return figures[:, columns]


def alike(random: Random, logs: Logs, *, drawn: bool = True) -> Floats:
    """Return pairs of boots of one kernel, one after the other; a coin says which is the base, or
    the first always is.
    """
    ours = taken(random, logs["A"], 2 * STUDY_PAIRS)
    later = ours[:, 1::2] - ours[:, ::2]
    return later * random.choice([-1, 1], STUDY_PAIRS) if drawn else later


def planted(random: Random, logs: Logs) -> Floats:
    """Return pairs as they were booted."""
    return taken(random, logs["B"] - logs["A"], STUDY_PAIRS)


KINDS: dict[str, Callable[[Random, Logs], Floats]] = {
    "alike": alike,
    "fixed order": lambda random, logs: alike(random, logs, drawn=False),
    "planted": planted,
}


def first_words(differences: Floats) -> Words:
    """Return the first verdict on each operation, if one looks after each pair."""
    bound = math.log1p(MARGIN)
    tested = differences[:, None, :] - np.array([[0.0], [-bound], [bound]])
    log_e = np.array([log_e_values(one) for one in tested])
    zero, below, above = np.moveaxis(log_e >= -math.log(ALPHA), 1, 0)
    # Without these an operation has no verdict, so other looks are left out.
    may_be = dict(zip(OPERATIONS, zero | (below & above), strict=True))
    found: Words = {}
    for pairs in range(1, differences.shape[1] + 1):
        if any(may[pairs - 1] for name, may in may_be.items() if name not in found):
            named = zip(OPERATIONS, differences[:, :pairs].tolist(), strict=True)
            for name, one in decide_all(dict(named), MARGIN).items():
                if one.word is not Word.UNRESOLVED:
                    found.setdefault(name, (one.word, pairs))
    return found


def is_false(kind: str, verdict: tuple[Word, int] | None, path: Executed) -> bool:
    """Return whether a verdict is not true. What other paths take is not known: slower or faster is
    false there if the path is not, and "same" if it differs by more than the margin.
    """
    word = verdict[0] if verdict else Word.UNRESOLVED
    if kind != "planted":
        return word in FIRM
    if word is Word.SAME:
        return abs(path.per_cent) > 100 * MARGIN
    return word in FIRM and (path.per_cent > 0) is not (word is Word.SLOWER)


def back_to_back(logs: Logs, kind: str, count: int) -> Iterator[NDArray[np.intp]]:
    """Yield what Welch's test says of the operations after so many boots of A and then as many of A
    or B, from each place in the record.
    """
    base, other = logs["A"], logs["B" if kind == "planted" else "A"]
    for begin in range(base.shape[1] - 2 * count + 1):
        middle = begin + count
        yield welch(base[:, begin:middle], other[:, middle : middle + count])


def judged(boots: Sequence[Booted], paths: Paths, studies: int) -> Studies:
    """Return what studies of all kinds come to."""
    logs = logarithms(boots)
    any_false: dict[str, float] = {}
    rows: list[Row] = []
    for kind, draw in KINDS.items():
        randoms = [np.random.default_rng([SEED, *kind.encode(), at]) for at in range(studies)]
        words = [first_words(draw(random, logs)) for random in randoms]
        any_false[kind] = share(
            [any(is_false(kind, of.get(one.operation), one) for one in paths.rows) for of in words]
        )
        rows += [row_of(kind, at, words, logs) for at in range(len(OPERATIONS))]
    return Studies(len(boots), studies, SEED, any_false, tuple(rows))


def row_of(kind: str, at: int, words: Sequence[Words], logs: Logs) -> Row:
    """Return what studies said of one operation."""
    name = OPERATIONS[at]
    ours = [of.get(name, (Word.UNRESOLVED, 0)) for of in words]
    pairs = [count for word, count in ours if word in FIRM]
    tests: dict[str, tuple[float, float]] = {}
    for count in WELCH:
        tested = np.array(list(back_to_back(logs, kind, count)))[:, at]
        tests[str(count)] = share(tested > 0), share(tested < 0)
    differences = (logs["B"] - logs["A"] if kind == "planted" else np.diff(logs["A"]))[at]
    low, middle, high = np.quantile(differences, (0.25, 0.5, 0.75))
    return Row(
        kind=kind,
        operation=name,
        slower=share([word is Word.SLOWER for word, _ in ours]),
        faster=share([word is Word.FASTER for word, _ in ours]),
        same=share([word is Word.SAME for word, _ in ours]),
        pairs=float(np.median(pairs)) if pairs else 0.0,
        welch=tests,
        deviation=round(float(differences.std(ddof=1)), 5),
        quartiles=(round(float(low), 5), round(float(middle), 5), round(float(high), 5)),
    )


def tables(found: Studies, paths: Paths) -> str:
    """Return what the page shows of the studies."""
    rows = {(one.kind, one.operation): one for one in found.rows}
    few, most = map(str, WELCH)
    head = ["A against A", "half of the pairs", "kdelta: slower or faster", "same"]
    head += ["A always first: slower or faster"]
    lines = table_head([*head, f"Welch, {few} and {few}", f"Welch, {most} and {most}"])
    for name in OPERATIONS:
        one, fixed = rows["alike", name], rows["fixed order", name]
        shares = [one.slower + one.faster, one.same, fixed.slower + fixed.faster]
        shares += [sum(one.welch[few]), sum(one.welch[most])]
        lines.append(table_line([f"`{name}`", half(one), *map(percent, shares)]))
    head = ["A against B", "path", "time, all pairs", "half of the pairs", "kdelta: slower"]
    head += ["faster", "same", "unresolved", "pairs to slower or faster"]
    lines += ["", *table_head([*head, f"Welch, {most} and {most}: slower", "faster"])]
    for path in paths.rows:
        one = rows["planted", path.operation]
        shares = [one.slower, one.faster, one.same, 1 - one.slower - one.faster - one.same]
        shown = [f"{path.per_cent:+.2f} %", f"{in_percent(one.quartiles[1])} %", half(one)]
        shown += [*map(percent, shares), f"{one.pairs:.0f}" if one.pairs else "-"]
        lines.append(table_line([f"`{path.operation}`", *shown, *map(percent, one.welch[most])]))
    return "\n".join(lines)


def in_percent(log: float) -> str:
    """Return a difference of logarithms in per cent of the base."""
    return f"{100 * math.expm1(log):+.1f}"


def half(row: Row) -> str:
    """Return between what the middle half of the differences of pairs lies."""
    low, _, high = row.quartiles
    return f"{in_percent(low)} to {in_percent(high)} %"


def main() -> int:
    """Record what is missing, and judge all; 1 if more verdicts are wrong than may be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of boots, in all")
    parser.add_argument("--minutes", type=float, default=math.inf, help="boot no longer than that")
    parser.add_argument("--studies", type=int, default=STUDIES, help="of each kind")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    record(words.out, words.pairs, words.minutes)
    path = words.out / "paths.json"
    if not path.exists():
        write_atomic(path, a_row_a_line(executed()))
    paths = msgspec.json.decode(path.read_bytes(), type=Paths)
    found = judged(whole(records(words.out)), paths, words.studies)
    write_atomic(words.out / "studies.json", a_row_a_line(found))
    print(tables(found, paths), found.any_false, sep="\n")
    if words.out == FOLDER:
        put_into_page(tables(found, paths), BEGIN, END)
    return int(max(found.any_false[kind] for kind in ("alike", "planted")) > ALPHA)


if __name__ == "__main__":
    sys.exit(main())
