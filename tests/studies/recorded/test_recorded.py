# SPDX-License-Identifier: GPL-2.0-or-later
"""Making the same run again to record more of it: only if it is the same in all that counts."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import RunPlan, RunResult
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from kdelta.studies.recorded.recorded import recorded_run
from tests.lab.fake_lab import FakeLab
from tests.synthetic import own, region, run

KERNEL = Kernel("a" * 64, "tree:/linux", "/vmlinuz", "x86_64", "6.12.0")
COUNTS = run(region("stat", {own("vfs_stat"): 500}), region("uname", {own("newuname"): 70}))


class RemadeRun(FakeLab):
    """A lab in which a run is made again; what it finds is as when the run was made first, unless
    a test says otherwise.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.found: Kernel | NoKernel = KERNEL
        self.built = True
        self.qemu, self.run_key = "7.2", "key"
        self.identities = {(): "work of all", ("stat", "uname"): "work of two"}
        module = "kdelta.studies.recorded.recorded"
        monkeypatch.setattr(f"{module}.workload_work", self.work)
        monkeypatch.setattr(f"{module}.kernel_of", lambda *_: KERNEL if self.built else None)

    failed: Run

    def kernel(self, _spec: str) -> Kernel | NoKernel:
        return self.found

    def key(self, *_: object) -> str:
        return self.run_key

    def guest(self, *_: object) -> Any:
        return SimpleNamespace(snapshot_facts=lambda: {"qemu": self.qemu})

    def run(self, *_: object) -> RunResult:
        return RunResult(self.failed, None)

    def work(self, _workload: object, names: tuple[str, ...], *_: object) -> RunPlan:
        return RunPlan("syscalls", self.identities[names], Job(argv=("/x",)), {})


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> RemadeRun:
    return RemadeRun(monkeypatch)


def stored(store: Store, **more: object) -> Run:
    new = NewRun(
        key="key",
        kernel_identity="a" * 64,
        kernel_spec="tree:/linux",
        kernel_release="6.12.0",
        machine={
            "name": "tcg",
            "cpu": "qemu64,+x",
            "memory_mib": 512,
            "qemu": "7.2",
            "append": "q",
            "as": "container",
            "loaded": 1,
            "icount_shift": 2,
        },
        workload="syscalls",
        workload_identity="work of all",
        perturbation=2,
    )
    new = msgspec.structs.replace(new, **more)
    return store.finish_run(store.start_run(new), RunStatus.OK, counts=COUNTS)


def asked_again(lab: FakeLab, store: Store, one: Run) -> str:
    """The error's words, and its hint's."""
    asked = LabRequest(calls="all", perturbations=7)
    with pytest.raises(UserError) as error:
        asyncio.run(recorded_run(one, lab.in_store(store).with_request(asked)))
    return f"{error.value.message} HINT {error.value.hint}"


def test_the_same_run_is_made(own_data: Path, lab: RemadeRun) -> None:
    with Store.open(own_data) as store:
        one = stored(store)
        lab.failed = store.finish_run(
            store.start_run(msgspec.convert({**msgspec.to_builtins(one), "key": "k"}, NewRun)),
            RunStatus.TIMED_OUT,
            detail="too slow",
        )
        said = asked_again(lab, store, one)
    assert f"run {one.id} went well, and now it ended with timed-out: too slow" in said
    (made,) = lab.made
    assert (made.kernel, made.work.identity, made.indexes) == (KERNEL, "work of all", [2])
    machine = made.request.machine
    assert (machine.memory_mib, machine.cpu, machine.append) == (512, "qemu64,+x", "q")
    assert (machine.runs_as, machine.loaded, machine.icount_shift) == ("container", True, 2)
    assert (made.request.calls, made.request.rerun) == ("all", False)


def test_a_run_of_some_operations(own_data: Path, lab: RemadeRun) -> None:
    with Store.open(own_data) as store:
        one = stored(store, workload_identity="work of two")
        lab.failed = one
        asked_again(lab, store, one)
    assert [one.work.identity for one in lab.made] == ["work of two"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("workload", "the workload syscalls is another one today"),
        ("unknown", "no workload is called 'nonesuch'"),
        ("qemu", "its QEMU was 7.2, and today's is 9.0"),
        ("plugin", "kdelta's own plugin, agent or machine has changed"),
        ("kernel", "tree:/linux is another kernel today"),
        ("no kernel", "its kernel is not to be had: build-failed: cannot compile"),
        ("command", "of a command the store keeps the name alone"),
    ],
)
def test_what_differs_is_reported(what: str, words: str, own_data: Path, lab: RemadeRun) -> None:
    more: dict[str, object] = {}
    if what == "workload":
        lab.identities = dict.fromkeys(lab.identities, "another")
    elif what == "unknown":
        more = {"workload": "nonesuch"}
    elif what == "qemu":
        lab.qemu = "9.0"
    elif what == "plugin":
        lab.run_key = "another"
    elif what == "kernel":
        lab.built = False
        lab.found = msgspec.structs.replace(KERNEL, identity="b" * 64)
    elif what == "no kernel":
        lab.built = False
        lab.found = NoKernel(
            spec="tree:/linux", identity="c", status=RunStatus.BUILD_FAILED, detail="cannot compile"
        )
    else:
        more = {"workload": "run ls"}
    with Store.open(own_data) as store:
        one = stored(store, **more)
        said = asked_again(lab, store, one)
    assert f"run {one.id} kept plain counts, and it cannot be made again with more: " in said
    assert words in said
    how = {"command": "-- COMMAND", "unknown": "-w nonesuch"}.get(what, "-w syscalls")
    assert (
        f"HINT a new one: kdelta profile tree:/linux {how} --append q --memory 512 --as container"
        in said
    )
    assert lab.made == []
