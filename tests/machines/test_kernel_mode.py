# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in the kernel's mode are counted as ever: user code by its address, whatever its ring.

One kernel is built for all of it, and KDELTA_KERNEL_MODE names another one, with kernel mode.
"""

import functools
import os
import subprocess

import msgspec
import pytest

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.guests.job import Job, JobFile
from kdelta.guests.kernel_mode import direct_calls
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, native_folder
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.run import CALLS, Mode
from tests.machines.bench import (
    clock_ticks,
    counts_of,
    guest,
    process_folder,
    run_job,
    syscalls_job,
)
from tests.machines.corner_cases import PROGRAM, SOURCES, names_of_corners

pytestmark = [pytest.mark.build, pytest.mark.guest, pytest.mark.slow]

SPEC = os.environ.get("KDELTA_KERNEL_MODE") or "deb-src:linux-source-6.12 +kernel-mode"
MODES: tuple[Mode, ...] = ("user", "kernel", "kernel-direct", "kernel-skip")
# What ring 0 may do: there these trap no more, and `int` reaches any gate.
PRIVILEGED = (
    *("halt", "no-interrupts", "port", "port-string", "read-msr", "read-cr", "read-dr"),
    *("no-invlpg", "no-lgdt", "no-lidt", "no-wbinvd", "no-swapgs", "no-clts", "no-lldt", "no-ltr"),
    *("no-sysret", "no-xsetbv", "bad-int"),
)


@functools.cache
def _outcome(mode: Mode) -> tuple[GuestOutcome, bytes]:
    """All corners but the privileged ones, in that mode, and the program."""
    more = direct_calls()
    program = process_folder() / f"corners-{mode}"
    flags = (*COMMON_FLAGS, *STATIC_FLAGS, "-D_GNU_SOURCE", "-mno-red-zone", "-pthread")
    linked = (*more.flags, *more.sources) if mode in CALLS else ()
    include = f"-I{native_folder() / 'include'}"
    subprocess.run(["gcc", *flags, include, "-o", program, *SOURCES, *linked], check=True)
    job = Job(
        argv=(PROGRAM, "but", *PRIVILEGED),
        env=(("KDELTA_CALL", CALLS[mode]),) if mode in CALLS else (),
        files=(JobFile(program, PROGRAM, 0o755),),
        seconds=300,
        mode=mode,
    )
    return run_job(job, guest(SPEC)), program.read_bytes()


@functools.cache
def _regions(mode: Mode) -> dict[str, RegionCounts]:
    outcome, program = _outcome(mode)
    counts = counts_of(outcome, {"corners": program})
    assert counts.warnings == ()
    return merged_regions(counts)


@pytest.mark.parametrize("mode", MODES)
def test_every_corner_counts_what_the_clock_counts(mode: Mode) -> None:
    regions = _regions(mode)
    assert set(regions) == {*names_of_corners(), "nested-inner"} - set(PRIVILEGED)
    counted = {name: region.executed_insns() for name, region in regions.items()}
    assert counted == clock_ticks(_outcome(mode)[0])


@pytest.mark.parametrize("name", ["bad-load", "bad-string", "not-canonical", "divide", "own-code"])
def test_user_code_is_counted_alike_in_both_rings(name: str) -> None:
    user, kernel = (_regions(mode)[name].cost("own", kernel=False) for mode in ("user", "kernel"))
    assert user.insns > 0
    assert kernel == user


def test_no_way_back_is_by_sysret() -> None:
    for name, region in _regions("kernel").items():
        assert "sysret" not in region.cost("own").specials, name
    assert any("sysret" in one.cost("own").specials for one in _regions("user").values())


def test_calls_are_jumps_where_they_are_to_be() -> None:
    """But for the return from a signal's handler, whose bytes others know."""
    counted = {
        mode: sum(one.cost("own").specials.get("syscall", 0) for one in _regions(mode).values())
        for mode in MODES
    }
    assert counted["user"] == counted["kernel"]
    for mode in ("kernel-direct", "kernel-skip"):
        assert 0 < counted[mode] < counted["kernel"] / 2


def test_interrupts_of_ring_0_are_interrupts() -> None:
    """The stubs that come first, too: no tick is put down to the task."""
    region = _regions("kernel")["ticks-in-copies"]
    contexts = {
        row.context for row in region.functions if row.name.startswith("kernel_mode_interrupt")
    }
    assert contexts == {"interrupts"}
    assert region.cost("interrupts").insns > 10_000
    own = {row.name for row in region.functions if row.context == "own"}
    assert not {name for name in own if name.startswith(("asm_sysvec", "irq_entries"))}


def test_faults_of_ring_0_are_the_tasks_own() -> None:
    rows = _regions("kernel")["bad-load"].functions
    stubs = {row.context for row in rows if row.name.startswith("kernel_mode_page_fault")}
    assert stubs == {"own"}


def test_a_cpu_that_keeps_smep_and_smap_on() -> None:
    job = syscalls_job("empty")
    outcome = run_job(msgspec.structs.replace(job, mode="kernel"), guest(SPEC, "nokernel_mode"))
    assert outcome.status == "workload-failed"
    assert outcome.detail.startswith("mode kernel: SMEP or SMAP is on: ")
