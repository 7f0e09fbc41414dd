# SPDX-License-Identifier: GPL-2.0-or-later
"""What all forms of a crossing name alike: its total, its shares, what an operation gains."""

from collections.abc import Sequence
from fractions import Fraction

from kdelta.infer.cycles.crossing import Crossing, OperationCrossing, Share
from kdelta.infer.effects.estimate import ZERO
from kdelta.report import figures
from kdelta.studies.crossing.model import ARM_NAMES

HEADS = dict(zip(ARM_NAMES, ("stock", "mit.off", "kernel", "direct", "no entry"), strict=True))
"""By arm, a name that fits above a column."""


def shown_total(found: Crossing) -> OperationCrossing:
    """What stands for all: of a single operation, that one."""
    return found.operations[0] if len(found.operations) == 1 else found.total


def added_up(values: Sequence[Fraction]) -> list[int]:
    """The values in hundredths, so that all but the last add up to it."""
    total = figures.scaled(values[-1])
    return [*figures.rounded_to_total(values[:-1], total), total]


def share_name(share: Share) -> str:
    """What was left out between two arms."""
    return " + ".join(share.parts)


def share_text(share: Share) -> str:
    """How much of the whole gain it is, in per cent."""
    return "-" if share.of_whole is None else f"{float(100 * share.of_whole):.1f}%"


def gained(one: OperationCrossing) -> Fraction:
    """Which part of its work in the first arm the last one does without."""
    first = one.arms[0].insns.value
    return one.whole.insns / first if one.whole and first else ZERO


def gain_text(one: OperationCrossing) -> str:
    """The same in per cent."""
    return f"{float(100 * gained(one)):.1f}%" if one.whole else "-"
