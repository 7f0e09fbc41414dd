# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta clock judge` and `kdelta clock floor` are asked."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.infer.clock.decide import FEWEST_TO_DECIDE, LEAST_PERCENT, MOST_PERCENT
from kdelta.spec.option import option


class FloorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A workload to be timed with itself, or these operations of it, in so many pairs of runs; and
    which differences matter, as a fraction.
    """

    workload: str
    operations: tuple[str, ...] = ()
    margin: Fraction = Fraction(1, 100)
    pairs: Annotated[
        int, option("--pairs", least=FEWEST_TO_DECIDE, help="With floor: time N pairs of runs.")
    ] = 20


class ClockRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two folders of files that a bundle wrote, one for each kernel. operations: the only ones that
    count. margin: which differences matter, as a fraction.
    """

    base: Path = Path()
    other: Path = Path()
    operations: Annotated[
        tuple[str, ...],
        option("-o", "--operation", usual="all", help="Judge only this operation; repeatable."),
    ] = ()
    margin: Annotated[
        Fraction,
        option(
            "--clock-margin",
            "--margin",
            least=LEAST_PERCENT,
            most=MOST_PERCENT,
            help="Ignore differences of up to PCT.",
        ),
    ] = Fraction(1, 100)
