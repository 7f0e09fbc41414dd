# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing` and --mode as a user calls them; studies are replaced."""

from pathlib import Path

import pytest
from reading import read_document

from kdelta.cli import main as cli
from kdelta.lab.lab import Lab
from kdelta.lab.request import LabRequest
from kdelta.spec.run import Mode
from kdelta.studies.crossing.model import CrossingReport
from kdelta.studies.crossing.study import CrossingRequest
from tests.report.example_crossing import crossing_report, without_kernel_mode

Captured = pytest.CaptureFixture[str]


class Study:
    """Notes what was asked for, and answers with an example."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[CrossingRequest] = []
        self.answer = crossing_report()
        monkeypatch.setattr("kdelta.cli.crossing.run_crossing", self.run)

    async def run(self, request: CrossingRequest, _: Lab) -> CrossingReport:
        self.asked.append(request)
        return self.answer


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(monkeypatch)


def test_two_kernels_of_one_tree(study: Study, capsys: Captured) -> None:
    words = "crossing deb-src:linux-source-6.12 +a.config -o getppid -o read --cycles zen2"
    assert cli.ended([*words.split(), "--perturb", "2", "--json"]) == 0
    (asked,) = study.asked
    assert asked.stock == "deb-src:linux-source-6.12 +a.config"
    assert asked.with_mode == "deb-src:linux-source-6.12 +a.config +kernel-mode"
    assert (asked.what.workload, asked.what.operations) == ("syscalls", ("getppid", "read"))
    assert asked.cpu is not None
    assert (asked.cpu.name, asked.lab.perturbations, asked.lab.mode) == ("zen2", 2, "user")
    found = read_document(capsys.readouterr().out)
    assert found.schema == "kdelta.crossing/2"


def test_kernel_mode_is_no_part_of_the_stock_kernel(study: Study) -> None:
    assert cli.ended(["crossing", "./linux", "+kernel-mode", "+CONFIG_A=y"]) == 0
    assert study.asked[0].stock == "tree:./linux +CONFIG_A=y"
    assert study.asked[0].with_mode == "tree:./linux +CONFIG_A=y +kernel-mode"


def test_boot_parameters_are_those_of_both_kernels(study: Study) -> None:
    assert cli.ended(["crossing", "./linux", "+cmdline:audit=0"]) == 0
    assert study.asked[0].stock == "tree:./linux +cmdline:audit=0"
    assert study.asked[0].with_mode == "tree:./linux +cmdline:audit=0 +kernel-mode"


@pytest.mark.parametrize(
    "words", [["+cmdline:mitigations=auto"], ["--with", "./other +cmdline:mitigations=off"]]
)
def test_a_kernel_that_sets_mitigations_itself_is_refused(
    study: Study, words: list[str], capsys: Captured
) -> None:
    assert cli.ended(["crossing", "./linux", *words]) != 0
    assert study.asked == []
    said = capsys.readouterr().err
    assert "cannot set mitigations=" in said
    assert "leave out +cmdline:mitigations=" in said


def test_a_command_in_place_of_a_workload(study: Study, tmp_path: Path) -> None:
    carried = tmp_path / "x"
    carried.write_text("")
    words = ["crossing", "./linux", "+a.patch", "--file", str(carried), "--", "ls", "-l"]
    assert cli.ended(words) == 0
    command = study.asked[0].what.program
    assert command is not None
    assert (command.command, command.files) == (("ls", "-l"), (str(carried),))


def test_a_kernel_that_has_it_already(study: Study) -> None:
    assert cli.ended(["crossing", "image:/a", "--with", "image:/b"]) == 0
    assert (study.asked[0].stock, study.asked[0].with_mode) == ("image:/a", "image:/b")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("deb:linux-image-amd64", "is built already, and kernel mode cannot be added"),
        ("image:/vmlinux", "--with, a kernel that has kernel mode"),
        ("./linux -w syscalls -- ls", "-w syscalls and a command at once: ls"),
        ("./linux --file /x", "--file /x without a command"),
        ("./linux --cpu nonsense", "nonsense"),
    ],
)
def test_slips(study: Study, capsys: Captured, words: str, said: str) -> None:
    assert cli.ended(["crossing", *words.split()]) == 2
    assert study.asked == []
    assert said in capsys.readouterr().err


def test_a_missing_arm_is_told_by_the_exit_code(study: Study, capsys: Captured) -> None:
    study.answer = without_kernel_mode()
    assert cli.ended(["crossing", "./linux"]) == 1
    assert "0001.patch does not apply" in " ".join(capsys.readouterr().out.split())


def test_what_was_found_can_be_shown_again(study: Study, capsys: Captured) -> None:
    assert cli.ended(["crossing", "./linux", "--explain", "1"]) == 0
    first = capsys.readouterr().out
    assert "and 3 more" in first
    assert cli.ended(["report", "last"]) == 0
    assert first in capsys.readouterr().out
    assert study.asked


@pytest.mark.parametrize("mode", ["user", "kernel", "kernel-direct", "kernel-skip"])
def test_a_mode_reaches_the_study(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, mode: Mode
) -> None:
    asked: list[LabRequest] = []

    async def run(request: object, *_: object) -> tuple[()]:
        asked.append(getattr(request, "lab"))  # noqa: B009
        return ()

    monkeypatch.setattr("kdelta.cli.run.run_command", run)
    cli.ended(["run", "./linux", "--mode", mode, "--", "ls"])
    assert [one.mode for one in asked] == [mode]
    assert capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [
        "run ./linux --mode ring0 -- ls",
        "compare ./linux +a.patch --mode ring0",
        "profile ./linux -w syscalls --mode ring0",
        "diff ./linux +a.patch -w syscalls --mode ring0",
        "layout ./linux --mode ring0",
        "place ./linux --output x --mode ring0",
        "gate ./linux +a.patch --mode ring0",
        "ablate ./linux --from a.config --to b.config --mode ring0",
        "series ./linux queue --mode ring0",
        "log --mode ring0",
        "bisect v1..v2 ./linux --mode ring0",
    ],
)
def test_every_command_that_runs_something_has_modes(capsys: Captured, words: str) -> None:
    cli.ended(words.split())
    said = capsys.readouterr().err
    assert "cannot use --mode ring0: there is no such word" in said
    assert "use user, kernel, kernel-direct, kernel-skip" in said
