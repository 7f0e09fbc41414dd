#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Planted changes that cost at some times only: each is measured right, or has no firm word.

    scripts/proofs/unsteady.py [ROUND]...

builds a small kernel with planted.patch and compares it with itself: boot parameters say in which
calls of each system call an empty loop is executed. Both sides are one image, and differ in nothing
but passes of that loop. A record a round; it fails if a word is wrong.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import msgspec
from campaign import CASES, Proof, markdown, near
from compared import FIRM_WORDS, compared, effects_of, qemu_of, row_of
from compared import Row as Measured
from recorded_machine import RECORDED_LAB

from kdelta.infer.effects.effects import Word
from kdelta.lab.lab import open_store
from kdelta.spec.parameters import split_parameters

FOLDER = CASES / "unsteady"
KERNEL = f"deb-src:linux-source-6.12 +{CASES}/option-groups/plain.config +{FOLDER}/planted.patch"
INSNS = 3
"""Instructions of a pass of the planted loop."""
NEVER = 10**9
TOLERANCE = 0.05
"""By what part of it a cost that is steady may be measured wrong: a region need not end with a
period of what comes again and again.
"""


class Plant(msgspec.Struct, frozen=True):
    """Passes of the loop by call: `before` up to call `start`, `within` up to `end`, then `after`;
    again from the beginning after `period` calls. And one more every 2^ramp_shift calls, for
    ramp_end calls.
    """

    start: int = 0
    end: int = 0
    period: int = NEVER
    before: int = 0
    within: int = 0
    after: int = 0
    ramp_end: int = 0
    ramp_shift: int = 0

    @property
    def words(self) -> str:
        """Return the value of the boot parameter."""
        return ",".join(str(number) for number in msgspec.structs.astuple(self))


def always(passes: int) -> Plant:
    """Return what costs the same in each call."""
    return Plant(before=passes, within=passes, after=passes)


def until(call: int, passes: int = 100, start: int = 0) -> Plant:
    """Return a cost of calls from `start` up to that one."""
    return Plant(start, call, within=passes)


def since(call: int, passes: int = 100) -> Plant:
    """Return a cost of all calls from that one on."""
    return Plant(call, call, after=passes)


def turns(each: int, high: int = 100, low: int = 0) -> Plant:
    """Return two costs in turn, each for so many calls."""
    return Plant(0, each, 2 * each, within=high, after=low)


class Trial(msgspec.Struct, frozen=True):
    """What is planted in an operation's call on both sides. right: how many passes more a call
    costs in the long run. limit: why kdelta cannot see that; then any word is recorded.
    """

    operation: str
    site: str
    what: str
    other: Plant
    right: float
    base: Plant = Plant()
    limit: str = ""


ROUNDS: dict[str, tuple[Trial, ...]] = {
    "usual": (
        Trial("getppid", "getppid", "the first 500 calls", until(500), 0),
        Trial("uname", "uname", "from call 3,000 on", since(3000), 100),
        Trial(
            "sched_yield", "sched_yield", "from call 5,000 on, amid the region", since(5000), 100
        ),
        Trial("gettimeofday-syscall", "gettimeofday", "700 calls of 1,400", turns(700), 50),
        Trial(
            "clock_gettime-syscall", "clock_gettime", "each 5th call", Plant(0, 1, 5, 0, 100), 20
        ),
        Trial("chdir", "chdir", "from call 1,280 on, at 90 % of the region", since(1280), 100),
        Trial("stat", "stat", "up to call 1,280, at 90 % of the region", until(1280), 0),
        Trial(
            *("fstat", "fstat", "more and more, up to call 16,000"),
            *(Plant(ramp_end=16000, ramp_shift=7), 125),
        ),
        Trial("futex-wake", "futex", "calls 2,000 to 6,000", until(6000, start=2000), 0),
        Trial("poll-10", "poll", "up to call 900", until(900), 0),
        Trial("read-zero-64k", "read_zero", "calls 120 to 150", until(150, start=120), 0),
        Trial("signal-handler", "kill", "from call 2,000 on", since(2000), 100),
        Trial("fork-large", "clone", "the first 2 forks", until(2, 1_000_000), 0),
    ),
    "traps": (
        Trial("getppid", "getppid", "calls 5,000 to 6,200", until(6200, start=5000), 0),
        Trial(
            *("uname", "uname", "800 calls more, 800 calls less, in turn"),
            *(turns(800), 0, always(50)),
        ),
        Trial("sched_yield", "sched_yield", "one pass, up to call 5,500", until(5500, 1), 0),
        Trial("gettimeofday-syscall", "gettimeofday", "one pass, 700 of 1,400", turns(700, 1), 0.5),
        Trial(
            *("clock_gettime-syscall", "clock_gettime", "each 97th call"),
            *(Plant(0, 1, 97, 0, 100), 100 / 97),
        ),
        Trial("chdir", "chdir", "one pass, up to call 1,300", until(1300, 1), 0),
        Trial("stat", "stat", "one pass, from call 1,000 on", since(1000, 1), 1),
        Trial("fstat", "fstat", "calls 3,000 to 9,000", until(9000, start=3000), 0),
        Trial(
            *("futex-wake", "futex", "less and less, up to call 8,000"),
            *(always(125), 0, Plant(ramp_end=8000, ramp_shift=6)),
        ),
        Trial("poll-10", "poll", "from call 1,490 on, the end of the region", since(1490), 100),
        Trial("read-zero-64k", "read_zero", "from call 150 on, 0.6 %", since(150, 26), 26),
        Trial("signal-handler", "kill", "calls 1,000 to 1,800", until(1800, start=1000), 0),
        Trial("fork-large", "clone", "each 2nd fork", Plant(0, 1, 2, 0, 1_000_000), 500_000),
    ),
    "more": (
        Trial("getppid", "getppid", "each 2nd call", Plant(0, 1, 2, 0, 100), 50),
        Trial(
            *("uname", "uname", "not in calls 5,000 to 6,200"),
            *(Plant(5000, 6200, before=100, after=100), 100),
        ),
        Trial("stat", "stat", "300 calls of 600", turns(300), 50),
        Trial("fstat", "fstat", "2,500 calls of 5,000", turns(2500), 50),
    ),
    "limits": (
        Trial(
            *("getppid", "getppid", "from call 40,000 on", since(40_000), 100),
            limit="a region that is steady is not run for longer",
        ),
        Trial(
            *("uname", "uname", "the first 12,000 calls", until(12_000), 0),
            limit="the cost lasts for longer than warm-up and region",
        ),
        Trial(
            *("sched_yield", "sched_yield", "20,000 calls of 40,000", turns(20_000), 50),
            limit="the period is longer than warm-up and region",
        ),
        Trial(
            *("futex-wake", "futex", "a pass more every 4,096 calls, for a million"),
            *(Plant(ramp_end=1 << 20, ramp_shift=12), 256),
            limit="the cost changes by less than 0.5 % in the region",
        ),
    ),
}


class Row(msgspec.Struct, frozen=True):
    """A trial: the verdict; instructions an iteration of the base, their difference between low and
    high, and which it is in the long run.
    """

    operation: str
    what: str
    limit: str
    right: float
    word: str
    reason: str
    base: float
    diff: float
    low: float
    high: float
    n: tuple[int, int]

    @property
    def wrong(self) -> bool:
        """Return whether the word is firm, or "same", and not true in the long run."""
        near_by = TOLERANCE * abs(self.right)
        if self.word in FIRM_WORDS:
            is_outside = not self.low - near_by <= self.right <= self.high + near_by
            return self.diff * self.right <= 0 or is_outside
        within = max(abs(self.low), abs(self.high))
        return self.word == Word.SAME.value and abs(self.right) > within + near_by


class Record(msgspec.Struct, frozen=True):
    """A round, and what both sides were booted with."""

    name: str
    base: str
    other: str
    qemu: str
    rows: tuple[Row, ...]


def parameters(trials: Sequence[Trial], *, base: bool) -> str:
    """Return the boot parameters of one side of a round."""
    plants = {one.site: one.base if base else one.other for one in trials}
    return " ".join(f"planted.{site}={plant.words}" for site, plant in plants.items())


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Record]:
    """Compare the sides of each round."""
    with open_store() as store:
        for name in names:
            trials = ROUNDS[name]
            sides = [parameters(trials, base=base) for base in (True, False)]
            specs = [f"{KERNEL} '+cmdline:{words}'" for words in sides]
            operations = tuple(one.operation for one in trials)
            found = compared(store, *specs, operations=operations, lab=RECORDED_LAB)
            effects = {one.name: row_of(one) for one in effects_of(found)}
            rows = tuple(row(one, effects[one.operation]) for one in trials)
            yield Record(name, sides[0], sides[1], qemu_of(found), rows)


def row(trial: Trial, found: Measured) -> Row:
    """Return what is kept of a trial."""
    planted = (trial.operation, trial.what, trial.limit, round(INSNS * trial.right, 4))
    return Row(*planted, *msgspec.structs.astuple(found)[1:])


def wrong(found: Sequence[Record]) -> Iterator[str]:
    """Yield the words that are wrong, but for limits."""
    for one in found:
        for row in one.rows:
            if row.wrong and not row.limit:
                yield f"{one.name}, {row.operation}, {row.what}: {row.word} by {row.diff:+.2f}"


def table(found: Sequence[Record]) -> str:
    """Return a row a trial: what is planted, what is right, and what was reported."""
    rows = []
    for row in (row for one in found for row in one.rows):
        word = f"**wrong: {row.word}**" if row.wrong and not row.limit else row.word
        figure = f"{row.diff:+.2f}, {row.low:+.2f} to {row.high:+.2f}"
        right = f"{row.right:+.2f}" if row.right else "0"
        what = f"{row.what} (limit: {row.limit})" if row.limit else row.what
        rows.append((row.operation, what, right, word, figure))
    return markdown(("operation", "planted", "right", "reported", "figure"), rows)


PROOF = Proof(
    record=Record,
    file=FOLDER / "records.jsonl",
    trials=lambda _: ROUNDS,
    make=made,
    wrong=wrong,
    summary=lambda one: table([one]),
    pages={FOLDER / "README.md": {"the table": table}},
)


def check_records_are_of_what_is_planted(found: Sequence[Record]) -> None:
    """Check the parameters of both sides, and what is right."""
    for one in found:
        trials = ROUNDS[one.name]
        assert one.base == parameters(trials, base=True)
        assert one.other == parameters(trials, base=False)
        assert len(split_parameters(one.other)) == len(trials)
        for trial, row in zip(trials, one.rows, strict=True):
            planted = (trial.operation, trial.what, trial.limit)
            assert (row.operation, row.what, row.limit) == planted
            assert near(row.right, INSNS * trial.right, by=1e-3)
            assert row.low <= row.diff <= row.high


def check_cost_of_each_nth_call_is_measured_right(found: Sequence[Record]) -> None:
    """Check that the costs of calls between others are what they are in the mean."""
    rows = [row for one in found for row in one.rows if row.what.startswith("each")]
    assert len(rows) > 3
    for row in rows:
        assert near(row.diff, row.right, rel=0.02)
        assert row.word in {Word.SLOWER, Word.SAME, Word.UNRESOLVED}
    assert [row.word for row in rows].count(Word.SLOWER) > 1


def check_a_word_that_is_not_true_in_the_long_run_is_wrong() -> None:
    """Check words on rows that are made up."""
    for word, right, diff, is_wrong in (
        ("slower", 300.0, 300.0, False),
        ("slower", 300.0, 280.0, False),
        ("slower", 300.0, 150.0, True),
        ("slower", 0.0, 1.0, True),
        ("faster", 300.0, -300.0, True),
        ("same", 0.0, 1.0, False),
        ("same", 300.0, 0.0, True),
        ("not steady", 0.0, 300.0, False),
        ("unresolved", 300.0, -300.0, False),
    ):
        row = Row("op", "", "", right, word, "", 1000.0, diff, diff - 5, diff + 5, (3, 3))
        assert row.wrong is is_wrong, (word, right, diff)


def check_sites_and_operations_of_a_round_are_planted_once() -> None:
    """Check that no site and no operation comes twice in a round."""
    for trials in ROUNDS.values():
        assert len({one.site for one in trials}) == len(trials)
        assert len({one.operation for one in trials}) == len(trials)


if __name__ == "__main__":
    sys.exit(PROOF.main())
