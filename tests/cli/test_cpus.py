# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta cpus`."""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.cli.cpus import cpu_text, cpus_text
from kdelta.cli.guard import USAGE, guarded
from kdelta.cli.options import known_cpus
from kdelta.cpus import list_cpus, load_cpu
from kdelta.cpus.catalog import user_path
from kdelta.cpus.host import calibrated
from kdelta.cpus.model import Calibration, Price
from kdelta.cpus.text import write_cpu
from kdelta.studies.documents import read_document
from tests.cpus.machines import GRAVITON4, HASWELL, RK3588

Captured = pytest.CaptureFixture[str]


def kdelta(*arguments: str) -> int:
    """Runs a command in this process; returns its exit code."""
    return guarded(lambda: cli.app(args=list(arguments), prog_name="kdelta", standalone_mode=False))


def test_the_list(capsys: Captured) -> None:
    assert kdelta("cpus") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : lines.index("")]] == list(list_cpus())
    assert lines[-1] == "Without --cpu and --qemu-cpu x86_64 guests are like zen4."
    row = "cortex-a9       arm    coupled    32 KiB  none  Arm Cortex-A9 with a PL310"
    assert row in lines
    assert max(map(len, lines)) <= 80


def calibrated_host(machine: str = "") -> None:
    """The host's CPU file, as kdelta calibrate writes it."""
    cpu = calibrated(
        load_cpu("sapphire-rapids"),
        name="host",
        title="this host",
        calibration=Calibration(
            "2026-11-22T04:30:00", "A core", 12, 30, (0.8, 0.931), "kdelta", machine
        ),
        misses={"conditional": Price(15, 18), "l1i-exposed": Price(0.5, 1)},
        how="kdelta calibrate",
    )
    write_cpu(cpu, user_path("host"))


def test_who_was_calibrated(capsys: Captured) -> None:
    calibrated_host()
    user_path("broken").write_text("name =")
    assert kdelta("cpus") == 0
    out = capsys.readouterr().out
    known = len(load_cpu("host").misses)
    assert f"\nhost            x86_64 decoupled  32 KiB  2/{known}  this host\n" in out
    assert (
        "\nhost: calibrated on A core, 2026-11-22, by 12 programs of 30 links each; rank\n"
        "  correlation of predicted and measured cycles where branches are not\n"
        "  predictable: least 0.80, median 0.93\n" in out
    )
    assert f"no CPU: {user_path('broken')}:" in " ".join(out.split())
    assert kdelta("cpus", "host") == 0
    out = capsys.readouterr().out
    assert "  calibrated on A core, 2026-11-22, by 12 programs" in out
    assert "  mispredicted if        15 to 18 cycles, calibrated\n    measured: kdelta c" in out
    assert "  miss of a line         0 to 16 cycles, not calibrated\n" in out


@pytest.mark.parametrize(("of", "another"), [("7", True), ("8", False), ("0", False), ("", False)])
def test_the_hosts_file_may_be_another_machines(
    of: str, another: bool, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.cli.cpus.machine_hash", lambda: "8")
    calibrated_host(of)
    for words in (["cpus"], ["cpus", "host"]):
        assert kdelta(*words) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("; that is another machine than this one: kdelta c" in said) is another


@pytest.mark.parametrize(
    "case",
    [(GRAVITON4, "neoverse-v2", ""), (RK3588, "cortex-a55", "; it has cores of cortex-a76, too")],
)
def test_the_host_without_a_calibration_says_which_file_it_is(
    case: tuple[str, str, str],
    capsys: Captured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpuinfo, name, others = case
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    monkeypatch.setattr("kdelta.cpus.cores.CPUINFO", tmp_path / "cpuinfo")
    assert kdelta("cpus", "host") == 0
    said = capsys.readouterr()
    assert said.out == cpu_text(load_cpu(name))
    assert said.err == (
        f"--cpu host: this machine's core is that of {name}, whose prices are not measured: "
        f"kdelta calibrate measures them here{others}\n"
    )
    assert [cpu.name for cpu in known_cpus(["host", name])] == [name]
    calibrated_host()
    capsys.readouterr()
    assert kdelta("cpus", "host") == 0
    assert capsys.readouterr().err == ""


def test_a_host_that_is_unknown(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(HASWELL)
    monkeypatch.setattr("kdelta.cpus.cores.CPUINFO", tmp_path / "cpuinfo")
    assert kdelta("cpus", "host") == USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "no CPU file is of this machine's core: family 6, model 60" in said.err
    assert "skylake-server" in said.err


def test_as_json(capsys: Captured) -> None:
    calibrated_host()
    user_path("zen4").write_text("")
    assert kdelta("cpus", "--json") == 0
    found = read_document(capsys.readouterr().out)
    assert [one.name for one in found.cpus] == [*list_cpus(), "host"]
    assert found.wrong == [f"{user_path('zen4')} has the name of a CPU that comes with kdelta"]
    host = found.cpus[-1]
    assert host.calibration is not None
    assert (host.calibration.programs, host.calibration.median_rank_correlation) == (12, 0.931)
    assert host.misses["conditional"].calibrated
    assert not found.cpus[0].misses["l1i"].calibrated
    assert kdelta("cpus", "--json", "host") == 0
    found = read_document(capsys.readouterr().out)
    assert [one.name for one in found.cpus] == ["host"]


def test_a_front_end(capsys: Captured) -> None:
    assert kdelta("cpus", "zen4") == 0
    out = capsys.readouterr().out
    assert "  branch targets         1536 branches, 6-way\n" in out
    assert "  branch targets, second 7168 branches, 7-way\n" in out
    assert "  whether they are taken 8192 entries by address; 2048 each by the last 5, 12," in out
    assert "  return addresses       32 entries\n" in out
    assert "  fetching               windows of 32 bytes, 24 of them ahead of execution" in out
    assert "  decoded operations     768 windows of 64 bytes, 12-way\n" in out


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
