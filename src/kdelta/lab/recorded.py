# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of which the first is traced."""

from collections.abc import Sequence

import msgspec

from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.lab.request import LabRequest


def tracing(request: LabRequest) -> LabRequest:
    """Return the same request for one traced run: perturbation 0, which is not shaken."""
    return msgspec.structs.replace(request, trace=True, perturbations=1)


async def recorded_runs(
    kernels: Sequence[Kernel], works: Sequence[RunPlan], lab: Lab
) -> list[list[RunResult]]:
    """Return all runs of each kernel, the first of which is traced. A traced run is a run like any
    other, so the first is made once; but where runs are to be made again, it is first made as it
    was.
    """
    plain = lab.with_request(msgspec.structs.replace(lab.request, trace=False, data_lines=False))
    first = await plain.runs(kernels, works) if lab.request.rerun else None
    known = lab.with_request(msgspec.structs.replace(tracing(lab.request), rerun=False))
    recorded = await known.runs(kernels, works)
    every = first or await plain.runs(kernels, works)
    return [[*one, *done[1:]] for one, done in zip(recorded, every, strict=True)]
