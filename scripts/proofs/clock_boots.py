#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on clock times, tried on boots of real kernels in emulated guests.

    scripts/proofs/clock_boots.py --pairs 300

boots Debian's cloud kernel without and with two things that it does by default, in pairs whose
order is drawn; a record a boot. What both execute is compared once (paths.json). Studies are drawn
from the boots and judged as `kdelta compare --clock` does (studies.json). It fails if verdicts are
wrong in more than 5 % of the studies.
"""

import argparse
import itertools
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from campaign import CASES, ROOT, Proof, line_of, markdown
from compared import compared, effects_of, obtained, qemu_of, row_of
from numpy.typing import ArrayLike, NDArray

from kdelta.infer.clock.decide import ALPHA, decide_all
from kdelta.infer.clock.e_values import Floats, log_e_values
from kdelta.infer.effects.effects import FIRM, Word
from kdelta.infer.effects.intervals import two_sided
from kdelta.lab.lab import open_store
from kdelta.lab.plan import guest_compiler
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.measures.clock.guests import ClockGuest, initramfs_of, timed_boot
from kdelta.measures.clock.jobs import timed_job
from kdelta.spec.run import MachineOptions

FOLDER = CASES / "clock"
DEBIAN = "deb:linux-image-cloud-amd64"
KERNELS = {
    "A": f"{DEBIAN} +cmdline:randomize_kstack_offset=off +cmdline:init_on_alloc=0",
    "B": f"{DEBIAN} +cmdline:randomize_kstack_offset=on +cmdline:init_on_alloc=1",
}
"""B is what Debian's kernel does without being told."""

OPERATIONS = ("getppid", "stat", "open-close", "pipe-round-trip", "mmap-munmap", "write-null-1b")
PAIRS, SEED, MARGIN = 300, 1, 0.01
MACHINE = MachineOptions()

STUDIES, STUDY_PAIRS = 1000, 30
"""Studies of each kind, and pairs of one at most."""

WELCH = (10, 30)
"""Boots of each kernel that are tested back to back."""

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

    @property
    def name(self) -> str:
        """Return its trial."""
        return f"{self.pair} {self.kernel}"


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


def trials(options: argparse.Namespace) -> list[str]:
    """Return the boots, in their order."""
    return [f"{pair} {letter}" for pair in range(options.pairs) for letter in order_of(pair)]


def made(names: Sequence[str], _: argparse.Namespace) -> Iterator[Booted]:
    """Boot pairs, and time them."""
    kernels = {name: obtained(spec) for name, spec in KERNELS.items()}
    compiler = guest_compiler(kernels["A"].arch, MACHINE)
    job = timed_job(Work(operations=OPERATIONS), kernels["A"], LabRequest(machine=MACHINE))
    image = initramfs_of(job.archive, compiler)

    def boot(name: str) -> Booted:
        pair, letter = int(name.split(maxsplit=1)[0]), name.split()[1]
        when, load = round(time.time(), 1), round(os.getloadavg()[0], 2)
        run = timed_boot(ClockGuest(MACHINE), kernels[letter], image)
        ns, first = {at: round(one, 1) for at, one in run.ns.items()}, letter == order_of(pair)[0]
        return Booted(pair, letter, first, when, load, run.facts.boot_id, ns)

    for _, pair in itertools.groupby(names, lambda name: name.split()[0]):
        yield from [boot(name) for name in pair]  # both, or none if that is interrupted


def whole(boots: Sequence[Booted]) -> list[Booted]:
    """Return the boots of pairs in which all was timed: regions in which the clock jumped are not
    in a record.
    """
    lacking = {one.pair for one in boots if len(one.ns) < len(OPERATIONS)}
    return [one for one in boots if one.pair not in lacking]


def executed() -> Paths:
    """Return what both kernels execute: what is kept, or what a comparison says."""
    path = FOLDER / "paths.json"
    if not path.exists():
        with open_store() as store:
            lab = LabRequest(machine=MACHINE)
            found = compared(store, *KERNELS.values(), operations=OPERATIONS, lab=lab)
        rows = (row_of(one) for one in effects_of(found))
        said = tuple(
            Executed(
                one.operation, one.word, round(one.base, 2), round(100 * one.diff / one.base, 3)
            )
            for one in rows
        )
        release = found.base.done[0].run.kernel_release
        path.write_bytes(line_of(Paths(KERNELS, release, qemu_of(found), said)))
    return msgspec.json.decode(path.read_bytes(), type=Paths)


def share(what: ArrayLike) -> float:
    """Return how often something is true."""
    return round(float(np.mean(np.asarray(what))), 5)


def welch(base: Floats, other: Floats) -> NDArray[np.intp]:
    """Return what Welch's test says of each series: 1 is slower, -1 faster, 0 neither."""
    count = base.shape[1]
    means = other.mean(axis=1) - base.mean(axis=1)
    variances = [side.var(axis=1, ddof=1) for side in (base, other)]
    both = variances[0] + variances[1]
    degrees = (count - 1) * both**2 / (variances[0] ** 2 + variances[1] ** 2)
    limits = np.array([two_sided(ALPHA, int(one)) for one in degrees])
    return np.where(np.abs(means) > limits * np.sqrt(both / count), np.sign(means), 0).astype(int)


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
        rows += [study_row(kind, at, words, logs) for at in range(len(OPERATIONS))]
    return Studies(len(boots), studies, SEED, any_false, tuple(rows))


def study_row(kind: str, at: int, words: Sequence[Words], logs: Logs) -> Row:
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


def studies(boots: Sequence[Booted]) -> Studies:
    """Return what studies of these boots came to: those that are kept, or if other, new ones."""
    path = FOLDER / "studies.json"
    if path.exists():
        found = msgspec.json.decode(path.read_bytes(), type=Studies)
        if found.boots == len(whole(boots)):
            return found
    found = judged(whole(boots), executed(), STUDIES)
    if boots == PROOF.records():
        path.write_bytes(line_of(found))
    return found


def table(boots: Sequence[Booted]) -> str:
    """Return what the page shows of the studies."""
    rows = {(one.kind, one.operation): one for one in studies(boots).rows}
    few, most = map(str, WELCH)
    shown = []
    for name in OPERATIONS:
        one, fixed = rows["alike", name], rows["fixed order", name]
        shares = [one.slower + one.faster, one.same, fixed.slower + fixed.faster]
        shares += [sum(one.welch[few]), sum(one.welch[most])]
        shown.append([f"`{name}`", half(one), *map(percent, shares)])
    heads = ["A against A", "half of the pairs", "kdelta: slower or faster", "same"]
    heads += ["A always first: slower or faster", f"Welch, {few} and {few}"]
    first = markdown([*heads, f"Welch, {most} and {most}"], shown)
    shown = []
    for path in executed().rows:
        one = rows["planted", path.operation]
        shares = [one.slower, one.faster, one.same, 1 - one.slower - one.faster - one.same]
        cells = [f"{path.per_cent:+.2f} %", f"{in_percent(one.quartiles[1])} %", half(one)]
        cells += [*map(percent, shares), f"{one.pairs:.0f}" if one.pairs else "-"]
        shown.append([f"`{path.operation}`", *cells, *map(percent, one.welch[most])])
    heads = ["A against B", "path", "time, all pairs", "half of the pairs", "kdelta: slower"]
    heads += ["faster", "same", "unresolved", "pairs to slower or faster"]
    return f"{first}\n\n{markdown([*heads, f'Welch, {most} and {most}: slower', 'faster'], shown)}"


def percent(what: float) -> str:
    """Return a share in per cent."""
    return f"{100 * what:.1f} %"


def in_percent(log: float) -> str:
    """Return a difference of logarithms in per cent of the base."""
    return f"{100 * math.expm1(log):+.1f}"


def half(row: Row) -> str:
    """Return between what the middle half of the differences of pairs lies."""
    low, _, high = row.quartiles
    return f"{in_percent(low)} to {in_percent(high)} %"


def wrong(boots: Sequence[Booted]) -> Iterator[str]:
    """Yield of which kinds too many studies are wrong, or that there are no boots for studies."""
    if len(boots) < 4 * STUDY_PAIRS:
        yield f"{len(boots)} boots are too few to judge"
        return
    for kind in ("alike", "planted"):
        if (part := studies(boots).any_false[kind]) > ALPHA:
            yield f"{kind}: {percent(part)} of the studies are wrong"


PROOF: Proof[Booted] = Proof(
    record=Booted,
    file=FOLDER / "boots.jsonl",
    trials=trials,
    make=made,
    wrong=wrong,
    answer=lambda boots: table(boots) if len(boots) >= 4 * STUDY_PAIRS else "",
    pages={ROOT / "docs/clock-statistics.md": {"the boots": table}},
    sizes={"pairs": PAIRS},
)


def check_boots_are_pairs_in_the_order_of_time(boots: Sequence[Booted]) -> None:
    """Check that no boot comes twice, and that nearly all pairs are whole."""
    assert [one.first for one in boots] == [True, False] * PAIRS
    assert [one.when for one in boots] == sorted(one.when for one in boots)
    assert len({one.boot_id for one in boots}) == len(boots)
    assert len(whole(boots)) > 0.9 * len(boots)
    assert {tuple(one.ns) for one in whole(boots)} == {OPERATIONS}


def check_studies_are_of_these_boots_and_find_what_was_planted(boots: Sequence[Booted]) -> None:
    """Check the studies."""
    found, paths = studies(boots), executed()
    assert (found.boots, found.studies) == (len(whole(boots)), STUDIES)
    assert paths.kernels == KERNELS
    rows = {(one.kind, one.operation): one for one in found.rows}
    for one in judged(whole(boots), paths, 1).rows:
        kept = rows[one.kind, one.operation]
        assert (one.welch, one.quartiles) == (kept.welch, kept.quartiles)
    (path,) = (one for one in paths.rows if one.operation == "getppid")
    assert (path.word, round(path.per_cent, 1)) == ("slower", 3.7)
    assert rows["planted", "getppid"].slower > 0.9
    assert rows["planted", "stat"].slower > 0.9


def check_first_word_is_that_after_the_first_pairs_that_decide() -> None:
    """Check differences that are made up."""
    noise = np.random.default_rng(1).standard_normal((len(OPERATIONS), STUDY_PAIRS))
    for effect, word in ((0.05, Word.SLOWER), (-0.05, Word.FASTER)):
        found = first_words(effect + 0.005 * noise)
        assert {one for one, _ in found.values()} == {word}
        assert all(7 <= pairs <= 10 for _, pairs in found.values())
    assert first_words(0.0 * noise + np.resize([0.3, -0.3], STUDY_PAIRS)) == {}


def check_false_words() -> None:
    """Check which words are false of more, of less and of no work."""
    more, less = (Executed("a", "slower", 100.0, by) for by in (2.0, 0.5))
    for word, of_more, of_less, of_none in (
        (Word.SLOWER, False, False, True),
        (Word.FASTER, True, True, True),
        (Word.SAME, True, False, False),
    ):
        assert is_false("planted", (word, 7), more) is of_more
        assert is_false("planted", (word, 7), less) is of_less
        assert is_false("alike", (word, 7), more) is of_none
    assert not is_false("planted", None, more)


def check_orders_are_drawn() -> None:
    """Check that each kernel is first in about half of the pairs."""
    first = [order_of(pair)[0] for pair in range(PAIRS)]
    assert 0.4 < first.count("A") / len(first) < 0.6
    assert set(KINDS) == {"alike", "fixed order", "planted"}


if __name__ == "__main__":
    sys.exit(PROOF.main())
