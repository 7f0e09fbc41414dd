# SPDX-License-Identifier: GPL-2.0-or-later
"""What the report of two profiles' difference is made of; the study fills it."""

from collections.abc import Sequence

import msgspec

from kdelta.infer.profiles.annotate import InstructionPair
from kdelta.infer.profiles.calls import CallChange
from kdelta.infer.profiles.diff import DiffLine, Hint
from kdelta.infer.profiles.profile import RegionProfile, Selection, Sort
from kdelta.infer.profiles.source import LineChange
from kdelta.report.model import ReportedRun


class SideBySide(msgspec.Struct, frozen=True):
    """One function on both sides, instruction by instruction; `names` are its symbols."""

    name: str
    names: tuple[str, str]
    pairs: tuple[InstructionPair, ...]


def origins_without_lines(unlined: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """Origins of which no line is known, in words: those of both sides, then those of one."""
    both = set(unlined[0]).intersection(unlined[1])
    names = sorted(both)
    for who, origins in zip("AB", unlined, strict=True):
        names += [f"{origin} of {who}" for origin in origins if origin not in both]
    return names


class DiffViews(msgspec.Struct, frozen=True):
    """What is shown of two recorded runs besides or in place of functions; what was not asked for
    is empty.

    changes: paths of calls. lines: source lines; unlined: origins of which no line is known, by
    side. annotated: functions by instruction. hints: what may have become of functions. part: what
    of all changes is not shown of calls.
    """

    changes: tuple[CallChange, ...] | None = None
    lines: tuple[LineChange, ...] | None = None
    unlined: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    annotated: tuple[SideBySide, ...] = ()
    hints: tuple[Hint, ...] = ()
    part: float = 0.01

    @property
    def any(self) -> bool:
        """Whether there is anything to be shown in place of functions."""
        return self.changes is not None or self.lines is not None or bool(self.annotated)


class DiffReport(msgspec.Struct, frozen=True):
    """Two runs by function. a_regions, b_regions: those that both have, and that were asked for, in
    one order. each: the lines are of one pass of each region, and not of whole regions. left_out:
    regions that are not among them. notes: in what the runs differ besides their kernels.
    """

    a: ReportedRun
    b: ReportedRun
    a_regions: tuple[RegionProfile, ...]
    b_regions: tuple[RegionProfile, ...]
    lines: tuple[DiffLine, ...]
    selection: Selection = Selection()
    by: Sort = Sort.INSNS
    each: bool = False
    views: DiffViews = DiffViews()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
