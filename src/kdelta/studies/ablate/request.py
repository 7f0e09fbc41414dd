# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta ablate` is asked."""

from typing import Annotated

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.lab.options import (
    NOT_TIMED,
    LabOfPaths,
    Layouts,
    MaxBuilds,
    Measures,
    Recompile,
    SearchAll,
    TimedBy,
    Workloads,
)
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.option import HelpSection, option


class AblateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A source tree, and the paths of two configs for it, whole ones or defconfigs.

    one_by_one    build a kernel for each unit, however few might do
    max_builds    the most kernels besides A and B; None: as many as it takes
    no_modules    leave out of both configs what would be a module
    rule_out      rule out units that reach no executed code
    recompile     and those whose executed objects come out the same when compiled
    switches      try what the kernel's command line can switch
    timed         by which clock pairs of kernels are timed, if by any
    cpu           judge model cycles on it, too, over so many `layouts` of each kernel; differences
                  of no more than the fraction `margin` are none
    """

    tree: str
    before: Annotated[
        str,
        option(
            "--from",
            metavar="A.config",
            values="FILE",
            required=True,
            help="Start from this config.",
        ),
    ]
    after: Annotated[
        str,
        option(
            "--to", metavar="B.config", values="FILE", required=True, help="Get to this config."
        ),
    ]
    workloads: Workloads = ("syscalls",)
    program: Program | None = None
    one_by_one: Annotated[
        bool,
        option(
            "--one-by-one", group=HelpSection.SURE, help="Build a kernel for each option group."
        ),
    ] = False
    max_builds: MaxBuilds = None
    no_modules: Annotated[
        bool, option("--no-modules", help="Leave out of both configs what is a module (=m).")
    ] = False
    rule_out: SearchAll = True
    recompile: Recompile = True
    switches: Annotated[
        bool,
        option(
            "--no-switches",
            off=True,
            group=HelpSection.SURE,
            help="Do not try what the kernel can switch at boot.",
        ),
    ] = True
    cpu: CPU | None = None
    layouts: Layouts = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
    measures: Measures = ()
    timed: TimedBy = NOT_TIMED
    lab: LabOfPaths = LabRequest()
