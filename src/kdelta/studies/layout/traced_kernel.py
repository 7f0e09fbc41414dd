# SPDX-License-Identifier: GPL-2.0-or-later
"""One kernel under workloads, traced on a machine that looks like a CPU."""

from collections.abc import Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import lab_like, must_fit, must_replay_data
from kdelta.lab.found import with_all_files
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.lab.recorded import tracing
from kdelta.lab.request import LabRequest
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work


class TracedKernel(msgspec.Struct, frozen=True, eq=False):
    """The kernel and its runs, one a workload; no kernel: `failure` says why. works: what the runs
    did; asked: how they were made.
    """

    spec: str
    kernel: Kernel | None
    done: tuple[RunResult, ...] = ()
    failure: str = ""
    works: tuple[RunPlan, ...] = ()
    asked: LabRequest = LabRequest()

    @property
    def ok(self) -> bool:
        """Whether all runs went well."""
        return self.kernel is not None and all(one.counts is not None for one in self.done)


async def traced_kernel(
    spec: str,
    cpu: CPU,
    works: Sequence[Work],
    lab: Lab,
) -> TracedKernel:
    """The kernel of a spec with one traced run of each work, or as much of it as there is.

    UserError for an unknown workload or operation, for a CPU that the kernel is not for, and for
    one of which the L2 cannot be replayed where data is to be traced.
    """
    for work in works:
        work.check([spec])
    if lab.request.data_lines:
        must_replay_data(cpu)
    lab = lab.with_request(lab_like(tracing(lab.request), cpu))
    expect_kernels(lab.progress, [spec])
    expect_runs(lab.progress, lab.request, 1, len(works))
    kernel = lab.kernel(spec)
    if isinstance(kernel, NoKernel):
        return TracedKernel(spec, None, failure=kernel.text)
    must_fit(cpu, kernel)
    works = await with_all_files(works, [kernel], lab)
    plans = [plan for work in works for plan in work.plans([kernel], lab.request, lab.progress.log)]
    kernels = [kernel] * len(plans)
    settled = await lab.settled(kernels, plans)
    done = await settled.runs(kernels, plans)
    return TracedKernel(
        spec, kernel, tuple(runs[0] for runs in done), works=tuple(plans), asked=settled.request
    )
