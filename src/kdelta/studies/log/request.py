# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta log` is asked."""

from typing import Annotated

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.lab.options import Layouts, Workload
from kdelta.lab.request import DEFAULT_WORKLOAD, USUAL_LAB
from kdelta.spec.option import option
from kdelta.spec.run import Mode


class HistoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A workload's history. operations: none means a summary over all. kernels: words that name
    some of those in the store, none means all. cpus: those on whose machines runs were made;
    cycles: model cycles are judged on them, too. mode: in which programs ran, None means any.
    since: a date or a version; limit: the last so many kernels. perturbations, layouts, margin: as
    of a comparison.
    """

    workload: Workload = DEFAULT_WORKLOAD
    operations: Annotated[
        tuple[str, ...],
        option(
            "-o",
            "--operation",
            usual="a summary over all",
            help="Show this one, kernel by kernel; repeatable.",
        ),
    ] = ()
    kernels: tuple[str, ...] = ()
    cpus: Annotated[
        tuple[CPU, ...], option("--cpu", help="Show only runs on this CPU; repeatable.")
    ] = ()
    cycles: bool = True
    mode: Annotated[
        Mode | None,
        option("--mode", metavar="MODE", help="Show only runs in this mode (kdelta compare)."),
    ] = None
    since: Annotated[
        str,
        option(
            "--since", metavar="WHEN", help="Begin with this date (2026-01-31) or version (6.12)."
        ),
    ] = ""
    limit: Annotated[int, option("-n", "--limit", least=2, help="Show the last N kernels.")] = 20
    perturbations: Annotated[
        int, option("--perturb", help="Read N perturbed runs of each kernel.")
    ] = USUAL_LAB.perturbations
    layouts: Layouts = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
