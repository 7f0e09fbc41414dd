# SPDX-License-Identifier: GPL-2.0-or-later
"""On ARM and arm64: programs that fault in every way and at every place of a block, loops of which
is known what they do, and tasks of every kind. The counts equal the guest's clock in all of them,
and each task's work is put down to whose it is.
"""

import asyncio
import functools
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from kdelta.counts.model import CONTEXTS, RegionCounts, RunCounts, merged_regions
from kdelta.counts.trace import DATA, Trace
from kdelta.counts.trace_file import read_traces
from kdelta.guests.job import Job, JobFile, job_archive
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, STRICT_FLAGS, native_folder
from kdelta.infer.effects.same import partings
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Recording, run_guest
from kdelta.spec.run import perturbation
from tests.machines.bench import (
    ARM,
    ARM64,
    clock_ticks,
    counts_of,
    guest,
    new_setting,
    process_folder,
    run_job,
    syscalls_job,
)

pytestmark = [pytest.mark.guest, pytest.mark.slow]

HERE = Path(__file__).parent
SOURCES = [
    *(HERE / "corners" / name for name in ("main.c", "tasks.c")),
    *sorted((HERE / "corners_risc").glob("*.c")),
]
PROGRAM = "/corners"


class Place(NamedTuple):
    """A kernel, a CPU whose clock counts instructions, and who compiles for it."""

    spec: str
    cpu: str
    compiler: str

    def guest(self) -> Guest:
        return guest(self.spec, cpu=self.cpu)


PLACES = {
    "arm": Place(ARM, "cortex-a15", "arm-linux-gnueabihf-gcc"),
    "arm64": Place(ARM64, "cortex-a53", "aarch64-linux-gnu-gcc"),
}
on_all = pytest.mark.parametrize("name", PLACES)


@functools.cache
def _program(name: str) -> Path:
    output = process_folder() / f"corners-{name}"
    flags = (*COMMON_FLAGS, *STRICT_FLAGS, *STATIC_FLAGS, "-D_GNU_SOURCE", "-pthread")
    folders = (native_folder() / "include", HERE / "corners", HERE / "corners_risc")
    includes = [f"-I{folder}" for folder in folders]
    argv = [PLACES[name].compiler, *flags, *includes]
    subprocess.run([*argv, "-o", output, *SOURCES], check=True)
    return output


@functools.cache
def _outcome(name: str, index: int = 0) -> GuestOutcome:
    """Of the run that is perturbed with that index."""
    files = (JobFile(_program(name), PROGRAM, 0o755),)
    job = Job(argv=(PROGRAM,), files=files, seconds=300, perturbation=perturbation(index))
    return run_job(job, PLACES[name].guest())


@functools.cache
def _counts(name: str, index: int = 0) -> RunCounts:
    binaries = {"corners": _program(name).read_bytes()}
    return counts_of(_outcome(name, index), binaries, arch=PLACES[name].guest().arch)


def _regions(name: str, index: int = 0) -> dict[str, RegionCounts]:
    return merged_regions(_counts(name, index))


def _unequal(name: str, index: int) -> dict[str, int]:
    """By region how much further the clock went than what was executed, where it is not 0."""
    ticks = clock_ticks(_outcome(name, index))
    counted = {one: region.executed_insns() for one, region in _regions(name, index).items()}
    assert set(counted) == set(ticks)
    return {one: ticks[one] - counted[one] for one in counted if ticks[one] != counted[one]}


def _names(name: str) -> set[str]:
    """What the sources say that there is, so that none can go missing unnoticed."""
    found = {
        one
        for source in SOURCES
        for names in re.findall(
            r'^ +\{ "([a-z0-9-]+)",|CASE\("([a-z0-9-]+)"', source.read_text(), re.MULTILINE
        )
        for one in names
        if one
    }
    return found if name == "arm" else found - {"fixed-up"}


def _user_insns(region: RegionCounts, context: str) -> int:
    return sum(
        f.cost.insns for f in region.functions if f.context == context and f.origin == "corners"
    )


@on_all
def test_every_corner_counts_what_the_clock_counts(name: str) -> None:
    regions = _regions(name)
    assert set(regions) == {*_names(name), "nested-inner"}
    assert len(regions) > 50
    # QEMU's clock may jump ahead at one place of a run (docs/exactness.md), and then not there when
    # the guest starts from another state; a count that is wrong would be wrong in both.
    jumped = _unequal(name, 0)
    assert len(jumped) <= 1
    assert all(ticks > 0 for ticks in jumped.values())
    assert not jumped or not _unequal(name, 1)
    assert _counts(name).warnings == ()


# What the functions of corners_risc/code.c execute, load and store.
COUNTED = {
    "arm": {
        "counted_loop": (3 + 1000 * 9, 9 + 500 * 4 + 1000 * 10, 9 + 1000 * 4 + 500 * 2),
        "counted_thumb_loop": (3 + 1000 * 10, 9 + 500 * 4 + 1000 * 10, 9 + 1000 * 4 + 500 * 2),
        "counted_calls": (5 + 100 * 3, 0, 0),
    },
    "arm64": {
        "counted_loop": (2 + 1000 * 5, 1000 * 3, 1000 * 2),
        "counted_calls": (3 + 100 * 3, 0, 0),
    },
}


@on_all
def test_instructions_loads_and_stores_are_those_of_the_source(name: str) -> None:
    functions = {
        f.name: f.cost for f in _regions(name)["loops"].functions if f.name.startswith("counted")
    }
    got = {key: (cost.insns, cost.loads, cost.stores) for key, cost in functions.items()}
    assert got == COUNTED[name]
    assert all(not cost.string_bytes for cost in functions.values())
    assert functions["counted_calls"].specials == {"svc": 100}


def _kernel_specials(region: RegionCounts) -> dict[str, int]:
    found: dict[str, int] = {}
    for function in region.functions:
        if function.context == "own" and function.origin == "kernel":
            for kind, count in function.cost.specials.items():
                found[kind] = found.get(kind, 0) + count
    return found


RETURNS = {"arm": "exception-return", "arm64": "eret"}
ENTERS = {"arm": "mrs", "arm64": "exception-state"}  # who called, and why


@on_all
def test_each_call_returns_from_the_kernel_once(name: str) -> None:
    """More by what interrupts the loops: an ARM kernel enters itself by such a return as well."""
    specials = _kernel_specials(_regions(name)["loops"])
    assert 100 <= specials[RETURNS[name]] <= 106
    assert specials[ENTERS[name]] >= 100


@on_all
def test_children_and_threads_are_their_makers_own_work(name: str) -> None:
    for region_name, region in _regions(name).items():
        if region_name != "other-task":
            assert _user_insns(region, "other") == 0, region_name
    assert _user_insns(_regions(name)["children-at-once"], "own") > 200 * 20 * 100


@on_all
def test_a_child_made_before_the_region_is_another_task(name: str) -> None:
    region = _regions(name)["other-task"]
    assert _user_insns(region, "other") > 20 * 10
    assert _user_insns(region, "own") > 20 * 10


HANDLERS = ("handle_irq_desc", "scheduler_tick", "hrtimer_interrupt")


@on_all
def test_what_the_timer_does_is_the_interrupts_work(name: str) -> None:
    region = _regions(name)["ticks"]
    assert region.cost("interrupts").insns > 10_000
    for handler in HANDLERS:
        contexts = {f.context for f in region.functions if f.name == handler}
        assert contexts <= {"interrupts", "other"}, handler
    told = {f.name for f in region.functions if f.context == "interrupts"}
    assert told >= set(HANDLERS)
    # The loop itself: an interrupt leaves it and comes back, and takes nothing with it.
    (own,) = {_user_insns(region, context) for context in CONTEXTS} - {0}
    assert own == pytest.approx(3_000_000 * 5, rel=0.5)


@on_all
def test_runs_of_all_corners_repeat(name: str) -> None:
    files = (JobFile(_program(name), PROGRAM, 0o755),)
    again = run_job(Job(argv=(PROGRAM,), files=files, seconds=300), PLACES[name].guest())
    binaries = {"corners": _program(name).read_bytes()}
    arch = PLACES[name].guest().arch
    assert list(partings(counts_of(again, binaries, arch=arch), _counts(name))) == []


@functools.cache
def _traced(name: str) -> tuple[RunCounts, tuple[Trace, ...]]:
    where = PLACES[name].guest()

    async def go() -> GuestOutcome:
        snapshot = await obtain_snapshot(where, new_setting())
        assert not isinstance(snapshot, GuestOutcome)
        setting = msgspec.structs.replace(new_setting(), recording=Recording("data"))
        job = syscalls_job("getppid", "open-close", "pipe-round-trip")
        return await run_guest(where, job_archive(job), setting, snapshot)

    outcome = asyncio.run(go())
    assert outcome.counts
    return counts_of(outcome, arch=where.arch), read_traces(outcome.counts)


@on_all
def test_a_trace_executes_what_the_counters_counted(name: str) -> None:
    counts, traces = _traced(name)
    assert [trace.region for trace in traces] == [region.name for region in counts.regions]
    for region, trace in zip(counts.regions, traces, strict=True):
        assert not trace.truncated
        for context, told in enumerate(CONTEXTS):
            counted = region.cost(told).insns
            assert trace.executed_insns(context) == pytest.approx(counted, rel=0.02, abs=64)
        # No address carries the bit by which ARM says that it is Thumb code.
        assert not (trace.addresses % 2).any()


@on_all
def test_the_places_of_code_and_data_in_memory_are_known(name: str) -> None:
    _, traces = _traced(name)
    for trace in traces:
        assert trace.physical is not None
        assert trace.data_physical is not None
        assert (trace.items >= DATA).any()
        # Both machines have their memory at 1 GiB.
        end = (1 << 30) + (PLACES[name].guest().memory_mib << 20)
        for places in (trace.physical, trace.data_physical):
            assert ((places >= 1 << 30) & (places < end)).all()
        same_page = trace.physical % 4096 == trace.addresses % 4096
        assert same_page.all()


def test_the_vectors_of_an_arm_kernel_are_in_its_trace() -> None:
    _, traces = _traced("arm")
    entry_of_calls = 0xFFFF0008
    (getppid,) = (trace for trace in traces if trace.region == "getppid")
    (block,) = (getppid.addresses == entry_of_calls).nonzero()[0]
    assert int(getppid.executions()[block]) >= getppid.iterations
