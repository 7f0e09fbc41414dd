# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta ablate` is asked."""

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.studies.lab.request import LabRequest, Program


class AblateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A source tree, and the paths of two configs for it, whole ones or defconfigs.

    one_by_one    build a kernel for each unit, however few might do
    max_builds    the most kernels besides A and B; None: as many as it takes
    no_modules    leave out of both configs what would be a module
    rule_out      rule out units that reach no executed code
    recompile     and those whose executed objects come out the same when compiled
    switches      try what the kernel's command line can switch
    more_runs     perturbed runs of the two kernels of a proof that fails at first
    cpu           judge model cycles on it, too, over so many `layouts` of each kernel; differences
                  of no more than the fraction `margin` are none
    """

    tree: str
    before: str
    after: str
    workloads: tuple[str, ...] = ("syscalls",)
    program: Program | None = None
    one_by_one: bool = False
    max_builds: int | None = None
    no_modules: bool = False
    rule_out: bool = True
    recompile: bool = True
    switches: bool = True
    more_runs: int = 8
    cpu: CPU | None = None
    layouts: int = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
    lab: LabRequest = LabRequest()
