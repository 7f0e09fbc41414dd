# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta compare` is asked."""

from fractions import Fraction
from typing import Annotated

import msgspec

from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.infer.effects.effects import MARGIN
from kdelta.lab.options import (
    Cpus,
    Layouts,
    Measures,
    Operations,
    TimedBy,
    Workload,
)
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.option import HelpSection, OptionKind, option


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Kernel specs as text: a base and others. No operations means all of the workload. program:
    what is run in place of the workload; so in the other requests.

    cpus: whose paths are taken, each on a machine that looks like it; none means the default one's.
    cycles: model cycles are judged on these CPUs, too. layouts: how many are drawn for it. margin:
    which differences of model cycles matter, as a fraction. path_margin: which of paths. states:
    run what depends on it from other states, too. budget_seconds: see `Budget`.
    """

    base: str
    others: tuple[str, ...]
    workload: Workload = "syscalls"
    operations: Operations = ()
    program: Program | None = None
    cpus: Cpus = ()
    cycles: bool = True
    layouts: Layouts = DEFAULT_LAYOUTS
    margin: Annotated[
        float, option("--margin", help="Ignore differences of model cycles up to PCT.")
    ] = DEFAULT_MARGIN
    path_margin: Annotated[
        Fraction | None,
        option(
            "--path-margin",
            metavar="PCT",
            kind=OptionKind.PERCENT,
            group=HelpSection.SURE,
            usual="0.5; with -o none is ignored",
            help="Only count path changes up to PCT; list larger ones.",
        ),
    ] = None
    states: Annotated[
        bool,
        option(
            "--skip-states",
            off=True,
            group=HelpSection.SURE,
            help="Skip the runs from other states and CPU speeds.",
        ),
    ] = True
    budget_seconds: Annotated[
        Fraction | None,
        option(
            "--budget",
            metavar="TIME",
            kind=OptionKind.TIME,
            group=HelpSection.SURE,
            usual="no end",
            help="Spend at most TIME of processor time (40s, 5m).",
        ),
    ] = None
    measures: Measures = ()
    timed: TimedBy = TimedBy()
    lab: LabRequest = LabRequest()

    @property
    def judged_margin(self) -> Fraction:
        """Return the part of its cost up to which a path may change and be called the same."""
        return MARGIN if self.path_margin is None else self.path_margin

    @property
    def listed_from(self) -> Fraction:
        """Return the part from which on a change is listed: of operations that are named, any."""
        return Fraction(0) if self.operations and self.path_margin is None else self.judged_margin
