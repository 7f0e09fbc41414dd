# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout` and `kdelta place` as a user calls them; the studies are replaced."""

from pathlib import Path

import msgspec
import pytest
from reading import read_document

from kdelta.cli import main as cli
from kdelta.cpus.catalog import load_cpu
from kdelta.lab.lab import Lab
from kdelta.studies.layout.model import LayoutReport
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.place.model import PlaceReport
from kdelta.studies.place.request import PlaceRequest
from tests.report.example_layout import layout_report
from tests.report.test_place_report import REPORT

Captured = pytest.CaptureFixture[str]


class Studies:
    """Notes what was asked for, and answers with the examples, or with a run that failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[LayoutRequest | PlaceRequest] = []
        self.without: dict[str, tuple[()]] = {}
        monkeypatch.setattr("kdelta.cli.layout.run_layout", self.layout)
        monkeypatch.setattr("kdelta.cli.place.run_place", self.place)

    async def layout(self, request: LayoutRequest, _: Lab) -> LayoutReport:
        self.asked.append(request)
        return msgspec.structs.replace(layout_report(), **self.without)

    async def place(self, request: PlaceRequest, _: Lab) -> PlaceReport:
        self.asked.append(request)
        return msgspec.structs.replace(REPORT, **self.without)


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> Studies:
    return Studies(monkeypatch)


def test_every_option_of_layout_reaches_the_study(studies: Studies, capsys: Captured) -> None:
    code = cli.ended(
        (
            *(
                "layout",
                "~/linux",
                "+fix.patch",
                "-w",
                "aes",
                "-o",
                "x",
                "-o",
                "y",
                "--cpu",
                "zen2",
            ),
            *("--layouts", "9", "--seed", "4", "--rerun", "--no-snapshot", "--memory", "512"),
            *("--append", "quiet", "--timeout", "9", "--explain", "1", "--collisions", "2"),
            "--data",
        )
    )
    assert code == 0
    (asked,) = studies.asked
    assert isinstance(asked, LayoutRequest)
    assert asked.lab.data_lines
    assert asked.kernel.endswith("+fix.patch")
    assert (asked.cpu.name, asked.workload, asked.operations) == ("zen2", "aes", ("x", "y"))
    assert (asked.layouts, asked.seed) == (9, 4)
    assert (asked.lab.rerun, asked.lab.snapshots, asked.lab.perturbations) == (True, False, 1)
    machine = asked.lab.machine
    assert (machine.memory_mib, machine.append, machine.timeout_seconds) == (512, "quiet", 9)
    text = capsys.readouterr().out
    assert text.count("put out each other's lines as linked") == 1
    assert "28 more pairs" in text


def test_every_option_of_place_reaches_the_study(studies: Studies, tmp_path: Path) -> None:
    code = cli.ended(
        (
            *(
                "place",
                "image:a",
                "-w",
                "aes",
                "-w",
                "syscalls",
                "--output",
                str(tmp_path / "order"),
            ),
            *("--operation", "x", "--weight", "x=2", "--weight", "y=0", "--effort", "7"),
            *("--layouts", "9", "--seed", "4", "--apply", "--data"),
        )
    )
    assert code == 0
    (asked,) = studies.asked
    lab = asked.lab
    assert asked == PlaceRequest(
        kernel="image:a",
        cpu=load_cpu("generic-x86-64"),
        file=tmp_path / "order",
        workloads=("aes", "syscalls"),
        operations=("x",),
        weights={"x": 2.0, "y": 0.0},
        evaluations=7,
        layouts=9,
        seed=4,
        apply=True,
        lab=lab,
    )
    assert (lab.data_lines, lab.perturbations) == (True, 1)


def test_as_json(studies: Studies, capsys: Captured) -> None:
    assert cli.ended(("layout", "image:a", "--json")) == 0
    assert read_document(capsys.readouterr().out).workload == "syscalls"
    assert cli.ended(("place", "image:a", "--output", "file", "--json")) == 0
    assert read_document(capsys.readouterr().out).functions == 278
    assert len(studies.asked) == 2


def test_a_run_that_failed_is_told_by_the_exit_code(studies: Studies) -> None:
    studies.without = {"regions": (), "cut": ()}
    assert cli.ended(("layout", "image:a")) == 1
    assert cli.ended(("place", "image:a", "--output", "file")) == 1


def test_a_run_without_a_whole_trace_did_not_fail(studies: Studies) -> None:
    studies.without = {"regions": ()}
    assert cli.ended(("layout", "image:a")) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["layout", "image:a", "image:b"], "2 kernels, not one"),
        (["layout", "image:a", "--cpu", "zen9"], "no CPU is called 'zen9'"),
        (["layout", "image:a", "--layouts", "1"], "cannot use --layouts 1: it is at least 2"),
        (["layout", "image:a", "--seed", "-1"], "cannot use --seed -1: it is at least 0"),
        (["place", "image:a", "image:b", "--output", "f"], "2 kernels, not one"),
        (["place", "image:a"], "--output is missing"),
        (["place", "image:a", "--output", "f", "--weight", "x"], "no weight: 'x'"),
        (["place", "image:a", "--output", "f", "--cpu", "./none.toml"], "none.toml cannot be read"),
    ],
)
def test_usage(arguments: list[str], words: str, studies: Studies, capsys: Captured) -> None:
    assert cli.ended(arguments) == 2
    shown = capsys.readouterr()
    assert words in " ".join(shown.err.split())
    assert shown.out == ""
    assert studies.asked == []
