# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commit shifted a metric that a clock measures: the same question under noise.

Commits stand in a row, 1 to N, between a good end 0 and a bad end N. A measurement at a position is
normal, with one mean below the culprit and another one from there on; both means and the standard
deviation are unknown. What is known of the culprit is a posterior over commits, and over "none".

Posterior: for a change at a known place this is a normal linear model with the conjugate prior (the
shift normal with `SHIFT` standard deviations around nought, the mean and the logarithm of the
deviation flat), whose marginal likelihood has a closed form; A. F. M. Smith, "A Bayesian approach
to inference about a change-point in a sequence of random variables", Biometrika 62 (1975). It is a
Student's, not a normal one, so that few measurements do not claim what they cannot know.

What to measure next: the position at which the commits that are still possible differ most in what
they predict, the variance of the prediction over the posterior. With known means that is the
posterior's median, where a noisy bisection is to ask (M. Horstein, "Sequential transmission using
noiseless feedback", IEEE Trans. Inform. Theory 9, 1963), and that lowers its expected entropy most
(B. Jedynak, P. I. Frazier, R. Sznitman, "Twenty questions with noise", J. Appl. Probab. 49, 2012);
with unknown ones it also goes back to the ends, until they are known.

A search ends when a commit's probability is 1 - error. Since that is a posterior, when it ended
does not matter: of all commits that are named so, that part is right as far as the model is. Where
there is no shift, that becomes likely only slowly, as a small one could always have been missed: so
there is a limit of measurements, and the answer says how probable it is in any case.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.infer.ensembles import Interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SHIFT = 1.0
"""The prior's standard deviation of the shift, in standard deviations of a measurement."""

NONE = 0.02
"""How likely it is, before any measurement, that no commit shifts anything."""

ENDS = 4
"""How often each end is measured before anything else."""

MOST = 2000
"""The most measurements, where nothing else is asked for."""

_TINY = 1e-12


class Levels(msgspec.Struct, frozen=True, eq=False):
    """What is known of the culprit, (..., N + 1) each: in place i that it is commit i + 1, in the
    last place that there is none. probability; mean: below the culprit; shift: from there on.
    """

    probability: Floats
    mean: Floats
    shift: Floats


def levels(counts: Floats, sums: Floats, squares: Floats, prior: Floats) -> Levels:
    """The posterior, for any number of searches at once.

    counts, sums: measurements at each position and what they add up to, (..., N + 1). squares: what
    the squares of all of them add up to, (...). prior: (N + 1), none of it nought.
    """
    number = counts.sum(-1, keepdims=True)
    mean = sums.sum(-1, keepdims=True) / number
    # In each place how many measurements are from the culprit on: after the last none are.
    above = number - np.cumsum(counts, -1)
    spread = above * (number - above) / number
    together = sums.sum(-1, keepdims=True) - np.cumsum(sums, -1) - above * mean
    every = squares[..., None] - number * mean * mean
    shift = together / (spread + SHIFT**-2)
    rest = np.maximum(every - shift * together, _TINY * squares[..., None] + 1e-300)
    log = -0.5 * np.log1p(SHIFT**2 * spread) - (number - 1) / 2 * np.log(rest) + np.log(prior)
    weight = np.exp(log - log.max(-1, keepdims=True))
    return Levels(weight / weight.sum(-1, keepdims=True), mean - shift * above / number, shift)


def most_telling(known: Levels) -> Ints:
    """The position, 0 to N, at which predictions differ most: (...)."""
    part, mean, shift = known.probability, known.mean, known.shift

    def up_to(values: Floats) -> Floats:
        """At each position the sum over those commits that it holds."""
        total = np.cumsum((part * values)[..., :-1], -1)
        return np.concatenate([np.zeros((*total.shape[:-1], 1)), total], -1)

    first = (part * mean).sum(-1, keepdims=True) + up_to(shift)
    second = (part * mean * mean).sum(-1, keepdims=True) + up_to((2 * mean + shift) * shift)
    found: Ints = (second - first * first).argmax(-1)
    return found


class NoisyAnswer(msgspec.Struct, frozen=True):
    """What is known so far.

    commit        the most probable one, 1 to N; None for that there is none
    probability   that it is that
    shift         of the metric by it, from its 5 % to its 95 % quantile, if it is that
    likely        the fewest commits that have it among them with 1 - error
    measurements  so far
    """

    commit: int | None
    probability: float
    shift: Interval
    likely: tuple[int, ...]
    measurements: int


class NoisySearch(msgspec.Struct, frozen=True, eq=False):
    """The state of a search, which ends after `most` measurements. Never changed: `observe` gives
    the next one.
    """

    counts: Floats
    sums: Floats
    squares: float
    prior: Floats
    error: float
    most: int

    @property
    def commits(self) -> int:
        """How many there are."""
        return len(self.counts) - 1

    @property
    def measurements(self) -> int:
        """How many were made."""
        return int(self.counts.sum())

    def observe(self, position: int, value: float) -> "NoisySearch":
        """The search after a measurement; ValueError for a position that is none, or a value that
        is no number.
        """
        if not 0 <= position <= self.commits:
            raise ValueError(f"no position from 0 to {self.commits}: {position}")
        if not math.isfinite(value):
            raise ValueError(f"no measurement: {value}")
        counts, sums = self.counts.copy(), self.sums.copy()
        counts[position] += 1
        sums[position] += value
        squares = self.squares + value * value
        return msgspec.structs.replace(self, counts=counts, sums=sums, squares=squares)

    def next_position(self) -> int | None:
        """Where to measure now, 0 for the good end; None when an answer has its probability, or
        there were as many as may be.
        """
        if self.measurements >= self.most:
            return None
        ends = [at for at in (0, self.commits) if self.counts[at] < ENDS]
        if ends:
            return int(min(ends, key=lambda at: self.counts[at]))
        known = self._known()
        if known.probability.max() >= 1 - self.error:
            return None
        return int(most_telling(known))

    def answer(self) -> NoisyAnswer:
        """What is known; ValueError before any measurement."""
        if not self.measurements:
            raise ValueError("nothing was measured")
        known = self._known()
        best = int(known.probability.argmax())
        order = np.argsort(-known.probability, kind="stable")
        enough = int(np.searchsorted(np.cumsum(known.probability[order]), 1 - self.error)) + 1
        return NoisyAnswer(
            commit=best + 1 if best < self.commits else None,
            probability=float(known.probability[best]),
            shift=self._shift(known, best),
            likely=tuple(sorted(int(at) + 1 for at in order[:enough] if at < self.commits)),
            measurements=self.measurements,
        )

    def _known(self) -> Levels:
        # Around their mean, so that squares of large figures do not hide small differences.
        middle = self.sums.sum() / self.counts.sum()
        sums = self.sums - self.counts * middle
        squares = np.asarray(self.squares - self.counts.sum() * middle * middle)
        return levels(self.counts, sums, np.maximum(squares, 0.0), self.prior)

    def _shift(self, known: Levels, place: int) -> Interval:
        """Normal around its estimate: with so many measurements a Student's is no wider."""
        number = self.counts.sum()
        above = self.counts[place + 1 :].sum()
        spread = above * (number - above) / number
        every = self.squares - self.sums.sum() ** 2 / number
        shift = float(known.shift[place])
        rest = max(every - shift * shift * (spread + SHIFT**-2), 0.0)
        reach = 1.6449 * math.sqrt(rest / max(number - 1, 1) / (spread + SHIFT**-2))
        return Interval(shift - reach, shift + reach)


def begin(
    commits: int,
    *,
    error: float = 0.05,
    likely: Sequence[float] | None = None,
    most: int = MOST,
) -> NoisySearch:
    """A search among so many commits, by no more than `most` measurements. likely: how likely each
    of them is before any measurement, in any unit. ValueError without a commit, for an error that
    is no probability below a half, and for commits that are less likely than nothing.
    """
    if commits < 1 or not 0 < error < 0.5:
        raise ValueError(f"{commits} commits and a probability of error of {error}")
    weights = np.ones(commits) if likely is None else np.asarray(likely, dtype=np.float64)
    if weights.shape != (commits,) or not (weights > 0).all() or not np.isfinite(weights).all():
        raise ValueError(f"{commits} commits, and not as many positive weights")
    prior = np.append((1 - NONE) * weights / weights.sum(), NONE)
    nothing = np.zeros(commits + 1)
    return NoisySearch(nothing, nothing, 0.0, prior, error, most)
