# SPDX-License-Identifier: GPL-2.0-or-later
"""All kernels of a search run on the machine that was settled on for the first."""

import asyncio
from collections.abc import Sequence
from typing import Self

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import RunPlan, RunResult
from kdelta.lab.work import Work
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.studies.search.measure import Bench
from tests.lab.fake_lab import FakeLab
from tests.report.example import stored

FIRST = Kernel("a" * 64, "tree:/a", "/vmlinux", "x86_64", "6.12")
SECOND = msgspec.structs.replace(FIRST, identity="b" * 64, spec="tree:/b")
BARE = MachineOptions(cpu="EPYC")


class OneMachine(FakeLab):
    """Settles on another machine than is asked for; all runs time out."""

    async def settled(self, kernels: Sequence[Kernel], works: Sequence[RunPlan] = ()) -> Self:
        await super().settled(kernels, works)
        return self.with_request(msgspec.structs.replace(self.request, machine=BARE))

    def run(self, _kernel: Kernel, _work: RunPlan, index: int) -> RunResult:
        return RunResult(stored(index, RunStatus.TIMED_OUT), None)


def test_the_machine_is_that_of_the_first_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = RunPlan("syscalls", "w", Job(argv=("x",)), {})
    monkeypatch.setattr("kdelta.lab.work.workload_work", lambda *_, **__: plan)
    lab = OneMachine()
    bench = Bench("deb-src:linux-source-6.12", [Work()], lab)
    asyncio.run(bench.measure("first", FIRST))
    asyncio.run(bench.measure("second", SECOND, append="quiet"))
    assert lab.settled_for == [["tree:/a"]]
    machines = [one.request.machine for one in lab.made]
    assert machines == [BARE, msgspec.structs.replace(BARE, append="quiet")]
