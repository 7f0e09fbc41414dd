# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta series` is asked."""

from fractions import Fraction
from typing import Annotated

import msgspec

from kdelta.infer.search.search_model import View
from kdelta.lab.options import (
    NOT_TIMED,
    MaxBuilds,
    Measures,
    Recompile,
    SearchAll,
    TimedBy,
    Workloads,
)
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.option import HelpSection, OptionKind, option, without

DEFAULT_WITHIN = Fraction(1, 10)


class SeriesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A source tree with its changes, as a spec's text, and words that name patches.

    views       what effects are measured against
    minimal     look for the smallest set of patches with the effect, and nothing else
    within      the part of the whole effect in a region by which that set's may differ
    max_builds  the most kernels besides the trees without and with all; None: as many as it takes
    rule_out    rule out patches that reach no executed code
    recompile   and those whose executed objects come out the same before and after them
    timed       by which clock both ends and the patches that are found are timed, if by any
    keep        REPO:BRANCH to write a commit a patch to; drop: not those that make it slower
    """

    tree: str
    patches: tuple[str, ...]
    workloads: Workloads = ("syscalls",)
    program: Program | None = None
    views: Annotated[
        tuple[View, ...],
        option(
            "--views",
            metavar="LIST",
            kind=OptionKind.LIST,
            help="Measure effects against: order, left-out, alone.",
        ),
    ] = (View.ORDER,)
    minimal: Annotated[
        bool, option("--minimal", help="Find the smallest set of patches with the effect.")
    ] = False
    within: Annotated[
        Fraction,
        option(
            "--within",
            metavar="PCT",
            kind=OptionKind.PERCENT,
            group=HelpSection.SURE,
            help="With --minimal: accept a set within PCT of the effect.",
        ),
    ] = DEFAULT_WITHIN
    max_builds: MaxBuilds = None
    rule_out: SearchAll = True
    recompile: Recompile = True
    measures: Measures = ()
    timed: Annotated[TimedBy, without("links")] = NOT_TIMED
    keep: Annotated[
        str,
        option(
            "--write-branch",
            metavar="REPO:BRANCH",
            group=HelpSection.SHOWN,
            help="Write a commit a patch, with its effect, to a branch.",
        ),
    ] = ""
    drop: Annotated[
        bool,
        option(
            "--drop",
            group=HelpSection.SHOWN,
            help="With --write-branch: without patches that slow down.",
        ),
    ] = False
    lab: Annotated[LabRequest, without("data_lines", "trace_limit")] = LabRequest()
