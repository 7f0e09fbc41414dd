# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta gate` is asked."""

from fractions import Fraction

import msgspec

from kdelta.infer.effects.gate import Mixed
from kdelta.studies.compare.request import CompareRequest


class GateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison with one other kernel that is to be answered by yes or no.

    exact_margin  by what fraction more may be executed where all runs are equal; where they vary
                  the comparison's path margin counts
    left_out      operations that do not count
    mixed         what is made of operations that are mixed
    """

    compare: CompareRequest
    exact_margin: Fraction = Fraction(0)
    left_out: tuple[str, ...] = ()
    mixed: Mixed = "cannot-tell"
