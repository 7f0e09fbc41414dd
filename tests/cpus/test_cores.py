# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPU a machine's core is, by its /proc/cpuinfo."""

import itertools
from pathlib import Path

import pytest

from kdelta.cpus import list_cpus, load_cpu
from kdelta.cpus.cores import cores_in, cpu_of_machine, nearest_cpus
from kdelta.cpus.model import CPU
from kdelta.spec.errors import UserError
from tests.cpus import machines

CPUS = tuple(list_cpus().values())


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (machines.TURIN, "zen5"),
        (machines.GENOA, "zen4"),
        (machines.GRANITE_RAPIDS, "granite-rapids"),
        (machines.SIERRA_FOREST, "sierra-forest"),
        (machines.SKYLAKE_SERVER, "skylake-server"),
        (machines.HIDDEN, "sapphire-rapids"),
        (machines.ALTRA, "neoverse-n1"),
        (machines.GRAVITON4, "neoverse-v2"),
        (machines.PI5, "cortex-a76"),
    ],
)
def test_cpu_of_machine_by_its_cpuinfo(cpuinfo: str, name: str) -> None:
    found = cpu_of_machine(CPUS, cpuinfo)
    assert (found.cpu.name, found.others) == (name, ())


def test_cpu_of_machine_with_two_kinds_of_cores_is_the_first_and_names_the_other() -> None:
    found = cpu_of_machine(CPUS, machines.RK3588)
    assert (found.cpu.name, found.others) == ("cortex-a55", ("cortex-a76",))


@pytest.mark.parametrize(
    ("cpuinfo", "said", "near"),
    [
        (machines.HASWELL, "family 6, model 60 (Intel(R) Core(TM) i7-4770", "skylake-server"),
        (machines.NEOVERSE_N2, "implementer 0x41, part 0xd49", "neoverse-v2"),
    ],
)
def test_cpu_of_machine_unknown_core_names_the_nearest(cpuinfo: str, said: str, near: str) -> None:
    with pytest.raises(UserError) as raised:
        cpu_of_machine(CPUS, cpuinfo)
    assert said in raised.value.message
    assert raised.value.hint.startswith(f"the nearest are {near}, ")
    assert "name one" in raised.value.hint


def test_cpu_of_machine_features_without_hypervisor_are_not_looked_at() -> None:
    with pytest.raises(UserError, match="family 6, model 167"):
        cpu_of_machine(CPUS, machines.HIDDEN.replace("hypervisor ", ""))


@pytest.mark.parametrize("cpuinfo", ["", machines.RISCV, "cpu family\t: six\nmodel\t: 85\n"])
def test_cpu_of_machine_without_numbers_is_an_error(cpuinfo: str) -> None:
    with pytest.raises(UserError, match="cannot tell which core this machine has"):
        cpu_of_machine(CPUS, cpuinfo)


def test_32_bit_core_is_of_arm() -> None:
    text = machines.arm(0xC09).replace("CPU architecture: 8", "CPU architecture: 7")
    assert cores_in(text)[0].arch == "arm"
    assert cpu_of_machine(CPUS, text).cpu.name == "cortex-a9"


def test_nearest_of_the_next_family_first() -> None:
    assert next(cpu.name for cpu in nearest_cpus(CPUS, "x86_64", (27, 0))) == "zen5"
    assert nearest_cpus(CPUS, "riscv64", (1, 2)) == []


def _ranges() -> list[tuple[CPU, int, int, int]]:
    return [(cpu, *numbers) for cpu in CPUS if cpu.core for numbers in cpu.core.numbers]


def test_no_numbers_are_of_two_cpus() -> None:
    for (a, first, low, high), (b, other, from_, to) in itertools.combinations(_ranges(), 2):
        apart = a.arch != b.arch or first != other or high < from_ or to < low
        assert apart, (a.name, b.name)
    assert all(low <= high for _, _, low, high in _ranges())


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr("kdelta.cpus.cores.CPUINFO", path)
    return path


def test_host_is_the_cpu_with_its_core(cpuinfo: Path) -> None:
    cpuinfo.write_text(machines.TURIN)
    assert load_cpu("host") == load_cpu("zen5")
    assert load_cpu("host,clock=4GHz").name == "zen5,clock=4GHz"


def test_host_without_cpuinfo_is_an_error(cpuinfo: Path) -> None:
    with pytest.raises(UserError, match="cpuinfo: No such file or directory"):
        load_cpu("host")
    assert not cpuinfo.exists()
