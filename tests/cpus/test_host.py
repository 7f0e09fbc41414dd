# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPU a machine's core is, and the user's own files, a calibrated host's among them."""

from pathlib import Path

import pytest

from kdelta.cpus import list_cpus, load_cpu
from kdelta.cpus.catalog import user_path, user_paths
from kdelta.cpus.cores import flags_of
from kdelta.cpus.file import decode_cpu
from kdelta.cpus.host import base_for, calibrated
from kdelta.cpus.model import CPU, Calibration, MissPrice, Price
from kdelta.cpus.text import to_toml, write_cpu
from kdelta.spec.errors import UserError
from tests.cpus.whole_file import WHOLE

X86 = """\
processor\t: 0
cpu family\t: 6
model\t\t: 85
model name\t: Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz
flags\t\t: fpu vme de

processor\t: 1
cpu family\t: 23
model\t\t: 49
"""
ARM = """\
processor\t: 0
Features\t: fp asimd
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd03
"""
CALIBRATION = Calibration("2026-11-22T04:30:00+00:00", "A core", 12, 30, (0.8, 0.93), "kdelta 0.9")


def test_the_first_cpu_of_a_cpuinfo() -> None:
    assert flags_of(X86) == {"fpu", "vme", "de"}
    assert flags_of(ARM) == {"fp", "asimd"}


@pytest.mark.parametrize(
    ("arch", "numbers", "name"),
    [
        ("x86_64", "6 85 4", "skylake-server"),
        ("x86_64", "25 17 1", "zen4"),
        ("x86_64", "25 1 1", "zen3"),
        ("x86_64", "23 49 0", "zen2"),
        ("x86_64", "6 60 3", "generic-x86-64"),
        ("x86_64", "", "generic-x86-64"),
        ("x86_64", "6 143 8", "sapphire-rapids"),
        ("arm64", "0x41 0xd03 0x0", "cortex-a53"),
        ("arm64", "65 3336 0", "cortex-a72"),
        ("arm", "0x41 0xc09", "cortex-a9"),
    ],
)
def test_a_core_by_its_numbers(arch: str, numbers: str, name: str) -> None:
    assert base_for(arch, numbers).name == name


def test_a_core_whose_numbers_a_hypervisor_made_up() -> None:
    flags = ["fpu", "amx_tile", "avx512_bf16"]
    assert base_for("x86_64", "6 167 8", flags).name == "sapphire-rapids"
    assert base_for("x86_64", "6 167 8", [*flags, "amx_fp16"]).name == "granite-rapids"
    assert base_for("x86_64", "6 167 8", ["fpu"]).name == "generic-x86-64"
    assert base_for("x86_64", "6 85 4", flags).name == "skylake-server"


def test_no_core_is_two() -> None:
    for cpu in list_cpus().values():
        if cpu.core is not None:
            for first, low, high in cpu.core.numbers:
                for number in (low, high):
                    assert base_for(cpu.arch, f"{first} {number}") is cpu


@pytest.mark.parametrize("arch", ["arm64", "riscv64"])
def test_a_core_that_nothing_is_known_of(arch: str) -> None:
    with pytest.raises(UserError, match=f"no CPU of {arch} that is known has the numbers 0x41 0xd"):
        base_for(arch, "0x41 0xd99 0x0")


def host() -> CPU:
    """A CPU like one of the catalogue, calibrated."""
    return calibrated(
        decode_cpu(WHOLE.encode()),
        name="host",
        title="this host",
        calibration=CALIBRATION,
        misses={"conditional": Price(15, 18), "itlb": Price(0, 0.5)},
        specials={"lock": Price(18, 20)},
        cycles_per_insn=0.31,
        how="kdelta calibrate",
    )


def test_prices_that_were_measured_take_the_place_of_others() -> None:
    base, cpu = decode_cpu(WHOLE.encode()), host()
    assert cpu.misses["conditional"] == MissPrice(15, 18, True)
    assert cpu.misses["itlb"] == MissPrice(0, 0.5, True)
    assert cpu.misses["l1i"] == base.misses["l1i"]
    assert cpu.specials["lock"] == Price(18, 20)
    assert cpu.cycles_per_insn == 0.31
    assert cpu.front_end is not None
    assert cpu.front_end == base.front_end
    assert cpu.front_end.cycles_per_insn == base.cycles_per_insn != 0.31
    assert cpu.sources["misses.itlb"] == cpu.sources["base"] == "measured: kdelta calibrate"
    assert decode_cpu(to_toml(cpu).encode()) == cpu


def test_the_host_is_found_by_its_name() -> None:
    write_cpu(host(), user_path("host"))
    assert load_cpu("host") == host()
    assert load_cpu("host,clock=2GHz").clock_mhz == 2000
    assert list(user_paths()) == ["host"]


def test_a_near_name_may_be_the_users() -> None:
    write_cpu(host(), user_path("host"))
    with pytest.raises(UserError, match="no CPU is called 'hast'") as raised:
        load_cpu("hast")
    assert "host" in raised.value.hint


def test_a_damaged_one_is_named_with_its_path() -> None:
    write_cpu(host(), user_path("host"))
    text = user_path("host").read_text()
    user_path("host").write_text(text[: len(text) // 2])
    with pytest.raises(UserError) as raised:
        load_cpu("host")
    assert str(user_path("host")) in raised.value.message
    assert load_cpu("zen4").name == "zen4"


def test_a_foreign_one_is_refused() -> None:
    write_cpu(host(), user_path("router"))
    with pytest.raises(UserError, match=r"router\.toml is the file of a CPU called 'host'"):
        load_cpu("router")


def test_no_file_stands_for_a_cpu_of_kdeltas() -> None:
    write_cpu(host(), user_path("zen4"))
    with pytest.raises(UserError, match=r"zen4\.toml has the name of a CPU that comes with kdelta"):
        load_cpu("zen4")


def test_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CONFIG_DIR", str(tmp_path / "own"))
    assert user_path("host") == tmp_path / "own" / "cpus" / "host.toml"
    monkeypatch.delenv("KDELTA_CONFIG_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_path("host") == tmp_path / "kdelta" / "cpus" / "host.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_path("host") == tmp_path / ".config" / "kdelta" / "cpus" / "host.toml"
