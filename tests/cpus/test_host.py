# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's own CPU files."""

from pathlib import Path

import pytest

from kdelta.cpus import load_cpu
from kdelta.cpus.catalog import refuse_shadow, user_path, user_paths
from kdelta.cpus.cores import flags_of
from kdelta.cpus.model import MissPrice
from kdelta.spec.errors import UserError
from tests.cpus.machines import TURIN

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


def test_the_first_cpu_of_a_cpuinfo() -> None:
    assert flags_of(X86) == {"fpu", "vme", "de"}
    assert flags_of(ARM) == {"fp", "asimd"}


def write_own(name: str, text: str = "", file: str = "") -> Path:
    """A file of the user's, of a CPU like a zen4 with that name; returns its path."""
    path = user_path(file or name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'name = "{name}"\ntitle = "a title"\nlike = "zen4"\n{text}')
    return path


def test_a_users_cpu_is_found_by_its_name() -> None:
    write_own("mine")
    assert load_cpu("mine").title == "a title"
    assert load_cpu("mine,clock=2GHz").clock_mhz == 2000
    assert list(user_paths()) == ["mine"]


def test_a_near_name_may_be_the_users() -> None:
    write_own("mine")
    with pytest.raises(UserError, match="no CPU is called 'mino'") as raised:
        load_cpu("mino")
    assert "mine" in raised.value.hint


def test_user_file_host_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_own("host")
    (tmp_path / "cpuinfo").write_text(TURIN)
    monkeypatch.setattr("kdelta.cpus.cores.CPUINFO", tmp_path / "cpuinfo")
    assert load_cpu("host") == load_cpu("zen5")
    assert load_cpu(str(path)).title == "a title"
    with pytest.raises(UserError, match=r"host\.toml is not used: host is kdelta's file of this"):
        refuse_shadow("host")


OLD = """
[calibration]
when = "2026-11-22T04:30:00+00:00"
host = "A core of 3.0 GHz"
programs = 12

[sources]
man = "A manual"

[btb]
entries = 1536
ways = 6
source = "assumed: as others"

[fetch]
miss_cycles = 14
source = "man page 1"

[misses.l1i]
cycles = [2, 14]
calibrated = true
source = "measured: here"

[misses.btb]
cycles = [2, 14]
calibrated = true
source = "measured: here"

[misses.l1i-exposed]
cycles = [0.5, 1]
calibrated = true
source = "measured: here"
"""


def test_older_file_opens_without_front_end_and_calibration() -> None:
    write_own("mine", OLD)
    cpu, like = load_cpu("mine"), load_cpu("zen4")
    assert cpu.misses == {**like.misses, "l1i": MissPrice(0, 14, calibrated=True)}
    assert cpu.btb is None
    write_own("mine", OLD.replace("[calibration]", "[calibrations]"))
    with pytest.raises(UserError, match="unknown field `calibrations`"):
        load_cpu("mine")


def test_a_damaged_one_is_named_with_its_path() -> None:
    path = write_own("mine")
    path.write_text(path.read_text()[:10])
    with pytest.raises(UserError) as raised:
        load_cpu("mine")
    assert str(path) in raised.value.message
    assert load_cpu("zen4").name == "zen4"


def test_a_foreign_one_is_refused() -> None:
    write_own("mine", file="router")
    with pytest.raises(UserError, match=r"router\.toml is the file of a CPU called 'mine'"):
        load_cpu("router")


def test_no_file_stands_for_a_cpu_of_kdeltas() -> None:
    write_own("zen4")
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
