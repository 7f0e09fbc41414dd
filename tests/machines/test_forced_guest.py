# SPDX-License-Identifier: GPL-2.0-or-later
"""Features forced in real kernels: what these say of themselves then, and that counts repeat."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus import forced, load_cpu
from kdelta.cpus.cores import flags_of
from kdelta.cpus.representative import paths_not_taken, said_of
from kdelta.infer.effects.effects import compare_runs
from kdelta.infer.effects.gains import path_gains
from kdelta.infer.effects.same import partings
from kdelta.lab.cpus import machine_like
from kdelta.lab.explain import must_be_forced
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.reports import attachment
from kdelta.lab.request import LabRequest
from kdelta.lab.work import workload_work
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_forcing
from kdelta.machines.tcg import Guest
from kdelta.spec.errors import LabError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import (
    NEW,
    OLD,
    counts_of,
    guest,
    kernel,
    made_as,
    new_setting,
    run_job,
    syscalls_job,
)

pytestmark = pytest.mark.guest

SPECTRE = {
    "skylake-server": "Mitigation: IBRS; IBPB: conditional",
    "zen4": "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional",
}
SKYLAKE_PATHS = {"getppid": (7, 8), "pipe-round-trip": (40, 314)}
"""The shortest and the longest path of 6.1 that a Skylake can take, instructions an iteration."""
GETPPID = 344
"""Kernel instructions of 6.12 as a Skylake of bare metal; 341 as its guest without BHI and ITS."""


def ran(where: Guest, *, power_on: bool = False) -> GuestOutcome:
    return run_job(syscalls_job("--clock", "getppid", "uname"), where, power_on=power_on)


def said(outcome: GuestOutcome) -> tuple[frozenset[str], Mapping[str, str]]:
    cpuinfo, vulnerabilities = (
        outcome.messages[name].decode() for name in ("cpuinfo", "vulnerabilities")
    )
    return flags_of(cpuinfo), said_of(vulnerabilities)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [OLD, NEW])
@pytest.mark.parametrize("name", SPECTRE)
def test_a_kernel_chooses_the_mitigations_of_the_cpu(name: str, spec: str) -> None:
    where = made_as(name, spec)
    assert where.forcing
    assert where.forcing.names == load_cpu(name).qemu.force
    outcome = ran(where)
    must_be_forced(kernel(spec), where, outcome.messages)
    flags, mitigations = said(outcome)
    assert {"ssbd", "ibrs", "ibpb", "stibp"} <= flags
    assert mitigations["spectre_v2"].startswith(SPECTRE[name])
    lacking = [file for file, words in mitigations.items() if "no microcode" in words.lower()]
    # Of which nothing is executed; TCG has no MSR that says so.
    assert set(lacking) <= {"gather_data_sampling"}
    if name == "skylake-server":
        assert mitigations["retbleed"] == "Mitigation: IBRS"
        assert mitigations["mds"].startswith("Mitigation: Clear CPU buffers")
    else:
        assert {"fsrm", "ibrs_enhanced"} <= flags
        assert mitigations["spec_rstack_overflow"].lower() == "mitigation: safe ret"
        assert mitigations["tsa"] == "Mitigation: Clear CPU buffers"


@pytest.mark.slow
def test_counts_repeat_and_are_those_from_power_on() -> None:
    where = made_as("skylake-server", NEW)
    first, second, whole = (
        counts_of(ran(where, power_on=power_on)) for power_on in (False, False, True)
    )
    assert list(partings(first, second)) == []
    assert list(partings(first, whole)) == []
    getppid = first.regions[0].iterations.own_kernel
    assert set(getppid) == {GETPPID}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zen4", "skylake-server"])
def test_bounds_of_a_run_have_those_that_were_found_in_the_kernels_code(name: str) -> None:
    """docs/cases/forced/lacking: what PCID could add, by each path that a real CPU can take."""
    paths = {"zen4": {"pipe-round-trip": (6, 166)}, "skylake-server": SKYLAKE_PATHS}[name]
    outcome = run_job(syscalls_job("--clock", "getppid", "pipe-round-trip"), made_as(name, OLD))
    counts = counts_of(outcome)
    texts = (outcome.messages[one].decode() for one in ("cpuinfo", "vulnerabilities"))
    found = paths_not_taken(load_cpu(name), *texts)
    gains = path_gains(compare_runs([counts], [counts]), (found, found), (counts, counts))
    named = {one.region: one.base for one in gains}
    assert set(named) == set(paths)
    for region, reach in named.items():
        least, most = paths[region]
        assert reach.low - 0.01 <= least
        assert most <= reach.high + 0.01
    assert [one.effect.most for one in gains] == [0.0] * len(gains)


def made(request: LabRequest, store: Store) -> tuple[Run, frozenset[str]]:
    """A run of OLD, and the flags of its CPU."""
    work = workload_work(find_workload("syscalls"), ("getppid",), kernel(OLD))

    async def go() -> Run:
        settled = await Lab(store, Silent(), request).settled([kernel(OLD)], [work])
        ((done,),) = await settled.runs([kernel(OLD)], [work])
        return done.run

    run = asyncio.run(go())
    return run, flags_of(attachment(run, "cpuinfo", store))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zen4", ""])
def test_a_run_forces_what_the_file_of_its_cpu_has(own_data: Path, name: str) -> None:
    """The default CPU is the same as if it was named."""
    machine = MachineOptions(memory_mib=512)
    machine = machine_like(machine, load_cpu(name)) if name else machine
    with Store.open(own_data) as store:
        run, flags = made(LabRequest(machine=machine, perturbations=1), store)
    assert {"fsrm", "ibrs_enhanced", "avx2", "fma", "bmi2", "movbe", "abm", "f16c"} <= flags
    assert run.machine["cpu"] == load_cpu("zen4").qemu.cpu
    assert run.machine["force"] == " ".join(load_cpu("zen4").qemu.force)


@pytest.mark.slow
def test_nothing_is_forced_by_default_in_a_kernel_that_takes_nothing(
    own_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6.1 has no setcpuid=."""
    kept: list[str] = []
    monkeypatch.setattr("kdelta.machines.forcing._ARRAY", "cpu_caps_hidden")
    monkeypatch.setattr("kdelta.lab.lab.known_refusal", lambda _: None)
    monkeypatch.setattr("kdelta.lab.lab.keep_refusal", lambda _, text: kept.append(text))
    with Store.open(own_data) as store:
        machine = MachineOptions(memory_mib=512)
        run, flags = made(LabRequest(machine=machine, perturbations=1), store)
    assert len(kept) == 1
    assert "its symbols do not list cpu_caps_set" in kept[0]
    assert run.status is RunStatus.OK
    assert not {"fsrm", "ibrs_enhanced"} & flags
    assert run.machine["cpu"] == load_cpu("zen4").qemu.cpu
    assert "force" not in run.machine


@pytest.mark.slow
def test_a_kernel_that_numbers_a_feature_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = dict(forced.features())
    known["fsrm"] = msgspec.structs.replace(known["fsrm"], bit=6)  # which no kernel knows
    monkeypatch.setattr("kdelta.machines.forcing.features", lambda: known)
    where = msgspec.structs.replace(guest(OLD), force=("fsrm", "ssbd"))
    found = asyncio.run(obtain_forcing(where, new_setting()))
    assert isinstance(found, Guest)
    outcome = ran(found)
    with pytest.raises(LabError, match=r"did not take fsrm \(/proc/cpuinfo has no fsrm\)$"):
        must_be_forced(kernel(OLD), found, outcome.messages)


@pytest.mark.slow
def test_a_kernel_without_the_symbol_and_the_parameter_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """6.1 has no setcpuid=, and would boot as if nothing was forced."""
    monkeypatch.setattr("kdelta.machines.forcing._ARRAY", "cpu_caps_hidden")
    where = msgspec.structs.replace(guest(OLD), force=("fsrm",))
    found = asyncio.run(obtain_forcing(where, new_setting()))
    assert isinstance(found, Guest)
    assert "setcpuid=580" in found.command_line
    with pytest.raises(LabError, match=r"6\.1\.\S+: its symbols do not list cpu_caps_set"):
        must_be_forced(kernel(OLD), found, ran(found).messages)


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.network
def test_setcpuid_forces_the_same_where_symbols_do_not_list_the_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux has it since 6.15; Debian's newest is 7.x."""
    newest = "deb:linux-image-cloud-amd64@forky"
    written = made_as("zen4", newest)
    monkeypatch.setattr("kdelta.machines.forcing._ARRAY", "cpu_caps_hidden")
    asked = made_as("zen4", newest)
    assert written.forcing
    assert asked.forcing
    assert (written.forcing.parameter, asked.forcing.parameter[:9]) == ("", "setcpuid=")
    outcomes = [ran(one) for one in (written, asked)]
    for where, outcome in zip((written, asked), outcomes, strict=True):
        must_be_forced(kernel(newest), where, outcome.messages)
        assert said(outcome)[1]["spectre_v2"].startswith(SPECTRE["zen4"])
    costs = [counts_of(one).regions[0].iterations.own_kernel for one in outcomes]
    assert list(costs[0]) == list(costs[1])
