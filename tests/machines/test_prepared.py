# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of programs that are ready: counts from there and from power-on are equal."""

import asyncio

import msgspec
import pytest

from kdelta.counts.model import RunCounts
from kdelta.guests.image import stop_address
from kdelta.guests.job import Job, handed_over, later_words
from kdelta.infer.effects.same import partings
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Snapshot, prepare_program, run_guest
from kdelta.spec.run import RunStatus, perturbation
from tests.machines.bench import ARM64, NEW, counts_of, guest, guest_program, new_setting

pytestmark = pytest.mark.guest

PROGRAM = ("/workloads/syscalls", "--clock", "--settle", "2", "--later")
OPERATIONS = {NEW: "fork-exit-wait", ARM64: "open-close"}


def _job(*later: str, index: int = 1) -> Job:
    return Job(PROGRAM, later=later, seconds=120, perturbation=perturbation(index))


def _counts(where: Guest, job: bytes, start: Snapshot | None) -> RunCounts:
    outcome = asyncio.run(run_guest(where, job, new_setting(), start))
    return counts_of(outcome, arch=where.arch)


def _quiet(where: Guest) -> Snapshot:
    found = asyncio.run(obtain_snapshot(where, new_setting()))
    assert isinstance(found, Snapshot)
    return found


def _ready(where: Guest, job: Job) -> Snapshot | None:
    program = guest_program(where.arch)
    starting = handed_over(msgspec.structs.replace(job, later=job.later and ()))
    return asyncio.run(
        prepare_program(where, starting, new_setting(), _quiet(where), stop_address(program))
    )


@pytest.mark.slow
@pytest.mark.parametrize("spec", [NEW, ARM64])
def test_counts_from_a_program_that_is_ready_and_from_power_on_are_equal(spec: str) -> None:
    where, job = guest(spec), _job(OPERATIONS[spec])
    ready = _ready(where, job)
    assert ready is not None
    starts = {"power-on": None, "quiet": _quiet(where), "ready": ready}
    counts = {
        name: _counts(where, later_words(job) if name == "ready" else handed_over(job), start)
        for name, start in starts.items()
    }
    assert [one.name for one in counts["ready"].regions] == [OPERATIONS[spec]]
    assert list(partings(counts["power-on"], counts["quiet"])) == []
    assert list(partings(counts["power-on"], counts["ready"])) == []


@pytest.mark.slow
def test_one_that_is_ready_serves_all_operations_and_levels() -> None:
    where = guest()
    ready = _ready(where, _job("getppid"))
    assert ready is not None
    first, longer, other = (
        len(_counts(where, later_words(_job(*words)), ready).regions[0].iterations.own_kernel)
        for words in (("getppid",), ("--level", "1", "getppid"), ("uname",))
    )
    assert (longer, other) == (2 * first, first)


def test_a_program_that_does_not_ask_is_not_ready() -> None:
    where = guest()
    job = Job(("/workloads/syscalls", "--scale", "1", "getppid"))
    assert _ready(where, job) is None


def test_a_wrong_word_is_told() -> None:
    where = guest()
    ready = _ready(where, _job("getppid"))
    outcome = asyncio.run(run_guest(where, later_words(_job("no-such-call")), new_setting(), ready))
    assert isinstance(outcome, GuestOutcome)
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert b"an operation that it does not know" in outcome.messages["stderr"]
