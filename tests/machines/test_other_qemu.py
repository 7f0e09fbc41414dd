# SPDX-License-Identifier: GPL-2.0-or-later
"""The pin and later QEMUs count what the host's counts, and all pass the tests of counting."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import CONTEXTS, RegionCounts, RunCounts, merged_regions
from kdelta.guests.job import job_archive
from kdelta.host.emulator import HOST, PIN, find_qemu
from kdelta.host.target import target, targets
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Snapshot, run_guest
from tests.machines.arm_state import loadable_by
from tests.machines.bench import (
    ARM,
    ARM64,
    NEW,
    OLD,
    QEMU,
    counts_of,
    guest,
    new_setting,
    run_job,
    syscalls_job,
)
from tests.machines.other_qemu import SUITES, on_host, other_qemu

pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.slow]
LONG = ("exact", "corners_risc", "architectures", "contexts", "trace_guest")
MODULES = {
    **dict.fromkeys(LONG, "guest"),
    **dict.fromkeys(["strings", "calls"], "guest and not slow"),
    "data_guest": "guest",
}
"""Modules of tests, and the marks of those that are run: all of them would take too long."""


@pytest.fixture(params=SUITES)
def other(request: pytest.FixtureRequest) -> str:
    return other_qemu(request.param)


@pytest.mark.parametrize("arch", targets())
def test_qemu_of_another_release_takes_the_plugin(other: str, arch: str) -> None:
    qemu = find_qemu(target(arch), other)
    oldest, newest = qemu.plugin_apis
    assert 1 < oldest <= newest


@pytest.mark.parametrize("spec", [OLD, NEW])
def test_a_snapshot_of_the_hosts_qemu_counts_the_same_in_another(spec: str, other: str) -> None:
    """All operations: every function, load, store, special instruction and interrupt."""
    ours = on_host(guest(spec))
    theirs = msgspec.structs.replace(ours, qemu=other)
    assert _counts(ours, theirs) == _counts(ours, ours)


def _counts(booted: Guest, where: Guest) -> RunCounts:
    return counts_of(run_job(syscalls_job(), where, booted=booted))


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [(ARM64, "cortex-a53"), pytest.param(ARM, "cortex-a7", marks=pytest.mark.campaign)],
)
def test_a_snapshot_of_an_arm_guest_counts_the_same_in_another(
    spec: str, cpu: str, other: str, tmp_path: Path
) -> None:
    """All operations, from one state, with the few system registers that the other has instead."""
    ours = on_host(guest(spec, cpu=cpu))
    theirs = msgspec.structs.replace(ours, qemu=other)
    taken, own = (_snapshot(one) for one in (ours, theirs))
    found = [
        counts_of(
            asyncio.run(run_guest(where, job_archive(syscalls_job()), new_setting(), start)),
            arch=ours.arch,
        )
        for where, start in ((ours, taken), (theirs, loadable_by(own, taken, tmp_path / "changed")))
    ]
    assert found[0] == found[1]


@pytest.mark.campaign
def test_a_cortex_a9_boots_to_the_same_state_in_another(other: str) -> None:
    """All operations, each from its own QEMU's snapshot: every iteration's instructions."""
    ours = on_host(guest(ARM, cpu="cortex-a9"))
    found = [
        merged_regions(counts_of(run_job(syscalls_job(), where), arch=ours.arch))
        for where in (ours, msgspec.structs.replace(ours, qemu=other))
    ]
    first, second = (
        {name: (one.iterations, _insns(one)) for name, one in regions.items()} for regions in found
    )
    assert first == second


def _insns(region: RegionCounts) -> list[int]:
    return [region.cost(context).insns for context in CONTEXTS]


def _snapshot(where: Guest) -> Snapshot:
    found = asyncio.run(obtain_snapshot(where, new_setting()))
    assert isinstance(found, Snapshot)
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.campaign if name in LONG else ()) for name in MODULES],
)
def test_what_the_pin_passes_others_pass(name: str, other: str) -> None:
    """The pin runs these tests where they are: so this is for the host's QEMU and named others."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MODULES[name]]
    ended = subprocess.run(
        [*words, Path(__file__).parent / f"test_{name}.py"],
        env={**os.environ, QEMU: HOST if other == PIN else other},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-6000:]
