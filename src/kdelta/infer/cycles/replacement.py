# SPDX-License-Identifier: GPL-2.0-or-later
"""What depends on a cache's replacement policy: layouts under the CPU's own and under LRU."""

import msgspec
import numpy as np

from kdelta.infer.cycles.ensembles import Floats, RegionCost
from kdelta.infer.cycles.sensitivity import Distribution, distribution

ALIKE = 0.8
"""Rank correlation from which on both policies count as preferring the same layouts."""


class Replaced(msgspec.Struct, frozen=True):
    """Misses of one kind, an iteration, over the same random layouts: under the CPU's policy, and
    if what was least recently used left. correlation: of the ranks of layouts under both, from -1
    to 1; None where all layouts are alike under one of them.
    """

    policy: str
    own: Distribution
    lru: Distribution
    correlation: float | None

    @property
    def hangs(self) -> bool:
        """Whether it depends on the policy which layouts are good."""
        return self.correlation is not None and self.correlation < ALIKE


def replaced(own: RegionCost, lru: RegionCost, policies: dict[str, str]) -> dict[str, Replaced]:
    """Of each kind of misses that `policies` names (kind -> the CPU's policy), what it makes. Both
    costs are of the same layouts; ValueError if they are not.
    """
    if own.ensemble.draws != lru.ensemble.draws:
        raise ValueError("the policies were not asked about the same layouts")
    return {
        kind: Replaced(
            policy,
            distribution(own.ensemble.misses[kind], own.shipped[kind]),
            distribution(lru.ensemble.misses[kind], lru.shipped[kind]),
            rank_correlation(own.ensemble.misses[kind], lru.ensemble.misses[kind]),
        )
        for kind, policy in policies.items()
        if kind in own.ensemble.misses
    }


def rank_correlation(one: Floats, other: Floats) -> float | None:
    """Spearman's, equal values having the mean of their ranks; None if all of either are equal.

    C. Spearman: The proof and measurement of association between two things, American Journal of
    Psychology 15 (1904).
    """
    ranks = [_ranks(one), _ranks(other)]
    if any(len(rank) == 0 or not np.ptp(rank) for rank in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Floats = last - (counts - 1) / 2
    return mean[place]
