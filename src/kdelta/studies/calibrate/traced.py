# SPDX-License-Identifier: GPL-2.0-or-later
"""Static programs traced in a guest, a run each, and what each of their links does to a CPU."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U64
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU
from kdelta.guests.job import Job
from kdelta.guests.libraries import carry, is_static, parse_file_option
from kdelta.infer.calibration.model import F64, ProgramRows
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.replay.as_executed import data_events
from kdelta.replay.front_end.replay import EVENTS, PreparedFrontEnd
from kdelta.replay.programs import placed_program, program_layouts, program_text
from kdelta.replay.simulate import PreparedTrace
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.timings import TimedLink, TimedProgram
from kdelta.store.store import Store
from kdelta.studies.lab.attachments import traces_of
from kdelta.studies.lab.cpus import lab_like
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult, work_of
from kdelta.studies.lab.progress import Progress
from kdelta.studies.lab.request import LabRequest
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


_OWN = CONTEXTS.index("own")

_MAD = 1.4826  # from the median of absolute differences to a standard deviation


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
    runner = Lab(lab_like(tracing(lab), cpu), store, progress)
    found = runner.kernel(kernel)
    if isinstance(found, NoKernel):
        raise LabError(f"no kernel to trace programs under: {found.text}", "see --kernel")
    if found.arch != cpu.arch:
        raise UserError(f"{found.spec} is a kernel for {found.arch}, and {cpu.name} is {cpu.arch}")
    jobs = [_work(one, found) for one in works]
    kernels = [found] * len(jobs)
    settled = await runner.settled(kernels, jobs)
    done = await Lab(settled, store, progress).runs(kernels, jobs)
    return {one.name: _trace(one, runs[0], store) for one, runs in zip(works, done, strict=True)}


def _work(one: TracedWork, kernel: Kernel) -> RunPlan:
    files = [found for path in one.files for found in parse_file_option(str(path))]
    carried = carry([str(one.program), *one.arguments], files, kernel.arch)
    job = Job(argv=carried.argv, env=carried.env, seconds=_GUEST_SECONDS, files=carried.files)
    binaries: Mapping[str, bytes] = {one.program.name: one.program.read_bytes()}
    return work_of(f"calibrate {one.name}", job, binaries)


def _trace(one: TracedWork, done: RunResult, store: Store) -> Trace:
    if done.counts is None:
        raise LabError(
            f"{one.name} did not run in the guest: {done.run.status} {done.run.detail}",
            f"kdelta show {done.run.id} --console",
        )
    every = traces_of(store, done.run)
    traces = [trace for trace in every if not one.region or trace.region == one.region]
    if len(traces) != 1:
        regions = ", ".join(trace.region for trace in every)
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


class LinkCounts(msgspec.Struct, frozen=True, eq=False):
    """What was counted of a program, an iteration: events -> (n_links,), insns, data -> one count
    for all links.
    """

    events: dict[str, F64]
    insns: float
    data: dict[str, float]


def counted_links(trace: Trace, links: Sequence[Path], cpu: CPU) -> LinkCounts:
    """Replays the trace of the first link under the addresses of all of them.

    Of what the program does itself; interrupts and other tasks are not counted, since a clock's
    least times have none. UserError for links that are not of one program.
    """
    texts = [program_text(path.name, path.read_bytes()) for path in links]
    placement = placed_program(trace, texts[0])
    layouts = program_layouts(placement, texts[0], texts)
    iterations = max(1, trace.iterations)
    counts: dict[str, npt.NDArray[Any]] = dict(
        _plain(PreparedTrace(trace, placement.placed), layouts, cpu)
    )
    if cpu.front_end is not None and trace.jumps is not None:
        found = PreparedFrontEnd(trace, placement.placed).replay(layouts, cpu)
        counts |= {event: found.total[:, k, _OWN] for k, event in enumerate(EVENTS)}
    data = data_events(trace, cpu) if trace.data_virtual is not None else {}
    return LinkCounts(
        events={name: np.asarray(of, np.float64) / iterations for name, of in counts.items()},
        insns=trace.executed_insns(_OWN) / iterations,
        data={name: count / iterations for name, count in data.items()},
    )


def _plain(prepared: PreparedTrace, layouts: U64, cpu: CPU) -> dict[str, U64]:
    """Misses without a front end. The L2 has code alone, by virtual addresses."""
    caches = {"l1i": cpu.l1i, "l2": cpu.l2, "itlb": cpu.itlb_small or cpu.itlb}
    found = {
        name: prepared.replay(layouts, cache, by_function=False).total[:, _OWN]
        for name, cache in caches.items()
    }
    if cpu.btb is not None:
        btb = prepared.replay(layouts, cpu.btb, kind="branches", by_function=False)
        found["btb"] = btb.total[:, _OWN]
    return found


def noise_of(links: Sequence[TimedLink]) -> float:
    """By how many cycles a link's time differs when all of it is taken again: derived from its
    halves, each of which has half of the processes (a robust standard deviation of the difference).
    """
    apart = [abs(one - other) for one, other in (link.halves for link in links)]
    return _MAD * float(np.median(apart)) / math.sqrt(2)


def rows_of(timed: TimedProgram, trace: Trace, links: Sequence[Path], cpu: CPU) -> ProgramRows:
    """A program that was timed and traced, as the fit wants it. `links` are as in `timed`.

    LabError when the guest executed another number of iterations than was timed.
    """
    for link in timed.links:
        if link.iterations != trace.iterations:
            raise LabError(
                f"{timed.name}: {link.iterations} passes were timed, and {trace.iterations} traced",
                "this is no run of the same program: make the calibration again",
            )
    counts = counted_links(trace, links, cpu)
    constant = {name: float(of.mean()) for name, of in counts.events.items()}
    return ProgramRows(
        name=timed.name,
        flow=timed.flow,
        cycles=np.array([link.cycles for link in timed.links]),
        noise=noise_of(timed.links),
        events=counts.events,
        insns=counts.insns,
        data=constant | counts.data,
        code=timed.code,
    )
