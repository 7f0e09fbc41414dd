#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that a comparison gives after few runs, against 64 runs of each kernel.

    scripts/proofs/many_runs.py

compares pairs of kernels as `compare` does. Of each operation that is not the same in all runs of
both, it makes 64 runs a side, and keeps their means in one JSON record a pair. It fails if a word
is wrong by these: `wrong` says what that is. Records that are there are not made again, and runs
are kept: a script that was interrupted goes on where it was.
"""

import argparse
import asyncio
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from telling import Aloud, a_row_a_line

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.host.files import write_atomic
from kdelta.infer.effects.effects import OperationEffect
from kdelta.infer.effects.estimate import LOOKS
from kdelta.lab.lab import Lab, open_store
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/cases/many-runs"
RUNS = LOOKS[-1]
SMALL = f"deb-src:linux-source-6.12 +base:{ROOT}/docs/cases/options/speed.config +sections"


class Pair(msgspec.Struct, frozen=True):
    """Two kernel specs, and the operations that are compared: all, unless some are named."""

    base: str
    other: str
    operations: tuple[str, ...] = ()


def planted(nops: int) -> Pair:
    """The small kernel, and the same with so many instructions more in each message: a round trip
    has two.
    """
    return Pair(SMALL, f"{SMALL} +{FOLDER}/unix-{nops}.patch", ("unix-round-trip",))


PAIRS = {
    "releases": Pair("deb:linux-image-cloud-amd64", "deb:linux-image-6.12-cloud-amd64"),
    "newest": Pair("deb:linux-image-6.12-cloud-amd64", "deb:linux-image-cloud-amd64@forky"),
    "relinked": Pair(SMALL, f"{SMALL.removesuffix(' +sections')} +shuffle:1"),
    "planted-84": planted(42),
    "planted-126": planted(63),
    "planted-1050": planted(525),
}
MARGIN = 0.005
"""The part of the base within which figures are the same."""

CERTAIN = 3.3
"""Standard errors that a mean of so many runs is off by in one of 1,000 cases."""

FIRM = ("faster", "slower")


class Row(msgspec.Struct, frozen=True):
    """An operation that varies: the word, after so many runs a side, and what was seen by then; and
    the mean iteration of each of the many runs.
    """

    operation: str
    word: str
    n: tuple[int, int]
    low: float
    high: float
    base: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def diff(self) -> float:
        """The difference of the many runs' means, in instructions an iteration."""
        return statistics.fmean(self.other) - statistics.fmean(self.base)

    @property
    def error(self) -> float:
        """Its standard error."""
        sides = (self.base, self.other)
        return math.sqrt(sum(statistics.variance(side) / len(side) for side in sides))

    @property
    def paired_error(self) -> float:
        """The same by the differences of runs of one perturbation."""
        found = [its - own for own, its in zip(self.base, self.other, strict=True)]
        return math.sqrt(statistics.variance(found) / len(found))

    @property
    def wrong(self) -> str:
        """Why the word is wrong, or nothing."""
        return self.wrong_by(self.error)

    def wrong_by(self, error: float) -> str:
        """Why it is wrong by this standard error: faster or slower, and many runs show the
        opposite, or no difference; the same, and they show one beyond the margin.
        """
        margin = MARGIN * statistics.fmean(self.base)
        if self.word in FIRM:
            sign = 1 if self.word == "slower" else -1
            if sign * self.diff <= CERTAIN * error:
                return f"{self.word}, and many runs differ by {self.diff:+.2f}"
        if self.word == "same" and abs(self.diff) - CERTAIN * error > margin:
            return f"same, and many runs differ by {self.diff:+.2f}"
        return ""


class Record(msgspec.Struct, frozen=True):
    """A pair of kernels: the words of rows that are equal in all runs, and all others."""

    pair: str
    specs: tuple[str, str]
    releases: tuple[str, str]
    qemu: str
    cpu: str
    equal: dict[str, str]
    rows: tuple[Row, ...]


def measured(pair: str, store: Store) -> Record:
    """Compare a pair, and run further what varies; LabError if a side did not run."""
    base, other = PAIRS[pair].base, PAIRS[pair].other
    request = CompareRequest(base=base, others=(other,), operations=PAIRS[pair].operations)
    usual = _compared(request, store)
    assert usual.effects is not None
    found = {one.name: one for one in usual.effects.operations if one.costs is not None}
    exact = {name: one.costs is None or one.costs.insns.effect.exact for name, one in found.items()}
    varying = [name for name in found if not exact[name]]
    further = msgspec.structs.replace(
        request, operations=tuple(varying), states=False, lab=LabRequest(perturbations=RUNS)
    )
    many = _compared(further, store) if varying else usual
    machine = usual.base.done[0].run.machine
    return Record(
        pair,
        (base.replace(f"{ROOT}/", ""), other.replace(f"{ROOT}/", "")),
        (usual.base.done[0].run.kernel_release, usual.other.done[0].run.kernel_release),
        str(machine["qemu"]),
        str(machine["cpu"]),
        {name: one.verdict.word.value for name, one in found.items() if name not in varying},
        tuple(
            _row(found[name], *(_means(side.counts, name) for side in (many.base, many.other)))
            for name in varying
        ),
    )


def _compared(request: CompareRequest, store: Store) -> Comparison:
    (found,) = asyncio.run(run_compare(request, Lab(store, Aloud())))
    if found.effects is None:
        raise LabError(f"{request.others[0]}: one side did not run; kdelta runs lists its runs")
    return found


def _means(runs: Sequence[RunCounts], name: str) -> tuple[float, ...]:
    return tuple(round(float(merged_regions(run)[name].mean_own_insns()), 4) for run in runs)


def _row(one: OperationEffect, base: tuple[float, ...], other: tuple[float, ...]) -> Row:
    assert one.costs is not None
    insns = one.costs.insns
    n = (insns.base.n, insns.other.n)
    low, high = round(float(insns.effect.low), 4), round(float(insns.effect.high), 4)
    return Row(one.name, one.verdict.word.value, n, low, high, base, other)


def records(folder: Path) -> list[Record]:
    """Those that are kept."""
    paths = sorted(folder.glob("*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=Record) for path in paths]


def summary(one: Record) -> str:
    """A line a row: the word after so many runs, and what many runs show."""
    lines = [f"{one.pair}: {one.releases[1]} against {one.releases[0]}; equal: {len(one.equal)}"]
    for row in one.rows:
        percent, error = (100 * part / statistics.fmean(row.base) for part in (row.diff, row.error))
        lines.append(
            f"  {row.operation:20} {row.word:12} n={row.n[0]:<3} {percent:+.3f} +- {error:.3f} %"
            f"  {row.wrong}"
        )
    return "\n".join(lines)


def main() -> int:
    """Measures what is missing; 1 if a word is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", action="append", choices=PAIRS, default=[], help="only this one")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    with open_store() as store:
        for pair in words.pair or PAIRS:
            path = words.out / f"{pair}.json"
            if not path.exists():
                write_atomic(path, a_row_a_line(measured(pair, store)))
            print(summary(msgspec.json.decode(path.read_bytes(), type=Record)), flush=True)
    return int(any(row.wrong for one in records(words.out) for row in one.rows))


if __name__ == "__main__":
    sys.exit(main())
