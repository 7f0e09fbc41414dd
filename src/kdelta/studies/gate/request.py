# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta gate` is asked."""

from fractions import Fraction
from typing import Annotated

import msgspec

from kdelta.infer.effects.gate import Mixed
from kdelta.spec.option import HelpSection, option, without
from kdelta.studies.compare.request import CompareRequest


class GateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison with one other kernel that is to be answered by yes or no.

    exact_margin  by what fraction more may be executed where all runs are equal; where they vary
                  the comparison's path margin counts
    left_out      operations that do not count
    mixed         what is made of operations that are mixed
    """

    compare: Annotated[CompareRequest, without("margin", "path_margin")] = CompareRequest(
        base="", others=()
    )
    exact_margin: Annotated[
        Fraction,
        option(
            "--margin",
            usual="0 where all runs are equal, else 0.5; with --cycles 1",
            help="Pass what is slower by no more than PCT.",
        ),
    ] = Fraction(0)
    left_out: Annotated[
        tuple[str, ...],
        option(
            "--leave-out",
            metavar="NAME",
            values="OPERATION",
            help="Leave this operation out; repeatable.",
        ),
    ] = ()
    mixed: Annotated[
        Mixed,
        option(
            "--mixed",
            metavar="cannot-tell|fail|pass",
            group=HelpSection.SURE,
            help="Answer so for a mixed operation.",
        ),
    ] = "cannot-tell"
