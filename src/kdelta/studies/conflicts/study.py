# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs contend for under a kernel, or under two that are compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.cpus.model import CPU
from kdelta.infer.conflicts.changes import Contended, compare_all
from kdelta.infer.conflicts.interrupts import InterruptSender, interrupt_senders
from kdelta.infer.conflicts.waiting import Waiting, waiting
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.attachments import PROFILES, profiles_of
from kdelta.lab.found import in_rounds, with_found_files
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.options import Operations, Workload
from kdelta.lab.reports import facts_of_machine, reported_side
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work
from kdelta.measures.conflicts.measure import (
    RecordedRegion,
    contended_in,
    recorded_regions,
)
from kdelta.report.model import KernelRuns
from kdelta.spec.errors import UserError
from kdelta.spec.option import without
from kdelta.spec.run import MachineOptions
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.conflicts.model import TURN, ConflictSide, ConflictsReport, ReportedTransfer

PAIRS = "pairs"
"""The workload whose operations are executed by two CPUs at once."""


RUNS = 3
"""Of each kernel: one with long turns, and two with short ones, each of another length."""


class ConflictsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Kernel specs as text, one or two, and what is run in them. cpu: by whose latencies costs are
    estimated.
    """

    kernels: tuple[str, ...]
    workload: Workload = PAIRS
    operations: Operations = ()
    program: Program | None = None
    cpu: CPU | None = None
    lab: Annotated[LabRequest, without("data_lines", "trace_limit", "mode")] = LabRequest(
        perturbations=RUNS, machine=MachineOptions(cpus=2)
    )

    @property
    def work(self) -> Work:
        """Return what is run."""
        if self.program:
            return Work(operations=self.operations, program=self.program)
        return Work(self.workload, self.operations)


@in_rounds
async def run_conflicts(request: ConflictsRequest, lab: Lab) -> ConflictsReport:
    """Run the workload on several CPUs under each kernel; return what these contended for.
    UserError for a guest of one CPU.
    """
    if request.lab.machine.cpus == 1:
        raise UserError("cannot look for conflicts of one CPU: there is no other", "--smp 2")
    work = request.work
    work.check(request.kernels, request.lab.machine)
    machine = msgspec.structs.replace(request.lab.machine, short_turns=True)
    asked = msgspec.structs.replace(
        request.lab,
        conflicts=True,
        machine=machine,
        calls="kernel" if request.operations or request.program else "off",
    )
    lab, progress = lab.with_request(asked), lab.progress
    expect_kernels(progress, request.kernels)
    expect_runs(progress, asked, len(request.kernels))
    kernels = [lab.kernel(spec) for spec in request.kernels]
    good = [one for one in kernels if isinstance(one, Kernel)]
    work = await with_found_files(work, good, lab)
    plans = work.plans(good, asked, progress.log)
    lab = await lab.settled(good, plans)
    done = iter(await lab.runs(good, plans))
    results = [next(done) if isinstance(kernel, Kernel) else [] for kernel in kernels]
    report = _report(request.kernels, kernels, results, lab, work)
    return msgspec.structs.replace(report, on=_on(request.cpu))


def _on(cpu: CPU | None) -> ReportedTransfer | None:
    if cpu is None:
        return None
    return ReportedTransfer(cpu.name, cpu.transfer, cpu.sources.get("transfer", ""))


def _report(
    specs: Sequence[str],
    kernels: Sequence[Kernel | NoKernel],
    results: Sequence[Sequence[RunResult]],
    lab: Lab,
    work: Work,
) -> ConflictsReport:
    recorded = [recorded_regions(lab.store, done) for done in results]
    found = [contended_in(regions) for regions in recorded]
    sides = [
        _side(reported_side(spec, None, (), kernel.text, lab.store))
        if isinstance(kernel, NoKernel)
        else msgspec.structs.replace(
            _side(reported_side(spec, kernel, done, "", lab.store), regions, runs),
            senders=_senders(lab.store, done[0].run) if done else {},
        )
        for spec, kernel, done, regions, runs in zip(
            specs, kernels, results, recorded, found, strict=True
        )
    ]
    good = [one for done in results for one in done if one.counts]
    identities = [side.side.identity for side in sides]
    return ConflictsReport(
        workload=work.title,
        cpus=lab.request.machine.cpus,
        machine=facts_of_machine(good, lab.store),
        sides=tuple(sides),
        changes=compare_all(*(runs.values() for runs in found)) if len(found) > 1 else (),
        same_kernel=len(sides) > 1 and len(set(identities)) == 1 and bool(identities[0]),
        warnings=tuple(
            dict.fromkeys(text for one in good if one.counts for text in one.counts.warnings)
        ),
    )


def _side(
    side: KernelRuns,
    recorded: Sequence[RecordedRegion] = (),
    found: Mapping[str, Sequence[Contended]] = {},
) -> ConflictSide:
    """A kernel, with the figures of its first run."""
    return ConflictSide(
        side,
        tuple(runs[0].conflicts for runs in found.values()),
        {region: dict(runs[0].sent) for region, runs in found.items()},
        tuple(_waits(recorded)),
    )


def _senders(store: Store, run: Run) -> dict[str, tuple[InterruptSender, ...]]:
    return interrupt_senders(profiles_of(store, run)) if PROFILES in run.attachments else {}


def _waits(recorded: Iterable[RecordedRegion]) -> Iterator[Waiting]:
    """Yield the regions in which a CPU waits for another one, of runs with short turns."""
    short = [one for one in recorded if TURN in one.run.machine]
    regions = by_key((one.conflicts.region, (one.counts, one.conflicts)) for one in short)
    yield from filter(None, map(waiting, regions.values()))
