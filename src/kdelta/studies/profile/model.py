# SPDX-License-Identifier: GPL-2.0-or-later
"""What the report of a profile is made of; the study fills it."""

from collections.abc import Mapping

import msgspec

from kdelta.infer.profiles.annotate import AnnotatedFunction
from kdelta.infer.profiles.calls import Calls
from kdelta.infer.profiles.matching import Key
from kdelta.infer.profiles.profile import RegionProfile, Selection
from kdelta.infer.profiles.source import SourceLine
from kdelta.report.model import ReportedRun


class LineCost(msgspec.Struct, frozen=True):
    """What a source line costs, and its text where the source is at hand."""

    source: SourceLine
    text: str
    insns: int


class ProfileViews(msgspec.Struct, frozen=True):
    """What is shown of a recorded run besides or in place of its functions; what was not asked for
    is empty.

    tree: the calls from the top. callers: of functions, from each up. lines: source lines, those
    with the most instructions first; unlined: origins of which no line is known. annotated:
    functions by instruction; places: the texts of their lines, by file and number. part: what of
    the whole is not shown of calls.
    """

    tree: Calls | None = None
    callers: tuple[tuple[Key, Calls], ...] = ()
    lines: tuple[LineCost, ...] | None = None
    unlined: tuple[str, ...] = ()
    annotated: tuple[AnnotatedFunction, ...] = ()
    places: Mapping[tuple[str, int], str] = {}
    part: float = 0.01

    @property
    def any(self) -> bool:
        """Whether there is anything to be shown."""
        return bool(self.tree or self.callers or self.lines is not None or self.annotated)


class ProfileReport(msgspec.Struct, frozen=True):
    """Regions of one run by function. calls: what was followed of calls, "all", "kernel" or "none".
    left_out: regions of the run that are not among them.
    """

    run: ReportedRun
    regions: tuple[RegionProfile, ...]
    selection: Selection = Selection()
    calls: str = "none"
    views: ProfileViews = ProfileViews()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
