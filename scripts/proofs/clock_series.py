#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How often verdicts on clock times are wrong, and how soon they come: simulated series of boots.

    scripts/proofs/clock_series.py

draws series of up to 60 pairs whose true effect is known, looks after each pair as a user may, and
stops at the first verdict. Other rules see the same series. It writes one JSON record a kind of
series to docs/cases/clock-series and the tables to docs/clock-statistics.md, and fails if a verdict
is wrong in more than 5 % of the series. Records that are there are not made again.
"""

import argparse
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from telling import a_row_a_line

from kdelta.host.files import write_atomic
from kdelta.infer.clock.decide import ALPHA, ClockVerdict, decide
from kdelta.infer.clock.e_values import (
    Floats,
    discoveries,
    log_e_values,
    log_signs,
    log_t_mixture,
)
from kdelta.infer.effects.effects import FIRM, Word
from kdelta.infer.effects.intervals import two_sided

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/cases/clock-series"
PAGE = ROOT / "docs/clock-statistics.md"
TRIALS, PAIRS, SEED = 10_000, 60, 1
MARGIN = 0.01
NO_MARGIN = 0.0001
"""Where it is asked how soon a difference is found: nothing is the same within that."""
SIGMA = 0.01
"""The standard deviation of a pair's difference, unless levels make it."""

LEVEL, SMALL = 0.03, 0.001
"""How far two levels are apart, and the noise of a boot on either."""

MANY, CHANGED = 43, 8
"""Operations of a study, and how many of them are slower."""

EFFECTS = ("none", "beyond", "0.5", "1", "2")
BEGIN, END = "<!-- the tables: begin -->", "<!-- the tables: end -->"
Random = np.random.Generator
Boots = tuple[Floats, Floats]
"""Logarithms of the medians of base and other, a row a series, a column a pair."""


class Kind(NamedTuple):
    """A kind of series without an effect; sigma: the standard deviation of a pair's difference."""

    what: str
    draw: Callable[[Random, int], Boots]
    sigma: float = SIGMA
    effects: tuple[str, ...] = EFFECTS
    limit: str = ""


def independent(
    draw: Callable[[Random, tuple[int, int]], Floats],
) -> Callable[[Random, int], Boots]:
    """Return a drawing in which no boot depends on another."""

    def both(random: Random, trials: int) -> Boots:
        return draw(random, (trials, PAIRS)), draw(random, (trials, PAIRS))

    return both


def scaled(deviation: float) -> float:
    """Return the factor by which boots of that standard deviation make differences of SIGMA."""
    return SIGMA / math.sqrt(2) / deviation


def small_noise(random: Random, shape: tuple[int, int]) -> Floats:
    """Return the noise of boots on levels."""
    return SMALL * random.standard_normal(shape)


def levels(random: Random, shape: tuple[int, int]) -> Floats:
    """Return a level a boot, drawn at random, with a little noise."""
    return LEVEL * random.integers(0, 2, shape) + small_noise(random, shape)


def in_order(random: Random, first: Floats, second: Floats, *, drawn: bool) -> Boots:
    """Return the boots of a pair by kernel: the base first, or either as a coin says."""
    swapped = random.integers(0, 2, first.shape) == 1 if drawn else np.zeros(first.shape, bool)
    return np.where(swapped, second, first), np.where(swapped, first, second)


def drifting(random: Random, trials: int, *, drawn: bool = True) -> Boots:
    """Return boots on a machine that gets slower by 30 % in a study and walks at random besides."""
    slope, step = 0.25 * SIGMA, 0.6 * SIGMA
    noise = math.sqrt((SIGMA**2 - slope**2 - step**2) / 2)
    shape = (trials, 2 * PAIRS)
    walk = np.cumsum(step * random.standard_normal(shape) + slope, axis=1)
    boots = walk + noise * random.standard_normal(shape)
    return in_order(random, boots[:, ::2], boots[:, 1::2], drawn=drawn)


def second_slower(random: Random, trials: int) -> Boots:
    """Return boots of which the second of each pair is slower, since the machine is warm."""
    first, second = (small_noise(random, (trials, PAIRS)) for _ in range(2))
    return in_order(random, first, LEVEL + second, drawn=True)


def linked(links: int) -> Callable[[Random, int], Boots]:
    """Return a drawing of boots of some links a side, each with a level of its own, of which one a
    side is drawn for each pair; 0: of a new link for each boot.
    """

    def draw(random: Random, trials: int) -> Boots:
        return side(random, trials), side(random, trials)

    def side(random: Random, trials: int) -> Floats:
        shape = (trials, PAIRS)
        own = LEVEL * random.integers(0, 2, (trials, links or PAIRS))
        used = random.integers(0, links, shape) if links else np.indices(shape)[1]
        return np.take_along_axis(own, used, axis=1) + small_noise(random, shape)

    return draw


OF_LEVELS = math.sqrt(LEVEL**2 / 2 + 2 * SMALL**2)
KINDS = {
    "normal": Kind(
        "normal", independent(lambda random, shape: scaled(1) * random.standard_normal(shape))
    ),
    "heavy": Kind(
        "heavy tails (t with 3 degrees)",
        independent(lambda random, shape: scaled(math.sqrt(3)) * random.standard_t(3, shape)),
    ),
    "skewed": Kind(
        "skewed (log-normal)",
        independent(
            lambda random, shape: (
                scaled(math.sqrt(math.e * (math.e - 1))) * random.lognormal(0, 1, shape)
            )
        ),
    ),
    "drifting": Kind("drifting: linear and a random walk", drifting),
    "levels": Kind("two levels 3 % apart, drawn for each boot", independent(levels), OF_LEVELS),
    "second": Kind("the second boot of a pair 3 % slower", second_slower, math.hypot(LEVEL, SMALL)),
    "fixed-order": Kind(
        "drifting, and the base always first",
        lambda random, trials: drifting(random, trials, drawn=False),
        effects=("none",),
        limit="the order is not drawn",
    ),
    **{
        f"links-{links or 'new'}": Kind(
            f"links of each kernel, one drawn for each boot: {links or 'a new one'}",
            linked(links),
            OF_LEVELS,
            ("none",) if links else ("none", "beyond", "1"),
            "links are used again" if links else "",
        )
        for links in (1, 2, 5, 20, 0)
    },
}


class Row(msgspec.Struct, frozen=True):
    """What series of one true effect came to, in shares of them.

    effect   none, beyond (1.5 margins) or in standard deviations; log_effect: as the logarithm
    differs  slower or faster; wrong: either that is not true, or "same" beyond the margin
    covered  the interval at the stop has the effect
    pairs    to the verdict, the median; 60 is none
    others   by rule: the share of series that it ever calls different
    """

    effect: str
    log_effect: float
    differs: float
    same: float
    wrong: float
    covered: float
    pairs: float
    others: dict[str, float]


class Record(msgspec.Struct, frozen=True):
    """A kind of series."""

    kind: str
    trials: int
    seed: int
    rows: tuple[Row, ...]


class Operations(msgspec.Struct, frozen=True):
    """Studies of many operations: the share of them with a false discovery; false ones among the
    discoveries, in the mean; and of the others, the share that finds all that is slower.
    """

    studies: int
    seed: int
    any_false: float
    false_share: float
    complete: float


def log_effect(kind: Kind, effect: str) -> float:
    """Return a true effect as a logarithm."""
    if effect == "beyond":
        return math.log1p(1.5 * MARGIN)
    return 0.0 if effect == "none" else float(effect) * kind.sigma


def stopped(differences: Floats, margin: float) -> ClockVerdict:
    """Return the first verdict of a series, or that after its last pair."""
    bound = math.log1p(margin)
    log_e = log_e_values(differences - np.array([[0.0], [-bound], [bound]]))
    zero, below, above = log_e >= -math.log(ALPHA)
    # Without these there is no verdict, so nothing else has to be looked at.
    for pairs in np.flatnonzero(zero | (below & above)) + 1:
        verdict = decide(differences[:pairs].tolist(), margin)
        if verdict.word is not Word.UNRESOLVED:
            return verdict
    return decide(differences.tolist(), margin)


def student(differences: Floats) -> Floats:
    """Return t after each pair; zero after the first."""
    pairs = np.arange(1, differences.shape[-1] + 1)
    sums, squares = np.cumsum(differences, axis=-1), np.cumsum(differences**2, axis=-1)
    variances = (squares - sums**2 / pairs) / np.maximum(pairs - 1, 1)
    found: Floats = sums / np.sqrt(pairs * np.maximum(variances, 1e-18))
    found[..., 0] = 0.0
    return found


def welch(base: Floats, other: Floats) -> NDArray[np.intp]:
    """Return what Welch's test says of each series: 1 is slower, -1 faster, 0 neither."""
    count = base.shape[1]
    means = other.mean(axis=1) - base.mean(axis=1)
    variances = [side.var(axis=1, ddof=1) for side in (base, other)]
    both = variances[0] + variances[1]
    degrees = (count - 1) * both**2 / (variances[0] ** 2 + variances[1] ** 2)
    limits = np.array([two_sided(ALPHA, int(one)) for one in degrees])
    return np.where(np.abs(means) > limits * np.sqrt(both / count), np.sign(means), 0).astype(int)


def t_differs(differences: Floats) -> float:
    """Return how often the t interval excludes zero after any pair from the fourth on."""
    limits = np.array([two_sided(ALPHA, pairs - 1) for pairs in range(4, PAIRS + 1)])
    return share((np.abs(student(differences)[:, 3:]) > limits).any(axis=1))


def e_values_differ(differences: Floats) -> float:
    """Return how often kdelta's e-value is ever 1 / alpha, if "same" ends nothing."""
    return share((log_e_values(differences) >= -math.log(ALPHA)).any(axis=1))


def mixture_differs(differences: Floats) -> float:
    """Return how often the mean of the t mixture as it is and the sign mixture is 1 / alpha."""
    pairs = np.arange(1.0, PAIRS + 1)
    sums, squares = np.cumsum(differences, axis=1), np.cumsum(differences**2, axis=1)
    both = np.logaddexp(log_t_mixture(pairs, sums, squares), log_signs(differences))
    return share((both - math.log(2) >= -math.log(ALPHA)).any(axis=1))


def share(what: ArrayLike) -> float:
    """Return how often something is true, or the mean of shares."""
    return round(float(np.mean(np.asarray(what))), 5)


def is_wrong(verdict: ClockVerdict, true: float, margin: float) -> bool:
    """Return whether a verdict is not true; `true` is the logarithm of the effect."""
    if verdict.word is Word.SAME:
        return abs(math.expm1(true)) > margin
    return (verdict.word is Word.SLOWER and true <= 0) or (
        verdict.word is Word.FASTER and true >= 0
    )


def judged(name: str, effect: str, trials: int) -> Row:
    """Return what series of a kind and a true effect come to."""
    kind = KINDS[name]
    random = np.random.default_rng([SEED, *name.encode(), *effect.encode()])
    base, other = kind.draw(random, trials)
    true = log_effect(kind, effect)
    margin = MARGIN if effect in ("none", "beyond") else NO_MARGIN
    other = other + true
    found = [stopped(row, margin) for row in other - base]
    return Row(
        effect,
        round(true, 6),
        share([one.word in FIRM for one in found]),
        share([one.word is Word.SAME for one in found]),
        share([is_wrong(one, true, margin) for one in found]),
        share([one.low <= math.expm1(true) <= one.high for one in found]),
        float(np.median([one.pairs for one in found])),
        {
            "kdelta, not stopped by same": e_values_differ(other - base),
            "t, each look": t_differs(other - base),
            "Welch, 60 pairs": share(welch(base, other) != 0),
            "plain t mixture": mixture_differs(other - base),
        },
    )


def operations(studies: int) -> Operations:
    """Return how many discoveries are false in studies of many operations, some of them slower by a
    standard deviation, that are stopped as soon as a discovery is false.
    """
    random = np.random.default_rng([SEED, MANY, CHANGED])
    found = []
    for _ in range(studies):
        shared = random.standard_normal(PAIRS)
        differences = math.sqrt(0.5) * (random.standard_normal((MANY, PAIRS)) + shared)
        differences[:CHANGED] += 1
        log_e = log_e_values(differences)
        for pairs in range(PAIRS):
            taken = discoveries(log_e[:, pairs], ALPHA)
            largest = np.argsort(log_e[:, pairs])[MANY - taken :]
            false = int((largest >= CHANGED).sum())
            if false:
                break
        found.append((taken, false))
    rates = [false / max(taken, 1) for taken, false in found]
    complete = [taken >= CHANGED for taken, false in found if not false]
    return Operations(
        studies,
        SEED,
        share([false > 0 for _, false in found]),
        share(rates),
        share(complete),
    )


def records(folder: Path = FOLDER) -> dict[str, Record]:
    """Return those that are kept, by kind."""
    paths = {name: folder / f"{name}.json" for name in KINDS}
    return {
        name: msgspec.json.decode(path.read_bytes(), type=Record)
        for name, path in paths.items()
        if path.is_file()
    }


def percent(what: float) -> str:
    """Return a share in per cent."""
    return f"{100 * what:.1f} %"


def tables(found: dict[str, Record], many: Operations) -> str:
    """Return what the page shows of the records."""
    rows = {name: {row.effect: row for row in one.rows} for name, one in found.items()}
    head = ["series", "false slower or faster", "false same", "interval misses"]
    lines = table_head([*head, "pairs at 0.5 sd", "1 sd", "2 sd"])
    for name, row in rows.items():
        if KINDS[name].effects == EFFECTS:
            misses = 1 - min(one.covered for one in row.values())
            pairs = [f"{row[at].pairs:.0f}" for at in ("0.5", "1", "2")]
            cells = [row["none"].wrong, row["beyond"].same, misses]
            lines.append(table_line([KINDS[name].what, *map(percent, cells), *pairs]))
    rules = list(rows["normal"]["none"].others)
    lines += ["", *table_head(["series without an effect", "kdelta", *rules])]
    for name, row in rows.items():
        cells = [row["none"].wrong, *row["none"].others.values()]
        lines.append(table_line([KINDS[name].what, *map(percent, cells)]))
    lines += ["", sentence(many)]
    return "\n".join(lines)


def sentence(many: Operations) -> str:
    """Return what studies of many operations came to."""
    return textwrap.fill(
        f"In {many.studies:,} studies of {MANY} operations, of which {CHANGED} are slower by a "
        "standard deviation, each stopped as soon as a discovery is false, "
        f"{percent(many.false_share)} of the discoveries are false in the mean; "
        f"{percent(many.any_false)} of the studies have a false one, and of the others "
        f"{percent(many.complete)} find all {CHANGED}.",
        width=100,
    )


def table_head(cells: Sequence[str]) -> list[str]:
    """Return the first two lines of a table."""
    return [table_line(cells), "|" + "---|" * len(cells)]


def table_line(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def faults(found: dict[str, Record]) -> list[str]:
    """Return where verdicts or intervals are wrong more often than they may, but for limits."""
    return [
        f"{name}, {row.effect}: {percent(row.wrong)} wrong, {percent(1 - row.covered)} missed"
        for name, one in found.items()
        for row in one.rows
        if not KINDS[name].limit and max(row.wrong, 1 - row.covered) > ALPHA
    ]


def main() -> int:
    """Make what is missing, and the tables of all; 1 if more is wrong than may be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=TRIALS, help="series of each")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    for name, kind in KINDS.items():
        path = words.out / f"{name}.json"
        if not path.exists():
            rows = tuple(judged(name, effect, words.trials) for effect in kind.effects)
            write_atomic(path, a_row_a_line(Record(name, words.trials, SEED, rows)))
        print(path.read_text(), flush=True)
    path = words.out / "operations.json"
    if not path.exists():
        write_atomic(path, a_row_a_line(operations(words.trials // 10)))
    many = msgspec.json.decode(path.read_bytes(), type=Operations)
    found = records(words.out)
    print(tables(found, many))
    if words.out == FOLDER:
        put_into_page(tables(found, many))
    wrong = faults(found)
    print(*wrong, sep="\n")
    return int(bool(wrong) or many.false_share > ALPHA)


def put_into_page(text: str, begin: str = BEGIN, end: str = END) -> None:
    """Put tables in place of those that are there, between these lines."""
    before, _, rest = PAGE.read_text().partition(begin)
    after = rest.partition(end)[2]
    write_atomic(PAGE, f"{before}{begin}\n\n{text}\n\n{end}{after}".encode())


if __name__ == "__main__":
    sys.exit(main())
