#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a right verdict costs, by path and by clock: processor time, for changes of 1 and 5 %.

    scripts/proofs/clock_ratio.py --minutes 30

builds a small kernel with docs/cases/unsteady/planted.patch, whose `stat` executes an empty loop as
often as a boot parameter says: both sides are one image. How often makes the call 1 % and 5 %
slower is found first. Then `kdelta compare` answers by the path, with an empty store and nothing of
earlier guests; and pairs of emulated guests are booted until the sequential rule has a verdict, for
so many minutes of processor time for each change. A line a trial is kept in
docs/cases/clock/ratio.jsonl; what is there is not made again. How many boots Welch's test needs is
found by drawing from the pairs. docs/clock-statistics.md has the table. It fails if a verdict is
wrong, not if it is expensive.
"""

import argparse
import itertools
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from clock_boots import FOLDER, MACHINE, ROOT, image_of, obtained
from clock_series import put_into_page, stopped, table_head, table_line, welch
from telling import a_row_a_line

from kdelta.host.dirs import cache_dir
from kdelta.host.files import write_atomic
from kdelta.infer.clock.decide import ClockVerdict
from kdelta.infer.effects.effects import Word
from kdelta.measures.clock.guests import ClockGuest, timed_boot

CASES = FOLDER.parent
KERNEL = (
    "deb-src:linux-source-6.12",
    f"+base:{CASES / 'options/speed.config'}",
    f"+{CASES / 'unsteady/planted.patch'}",
)
OPERATION, NEVER = "stat", 10**9
SIZES = (1, 5)
"""Of the changes, in per cent of the time of a call."""

SEED, MARGIN = 1, 0.005
"""What is too little to matter: half of a per cent, as of paths."""

CALIBRATED, MANY = 16, 150
"""Pairs by which the loop's cost is found, and passes of it in one of their guests."""

PATHS, LEAST_PAIRS = 2, 40
"""Comparisons of the paths; and pairs that are booted whenever the verdict comes."""

DRAWN, POWER, MOST = 1000, 0.8, 4096
"""Studies by Welch's test, the share of them that has to find the change, and boots at most."""

SHARED = ("kernels", "native", "qemu", "trees", "built-answers", "apt", "apt-answers", "locks")
"""What a comparison by path finds in its cache: kernels and programs, nothing of guests."""

BEGIN, END = "<!-- the ratio: begin -->", "<!-- the ratio: end -->"


class Trial(msgspec.Struct, frozen=True, tag_field="trial"):
    """A line of the record. change: in per cent, 0 where the loop's cost is found; seconds: of
    processor time.
    """

    change: int


class Pair(Trial, frozen=True, tag="pair"):
    """A boot of each kernel: nanoseconds of a call and seconds of processor time, base and other.
    passes: of the loop, in the other.
    """

    pair: int
    passes: int
    first: str
    load: float
    ns: tuple[float, float]
    seconds: tuple[float, float]

    @property
    def difference(self) -> float:
        """Return the difference of the logarithms."""
        return math.log(self.ns[1] / self.ns[0])


class Compared(Trial, frozen=True, tag="path"):
    """A comparison by path: the verdict, and instructions of a call: base, and how many more.
    again: with the guests' snapshots of the one before.
    """

    passes: int
    again: bool
    seconds: float
    word: str
    base: float
    more: float


class Row(msgspec.Struct, frozen=True):
    """What a change came to. Seconds are of processor time.

    per_cent   more instructions, and more time (the median of all pairs)
    path       seconds of a comparison by path, the mean; again: of one that has the snapshots
    word       of the sequential rule; pairs: when it came, or all; sequential: their seconds
    boot       seconds of a boot, the mean; deviation: of a boot's time, as a logarithm
    boots      of each kernel that Welch's test needs, 0 for more than are tried; welch: their
               seconds, or the limit
    """

    change: int
    passes: int
    per_cent: tuple[float, float]
    path: float
    again: float
    words: tuple[str, ...]
    word: str
    pairs: int
    sequential: float
    boot: float
    deviation: float
    boots: int
    welch: float


class Ratio(msgspec.Struct, frozen=True):
    """The rows, and for how many seconds each change was timed at most."""

    kernel: str
    operation: str
    limit: float
    rows: tuple[Row, ...]


Record = Pair | Compared


def parameter(passes: int) -> str:
    """Return the boot parameter by which each call executes so many passes of the loop."""
    return f"+cmdline:planted.{OPERATION}=0,0,{NEVER},0,0,{passes},0,0"


def spec(passes: int) -> str:
    """Return the kernel with that loop."""
    return " ".join((*KERNEL, parameter(passes)))


def records(path: Path) -> list[Record]:
    """Return the trials that are kept."""
    lines = path.read_bytes().splitlines() if path.is_file() else []
    return [msgspec.json.decode(line, type=Record) for line in lines]


def pairs_of(found: Sequence[Record], change: int) -> list[Pair]:
    """Return the pairs of a change, in their order."""
    return [one for one in found if isinstance(one, Pair) and one.change == change]


def paths_of(found: Sequence[Record], change: int, *, again: bool) -> list[Compared]:
    """Return the comparisons by path of a change."""
    ours = (one for one in found if isinstance(one, Compared) and one.again is again)
    return [one for one in ours if one.change == change]


def passes_of(found: Sequence[Record]) -> dict[int, int]:
    """Return how many passes make each change, by the pairs in which the loop's cost was found: by
    the quickest boots, since other work of the host only adds to their times.
    """
    ours = pairs_of(found, 0)
    base, other = (min(one.ns[side] for one in ours) for side in (0, 1))
    loop = (other - base) / ours[0].passes
    return {change: max(1, round(base * change / 100 / loop)) for change in SIZES}


def used() -> float:
    """Return the processor time of all programs that have ended."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


def timed(change: int, passes: int, begin: int) -> Iterator[Pair]:
    """Boot pairs without end, from that number on, in orders that are drawn."""
    kernels = obtained({"base": spec(0), "other": spec(passes)})
    image = image_of(kernels["base"], (OPERATION,))
    for pair in itertools.count(begin):
        order = ["base", "other"]
        random.Random(f"{SEED} {change} {pair}").shuffle(order)
        load, took = os.getloadavg()[0], {}
        for side in order:
            before = used()
            run = timed_boot(ClockGuest(MACHINE), kernels[side], image)
            took[side] = run.ns.get(OPERATION, 0.0), used() - before
        (base, other) = took["base"], took["other"]
        if not base[0] or not other[0]:
            continue  # the clock jumped
        ns, seconds = (base[0], other[0]), (base[1], other[1])
        yield Pair(
            *(change, pair, passes, order[0], round(load, 2)),
            ns=(round(ns[0], 2), round(ns[1], 2)),
            seconds=(round(seconds[0], 3), round(seconds[1], 3)),
        )


def by_path(change: int, passes: int) -> Iterator[Compared]:
    """Compare the paths in a cache that has the kernels and nothing of guests; and once more with
    an empty store.
    """
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "cache"
        cache.mkdir()
        for shared in SHARED:
            (cache / shared).symlink_to(cache_dir(shared))
        for again in (False, True):
            before = used()
            operation = compared(passes, cache, Path(name) / f"data-{again}")
            seconds = round(used() - before, 2)
            insns, word = operation["costs"]["insns"], operation["verdict"]["word"]
            base, more = (float(insns[name]["value"]) for name in ("base", "effect"))
            yield Compared(change, passes, again, seconds, word, base, more)


def compared(passes: int, cache: Path, data: Path) -> dict[str, Any]:
    """Return what `kdelta compare` says of the operation."""
    env = {"KDELTA_CACHE_DIR": str(cache), "KDELTA_DATA_DIR": str(data)}
    sides = (*KERNEL, parameter(0), *KERNEL, parameter(passes))
    done = subprocess.run(
        [sys.executable, "-m", "kdelta", "compare", *sides, "-o", OPERATION, "--json", "-q"],
        env={**os.environ, **env, "KDELTA_CACHE_GIB": "1000"},
        stdout=subprocess.PIPE,
        check=True,
    )
    (machine,) = msgspec.json.decode(done.stdout)["machines"]
    (operation,) = machine["others"][0]["effects"]["operations"]
    return dict(operation)


def first_verdict(pairs: Sequence[Pair]) -> ClockVerdict:
    """Return the first verdict of one who looks after each pair, or that after all."""
    return stopped(np.array([one.difference for one in pairs]), MARGIN)


def seconds_of(pairs: Sequence[Pair]) -> float:
    """Return the processor time of the boots."""
    return sum(sum(one.seconds) for one in pairs)


def is_enough(pairs: Sequence[Pair], limit: float) -> bool:
    """Return whether no pair more is to be booted."""
    if seconds_of(pairs) >= limit:
        return True
    return len(pairs) >= LEAST_PAIRS and first_verdict(pairs).word is not Word.UNRESOLVED


def missing(found: Sequence[Record], limit: float) -> Iterator[Record]:
    """Make what is missing, trial by trial; `found` has all of them."""
    begin = len(pairs_of(found, 0))
    yield from itertools.islice(timed(0, MANY, begin), CALIBRATED - begin)
    for change, passes in passes_of(found).items():
        for _ in range(len(paths_of(found, change, again=True)), PATHS):
            yield from by_path(change, passes)
    for change, passes in reversed(passes_of(found).items()):  # the one that ends soon comes first
        more = timed(change, passes, len(pairs_of(found, change)))
        while not is_enough(pairs_of(found, change), limit):
            yield next(more)


def power(pairs: Sequence[Pair], boots: int) -> float:
    """Return how often Welch's test finds the other kernel slower by so many boots of each, drawn
    from those that there are.
    """
    draw = np.random.default_rng([SEED, boots])
    logs = np.log(np.array([one.ns for one in pairs]))
    sides = [draw.choice(logs[:, side], (DRAWN, boots)) for side in (0, 1)]
    return float((welch(*sides) > 0).mean())


def boots_needed(pairs: Sequence[Pair]) -> int:
    """Return the fewest boots of each kernel by which Welch's test has its power, 0 if more than
    are tried.
    """
    few, most = 2, 4
    while power(pairs, most) < POWER:
        few, most = most, 2 * most
        if most > MOST:
            return 0
    while most - few > 1:
        middle = (few + most) // 2
        few, most = (few, middle) if power(pairs, middle) >= POWER else (middle, most)
    return most


def row_of(found: Sequence[Record], change: int, limit: float) -> Row:
    """Return what a change came to."""
    pairs = pairs_of(found, change)
    paths, again = (paths_of(found, change, again=one) for one in (False, True))
    verdict = first_verdict(pairs)
    logs = np.log(np.array([one.ns for one in pairs]))
    boot = seconds_of(pairs) / 2 / len(pairs)
    boots = boots_needed(pairs)
    time_more = 100 * math.expm1(statistics.median(one.difference for one in pairs))
    return Row(
        change=change,
        passes=passes_of(found)[change],
        per_cent=(round(100 * paths[0].more / paths[0].base, 2), round(time_more, 2)),
        path=round(statistics.mean(one.seconds for one in paths), 2),
        again=round(statistics.mean(one.seconds for one in again), 2),
        words=tuple(one.word for one in (*paths, *again)),
        word=verdict.word.value,
        pairs=verdict.pairs,
        sequential=round(seconds_of(pairs[: verdict.pairs]), 1),
        boot=round(boot, 3),
        deviation=round(float(logs.std(axis=0, ddof=1).mean()), 5),
        boots=boots,
        welch=min(round(2 * boots * boot, 1), limit) if boots else limit,
    )


def times(seconds: float, row: Row, *, is_bound: bool) -> str:
    """Return the processor time, and how often that of a comparison by path goes into it."""
    least = "at least " if is_bound else ""
    return f"{least}{seconds:.0f} s: {least}{seconds / row.path:.1f} times the path's"


def lines_of(row: Row, limit: float) -> dict[str, str]:
    """Return what the page shows of a change."""
    is_open = row.word == Word.UNRESOLVED.value
    return {
        "passes of the loop": str(row.passes),
        "more instructions": f"{row.per_cent[0]:+.2f} %",
        "more time, the median of all pairs": f"{row.per_cent[1]:+.2f} %",
        "by path": " and ".join(dict.fromkeys(row.words)),
        "its processor time": f"{row.path:.0f} s",
        "the same with the snapshots of before": f"{row.again:.0f} s",
        "a boot that is timed": f"{row.boot:.2f} s",
        "standard deviation of boots": f"{100 * row.deviation:.0f} %",
        "by clock, sequential": f"{row.word} after {row.pairs} pairs",
        "their processor time": times(row.sequential, row, is_bound=is_open),
        "boots that Welch's test needs": f"2 x {row.boots}" if row.boots else f"over 2 x {MOST}",
        "processor time of so many": times(row.welch, row, is_bound=row.welch >= limit),
    }


def table(found: Ratio) -> str:
    """Return what the page shows."""
    columns = [lines_of(row, found.limit) for row in found.rows]
    lines = table_head(["change", *(f"+{row.change} %" for row in found.rows)])
    return "\n".join(
        [*lines, *(table_line([name, *(one[name] for one in columns)]) for name in columns[0])]
    )


def main() -> int:
    """Make the trials that are missing, and the table of all; 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="of processor time, each change")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    path, limit = words.out / "ratio.jsonl", 60 * words.minutes
    found = records(path)
    for one in missing(found, limit):
        found.append(one)
        with path.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")
        print(time.strftime("%H:%M:%S"), one, flush=True)
    rows = tuple(row_of(found, change, limit) for change in SIZES)
    ratio = Ratio(" ".join(KERNEL).replace(f"{ROOT}/", ""), OPERATION, limit, rows)
    write_atomic(words.out / "ratio.json", a_row_a_line(ratio))
    print(table(ratio))
    if words.out == FOLDER:
        put_into_page(table(ratio), BEGIN, END)
    right = {Word.SLOWER.value}
    return int(
        any(
            set(row.words) - right or row.word not in {*right, Word.UNRESOLVED.value}
            for row in rows
        )
    )


if __name__ == "__main__":
    sys.exit(main())
