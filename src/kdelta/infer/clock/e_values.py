# SPDX-License-Identifier: GPL-2.0-or-later
"""E-values against a known effect on clock times: how strongly pairs of boots speak against it.

Under the hypothesis an e-value is at most 1 in the mean, at whatever pair one stops (an e-process);
so it reaches 1 / alpha at any pair with a probability of at most alpha: J. Ville, Etude critique de
la notion de collectif (1939).

A pair's difference less the true effect has either sign with the same probability, whatever it is
in size and whatever was measured before, since the order within each pair is drawn at random. That
is all that is assumed here: no distribution, no independence, no constant spread. (If chance moves
both kernels by other distributions, the differences must be symmetric about the effect.)

Functions take differences of logarithms less the effect: a row for each effect that is tested, a
column for each pair, in the order of measuring. They return natural logarithms of the e-values
after each pair, which do not depend on a row's scale (but for rounding) and sign.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SPREAD = 1.0
"""r: effects are thought to be normal with a standard deviation of 1 / sqrt(r) of the noise."""


def log_t_mixture(pairs: Floats, sums: Floats, squares: Floats) -> Floats:
    """Return the logarithm of the likelihood ratio of normal differences with an effect to such
    without one, of unknown spread.

    sqrt(r / (r + n)) (1 - S^2 / ((r + n) Q))^(-n / 2) for n pairs of sum S and sum of squares Q:
    the effect in standard deviations is mixed over N(0, 1 / r) and the spread over its right Haar
    measure: T. L. Lai, On Confidence Sequences, Ann. Stat. 4 (1976). In t with nu = n - 1 and
    c = r / (r + n) it is sqrt(c) ((1 + t^2 / nu) / (1 + c t^2 / nu))^(n / 2). Without any
    difference (Q = 0) it is that of t = 0.
    """
    return -np.log(1 + pairs / SPREAD) / 2 - pairs / 2 * np.log(_left(pairs, sums, squares))


def _left(pairs: Floats, sums: Floats, squares: Floats) -> Floats:
    """Return 1 - S^2 / ((r + n) Q), from r / (r + n) for equal differences to 1 for t = 0."""
    share = sums**2 / ((SPREAD + pairs) * np.where(squares > 0, squares, 1.0))
    return cast(Floats, 1 - np.minimum(share, pairs / (SPREAD + pairs)))


def log_coin_t(differences: Floats) -> Floats:
    """Return the logarithms of the t mixture's e-values, made to hold for all distributions.

    The mixture predicts each pair from those before: it gives x a density q(x). The e-value is
    multiplied by 2 q(x) / (q(x) + q(-x)), which has the mean 1 if the sign is a fair coin's. The
    mixture's own product has not: five equal differences, a sixteenth of the cases where the
    second boot of each pair is slower by as much, make 36 of it. On such products as tests of
    symmetry: A. Ramdas, J. Ruf, M. Larsson, W. Koolen, Admissible Anytime-valid Sequential
    Inference Must Rely on Nonnegative Martingales (2020).
    """
    pairs = np.arange(1.0, differences.shape[-1] + 1)
    before = np.cumsum(differences, axis=-1) - differences
    squares = np.cumsum(differences**2, axis=-1)
    as_found = _left(pairs, before + differences, squares)
    mirrored = _left(pairs, before - differences, squares)
    # ln(q(-x) / q(x)): all else in the mixture is the same for both signs
    against = pairs / 2 * np.log(as_found / mirrored)
    bets = np.log(2) - np.maximum(against, 0) - np.log(1 + np.exp(-np.abs(against)))
    return cast(Floats, np.cumsum(bets, axis=-1))


def log_signs(differences: Floats) -> Floats:
    """Return the logarithms of the sign mixture's e-values.

    2^n B(p + 1/2, m + 1/2) / B(1/2, 1/2) for p positive and m negative of n differences: the
    likelihood ratio of signs with P(+) mixed over Beta(1/2, 1/2) to P(+) = 1/2 (J. Ville 1939;
    H. Robbins, Ann. Math. Stat. 41, 1970). Differences of zero say nothing.
    """
    positive = np.cumsum(differences > 0, axis=-1)
    negative = np.cumsum(differences < 0, axis=-1)
    numbers = np.arange(differences.shape[-1])
    # ln(Gamma(k + 1/2) / Gamma(1/2)) and ln k!
    halves = np.concatenate([[0.0], np.cumsum(np.log(numbers + 0.5))])
    factorials = np.concatenate([[0.0], np.cumsum(np.log(numbers + 1.0))])
    both = positive + negative
    found = halves[positive] + halves[negative] - factorials[both] + both * np.log(2)
    return cast(Floats, found)


def log_e_values(differences: Floats) -> Floats:
    """Return the logarithms of the mean of both e-values: sizes decide sooner where noise is about
    normal, signs where there are outliers. The mean of two e-values is one.
    """
    both = np.logaddexp(log_coin_t(differences), log_signs(differences))
    return cast(Floats, both - np.log(2))


def discoveries(log_e: Floats, alpha: float) -> int:
    """Return how many of the largest e-values are discoveries, so that in the mean no more than
    `alpha` of these are false, whatever the e-values have to do with each other.

    That is the largest k for which the k-th largest of K is at least K / (k alpha), e-BH: R. Wang,
    A. Ramdas, False Discovery Rate Control with E-values, J. R. Stat. Soc. B 84 (2022).
    """
    ranks = np.arange(1, len(log_e) + 1)
    enough = np.sort(log_e)[::-1] >= np.log(len(log_e) / (ranks * alpha))
    return int(ranks[enough].max(initial=0))
