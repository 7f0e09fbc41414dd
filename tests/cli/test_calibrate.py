# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta calibrate` as a user calls it; studies are replaced."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.store.store import Store
from kdelta.studies.calibrate.check import HeldOut
from kdelta.studies.calibrate.model import CalibrationReport, CheckReport
from kdelta.studies.calibrate.study import CalibrateRequest
from kdelta.studies.documents import read_document
from kdelta.studies.lab.progress import Progress
from tests.report.example_calibration import calibration_report, check_report


class Study:
    """In place of the studies: remembers what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[CalibrateRequest] = []
        self.checked: list[str] = []
        monkeypatch.setattr("kdelta.cli.calibrate.run_calibrate", self.run)
        monkeypatch.setattr("kdelta.cli.calibrate.run_check", self.check)

    async def run(
        self, request: CalibrateRequest, _store: Store, _progress: Progress
    ) -> CalibrationReport:
        self.requests.append(request)
        return calibration_report()

    async def check(
        self,
        request: CalibrateRequest,
        wanted: Sequence[HeldOut],
        _store: Store,
        _progress: Progress,
    ) -> CheckReport:
        self.requests.append(request)
        self.checked = [one.name for one in wanted]
        return check_report()


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(monkeypatch)


def test_options_reach_the_study(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    words = "calibrate --quick --seeds 7 --busy-ok -o my.toml --cpu zen4 --kernel image:/a -j 3"
    assert cli.ended(words.split()) == 0
    (request,) = study.requests
    assert (request.quick, request.relinks, request.busy_ok) == (True, 7, True)
    assert request.write == Path("my.toml")
    assert request.cpu is not None
    assert request.cpu.name == "zen4"
    assert (request.kernel, request.lab.jobs) == ("image:/a", 3)
    assert "What a miss costs" in capsys.readouterr().out


def test_json(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["calibrate", "--json"]) == 0
    found = read_document(capsys.readouterr().out)
    assert found.schema == "kdelta.calibration/1"
    assert study.requests[0].relinks == 30


def test_check(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.o").write_bytes(b"")
    output = tmp_path / "check.json"
    words = ["calibrate", "--check", f"p={tmp_path / 'a.o'}", "--json", "-o", str(output)]
    assert cli.ended(words) == 0
    out = capsys.readouterr().out
    assert read_document(out).cpu == "host"
    assert output.read_text() == out
    assert study.checked == ["p"]
    assert study.requests[0].relinks == 16


def test_dry_run_does_nothing(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["calibrate", "--dry-run", "--ssh", "board"]) == 0
    assert not study.requests
    assert "links, timed on board and traced under deb:" in capsys.readouterr().out
    assert cli.ended(["calibrate", "--dry-run", "--from", "b/RESULTS"]) == 0
    assert "reads b/RESULTS, and traces the links next to it" in capsys.readouterr().out
    assert cli.ended(["calibrate", "--dry-run", "--bundle", "/tmp/no/such"]) == 0
    assert "into the bundle /tmp/no/such" in capsys.readouterr().out
    assert not Path("/tmp/no/such").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--ssh board --bundle b", "--ssh and --bundle at once"),
        ("--from R --check p=a.o", "--from and --check at once"),
        ("--cpu no-such-cpu", "no CPU is called"),
        ("--check nothing", "no program to be checked"),
        ("--seeds 2", "cannot use --seeds 2: it is at least 5"),
    ],
)
def test_slips(words: str, said: str, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.ended(["calibrate", *words.split()]) == 2
    assert said in capsys.readouterr().err
    assert not study.requests
