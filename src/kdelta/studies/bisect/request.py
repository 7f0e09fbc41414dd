# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta bisect` is asked."""

from fractions import Fraction
from typing import Annotated

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.lab.options import (
    NOT_TIMED,
    LabOfPaths,
    Layouts,
    MaxBuilds,
    Measures,
    Operations,
    SearchAll,
    TimedBy,
    Workloads,
)
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.option import option

BISECT_MARGIN = Fraction(1, 1000)


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A repository's folder, a range of its commits, and what all kernels have in common.

    changes     +WORDS as text: the config, patches, variables of make
    operations  of the workloads; none means all
    cpu         judge model cycles, too, over `layouts` random layouts of each kernel
    first       only the commit with the largest effect
    regions     only effects on these; none means all
    margin      the part of a region's cost in the good end that an effect has to exceed
    max_builds  the most kernels besides the two ends; None: as many as it takes
    rule_out    rule out commits that reach no executed code
    timed       by which clock the commits that are found are timed, if by any
    """

    repository: Annotated[
        str,
        option(
            "-C", metavar="PATH", values="FILE", usual=".", help="The repository, instead of TREE."
        ),
    ]
    range: str
    changes: tuple[str, ...] = ()
    workloads: Workloads = ("syscalls",)
    operations: Operations = ()
    program: Program | None = None
    cpu: CPU | None = None
    layouts: Layouts = DEFAULT_LAYOUTS
    first: Annotated[
        bool, option("--first", help="Find only the commit with the largest effect.")
    ] = False
    regions: Annotated[
        tuple[str, ...],
        option(
            "--region",
            metavar="NAME",
            values="OPERATION",
            help="Search only effects on this region; repeatable.",
        ),
    ] = ()
    margin: Annotated[Fraction, option("--margin", help="Do not search for effects up to PCT.")] = (
        BISECT_MARGIN
    )
    max_builds: MaxBuilds = None
    rule_out: SearchAll = True
    measures: Measures = ()
    timed: TimedBy = NOT_TIMED
    lab: LabOfPaths = LabRequest()
