# SPDX-License-Identifier: GPL-2.0-or-later
"""One kernel under workloads, traced on a machine that looks like a CPU."""

from collections.abc import Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.store.store import Store
from kdelta.studies.lab.cpus import lab_like, must_fit, must_replay_data
from kdelta.studies.lab.found import with_all_files
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult
from kdelta.studies.lab.progress import Progress
from kdelta.studies.lab.request import LabRequest
from kdelta.studies.lab.steps import expect_kernels, expect_runs
from kdelta.studies.lab.work import Work
from kdelta.studies.tracing.placement import tracing


class TracedKernel(msgspec.Struct, frozen=True, eq=False):
    """The kernel and its runs, one a workload; no kernel: `failure` says why. works: what the runs
    did; lab: how they were made.
    """

    spec: str
    kernel: Kernel | None
    done: tuple[RunResult, ...] = ()
    failure: str = ""
    works: tuple[RunPlan, ...] = ()
    lab: LabRequest = LabRequest()

    @property
    def ok(self) -> bool:
        """Whether all runs went well."""
        return self.kernel is not None and all(one.counts is not None for one in self.done)


async def traced_kernel(
    spec: str,
    cpu: CPU,
    works: Sequence[Work],
    *,
    lab: LabRequest,
    store: Store,
    progress: Progress,
) -> TracedKernel:
    """The kernel of a spec with one traced run of each work, or as much of it as there is.

    UserError for an unknown workload or operation, for a CPU that the kernel is not for, and for
    one of which the L2 cannot be replayed where data is to be traced.
    """
    for work in works:
        work.check([spec])
    if lab.data_lines:
        must_replay_data(cpu)
    request = lab_like(tracing(lab), cpu)
    expect_kernels(progress, [spec])
    expect_runs(progress, request, 1, len(works))
    kernel = Lab(store, progress, request).kernel(spec)
    if isinstance(kernel, NoKernel):
        return TracedKernel(spec, None, failure=kernel.text)
    must_fit(cpu, kernel)
    works = await with_all_files(works, [kernel], request, store, progress)
    plans = [plan for work in works for plan in work.plans([kernel], request, progress.log)]
    kernels = [kernel] * len(plans)
    settled = await Lab(store, progress, request).settled(kernels, plans)
    done = await settled.runs(kernels, plans)
    return TracedKernel(
        spec, kernel, tuple(runs[0] for runs in done), works=tuple(plans), lab=settled.request
    )
