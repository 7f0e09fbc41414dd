# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta cpus`."""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.cli.cpus import cpu_text, cpus_text
from kdelta.cli.guard import USAGE, guarded
from kdelta.cpus import list_cpus, load_cpu

Captured = pytest.CaptureFixture[str]


def kdelta(*arguments: str) -> int:
    """Runs a command in this process; returns its exit code."""
    return guarded(lambda: cli.app(args=list(arguments), prog_name="kdelta", standalone_mode=False))


def test_the_list(capsys: Captured) -> None:
    assert kdelta("cpus") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(list_cpus())
    assert "cortex-a9      arm    coupled    32 KiB  4-way  Arm Cortex-A9 with a PL310" in lines


def test_one_with_its_sources(capsys: Captured) -> None:
    assert kdelta("cpus", "cortex-a9") == 0
    out = capsys.readouterr().out
    assert out.startswith("cortex-a9: Arm Cortex-A9 with a PL310, arm\n")
    assert (
        "  L1 instructions        32 KiB, 4-way, 256 sets, lines of 32 bytes, random\n    Arm,"
        in out
    )
    assert (
        "  L2                     512 KiB, 8-way, 2048 sets, lines of 32 bytes,\n"
        "                         round-robin, shared\n" in out
    )
    assert "  TLB, kernel's code     32 pages of 1 MiB, fully associative\n" in out
    assert "  branch targets         512 branches, 2-way\n" in out
    assert "  clock                  800 MHz\n" in out
    assert "  miss of a line         15 to 19 cycles, not calibrated\n" in out


def test_one_with_the_kernels_paths(capsys: Captured) -> None:
    assert kdelta("cpus", "icelake-server") == 0
    out = capsys.readouterr().out
    assert "  syscall, sysret, sysenter, sysexit 20 to 80 cycles\n" in out
    assert "\n    nopti mds=off mmio_stale_data=off\n" in out
    assert "\n    branch history cleared at each system call (BHI)\n        else: the" in out


def test_several_and_a_file_of_the_users_own(capsys: Captured, tmp_path: Path) -> None:
    shipped = Path(cli.__file__).parents[1] / "cpus/zen3.toml"
    mine = tmp_path / "mine.toml"
    mine.write_text(shipped.read_text().replace('name = "zen3"', 'name = "my own"'))
    assert kdelta("cpus", "zen2", str(mine)) == 0
    out = capsys.readouterr().out
    assert out.startswith("zen2: ")
    assert "\n\nmy own: AMD Zen 3" in out


def test_an_unknown_one(capsys: Captured) -> None:
    assert kdelta("cpus", "zen9") == USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "no CPU is called 'zen9'" in said.err
    assert "zen4" in said.err


@pytest.mark.parametrize("name", list(list_cpus()))
def test_all_fit_80_columns_of_ascii(name: str) -> None:
    text = cpus_text(list_cpus().values()) + cpu_text(load_cpu(name))
    assert text.isascii()
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("name", list(list_cpus()))
def test_every_source_is_shown(name: str) -> None:
    cpu = load_cpu(name)
    shown = " ".join(cpu_text(cpu).split())
    for field, source in cpu.sources.items():
        if not field.startswith("path."):
            assert " ".join(source.split()) in shown, field
