# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta clock judge` is asked."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.infer.clock.decide import LEAST_PERCENT, MOST_PERCENT
from kdelta.spec.option import HelpSection, OptionKind, option


class ClockRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two folders of files that a bundle wrote, one for each kernel. operations: the only ones that
    count. margin: which differences matter, as a fraction.
    """

    base: Path = Path()
    other: Path = Path()
    operations: Annotated[
        tuple[str, ...],
        option(
            "-o",
            "--operation",
            metavar="NAME",
            values="OPERATION",
            usual="all",
            help="Judge only this operation; repeatable.",
        ),
    ] = ()
    margin: Annotated[
        Fraction,
        option(
            "--margin",
            metavar="PCT",
            kind=OptionKind.PERCENT,
            least=LEAST_PERCENT,
            most=MOST_PERCENT,
            group=HelpSection.SURE,
            help="Ignore differences of up to PCT.",
        ),
    ] = Fraction(1, 100)
