# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta conflicts` as a user calls it; the study is replaced, or refuses before it begins."""

from pathlib import Path

import pytest
from reading import read_document

from kdelta.cli import main as cli
from kdelta.lab.lab import Lab
from kdelta.studies.conflicts.model import ConflictsReport
from kdelta.studies.conflicts.study import ConflictsRequest
from tests.report.example_conflicts import compared_conflicts, conflicts_report, failed_conflicts

Captured = pytest.CaptureFixture[str]
KERNEL = "deb:linux-image-cloud-amd64@bookworm"


class Study:
    """Notes what was asked for, and answers with an example."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[ConflictsRequest] = []
        self.answer = conflicts_report()
        monkeypatch.setattr("kdelta.cli.conflicts.run_conflicts", self.run)

    async def run(self, request: ConflictsRequest, _: Lab) -> ConflictsReport:
        self.asked.append(request)
        return self.answer


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(monkeypatch)


def test_pairs_run_on_two_cpus_unless_something_else_is_asked_for(study: Study) -> None:
    assert cli.ended(["conflicts", KERNEL]) == 0
    (asked,) = study.asked
    assert asked.kernels == (KERNEL,)
    assert (asked.work.workload, asked.work.operations) == ("pairs", ())
    assert (asked.lab.machine.cpus, asked.lab.perturbations) == (2, 3)


def test_operations_cpus_and_kernels_are_passed_on(study: Study, capsys: Captured) -> None:
    study.answer = compared_conflicts()
    words = ["conflicts", KERNEL, "./linux", "+fix.patch", "-o", "stat-same-file", "--smp", "4"]
    assert cli.ended([*words, "--json"]) == 0
    (asked,) = study.asked
    assert asked.kernels == (KERNEL, "tree:./linux +fix.patch")
    assert (asked.operations, asked.lab.machine.cpus) == (("stat-same-file",), 4)
    assert read_document(capsys.readouterr().out).schema == "kdelta.conflicts/1"


def test_a_command_runs_in_place_of_the_workload(study: Study) -> None:
    assert cli.ended(["conflicts", KERNEL, "--", "./bench", "-t", "2"]) == 0
    program = study.asked[0].work.program
    assert program is not None
    assert program.command == ("./bench", "-t", "2")


def test_a_kernel_that_failed_is_reported_by_the_code(study: Study) -> None:
    study.answer = failed_conflicts()
    assert cli.ended(["conflicts", KERNEL]) == 1


def test_lines_of_as_many_regions_are_shown_as_asked_for(study: Study, capsys: Captured) -> None:
    assert cli.ended(["conflicts", KERNEL]) == 0
    assert "lockref_put_return" not in capsys.readouterr().out
    assert cli.ended(["conflicts", KERNEL, "--explain", "1"]) == 0
    out = capsys.readouterr().out
    assert "lockref_put_return" in out
    assert "The lines of 3 regions more" in " ".join(out.split())
    assert len(study.asked) == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((KERNEL, "./a", "./b"), "at most two are compared"),
        ((KERNEL, "--smp", "1"), "cannot look for conflicts of one CPU"),
        ((KERNEL, "-o", "stat"), "no operation of pairs"),
        ((KERNEL, "-w", "nothing"), "no workload"),
        ((KERNEL, "--smp", "65"), "--smp"),
    ],
)
def test_slips_are_refused_before_anything_is_fetched(
    words: tuple[str, ...],
    why: str,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)

    def fetched(*_: object) -> None:
        raise AssertionError("a kernel was asked for")

    monkeypatch.setattr(Lab, "kernel", fetched)
    assert cli.ended(["conflicts", *words]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "words",
    [
        ["compare", KERNEL, "deb:linux-image-6.12-cloud-amd64@bookworm"],
        ["series", "deb-src:linux-source-6.12", "no.patch"],
        ["profile", KERNEL],
    ],
)
def test_pairs_on_one_cpu_are_refused_before_a_kernel_is_there(
    words: list[str], own_cache: Path, capsys: Captured
) -> None:
    assert cli.ended([*words, "-w", "pairs"]) == 2
    error = capsys.readouterr().err
    assert "cannot run pairs on 1 CPU: it needs 2" in error
    assert "add --smp 2" in error
    assert not (own_cache / "kernels").exists()
