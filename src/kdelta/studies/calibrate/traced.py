# SPDX-License-Identifier: GPL-2.0-or-later
"""Static programs traced in a guest, a run each: what they execute in their region."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU
from kdelta.guests.job import Job
from kdelta.guests.libraries import carry, is_static, parse_file_option
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import LabError, UserError
from kdelta.store.store import Store
from kdelta.studies.lab.attachments import traces_of
from kdelta.studies.lab.lab import Done, Lab, Work, work_of
from kdelta.studies.lab.requests import LabRequest, Progress, machine_like
from kdelta.studies.tracing.placement import tracing

DEFAULT_KERNEL = "deb:linux-image-cloud-amd64"
_GUEST_SECONDS = 600


class TracedWork(msgspec.Struct, frozen=True):
    """A static program of this host, with its arguments and the files that it reads; `region` is
    the one that is wanted, empty for the only one that it marks.
    """

    name: str
    program: Path
    arguments: tuple[str, ...] = ()
    region: str = ""
    files: tuple[Path, ...] = ()


async def traced_programs(
    works: Sequence[TracedWork],
    *,
    kernel: str,
    cpu: CPU,
    lab: LabRequest,
    store: Store,
    progress: Progress,
) -> dict[str, Trace]:
    """The trace of each program's region, by the program's name. All run on a machine like the CPU.

    UserError for a program that is not static, for one without marks, and for a kernel of another
    architecture; LabError when a run fails.
    """
    for work in works:
        if not is_static(work.program):
            raise UserError(
                f"{work.name} is not linked statically: its libraries' addresses are not its own",
                "link it with -static and -no-pie",
            )
    request = msgspec.structs.replace(
        tracing(lab), machine=machine_like(lab.machine, cpu), perturbations=1
    )
    runner = Lab(request, store, progress)
    found = runner.kernel(kernel)
    if isinstance(found, NoKernel):
        raise LabError(f"no kernel to trace programs under: {found.text}", "see --kernel")
    if found.arch != cpu.arch:
        raise UserError(f"{found.spec} is a kernel for {found.arch}, and {cpu.name} is {cpu.arch}")
    jobs = [_work(one, found) for one in works]
    done = await runner.runs([found] * len(jobs), jobs)
    return {one.name: _trace(one, runs[0], store) for one, runs in zip(works, done, strict=True)}


def _work(one: TracedWork, kernel: Kernel) -> Work:
    files = [found for path in one.files for found in parse_file_option(str(path))]
    carried = carry([str(one.program), *one.arguments], files, kernel.arch)
    job = Job(argv=carried.argv, env=carried.env, seconds=_GUEST_SECONDS, files=carried.files)
    binaries: Mapping[str, bytes] = {one.program.name: one.program.read_bytes()}
    return work_of(f"calibrate {one.name}", job, binaries)


def _trace(one: TracedWork, done: Done, store: Store) -> Trace:
    if done.counts is None:
        raise LabError(
            f"{one.name} did not run in the guest: {done.run.status} {done.run.detail}",
            f"kdelta show {done.run.id} --console",
        )
    traces = [
        trace
        for trace in traces_of(store, done.run)
        if not one.region or trace.region == one.region
    ]
    if len(traces) != 1:
        regions = ", ".join(trace.region for trace in traces_of(store, done.run))
        raise UserError(
            f"{one.name} marks {regions or 'no region'}, and one is wanted",
            "mark one by kdelta_begin(), kdelta_iter() and kdelta_end() of kdelta.h",
        )
    if traces[0].truncated:
        raise UserError(
            f"the region {traces[0].region} of {one.name} is too long to be kept as a trace",
            "give it fewer iterations",
        )
    return traces[0]
