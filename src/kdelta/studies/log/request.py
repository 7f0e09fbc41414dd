# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta log` is asked."""

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.spec.run import Mode
from kdelta.studies.lab.request import USUAL_LAB


class HistoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A workload's history. operations: none means a summary over all. kernels: words that name
    some of those in the store, none means all. cpus: those on whose machines runs were made; model
    cycles are judged on them, too. mode: in which programs ran, None means any. since: a date or a
    version; limit: the last so many kernels. perturbations, layouts, margin: as of a comparison.
    """

    workload: str
    operations: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    cpus: tuple[CPU, ...] = ()
    mode: Mode | None = None
    since: str = ""
    limit: int = 20
    perturbations: int = USUAL_LAB.perturbations
    layouts: int = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
