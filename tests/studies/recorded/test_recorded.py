# SPDX-License-Identifier: GPL-2.0-or-later
"""Making the same run again to record more of it: only if it is the same in all that counts."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult
from kdelta.studies.lab.progress import Silent
from kdelta.studies.lab.request import LabRequest
from kdelta.studies.recorded.recorded import recorded_run
from tests.synthetic import own, region, run

KERNEL = Kernel("a" * 64, "tree:/linux", "/vmlinuz", "x86_64", "6.12.0")
COUNTS = run(region("stat", {own("vfs_stat"): 500}), region("uname", {own("newuname"): 70}))


class Made:
    """What stands in for the lab: which runs were made, and with what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Kernel, RunPlan, int, LabRequest]] = []
        self.kernel: Kernel | NoKernel = KERNEL
        self.built = True
        self.qemu, self.key = "7.2", "key"
        self.identities = {(): "work of all", ("stat", "uname"): "work of two"}
        made = self

        class FakeLab(Lab):
            def kernel(self, _spec: str) -> Kernel | NoKernel:
                return made.kernel

            def key(self, *_: object) -> str:
                return made.key

            def guest(self, *_: object) -> "FakeLab":  # type: ignore[override]
                return self

            def snapshot_facts(self) -> dict[str, object]:
                return {"qemu": made.qemu}

            async def one(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
                made.asked.append((kernel, work, index, self.request))
                return RunResult(made.failed, None)

        monkeypatch.setattr("kdelta.studies.recorded.recorded.Lab", FakeLab)
        monkeypatch.setattr("kdelta.studies.recorded.recorded.workload_work", self.work)
        monkeypatch.setattr(
            "kdelta.studies.recorded.recorded.kernel_of", lambda *_: KERNEL if self.built else None
        )

    failed: Run

    def work(self, _workload: object, names: tuple[str, ...], *_: object) -> RunPlan:
        return RunPlan("syscalls", self.identities[names], Job(argv=("/x",)), {})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(monkeypatch)


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


def asked_again(store: Store, one: Run) -> str:
    """The error's words, and its hint's."""
    lab = LabRequest(calls="all", perturbations=7)
    with pytest.raises(UserError) as error:
        asyncio.run(recorded_run(one, store, Silent(), lab))
    return f"{error.value.message} HINT {error.value.hint}"


def test_the_same_run_is_made(own_data: Path, made: Made) -> None:
    with Store.open(own_data) as store:
        one = stored(store)
        made.failed = store.finish_run(
            store.start_run(msgspec.convert({**msgspec.to_builtins(one), "key": "k"}, NewRun)),
            RunStatus.TIMED_OUT,
            detail="too slow",
        )
        said = asked_again(store, one)
    assert f"run {one.id} went well, and now it ended with timed-out: too slow" in said
    ((kernel, work, index, lab),) = made.asked
    assert (kernel, work.identity, index) == (KERNEL, "work of all", 2)
    machine = lab.machine
    assert (machine.memory_mib, machine.cpu, machine.append) == (512, "qemu64,+x", "q")
    assert (machine.runs_as, machine.loaded, machine.icount_shift) == ("container", True, 2)
    assert (lab.calls, lab.rerun) == ("all", False)


def test_a_run_of_some_operations(own_data: Path, made: Made) -> None:
    with Store.open(own_data) as store:
        one = stored(store, workload_identity="work of two")
        made.failed = one
        asked_again(store, one)
    assert [work.identity for _, work, _, _ in made.asked] == ["work of two"]


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
def test_what_differs_is_reported(what: str, words: str, own_data: Path, made: Made) -> None:
    more: dict[str, object] = {}
    if what == "workload":
        made.identities = dict.fromkeys(made.identities, "another")
    elif what == "unknown":
        more = {"workload": "nonesuch"}
    elif what == "qemu":
        made.qemu = "9.0"
    elif what == "plugin":
        made.key = "another"
    elif what == "kernel":
        made.built = False
        made.kernel = msgspec.structs.replace(KERNEL, identity="b" * 64)
    elif what == "no kernel":
        made.built = False
        made.kernel = NoKernel(
            spec="tree:/linux", identity="c", status=RunStatus.BUILD_FAILED, detail="cannot compile"
        )
    else:
        more = {"workload": "run ls"}
    with Store.open(own_data) as store:
        one = stored(store, **more)
        said = asked_again(store, one)
    assert f"run {one.id} kept plain counts, and it cannot be made again with more: " in said
    assert words in said
    how = {"command": "-- COMMAND", "unknown": "-w nonesuch"}.get(what, "-w syscalls")
    assert (
        f"HINT a new one: kdelta profile tree:/linux {how} --append q --memory 512 --as container"
        in said
    )
    assert made.asked == []
