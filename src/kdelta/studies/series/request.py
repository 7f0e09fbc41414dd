# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta series` is asked."""

from fractions import Fraction

import msgspec

from kdelta.infer.search.series_model import View
from kdelta.studies.lab.request import LabRequest, Program

DEFAULT_WITHIN = Fraction(1, 10)


class SeriesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A source tree with its changes, as a spec's text, and words that name patches.

    views       what effects are measured against
    minimal     look for the smallest set of patches with the effect, and nothing else
    within      the part of the whole effect in a region by which that set's may differ
    max_builds  the most kernels besides the trees without and with all; None: as many as it takes
    rule_out    rule out patches that reach no executed code
    recompile   and those whose executed objects come out the same before and after them
    more_runs   perturbed runs of the two kernels of a proof that fails at first
    keep        REPO:BRANCH to write a commit a patch to; drop: not those that make it slower
    """

    tree: str
    patches: tuple[str, ...]
    workloads: tuple[str, ...] = ("syscalls",)
    program: Program | None = None
    views: tuple[View, ...] = (View.ORDER,)
    minimal: bool = False
    within: Fraction = DEFAULT_WITHIN
    max_builds: int | None = None
    rule_out: bool = True
    recompile: bool = True
    more_runs: int = 8
    keep: str = ""
    drop: bool = False
    lab: LabRequest = LabRequest()
