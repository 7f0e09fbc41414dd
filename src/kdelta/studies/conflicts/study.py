# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs contend for under a kernel, or under two that are compared."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from kdelta.counts.model import merged_regions
from kdelta.infer.conflicts.changes import RegionChange, compare_all
from kdelta.infer.conflicts.interrupts import sent_interrupts
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.asked import Operations, Workload
from kdelta.lab.attachments import conflicts_of
from kdelta.lab.found import with_files
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.reports import machine_facts, reported_side
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError
from kdelta.spec.option import without
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.conflicts.model import ConflictSide, ConflictsReport

PAIRS = "pairs"
"""The workload whose operations are executed by two CPUs at once."""


class ConflictsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Kernel specs as text, one or two, and what is run in them."""

    kernels: tuple[str, ...]
    workload: Workload = PAIRS
    operations: Operations = ()
    program: Program | None = None
    lab: Annotated[LabRequest, without("data_lines", "trace_limit", "perturbations", "mode")] = (
        LabRequest(perturbations=1, machine=MachineOptions(cpus=2))
    )

    @property
    def work(self) -> Work:
        """Return what is run."""
        if self.program:
            return Work(operations=self.operations, program=self.program)
        return Work(self.workload, self.operations)


async def run_conflicts(request: ConflictsRequest, lab: Lab) -> ConflictsReport:
    """Run the workload on several CPUs under each kernel; return what these contended for.
    UserError for a guest of one CPU.
    """
    if request.lab.machine.cpus == 1:
        raise UserError("cannot look for conflicts of one CPU: there is no other", "--smp 2")
    work = request.work
    work.check(request.kernels)
    asked = msgspec.structs.replace(request.lab, conflicts=True)
    lab, progress = lab.asked(asked), lab.progress
    expect_kernels(progress, request.kernels)
    expect_runs(progress, asked, len(request.kernels))
    kernels = [lab.kernel(spec) for spec in request.kernels]
    good = [one for one in kernels if isinstance(one, Kernel)]
    work = await with_files(work, good, lab)
    plans = work.plans(good, asked, progress.log)
    lab = await lab.settled(good, plans)
    done = iter(await lab.runs(good, plans))
    sides = [
        _side(spec, kernel, next(done) if isinstance(kernel, Kernel) else (), lab.store)
        for spec, kernel in zip(request.kernels, kernels, strict=True)
    ]
    results = [one for side in sides for one in side[1]]
    return _report(work, [side for side, _ in sides], results, lab)


def _side(
    spec: str, kernel: Kernel | NoKernel, done: Sequence[RunResult], store: Store
) -> tuple[ConflictSide, Sequence[RunResult]]:
    if isinstance(kernel, NoKernel):
        return ConflictSide(reported_side(spec, None, (), kernel.text, store)), ()
    reported = reported_side(spec, kernel, done, "", store)
    for one in done:
        if one.counts is not None:
            regions = merged_regions(one.counts)
            sent = {name: sent_interrupts(region) for name, region in regions.items()}
            return ConflictSide(reported, conflicts_of(store, one.run), sent), done
    return ConflictSide(reported), done


def _changes(base: ConflictSide, other: ConflictSide) -> tuple[RegionChange, ...]:
    return compare_all(base.conflicts, other.conflicts, (base.sent, other.sent))


def _report(
    work: Work, sides: Sequence[ConflictSide], done: Sequence[RunResult], lab: Lab
) -> ConflictsReport:
    identities = [side.side.identity for side in sides]
    return ConflictsReport(
        workload=work.title,
        cpus=lab.request.machine.cpus,
        machine=machine_facts([one for one in done if one.counts], lab.store),
        sides=tuple(sides),
        changes=_changes(*sides) if len(sides) > 1 else (),
        same_kernel=len(sides) > 1 and len(set(identities)) == 1 and bool(identities[0]),
        warnings=tuple(
            dict.fromkeys(text for one in done if one.counts for text in one.counts.warnings)
        ),
    )
