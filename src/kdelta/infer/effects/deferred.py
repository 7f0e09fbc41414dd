# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that an operation leaves to other tasks: what kworkers, RCU and softirqd do on its time.

What is freed by RCU, say, costs the task little and another one more. An operation's word is that
of its own work, unless other tasks are known to outweigh it.
"""

from fractions import Fraction

from kdelta.infer.effects.estimate import FEWEST, Estimate

WITH_OTHERS = "with what other tasks do meanwhile"
"""The reason of a word that is not that of an operation's own work."""

MAY_OUTWEIGH = "what other tasks do meanwhile may outweigh it"
"""The reason of a word that few runs leave open for that."""


def has_mean(effect: Estimate) -> bool:
    """Whether runs are so many that the interval of an effect is that of means: of few, what
    begins now and then is in some by chance.
    """
    return effect.n >= FEWEST


def is_beyond(effect: Estimate, allowed: Fraction) -> bool:
    """Whether an effect is larger than what is allowed, whatever is in its interval."""
    return effect.low > allowed or effect.high < -allowed
