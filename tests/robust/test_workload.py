# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that go wrong in a guest that is well."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.guests.job import Job, JobFile
from kdelta.machines import process
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from tests.machines.bench import run_job
from tests.robust.lab import Ended, console, kdelta, processes, run_words, stored

pytestmark = pytest.mark.guest
Programs = Callable[[str], Path]


def _failed(ended: Ended, status: RunStatus) -> Run:
    """The run of a command that failed in this way, as the store has it."""
    assert ended.code == 1, ended.err
    (run,) = stored()
    assert (run.status, run.counts_blob) == (status, None)
    assert re.search(
        rf" UTC No counts of run \S+ on \S+: {status.value}: ", " ".join(ended.out.split())
    )
    assert run.id in kdelta("show").out
    return run


def _shell_for(name: str, program: Programs) -> str:
    """The command that a failed program's reason ends with."""
    (run,) = stored()
    return f"; see: kdelta shell {run.kernel_spec} -- {program(name)}"


@pytest.mark.slow
def test_a_program_that_crashes(program: Programs) -> None:
    run = _failed(kdelta(*run_words(program("crashes"))), RunStatus.WORKLOAD_FAILED)
    assert run.detail == "signal 11 SIGSEGV" + _shell_for("crashes", program)
    assert "crashes[" in console(run)


@pytest.mark.slow
def test_an_instruction_that_the_machine_lacks_is_named(program: Programs) -> None:
    run = _failed(kdelta(*run_words(program("needs-avx2"))), RunStatus.WORKLOAD_FAILED)
    assert run.detail.startswith("signal 4 SIGILL; the machine's CPU does not have")
    assert "AVX2" in run.detail


def test_a_program_that_says_it_failed(program: Programs) -> None:
    run = _failed(kdelta(*run_words(program("exits-3"))), RunStatus.WORKLOAD_FAILED)
    assert run.detail.startswith("exit 3; it printed no error; ")
    assert run.detail.endswith(_shell_for("exits-3", program))


@pytest.mark.slow
def test_a_program_that_reports_packets_that_cannot_be(program: Programs) -> None:
    run = _failed(kdelta(*run_words(program("false-packets"))), RunStatus.WORKLOAD_FAILED)
    assert run.detail.startswith("it reported packets so: 'a -1 -1'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "counted", "why"),
    [
        ("begins-only", "open 100", "open: the program exits in this region"),
        ("begins-only", "open 100", "instructions came after the last iteration"),
        ("ends-only", "command 1", "has a kdelta_end() without a kdelta_begin()"),
        ("iterates-only", "command 100", "marks iterations and no region"),
        ("five", "five 5", "five has 5 iterations: of fewer than 16 only a clear change"),
        ("grows", "grows 400", "grows is not steady: "),
    ],
)
def test_a_region_that_is_not_as_it_should_be_is_counted_and_named(
    program: Programs, name: str, counted: str, why: str
) -> None:
    for words in (run_words(program(name)), ["show"]):
        ended = kdelta(*words)
        assert ended.code == 0, ended.err
        text = " ".join(ended.out.split())
        assert f" {counted} " in text
        assert why in text


@pytest.mark.slow
def test_a_failed_run_is_no_answer_the_next_time(program: Programs) -> None:
    for _ in range(2):
        assert kdelta(*run_words(program("exits-3"))).code == 1
    assert [run.detail.split(";")[0] for run in stored()] == ["exit 3"] * 2


def test_a_program_that_the_host_does_not_have() -> None:
    ended = kdelta(*run_words(Path("/nonexistent/program")))
    assert ended.code == 2
    assert "/nonexistent/program" in ended.err
    assert stored() == []


@pytest.mark.slow
def test_a_program_that_the_guest_does_not_have() -> None:
    outcome = run_job(Job(argv=("/nonexistent",), seconds=10))
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail == "missing /nonexistent: No such file or directory"


@pytest.mark.slow
def test_a_region_that_never_ends_meets_the_guest_s_limit(program: Programs) -> None:
    run = _failed(kdelta(*run_words(program("spins"), "--seconds", "1")), RunStatus.TIMED_OUT)
    assert "in the guest's own time" in run.detail


@pytest.mark.slow
def test_a_region_that_never_ends_meets_the_host_s_limit(program: Programs) -> None:
    run = _failed(kdelta(*run_words(program("spins"), "--timeout", "4")), RunStatus.TIMED_OUT)
    assert run.detail.startswith("no end after 4 s")


@pytest.mark.slow
def test_a_guest_that_prints_for_ever_is_ended(
    program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CONSOLE_LIMIT_BYTES", 1 << 20)
    job = Job(argv=("/prints",), seconds=3600, files=_carried(program("prints")))
    outcome = run_job(job)
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail == "the guest printed without end"
    assert len(outcome.console) <= 64 << 10
    assert not processes("qemu-system")


@pytest.mark.slow
def test_a_guest_that_sends_for_ever_fills_no_disk(program: Programs) -> None:
    job = Job(argv=("/sends",), seconds=60, files=_carried(program("sends")))
    outcome = run_job(job)
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail == "the guest sent messages without end"
    assert outcome.counts
    assert outcome.counts.stat().st_size < 65 << 20
    outcome.counts.unlink()


@pytest.mark.slow
def test_a_program_that_begins_too_many_regions(program: Programs) -> None:
    job = Job(argv=("/begins",), seconds=60, files=_carried(program("begins")))
    outcome = run_job(job)
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail.startswith("it began more than a run can have, 10000 regions, or ")
    assert "kdelta_iter()" in outcome.detail


def test_tasks_that_mark_regions_at_once_are_refused_by_name(program: Programs) -> None:
    job = Job(argv=("/marks-at-once",), seconds=60, files=_carried(program("marks-at-once")))
    outcome = run_job(job)
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail.startswith("two threads sent marks at once, of left and right: ")


def _carried(path: Path) -> tuple[JobFile, ...]:
    return (JobFile(path, f"/{path.name}", 0o755),)
