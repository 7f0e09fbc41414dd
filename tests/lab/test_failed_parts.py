# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations that a kernel cannot run, among others that it can."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdelta.counts.model import RunCounts
from kdelta.guests.job import Job
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.kernels.model import Kernel
from kdelta.lab import execute as module
from kdelta.lab.attachments import Recordings
from kdelta.lab.execute import KeptFiles, Ready, execute
from kdelta.lab.plan import GuestPart, work_of
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest, Setting
from kdelta.spec.run import RunStatus
from tests.synthetic import own, region

SAID = b"start\nsyscalls: tcp-round-trip: socket: Function not implemented\n"
GAVE_UP = {"result": b"exit 1", "stderr": SAID}
WORDS = "syscalls: tcp-round-trip: socket: Function not implemented (exit 1)"


def counts_of(name: str) -> RunCounts:
    return RunCounts((region(name, {own("f"): 1000}),))


def executed(
    monkeypatch: pytest.MonkeyPatch, folder: Path, names: list[str], failing: dict[str, str]
) -> tuple[KeptFiles | None, GuestOutcome]:
    """What comes of a run of these operations, of which some fail as said."""

    async def run(_: Guest, job: bytes, __: Setting, ___: object) -> GuestOutcome:
        name = job.decode()
        if detail := failing.get(name):
            messages = GAVE_UP if detail.startswith("exit") else {"stderr": SAID}
            return GuestOutcome(RunStatus.WORKLOAD_FAILED, detail, "", 1.0, messages)
        place = folder / name
        messages = {"result": b"exit 0", "region": name.encode()}
        return GuestOutcome(RunStatus.OK, "", "", 1.0, messages, place, place)

    def counts(outcome: GuestOutcome, _: object) -> RunCounts:
        return counts_of(outcome.messages["region"].decode())

    monkeypatch.setattr(module, "run_guest", run)
    monkeypatch.setattr(module, "_counts", counts)
    monkeypatch.setattr(module, "_sources", lambda *_: object())
    monkeypatch.setattr(module, "_executed", lambda *_: b"")
    monkeypatch.setattr(module, "read_recordings", lambda *_: Recordings())
    monkeypatch.setattr(module, "recorded", lambda *_: {})
    monkeypatch.setattr(module, "must_be_forced", lambda *_: None)
    monkeypatch.setattr(Ready, "handed_over", lambda _, job: job.argv[0].encode())
    parts = tuple(GuestPart(name, (Job((name,)),)) for name in names)
    work = work_of("syscalls", Job(("syscalls",)), {}, parts=parts)
    kernel = Kernel("0" * 64, "a", "/vmlinuz", "x86_64", "6.12")
    ready = Ready(kernel, SimpleNamespace(), work, 0, None)  # type: ignore[arg-type]
    setting = Setting(folder=folder, seconds=1, log=print, echo=print)

    async def made() -> tuple[KeptFiles | None, GuestOutcome]:
        return await execute(ready, setting, asyncio.Semaphore(2))

    return asyncio.run(made())


def test_operation_that_the_kernel_cannot_run_is_not_comparable_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ["tcp-round-trip", "getppid"]
    kept, outcome = executed(monkeypatch, tmp_path, names, {"tcp-round-trip": "exit 1"})
    assert (outcome.status, outcome.detail) == (RunStatus.OK, "")
    assert kept is not None
    assert [one.name for one in kept.counts.regions] == ["getppid"]
    assert kept.counts.failed == {"tcp-round-trip": WORDS}
    assert f"tcp-round-trip did not run: {WORDS}" in kept.counts.warnings
    base = RunCounts((*counts_of("tcp-round-trip").regions, *counts_of("getppid").regions))
    tcp, getppid = compare_runs([base] * 2, [kept.counts] * 2).operations
    assert (tcp.verdict.word, tcp.verdict.reason) == (Word.NOT_COMPARABLE, f"only in base: {WORDS}")
    assert getppid.verdict.word is Word.SAME


@pytest.mark.parametrize("names", [["tcp-round-trip"], ["tcp-round-trip", "udp-round-trip"]])
def test_run_of_which_nothing_ran_fails_in_the_words_of_its_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: list[str]
) -> None:
    kept, outcome = executed(monkeypatch, tmp_path, names, dict.fromkeys(names, "exit 1"))
    assert kept is None
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail.endswith(WORDS)


def test_panic_in_one_operation_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ["getppid", "tcp-round-trip"]
    kept, outcome = executed(monkeypatch, tmp_path, names, {"tcp-round-trip": "panic: oops"})
    assert kept is None
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert "panic: oops" in outcome.detail


@pytest.mark.parametrize(
    ("sides", "reason"),
    [
        (((True, False), (True, True)), "failed in some runs: no INET"),
        (((False, False), (True, True)), "only in other: no INET"),
        (((False, False), (False, False)), "in neither: no INET"),
    ],
)
def test_an_operation_that_fails_in_any_run_is_not_comparable(
    sides: tuple[tuple[bool, ...], tuple[bool, ...]], reason: str
) -> None:
    whole, tcp = region("getppid", {own("f"): 100}), region("tcp", {own("g"): 100})
    base, other = (
        [RunCounts((whole, tcp)) if ran else RunCounts((whole,), failed={"tcp": "no INET"})
         for ran in side]
        for side in sides
    )  # fmt: skip
    found = {one.name: one.verdict for one in compare_runs(base, other).operations}
    assert found["getppid"].word is Word.SAME
    assert (found["tcp"].word, found["tcp"].reason) == (Word.NOT_COMPARABLE, reason)
