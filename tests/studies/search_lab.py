# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab for searches of the fake tree: kernels are built, and their runs computed."""

from collections.abc import Mapping

import pytest

from kdelta.counts.executed import Executed, encode_executed
from kdelta.counts.model import RunCounts
from kdelta.guests.job import Job
from kdelta.kernels.model import Kernel
from kdelta.lab.attachments import EXECUTED
from kdelta.lab.plan import RunPlan
from kdelta.lab.wanted import RunResult
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from tests.lab.fake_lab import FakeLab, MadeRuns
from tests.synthetic import own, region, run

ITERATIONS = 100


class SearchLab(FakeLab):
    """Runs that execute what a subclass says by `counts`; the store keeps them.

    executed: the names of all functions that run since power-on.
    """

    executed = frozenset({"start", "start_kernel", "lock", "clear_pages"})

    @property
    def whole(self) -> list[MadeRuns]:
        """Return the runs of all operations, without those of which compare wanted more."""
        return [one for one in self.made if not one.parts]

    def counts(self, kernel: Kernel, index: int) -> RunCounts | None:
        """Return what a run counts; None: the kernel does not boot."""
        raise NotImplementedError

    def run(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        """Return what these counts come to."""
        counts = self.counts(kernel, index)
        new = NewRun(
            key=f"{kernel.identity} {index}",
            kernel_identity=kernel.identity,
            kernel_spec=kernel.spec,
            kernel_release=kernel.release,
            machine={},
            workload=work.name,
            workload_identity=work.identity,
            perturbation=index,
        )
        names = Executed(frozenset(("kernel", name) for name in self.executed))
        ended = self.store.finish_run(
            self.store.start_run(new),
            RunStatus.BOOT_FAILED if counts is None else RunStatus.OK,
            detail="panic" if counts is None else "",
            counts=counts,
            attachments={} if counts is None else {EXECUTED: encode_executed(names)},
        )
        return RunResult(ended, counts)


def counts_of(insns: Mapping[str, Mapping[str, int]]) -> RunCounts:
    """Return the counts of a run: by region and function, the instructions of an iteration."""
    return run(
        *(
            region(
                name,
                {own(function): ITERATIONS * count for function, count in its.items()},
                ITERATIONS,
                clock_ticks=0,
            )
            for name, its in insns.items()
        )
    )


def without_programs(patch: pytest.MonkeyPatch) -> None:
    """Have workloads planned without the programs that they would run, with any operations."""
    plan = RunPlan("syscalls", "b" * 64, Job(argv=()), {})
    patch.setattr("kdelta.lab.work.workload_work", lambda *_, **__: plan)
    patch.setattr("kdelta.lab.work.Work.has", lambda *_: True)
