# SPDX-License-Identifier: GPL-2.0-or-later
"""What "exact" promises, on real kernels: the clock's truth, repetition, snapshots, contexts."""

import subprocess
import sys

import pytest

from kdelta.counts.model import RegionCounts, RunCounts
from kdelta.infer.effects.same import partings
from kdelta.machines.tcg import Recording
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import NEW, OLD, counts_of, guest, regions_of, run_job, syscalls_job
from tests.machines.digests import digests
from tests.machines.stress import stressed

pytestmark = pytest.mark.guest

TRACED = Recording("on")
CHEAP = ("getppid", "open-close", "mmap-touch-4k", "fork-exit-wait", "pipe-round-trip")


def _run(*words: str, power_on: bool = False, index: int = 0) -> RunCounts:
    return counts_of(run_job(syscalls_job("--clock", *words, index=index), power_on=power_on))


@pytest.mark.parametrize("spec", [OLD, pytest.param(NEW, marks=pytest.mark.slow)])
def test_every_region_counts_what_the_virtual_clock_counts(spec: str) -> None:
    """No operation idles, so the clock's ticks are the instructions, faults and all."""
    checks = ("fault-heavy", "cross-page", "background", "no-op")
    names = [operation.name for operation in find_workload("syscalls").operations]
    regions = regions_of(*names, *checks, where=guest(spec))

    assert set(regions) == {*names, *checks}
    assert {name: region.idle_ticks() for name, region in regions.items()} == dict.fromkeys(
        regions, 0
    )
    # Not vacuous: clocks ran, pages were faulted in, and other tasks did work somewhere.
    assert all(region.clock_ticks for region in regions.values())
    assert regions["fault-heavy"].cost("own").specials["iret"] > 1000
    assert any(region.cost("other").insns for region in regions.values())


@pytest.mark.slow
def test_where_the_guest_idles_the_rest_of_the_clock_is_idle_time() -> None:
    region = regions_of("sleep")["sleep"]
    idle = region.idle_ticks()
    assert idle is not None
    assert region.clock_ticks is not None
    # The guest slept 20 times; all but what was executed is idle, and that is nearly everything.
    assert idle + region.executed_insns() == region.clock_ticks
    assert idle > 0.9 * region.clock_ticks


@pytest.mark.slow
def test_runs_repeat_to_the_last_instruction_besides_a_busy_host() -> None:
    first = _run(*CHEAP)
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        second = _run(*CHEAP)
    finally:
        for process in load:
            process.kill()
            process.wait()
    assert list(partings(first, second)) == []


@pytest.mark.slow
def test_counts_from_a_snapshot_and_from_power_on_are_equal() -> None:
    assert list(partings(_run(*CHEAP), _run(*CHEAP, power_on=True))) == []


@pytest.mark.slow
def test_perturbed_runs_differ_somewhere_but_not_in_what_depends_on_nothing() -> None:
    base, shaken = _run(*CHEAP), _run(*CHEAP, index=1)
    assert base != shaken
    getppid = [next(r for r in run.regions if r.name == "getppid") for run in (base, shaken)]
    assert getppid[0].cost("own") == getppid[1].cost("own")


def test_exactly_k_more_instructions_are_counted_as_k() -> None:
    regions = regions_of("spin-0", "spin-1", "spin-7", "spin-100")
    base = regions["spin-0"]
    for k in (1, 7, 100):
        more = regions[f"spin-{k}"]
        assert more.median_own_insns() - base.median_own_insns() == k
        added = more.cost("own", kernel=False).insns - base.cost("own", kernel=False).insns
        assert added == k * base.iteration_count


def test_an_empty_region_counts_its_known_constant() -> None:
    """BEGIN's mark, and what the workload executes between it and END's: the same each time."""
    first, second = regions_of("empty"), regions_of("getppid", "empty")
    assert first["empty"].executed_insns() == second["empty"].executed_insns() > 0
    assert first["empty"].cost("own", kernel=True).insns == 0


def _user_work(region: RegionCounts) -> tuple[int, int]:
    own = sum(
        f.cost.insns for f in region.functions if f.context == "own" and f.origin == "syscalls"
    )
    other = sum(
        f.cost.insns for f in region.functions if f.context == "other" and f.origin == "syscalls"
    )
    return own, other


def test_another_process_at_equal_addresses_is_counted_apart() -> None:
    """While the measured task sleeps, a copy of it works."""
    regions = regions_of("background", "sleep")
    own, other = _user_work(regions["background"])
    alone, nothing = _user_work(regions["sleep"])
    assert (own, nothing) == (alone, 0)
    assert other > 100 * own > 0


@pytest.mark.slow
def test_both_partners_of_a_ping_pong_are_its_own_work() -> None:
    region = regions_of("pipe-round-trip")["pipe-round-trip"]
    switches = [f for f in region.functions if f.name.startswith("__switch_to_asm")]
    assert {f.context for f in switches} >= {"own"}
    own = sum(f.cost.insns for f in switches if f.context == "own")
    assert own > 0.9 * sum(f.cost.insns for f in switches)


def test_interrupts_are_counted_apart() -> None:
    region = regions_of("fork-large", where=guest())["fork-large"]
    names = {f.name for f in region.functions if f.context == "interrupts"}
    assert any("apic_timer" in name for name in names), names
    own = {f.name for f in region.functions if f.context == "own"}
    assert not any("apic_timer" in name for name in own), own


@pytest.mark.slow
@pytest.mark.parametrize("spec", [OLD, NEW])
def test_reading_a_clock_costs_the_same_at_any_moment_of_a_second(spec: str) -> None:
    """Each operation before it puts the region off by 2^31 ns: 0.147 s further in a second."""
    name = "clock_gettime-syscall"
    before = ("uname", "fstat", "stat", "chdir", "sched_yield", "getppid")
    regions = [
        regions_of("--settle", "1", *before[:n], name, where=guest(spec))[name]
        for n in range(len(before))
    ]
    costs = [region.cost("own").insns for region in regions]

    # Less than an instruction an iteration: a tick is in some of the regions.
    assert max(costs) - min(costs) < regions[0].iteration_count


def test_the_kernel_executes_its_locked_instructions_on_one_cpu() -> None:
    region = regions_of("chdir")["chdir"]
    per_call = region.cost("own").specials["lock"] / region.iteration_count
    assert per_call > 5


@pytest.mark.slow
def test_code_is_named_by_function_and_binary() -> None:
    region = regions_of("gettimeofday-vdso", "getppid")
    names = {(f.origin, f.name) for f in region["gettimeofday-vdso"].functions}
    assert ("[vdso]", "__vdso_gettimeofday") in names
    assert ("syscalls", "step_getppid") in {(f.origin, f.name) for f in region["getppid"].functions}
    unknown = [f for r in region.values() for f in r.functions if f.origin == "[unknown]"]
    assert not unknown
    assert ("kernel", "__x64_sys_getppid") in {
        (f.origin, f.name) for f in region["getppid"].functions
    }


def test_special_instructions_of_a_system_call() -> None:
    region = regions_of("getppid")["getppid"]
    specials = region.cost("own").specials
    n = region.iteration_count
    assert specials["syscall"] == n
    assert specials["sysret"] == n
    assert specials["swapgs"] == 2 * n


@pytest.mark.slow
def test_string_operations_count_once_with_their_bytes() -> None:
    region = regions_of("read-tmpfs-64k")["read-tmpfs-64k"]
    own = region.cost("own")
    assert own.string_bytes >= 65536 * region.iteration_count
    assert own.string_bytes < 65536 * region.iteration_count + 100_000
    assert own.insns < 20_000 * region.iteration_count


@pytest.mark.slow
def test_traces_are_equal_while_the_main_loop_is_woken_all_the_time() -> None:
    """Without the plugin's lock between halts and the main loop, four in ten of them are not."""
    work = syscalls_job("mmap-touch-4k")
    quiet = run_job(work, recording=TRACED)
    with stressed("wakes"):
        woken = [run_job(work, recording=TRACED) for _ in range(12)]
    assert all(outcome.status == "ok" for outcome in (quiet, *woken))
    found = [digests(outcome.counts) for outcome in (quiet, *woken) if outcome.counts]
    assert len({(one.counts, one.trace) for one in found}) == 1
