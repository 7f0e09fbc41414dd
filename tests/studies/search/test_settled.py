# SPDX-License-Identifier: GPL-2.0-or-later
"""All kernels of a search run on the machine that was settled on for the first."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.kernels.model import Kernel
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.store import Store
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult
from kdelta.studies.lab.progress import Silent
from kdelta.studies.lab.request import LabRequest
from kdelta.studies.lab.work import Work
from kdelta.studies.search.measure import Bench
from tests.report.example import stored

FIRST = Kernel("a" * 64, "tree:/a", "/vmlinux", "x86_64", "6.12")
SECOND = msgspec.structs.replace(FIRST, identity="b" * 64, spec="tree:/b")
BARE = MachineOptions(cpu="EPYC")


def test_the_machine_is_that_of_the_first_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    machines: list[MachineOptions] = []

    async def settled(lab: Lab, kernels: list[Kernel], _: list[RunPlan]) -> Lab:
        asked.extend(kernel.spec for kernel in kernels)
        return lab.asked(msgspec.structs.replace(lab.request, machine=BARE))

    async def runs(lab: Lab, kernels: list[Kernel], _: list[RunPlan]) -> list[list[RunResult]]:
        machines.append(lab.request.machine)
        return [[RunResult(stored(0, RunStatus.TIMED_OUT), None)] for _ in kernels]

    plan = RunPlan("syscalls", "w", Job(argv=("x",)), {})
    monkeypatch.setattr(Lab, "settled", settled)
    monkeypatch.setattr(Lab, "runs", runs)
    monkeypatch.setattr("kdelta.studies.lab.work.workload_work", lambda *_, **__: plan)
    with Store.open(tmp_path) as store:
        works = [Work()]
        bench = Bench("deb-src:linux-source-6.12", works, LabRequest(), store, Silent())
        asyncio.run(bench.measure("first", FIRST))
        asyncio.run(bench.measure("second", SECOND, append="quiet"))
    assert asked == ["tree:/a"]
    assert machines == [BARE, msgspec.structs.replace(BARE, append="quiet")]
