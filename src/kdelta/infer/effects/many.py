# SPDX-License-Identifier: GPL-2.0-or-later
"""Many verdicts at once: of those that are given, few may be wrong, however many are asked for."""

from collections.abc import Sequence

FALSE_DISCOVERIES = 0.05
"""Of all verdicts that rest on draws, the share that may be wrong in the mean."""


def discoveries(chances: Sequence[float], rate: float = FALSE_DISCOVERIES) -> int:
    """How many of the smallest chances of error may be taken so that, in the mean, no more than
    `rate` of those taken are wrong.

    That is the largest R for which the R-th smallest is at most R x rate / n: Y. Benjamini and
    Y. Hochberg, Controlling the False Discovery Rate, J. R. Stat. Soc. B 57 (1995). It holds for
    independent tests, and for ones that depend on each other positively, as regions do that are
    replayed under the same layouts.
    """
    ordered = sorted(chances)
    return max(
        (
            rank
            for rank, chance in enumerate(ordered, start=1)
            if chance <= error_of_each(rank, len(ordered), rate)
        ),
        default=0,
    )


def error_of_each(taken: int, n: int, rate: float = FALSE_DISCOVERIES) -> float:
    """With what error the interval of each is made when `taken` of n were, so that in the mean no
    more than `rate` of the intervals of those taken miss.

    That is R x rate / n: Y. Benjamini and D. Yekutieli, False Discovery Rate-Adjusted Multiple
    Confidence Intervals, J. Am. Stat. Assoc. 100 (2005). With none taken it is the error at which
    one would have been.
    """
    return rate * (max(taken, 1) / max(n, 1))
