#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels compared with themselves, changed by what has no effect on a path: nothing is slower.

    scripts/proofs/alike.py --pairs 20

draws pairs of one kernel: with a boot parameter that kernels ignore, of 1 to 200 bytes, or one
without effect on a path; with another size of memory; linked in another order of its functions. It
compares each as `compare` does, writes one JSON record a pair, and fails if a word is faster,
slower or mixed. Pairs that are there are not compared again, and runs are kept: a script that was
interrupted goes on where it was.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from recorded_machine import RECORDED
from telling import Aloud, a_row_a_line

from kdelta.host.files import write_atomic
from kdelta.infer.effects.effects import FIRM, OperationEffect
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/cases/alike"
CONFIG = "docs/cases/options/speed.config"
SMALL = f"deb-src:linux-source-6.12 +base:{CONFIG} +sections"
KERNELS = ("deb:linux-image-cloud-amd64", "deb:linux-image-6.12-cloud-amd64", SMALL)
PAIRS, SEED = 20, 1

WORDS = ("loglevel=7", "consoleblank=0", "printk.devkmsg=on")
"""Boot parameters that no path of the workload depends on."""

MOST_BYTES = 200
MEMORY_MIB = (1024, 1280, 1536, 2048)
"""Of the machine, on both sides."""

LEAST_LEFT_MIB = 768
"""What mem= leaves of it at least."""


class Pair(msgspec.Struct, frozen=True):
    """What is added to the kernel spec on either side, on a machine with so much memory."""

    number: int
    kind: str
    kernel: str
    base: str
    other: str
    memory_mib: int

    def specs(self) -> tuple[str, str]:
        """The kernel specs of both sides."""
        base, other = (f"{self.kernel} {more}".strip() for more in (self.base, self.other))
        return base.replace(CONFIG, str(ROOT / CONFIG)), other.replace(CONFIG, str(ROOT / CONFIG))


class Row(msgspec.Struct, frozen=True):
    """An operation: the verdict; instructions an iteration of the base, and their difference."""

    operation: str
    word: str
    reason: str
    base: float
    diff: float
    low: float
    high: float
    n: tuple[int, int]


class Record(msgspec.Struct, frozen=True):
    """A pair, as it was judged."""

    pair: Pair
    seed: int
    qemu: str
    warnings: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def firm(self) -> list[Row]:
        """The operations that are called faster, slower or mixed."""
        return [row for row in self.rows if row.word in {word.value for word in FIRM}]


def ignored(length: int) -> str:
    """A boot parameter of so many bytes: the kernel takes one with a dot for a module's, and says
    nothing if there is no such module (unknown_bootoption() in init/main.c).
    """
    begin = "aside.none="
    return begin.ljust(length, "x") if length > len(begin) else ".".ljust(length, "x")


def drawn(number: int, seed: int) -> Pair:
    """The pair of that number: kernels and kinds in turn, what is added at random."""
    chance = random.Random(f"{seed} {number}")
    kernel = KERNELS[number % len(KERNELS)]
    memory = chance.choice(MEMORY_MIB)
    kinds = ["ignored", "word", "mem", *(["link"] if kernel == SMALL else [])]
    kind = kinds[number // len(KERNELS) % len(kinds)]
    base = ""
    if kind == "link":
        first, second = chance.sample(range(1, 1000), 2)
        base, other = f"+shuffle:{first}", f"+shuffle:{second}"
        kernel = kernel.removesuffix(" +sections")
    elif kind == "mem":
        other = f"+cmdline:mem={chance.randrange(LEAST_LEFT_MIB, memory)}M"
    elif kind == "word":
        other = f"+cmdline:{chance.choice(WORDS)}"
    else:
        other = f"+cmdline:{ignored(chance.randint(1, MOST_BYTES))}"
    return Pair(number, kind, kernel, base, other, memory)


def compared(pair: Pair, seed: int, operations: Sequence[str], store: Store) -> Record:
    """The comparison of a pair; LabError if one side did not run."""
    base, other = pair.specs()
    request = CompareRequest(
        base=base,
        others=(other,),
        operations=tuple(operations),
        lab=LabRequest(machine=msgspec.structs.replace(RECORDED, memory_mib=pair.memory_mib)),
    )
    (found,) = asyncio.run(run_compare(request, Lab(store, Aloud())))
    if found.effects is None:
        raise LabError(f"pair {pair.number}: one side did not run; kdelta runs lists its runs")
    rows = tuple(row_of(one) for one in found.effects.operations)
    qemu = str(found.base.done[0].run.machine["qemu"])
    return Record(pair, seed, qemu, found.effects.warnings, rows)


def row_of(one: OperationEffect) -> Row:
    """What is kept of an operation."""
    if one.costs is None:
        raise LabError(f"{one.name} is not comparable: {one.verdict.reason}")
    insns = one.costs.insns
    figures = (insns.base.value, insns.effect.value, insns.effect.low, insns.effect.high)
    base, diff, low, high = (round(float(figure), 4) for figure in figures)
    n = (insns.base.n, insns.other.n)
    return Row(one.name, one.verdict.word.value, one.verdict.reason, base, diff, low, high, n)


def records(folder: Path) -> list[Record]:
    """Those that are kept, in the order of the pairs."""
    paths = sorted(folder.glob("*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=Record) for path in paths]


def summary(one: Record) -> str:
    """A line on a pair: how often each word was given, and where a firm one was."""
    words = Counter(row.word for row in one.rows)
    counted = ", ".join(f"{word} {times}" for word, times in sorted(words.items()))
    firm = "".join(f"; {row.operation} {row.word} by {row.diff:+.2f}" for row in one.firm)
    return f"pair {one.pair.number} ({one.pair.kind}, {one.pair.kernel}): {counted}{firm}"


def main() -> int:
    """Compares what is missing; 1 if a pair has a firm word."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how many")
    parser.add_argument("--seed", type=int, default=SEED, help="of what is drawn")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    parser.add_argument("-o", "--operation", action="append", default=[], help="only this one")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    with open_store() as store:
        for number in range(words.pairs):
            path = words.out / f"pair-{number:02}.json"
            if not path.exists():
                pair = drawn(number, words.seed)
                found = compared(pair, words.seed, words.operation, store)
                write_atomic(path, a_row_a_line(found))
            print(summary(msgspec.json.decode(path.read_bytes(), type=Record)), flush=True)
    return int(any(one.firm for one in records(words.out)))


if __name__ == "__main__":
    sys.exit(main())
