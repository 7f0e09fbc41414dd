# SPDX-License-Identifier: GPL-2.0-or-later
"""What "exact" promises, on the machines of other architectures, with real kernels."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from kdelta.counts.model import RegionCounts, RunCounts
from kdelta.guests.job import Job, JobFile
from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, STRICT_FLAGS, native_folder
from kdelta.host.target import target, targets
from kdelta.infer.effects.same import partings
from kdelta.machines.arch import Board, arch_machine
from kdelta.machines.device_tree import read_properties
from kdelta.machines.tcg import Guest
from kdelta.spec.errors import LabError
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import (
    ARM,
    ARM64,
    SECONDS,
    counts_of,
    guest,
    regions_of,
    run_job,
    syscalls_job,
)

CHEAP = ("getppid", "open-close", "mmap-touch-4k", "fork-exit-wait", "pipe-round-trip")


class Place(NamedTuple):
    """A kernel on a machine. `counts`: its clock tells single instructions."""

    spec: str
    cpu: str
    counts: bool

    def guest(self) -> Guest:
        return guest(self.spec, cpu=self.cpu)


PLACES = {
    "armmp-a9": Place(ARM, "cortex-a9", counts=False),
    "armmp-a7": Place(ARM, "cortex-a7", counts=True),
    "arm64-a53": Place(ARM64, "cortex-a53", counts=True),
}
on_all = pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if PLACES[one].counts else pytest.mark.campaign) for one in PLACES],
)


def _run(place: Place, *, power_on: bool = False, index: int = 0) -> RunCounts:
    job = syscalls_job("--clock", *CHEAP, index=index)
    where = place.guest()
    return counts_of(run_job(job, where, power_on=power_on), arch=where.arch)


@pytest.mark.guest
@pytest.mark.slow
@on_all
def test_every_operation_is_counted_and_agrees_with_the_clock(name: str) -> None:
    place = PLACES[name]
    names = [operation.name for operation in find_workload("syscalls").operations]
    regions = regions_of(*names, where=guest(place.spec, cpu=place.cpu))
    assert set(regions) == set(names)
    if place.counts:
        idle = {name: region.idle_ticks() for name, region in regions.items()}
        assert idle == dict.fromkeys(regions, 0)
    else:
        assert {region.clock_ticks for region in regions.values()} == {None}
    assert all(region.cost("own", kernel=False).insns for region in regions.values())
    assert regions["fork-exit-wait"].cost("own", kernel=True).insns > 10_000
    assert any(region.cost("other").insns for region in regions.values())


@pytest.mark.guest
@pytest.mark.slow
@on_all
def test_counts_from_a_snapshot_and_from_power_on_are_equal(name: str) -> None:
    place = PLACES[name]
    assert list(partings(_run(place), _run(place, power_on=True))) == []


@pytest.mark.guest
@pytest.mark.slow
@on_all
def test_runs_repeat_to_the_last_instruction_besides_a_busy_host(name: str) -> None:
    # A perturbation begins at another moment within a step of the clock.
    first = [_run(PLACES[name], index=index) for index in (0, 1)]
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        second = [_run(PLACES[name], index=index) for index in (0, 1)]
    finally:
        for process in load:
            process.kill()
            process.wait()
    assert [list(partings(a, b)) for a, b in zip(first, second, strict=True)] == [[], []]
    assert first[0] != first[1]


@pytest.mark.guest
@pytest.mark.slow
@on_all
def test_exactly_k_more_instructions_are_counted_as_k(name: str) -> None:
    regions = regions_of("spin-0", "spin-1", "spin-7", "spin-100", where=PLACES[name].guest())
    base = regions["spin-0"]
    for k in (1, 7, 100):
        assert regions[f"spin-{k}"].median_own_insns() - base.median_own_insns() == k


@pytest.mark.guest
@pytest.mark.slow
@on_all
def test_time_in_which_the_guest_sleeps_is_no_instruction(name: str) -> None:
    place = PLACES[name]
    region = regions_of("sleep", where=place.guest())["sleep"]
    # It slept 20 times for a millisecond.
    assert 0 < region.executed_insns() < 2_000_000
    if place.counts:
        assert region.clock_ticks is not None
        assert region.clock_ticks > 20_000_000


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("cpu", ["cortex-a72", "neoverse-n1"])
def test_other_cores_of_arm64(cpu: str) -> None:
    regions = regions_of(*CHEAP, where=guest(ARM64, cpu=cpu))
    assert {name: one.idle_ticks() for name, one in regions.items()} == dict.fromkeys(CHEAP, 0)


@pytest.mark.guest
@pytest.mark.slow
def test_an_arm_kernel_keeps_the_forms_for_several_cpus() -> None:
    """Of those that it replaces on one CPU is the event that is sent when a lock becomes free."""
    region = regions_of("chdir", where=PLACES["armmp-a9"].guest())["chdir"]
    assert _specials(region)["sev"] >= region.iteration_count


def _specials(region: RegionCounts) -> dict[str, int]:
    return region.cost("own").specials


@pytest.mark.guest
@pytest.mark.slow
@on_all
def test_a_start_is_exact_within_a_step_of_the_clock(name: str, tmp_path: Path) -> None:
    """Whichever instruction it is waited from. Nothing else runs but the tick, every 4 ms."""
    where = PLACES[name].guest()
    program = tmp_path / "clock"
    source = Path(__file__).parent / "clock/clock.c"
    argv = [target(where.arch).find_compiler(), *COMMON_FLAGS, *STATIC_FLAGS, *STRICT_FLAGS]
    argv += [f"-I{native_folder() / 'include'}", "-o", str(program), str(source)]
    subprocess.run(argv, check=True)
    job = Job(argv=("/clock",), files=(JobFile(program, "/clock", 0o755),), seconds=60)
    outcome = run_job(job, where)
    assert outcome.status == "ok", outcome.console[-500:]
    late = [int(line) for line in outcome.messages["stdout"].split()]
    assert len(late) == 64
    assert set(late) == {late[0]}
    assert 0 < late[0] < 2000


def _boards() -> list[tuple[str, Board]]:
    return [(arch, board) for arch in targets() for board in arch_machine(arch).boards]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "board"),
    [pair for pair in _boards() if pair[1].machine.startswith("virt")],
    ids=lambda value: value if isinstance(value, str) else value.cpu,
)
def test_a_device_tree_has_no_random_numbers(tmp_path: Path, arch: str, board: Board) -> None:
    """QEMU makes it again each time: kaslr-seed and rng-seed would differ."""
    trees = []
    for name in ("first", "second"):
        file = tmp_path / name
        argv = [
            target(arch).emulator, "-display", "none", "-nodefaults",
            "-machine", f"{board.machine},dumpdtb={file}", "-cpu", board.cpu_argument(""),
            *board.arguments,
        ]  # fmt: skip
        subprocess.run(argv, check=True, capture_output=True)
        trees.append(dict(read_properties(file.read_bytes())))
    assert trees[0] == trees[1]
    assert trees[0]["/compatible"]
    seeds = [name for name in trees[0] if "seed" in name]
    # QEMU 7.2 always has it on riscv64, made from a seed of QEMU's own, which the machine sets.
    assert seeds == (["/chosen/rng-seed"] if arch == "riscv64" else [])


@pytest.mark.guest
@pytest.mark.slow
def test_a_second_cpu_that_executes_anything_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = arch_machine("arm64")
    board = msgspec.structs.replace(found.board(""), arguments=("-smp", "2"))
    machines = msgspec.structs.replace(found, boards=(board,))
    monkeypatch.setattr("kdelta.machines.tcg.arch_machine", lambda _: machines)
    with pytest.raises(LabError, match="CPU 1 executes code; only the first one may"):
        run_job(syscalls_job("getppid"), guest(ARM64), power_on=True)


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("spec", [ARM, ARM64])
def test_a_kernel_that_panics_is_not_waited_for(spec: str) -> None:
    """Its machine may have no way to turn itself off or to restart."""
    outcome = run_job(syscalls_job("getppid"), guest(spec, append="rdinit=/nowhere"))
    assert outcome.status == "boot-failed"
    assert "panic" in outcome.detail
    assert outcome.seconds < SECONDS
