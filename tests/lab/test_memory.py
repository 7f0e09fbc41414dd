# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's guests have as much memory as it needs, or as is asked for, whichever is more."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.workloads.catalog import find_workload

X86 = Kernel("0" * 64, "image:/vmlinuz", "/vmlinuz", "x86_64", "6.12")


class Image(NamedTuple):
    path: Path = Path("/initrd")
    identity: str = "image"
    stop_address: int = 0


class Saying(Silent):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def log(self, line: str) -> None:
        """One more."""
        self.said.append(line)


@pytest.fixture(autouse=True)
def _no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.lab.lab.base_image", lambda *_: Image())
    monkeypatch.setattr("kdelta.host.emulator.build_part", lambda *_, **__: Path("/plugin"))
    monkeypatch.setattr("kdelta.host.emulator._plugin_apis", lambda _: (1, 1))


def lab(store: Store, memory_mib: int = 1024, cpu: str = "") -> tuple[Lab, Saying]:
    saying = Saying()
    machine = MachineOptions(memory_mib=memory_mib, cpu=cpu)
    return Lab(store, saying, LabRequest(machine=machine, perturbations=1)), saying


def work(memory_mib: int) -> RunPlan:
    return RunPlan("hungry", "identity", Job(("/hungry",)), {}, memory_mib=memory_mib)


@pytest.mark.parametrize(
    ("asked", "needed", "given"), [(1024, 0, 1024), (1024, 2048, 2048), (4096, 2048, 4096)]
)
def test_the_larger_of_what_is_asked_and_needed(
    own_data: Path, asked: int, needed: int, given: int
) -> None:
    with Store.open(own_data) as store:
        made, _ = lab(store, asked)
        assert made.guest(X86, work(needed)).memory_mib == given
        assert made.guest(X86).memory_mib == asked


def test_a_run_with_more_memory_is_another_run(own_data: Path) -> None:
    with Store.open(own_data) as store:
        small, large = (lab(store, memory_mib)[0] for memory_mib in (1024, 2048))
        assert small.key(X86, work(2048), 0) == large.key(X86, work(2048), 0)
        assert small.key(X86, work(0), 0) != large.key(X86, work(0), 0)


def test_the_workload_says_how_much_it_needs() -> None:
    described = find_workload("kbuild")
    assert described.memory_mib == 2048
    plain = workload_work(find_workload("syscalls"), ("getppid",), X86)
    assert plain.memory_mib == find_workload("syscalls").memory_mib == 0


def test_it_is_reported_once_a_workload(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: object, **__: object) -> list[RunResult]:
        return []

    monkeypatch.setattr(Lab, "_runs_of", none)
    other = msgspec.structs.replace(X86, identity="1" * 64)
    with Store.open(own_data) as store:
        made, saying = lab(store)
        asyncio.run(made.runs([X86, other], [work(2048), work(2048)]))
        assert saying.said == ["hungry needs 2048 MiB of memory: its guests have that"]
        enough, silent = lab(store, 2048)
        asyncio.run(enough.runs([X86], [work(2048)]))
        assert silent.said == []


def test_a_machine_that_cannot_have_so_much_is_refused(own_data: Path) -> None:
    arm = msgspec.structs.replace(X86, arch="arm")
    with Store.open(own_data) as store:
        made, _ = lab(store, cpu="cortex-a9")
        with pytest.raises(UserError, match="2048 MiB are asked for"):
            made.guest(arm, work(2048))
