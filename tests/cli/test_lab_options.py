# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of how runs are made, put into commands."""

import inspect

import pytest
import typer
from typer.testing import CliRunner

from kdelta.cli.options import SINGLE, makes_runs
from kdelta.cli.output import shows_progress
from kdelta.cli.progress import shown_progress
from kdelta.studies.lab.request import LabRequest

NAMES = [
    "perturb",
    "again",
    "no_snapshot",
    "jobs",
    "memory",
    "qemu_cpu",
    "qemu",
    "compile_guest",
    "append",
    "mode",
    "runs_as",
    "timeout",
]


def command(seen: list[LabRequest], **how: object) -> typer.Typer:
    """A program of one command, which keeps the request that it was given."""
    app = typer.Typer()

    @app.command()
    @makes_runs(**how)  # type: ignore[arg-type]
    def one(word: str, *, before: int = 1, lab: LabRequest, after: int = 2) -> None:
        assert (word, before, after) == ("word", 1, 2)
        seen.append(lab)

    return app


def test_they_stand_where_the_request_is() -> None:
    @makes_runs()
    def one(*, before: int = 1, lab: LabRequest, after: int = 2) -> None:
        del before, lab, after

    assert list(inspect.signature(one).parameters) == [
        "before",
        *NAMES,
        "after",
        "allow_unknown",
        "fuzz",
        "verbose",
        "quiet",
    ]


def test_what_is_reported_is_in_the_request() -> None:
    seen: list[LabRequest] = []
    words = ["word", "--perturb", "7", "--again", "--no-snapshot", "-j", "3", "--memory", "512"]
    words += ["--append", "quiet", "--mode", "kernel", "--timeout", "5", "--qemu-cpu", "max"]
    assert CliRunner().invoke(command(seen), words).exit_code == 0
    (lab,) = seen
    assert (lab.perturbations, lab.again, lab.snapshots, lab.jobs, lab.mode) == (
        7,
        True,
        False,
        3,
        "kernel",
    )
    machine = lab.machine
    assert (machine.memory_mib, machine.append, machine.timeout_seconds, machine.cpu) == (
        512,
        "quiet",
        5,
        "max",
    )


@pytest.mark.parametrize(("how", "runs"), [({}, 4), ({"perturb": 5}, 5), ({"without": SINGLE}, 1)])
def test_so_many_runs_a_kernel_unless_asked(how: dict[str, object], runs: int) -> None:
    seen: list[LabRequest] = []
    assert CliRunner().invoke(command(seen, **how), ["word"]).exit_code == 0
    assert [lab.perturbations for lab in seen] == [runs]


def test_what_is_left_out_is_no_option() -> None:
    seen: list[LabRequest] = []
    assert (
        CliRunner().invoke(command(seen, without=SINGLE), ["word", "--perturb", "2"]).exit_code == 2
    )
    assert not seen


def test_a_command_must_log_what_it_wants() -> None:
    def one(*, lab: int) -> None:
        del lab

    with pytest.raises(TypeError, match="one: lab is to be a LabRequest"):
        makes_runs()(one)


def test_quiet_hides_progress(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[LabRequest] = []
    for words, shown in ((["word", "-q"], False), (["word"], True)):
        assert CliRunner().invoke(command(seen), words).exit_code == 0
        assert shows_progress() == shown
        with shown_progress() as progress:
            progress.begin("boot 6.1")
            progress.end("boot 6.1", "ready")
        assert ("boot 6.1" in capsys.readouterr().err) == shown
