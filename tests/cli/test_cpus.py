# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta cpus`."""

from pathlib import Path

import pytest
from reading import read_document

from kdelta.cli import main as cli
from kdelta.cli.codes import USAGE
from kdelta.cli.cpus import cpu_text, cpus_text
from kdelta.cli.guard import guarded
from kdelta.cli.reading import READERS
from kdelta.cpus import CPU, list_cpus, load_cpu
from kdelta.cpus.catalog import user_path
from kdelta.spec.option import OptionKind
from tests.cpus.machines import GRAVITON4, HASWELL, RK3588

Captured = pytest.CaptureFixture[str]


def kdelta(*arguments: str) -> int:
    return guarded(lambda: cli.app(args=list(arguments), prog_name="kdelta", standalone_mode=False))


def test_the_list(capsys: Captured) -> None:
    assert kdelta("cpus") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : lines.index("")]] == list(list_cpus())
    assert lines[-1] == "Without --cpu and --qemu-cpu x86_64 guests are like zen4."
    row = "cortex-a9       arm    coupled    32 KiB  none  Arm Cortex-A9 with a PL310"
    assert row in lines
    assert max(map(len, lines)) <= 80


def own(name: str) -> None:
    """A CPU file of the user's with two measured costs."""
    path = user_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    cost = "[misses.{}]\ncycles = [1, 2]\ncalibrated = true\nsource = 'measured: here'\n"
    costs = cost.format("itlb") + cost.format("l2")
    path.write_text(f'name = "{name}"\ntitle = "my own"\nlike = "sapphire-rapids"\n{costs}')


def test_which_costs_were_measured(capsys: Captured) -> None:
    own("mine")
    own("host")
    user_path("broken").write_text("name =")
    assert kdelta("cpus") == 0
    out = capsys.readouterr().out
    timed = f"2/{len(load_cpu('mine').misses)}"
    assert f"\nmine            x86_64 decoupled  32 KiB {timed:>5}  my own\n" in out
    flat = " ".join(out.split())
    assert f"no CPU: {user_path('broken')}:" in flat
    assert f"no CPU: {user_path('host')} is not used: host is kdelta's file of this" in flat
    assert kdelta("cpus", "mine") == 0
    out = capsys.readouterr().out
    assert "  miss of a page         1 to 2 cycles, measured\n    measured: here" in out
    assert "  miss of a line         0 to 16 cycles, not measured\n" in out


@pytest.mark.parametrize(
    "case",
    [(GRAVITON4, "neoverse-v2", ""), (RK3588, "cortex-a55", "; it has cores of cortex-a76, too")],
)
def test_the_host_says_which_file_it_is(
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
    assert said.err == f"--cpu host: this machine's core is that of {name}{others}\n"
    cpus = READERS[OptionKind.CPU]("--cpu", ("host", name), tuple[CPU, ...])
    assert cpus == (load_cpu(name),)
    own("host")
    capsys.readouterr()
    assert kdelta("cpus", "host") == 0
    said = capsys.readouterr()
    assert said.out == cpu_text(load_cpu(name))
    assert f"{user_path('host')} is not used: give it another name" in said.err


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
    own("mine")
    user_path("zen4").write_text("")
    assert kdelta("cpus", "--json") == 0
    found = read_document(capsys.readouterr().out)
    assert [one.name for one in found.cpus] == [*list_cpus(), "mine"]
    assert found.wrong == [f"{user_path('zen4')} has the name of a CPU that comes with kdelta"]
    assert found.cpus[-1].misses["itlb"].calibrated
    assert not found.cpus[0].misses["l1i"].calibrated
    assert kdelta("cpus", "--json", "mine") == 0
    found = read_document(capsys.readouterr().out)
    assert [one.name for one in found.cpus] == ["mine"]


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
    assert "  miss of a line         15 to 19 cycles, not measured\n" in out


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
