# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta bisect` is asked."""

from fractions import Fraction

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.studies.lab.request import LabRequest, Program

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
    """

    repository: str
    range: str
    changes: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ("syscalls",)
    operations: tuple[str, ...] = ()
    program: Program | None = None
    cpu: CPU | None = None
    layouts: int = DEFAULT_LAYOUTS
    first: bool = False
    regions: tuple[str, ...] = ()
    margin: Fraction = BISECT_MARGIN
    max_builds: int | None = None
    rule_out: bool = True
    lab: LabRequest = LabRequest()
