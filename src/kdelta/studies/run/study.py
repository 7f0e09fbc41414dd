# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run`: any program of the host under a kernel."""

from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.lab.found import in_rounds, with_found_files
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work
from kdelta.studies.run.request import RunRequest


@in_rounds
async def run_command(request: RunRequest, lab: Lab) -> tuple[RunResult, ...]:
    """The runs of a command, one a perturbation; none if the kernel could not be built."""
    work = Work(program=request.program)
    work.check([request.kernel])  # before a kernel is built for it
    lab, progress = lab.with_request(request.lab), lab.progress
    expect_kernels(progress, [request.kernel])
    expect_runs(progress, request.lab, 1)
    kernel = lab.kernel(request.kernel)
    if isinstance(kernel, NoKernel):
        progress.log(f"no kernel: {kernel.text}")
        return ()
    work = await with_found_files(work, [kernel], lab)
    plans = work.plans([kernel], request.lab, progress.log)
    settled = await lab.settled([kernel], plans)
    (done,) = await settled.runs([kernel], plans)
    return tuple(done)
