# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether one kernel is slower than another, from pairs of boots timed by a clock.

A pair is one boot of each kernel in an order drawn at random for that pair; its datum is the
difference of logarithms ln(median of other) - ln(median of base), so that what both boots have in
common cancels. One may look after every pair and stop at any time: words and intervals are wrong
with a probability of at most `alpha` over all looks together (e_values.py says why).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kdelta.infer.clock.e_values import Floats, discoveries, log_e_values
from kdelta.infer.effects.effects import Word

ALPHA = 0.05
"""How often a word or an interval may be wrong, over all looks."""

LEAST_PERCENT, MOST_PERCENT = 0.01, 99
"""Margins that make sense, in per cent: at zero nothing is the same, at 100 even twice the time."""

FEWEST_TO_DECIDE = 7
"""Pairs without which nothing is decided: seven of one sign, with a fair coin, are one case in 64.
"""

FEWEST_TO_FORECAST = 4
"""Pairs without which the spread is too little known to say how many more are needed."""

MOST_PAIRS = 1000
"""If more are needed in all, no number is given."""

_NEAR = np.linspace(-1.5, 1.5, 97)
_FAR = np.geomspace(1.6, 1e6, 24)
_GRID = np.concatenate([-_FAR[::-1], _NEAR, _FAR])
"""Effects that are tried, in spans of the differences from their median; with 60 pairs an interval
is some ten points wide. One that reaches past the last is infinite.
"""
_ROUNDS, _PARTS = 3, 16
"""How often the last part of a grid in which an interval ends is divided, and by how many."""


class ClockVerdict(msgspec.Struct, frozen=True):
    """A verdict on one operation. Effects are parts of the base: 0.01 is slower by 1 %.

    word        slower, faster, same (within the margin) or unresolved
    effect      the median of the pairs, or the end of the interval that is nearest to it
    low, high   the interval, -1 and infinite where pairs are too few; see `decide`
    alpha       how often the interval may miss the effect, over all looks
    e_value     against an effect of zero or of the other sign; large speaks for a difference
    pairs       how many there are
    more_pairs  how many more would probably decide; None if decided, or if that is not known
    """

    word: Word
    effect: float
    low: float
    high: float
    alpha: float
    e_value: float
    pairs: int
    more_pairs: int | None = None


class _Scan(NamedTuple):
    """Differences of logarithms, and the e-values against effects in ascending order."""

    differences: Floats
    effects: Floats
    log_e: Floats

    @property
    def log_slower(self) -> float:
        """Against all effects up to zero."""
        return float(self.log_e[self.effects <= 0].min())

    @property
    def log_faster(self) -> float:
        """Against all effects from zero on."""
        return float(self.log_e[self.effects >= 0].min())

    def log_differs(self, alpha: float) -> float:
        """Against zero and all effects on one side of it; zero where no effect is left at all, such
        as after one that changed in between.
        """
        return max(self.log_slower, self.log_faster) if len(self.held(alpha)) else 0.0

    def held(self, alpha: float) -> NDArray[np.intp]:
        """Return where the effects are that are not excluded at that level."""
        return np.flatnonzero(self.log_e < -math.log(alpha))


def decide(differences: Sequence[float], margin: float, alpha: float = ALPHA) -> ClockVerdict:
    """Return the verdict on one operation after these pairs.

    differences: ln(median of other) - ln(median of base) of each pair, in the order of measuring.
    margin: what part of the base is too little to matter. alpha: how often it may be wrong.

    Slower or faster if the e-value is at least 1 / alpha (Ville's inequality); that takes 7 pairs.
    Otherwise the same if the interval lies within the margin, whichever kernel is taken as the
    base: within -ln(1 + margin) to ln(1 + margin). The interval is of all effects whose e-value is
    below 1 / alpha, and what lies between them; it covers the effect at all looks together with a
    probability of 1 - alpha. If there is no such effect, it was not constant: unresolved.

    Raises ValueError for no pair, for a difference that is not finite, and for a margin or alpha
    that is not between 0 and 1.
    """
    _check(margin, alpha)
    return _verdict(_scan(differences), margin, alpha, alpha)


def decide_all(
    by_operation: Mapping[str, Sequence[float]], margin: float, alpha: float = ALPHA
) -> dict[str, ClockVerdict]:
    """Return the verdicts on several operations after the same or different pairs.

    Of all that are called slower or faster no more than `alpha` are in the mean neither (e-BH), and
    their intervals have the level that fits: alpha times their number, by that of all operations
    (Z. Xu, R. Wang, A. Ramdas, Post-selection Inference for E-value Based Confidence Intervals,
    2022). The words "same" and the other intervals are each operation's own, as by `decide`; an
    unresolved one's may exclude zero.
    """
    _check(margin, alpha)
    scans = {name: _scan(differences) for name, differences in by_operation.items()}
    log_e = np.array([one.log_differs(alpha) for one in scans.values()])
    taken = discoveries(log_e, alpha)
    verdicts = {}
    for (name, one), log in zip(scans.items(), log_e, strict=True):
        level = alpha * taken / len(scans)
        if not _reaches(log, level):
            level += alpha / len(scans)  # what one more would have to reach
        verdicts[name] = _verdict(one, margin, alpha, level)
    return verdicts


def _check(margin: float, alpha: float) -> None:
    if not 0 < margin < 1:
        raise ValueError(f"a margin of {margin} is no part of the base")
    if not 0 < alpha < 1:
        raise ValueError(f"an alpha of {alpha} is no probability")


def _reaches(log_e: float, alpha: float) -> bool:
    return alpha > 0 and log_e >= -math.log(alpha)


def _scan(differences: Sequence[float]) -> _Scan:
    """Return the e-values against a grid of effects about the median, the pairs' own and zero."""
    found = np.array(differences, dtype=np.float64)
    if not len(found) or not np.isfinite(found).all():
        raise ValueError("a verdict needs pairs, and their differences must be finite")
    middle = float(np.median(found))
    span = float(np.ptp(found)) or abs(middle) or 1.0
    effects = np.unique(np.concatenate([middle + span * _GRID, found, [0.0]]))
    return _Scan(found, effects, _against(found, effects))


def _against(differences: Floats, effects: Floats) -> Floats:
    """Return the logarithms of the e-values against these effects after the last pair."""
    left = differences - effects[:, None]
    largest = np.abs(left).max(axis=-1, keepdims=True)
    return log_e_values(left / np.where(largest > 0, largest, 1.0))[:, -1]


def _verdict(scan: _Scan, margin: float, alpha: float, level: float) -> ClockVerdict:
    """Return the verdict. level: the alpha of a difference; alpha: of all else."""
    bound = math.log1p(margin)
    log_differs = scan.log_differs(alpha)
    differs = _reaches(log_differs, level)
    own = level if differs else alpha
    low, high = _interval(scan, own)
    more = None
    if differs:
        word = Word.SLOWER if scan.log_slower >= scan.log_faster else Word.FASTER
    elif -bound <= low and high <= bound:
        word = Word.SAME
    else:
        word, more = Word.UNRESOLVED, _more_pairs(scan.differences, bound, alpha, level)
    effect = min(max(float(np.median(scan.differences)), low), high)
    effect, low, high = (float(np.expm1(one)) for one in (effect, low, high))
    e_value = math.exp(min(log_differs, 700.0))
    return ClockVerdict(word, effect, low, high, own, e_value, len(scan.differences), more)


def _interval(scan: _Scan, alpha: float) -> tuple[float, float]:
    """Return the ends of what is not excluded at that level; infinite if nothing is left."""
    held = scan.held(alpha)
    if not len(held):
        return -math.inf, math.inf
    first, last = held[0], held[-1]
    low, high = -math.inf, math.inf
    if first > 0:
        low = _end(scan, scan.effects[first], scan.effects[first - 1], alpha)
    if last < len(scan.effects) - 1:
        high = _end(scan, scan.effects[last], scan.effects[last + 1], alpha)
    return low, high


def _end(scan: _Scan, inside: float, outside: float, alpha: float) -> float:
    """Return where an interval ends between two effects, by a little too far out."""
    for _ in range(_ROUNDS):
        effects = np.linspace(inside, outside, _PARTS + 1)
        held = np.flatnonzero(_against(scan.differences, effects[1:-1]) < -math.log(alpha))
        last = held[-1] + 1 if len(held) else 0
        inside, outside = effects[last], effects[last + 1]
    return float(outside)


def _more_pairs(differences: Floats, bound: float, alpha: float, level: float) -> int | None:
    """Return how many more pairs decide if they repeat those that there are, again and again."""
    pairs = len(differences)
    if pairs < FEWEST_TO_FORECAST:
        return None
    repeated = np.resize(differences, max(MOST_PAIRS, pairs))
    largest = float(np.abs(differences).max()) or 1.0
    left = repeated / largest - np.array([[0.0], [-bound], [bound]]) / largest
    zero, below, above = log_e_values(left)
    decided = (zero >= -math.log(level)) | (np.minimum(below, above) >= -math.log(alpha))
    later = np.flatnonzero(decided[pairs:])
    return int(later[0]) + 1 if len(later) else None
