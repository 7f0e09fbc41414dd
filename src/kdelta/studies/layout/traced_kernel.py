# SPDX-License-Identifier: GPL-2.0-or-later
"""One kernel under workloads, traced on a machine that looks like a CPU."""

from collections.abc import Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.store.store import Store
from kdelta.studies.compare.study import workload_work
from kdelta.studies.lab.lab import Done, Lab, Work
from kdelta.studies.lab.requests import LabRequest, Progress, lab_like, must_fit, must_replay_data
from kdelta.studies.lab.work import check_needs
from kdelta.studies.tracing.placement import tracing
from kdelta.workloads.catalog import find_workload


class TracedKernel(msgspec.Struct, frozen=True, eq=False):
    """The kernel and its runs, one a workload; no kernel: `failure` says why. works: what the runs
    did; lab: how they were made.
    """

    spec: str
    kernel: Kernel | None
    done: tuple[Done, ...] = ()
    failure: str = ""
    works: tuple[Work, ...] = ()
    lab: LabRequest = LabRequest()

    @property
    def ok(self) -> bool:
        """Whether all runs went well."""
        return self.kernel is not None and all(one.counts is not None for one in self.done)


async def traced_kernel(
    spec: str,
    cpu: CPU,
    workloads: Sequence[tuple[str, tuple[str, ...]]],
    *,
    lab: LabRequest,
    store: Store,
    progress: Progress,
) -> TracedKernel:
    """The kernel of a spec with one traced run of each workload, or as much of it as there is.

    workloads: names, with the operations that are wanted of each; none means all. UserError for an
    unknown workload or operation, for a CPU that the kernel is not for, and for one of which the L2
    cannot be replayed where data is to be traced.
    """
    found = [(find_workload(name), operations) for name, operations in workloads]
    for workload, operations in found:
        for operation in operations:
            workload.operation(operation)
    if lab.data_lines:
        must_replay_data(cpu)
    request = lab_like(tracing(lab), cpu)
    runner = Lab(request, store, progress)
    kernel = runner.kernel(spec)
    if isinstance(kernel, NoKernel):
        return TracedKernel(spec, None, failure=kernel.text)
    must_fit(cpu, kernel)
    for workload, _ in found:
        check_needs(workload, kernel)
    works = [
        workload_work(one, operations, kernel, progress.say, request.mode)
        for one, operations in found
    ]
    done = await runner.runs([kernel] * len(works), works)
    first = tuple(runs[0] for runs in done)
    return TracedKernel(spec, kernel, first, works=tuple(works), lab=request)
