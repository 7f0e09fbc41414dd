# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload aes on real kernels: one source in user space and in the kernel, counted exactly."""

import functools
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.guests.job import Job, JobFile
from kdelta.infer.effects.same import partings
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import RunPlan
from kdelta.lab.work import workload_work
from kdelta.machines.outcome import GuestOutcome
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import NEW, OLD, counts_of, guest, kernel, run_job

pytestmark = [pytest.mark.guest, pytest.mark.slow]

OPERATIONS = [operation.name for operation in find_workload("aes").operations]
USER = ["user-encrypt", "user-decrypt"]


@functools.cache
def work(spec: str) -> RunPlan:
    return workload_work(find_workload("aes"), (), kernel(spec))


@functools.cache
def outcome(spec: str) -> GuestOutcome:
    return run_job(work(spec).job, guest(spec))


@functools.cache
def regions(spec: str) -> dict[str, RegionCounts]:
    return merged_regions(counts_of(outcome(spec), dict(work(spec).binaries)))


@pytest.mark.parametrize("spec", [OLD, NEW])
def test_every_region_is_there_and_counts_what_the_virtual_clock_counts(spec: str) -> None:
    assert work(spec).warnings == ()
    assert "warning" not in outcome(spec).messages
    found = regions(spec)
    assert list(found) == OPERATIONS
    assert {name: region.idle_ticks() for name, region in found.items()} == dict.fromkeys(found, 0)
    assert {region.iteration_count for region in found.values()} == {256}


@pytest.mark.parametrize("spec", [OLD, NEW])
def test_each_region_is_work_of_its_own_side(spec: str) -> None:
    for name, region in regions(spec).items():
        user, system = (region.cost("own", kernel=in_kernel).insns for in_kernel in (False, True))
        if name.startswith("user-"):
            assert (user > 0, system) == (True, 0), name
        elif name.startswith("kernel-"):
            assert (user, system > 0) == (0, True), name
        else:
            assert 0 < user < system, name


@pytest.mark.parametrize("spec", [OLD, NEW])
def test_the_same_source_is_named_by_where_it_ran(spec: str) -> None:
    for name, origin in {
        "user-encrypt": "aes",
        "user-kflags-encrypt": "aes-kflags",
        "kernel-encrypt": "[kdelta_aes]",
    }.items():
        region = regions(spec)[name]
        cipher = [f for f in region.functions if f.name.startswith("aes256_cbc_encrypt")]
        assert {f.origin for f in cipher if f.context == "own"} == {origin}
        assert sum(f.cost.insns for f in cipher) > 0.99 * region.cost("own").insns


def test_the_same_program_costs_the_same_under_each_kernel() -> None:
    for name in USER:
        assert regions(OLD)[name].cost("own") == regions(NEW)[name].cost("own")


@pytest.mark.parametrize("spec", [OLD, NEW])
@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
def test_the_kernels_flags_give_the_kernels_code(spec: str, direction: str) -> None:
    """Between the two lie the loop around it and the returns that the module's code shares."""
    user = regions(spec)[f"user-kflags-{direction}"].median_own_insns()
    system = regions(spec)[f"kernel-{direction}"].median_own_insns()
    assert abs(user - system) < 10
    assert regions(spec)[f"user-{direction}"].median_own_insns() != system


def test_runs_repeat_to_the_last_instruction() -> None:
    first = counts_of(outcome(NEW), dict(work(NEW).binaries))
    second = counts_of(run_job(work(NEW).job, guest(NEW)), dict(work(NEW).binaries))
    assert list(partings(first, second)) == []


def test_what_a_kernel_does_not_have_is_left_out_and_told() -> None:
    bare: Kernel = msgspec.structs.replace(
        kernel(OLD), identity="not built for yet", spec="image:/boot/vmlinuz", modules=None
    )
    without = workload_work(find_workload("aes"), (), bare)
    (why,) = without.warnings
    assert "no module kdelta_aes" in why
    assert "comes without what modules are built against" in why

    ended = run_job(without.job, guest(OLD))
    assert list(merged_regions(counts_of(ended, dict(without.binaries)))) == USER
    told = ended.messages["warning"].decode().splitlines()
    assert [line.split()[0] for line in told] == [name for name in OPERATIONS if name not in USER]
    assert all(" is left out: " in line for line in told)


def test_a_module_that_the_kernel_refuses_is_told_and_the_rest_runs(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ko"
    broken.write_bytes(b"\x7fELF but no module")
    module = JobFile(broken, "/modules/broken.ko")
    job = Job(("/workloads/aes", "user-encrypt"), optional_modules=(module,), seconds=60)
    ended = run_job(job, guest(OLD))
    assert list(merged_regions(counts_of(ended))) == ["user-encrypt"]
    assert b"does not take the module /modules/broken.ko: " in ended.messages["warning"]
