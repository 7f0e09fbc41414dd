# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress: lines where output is no terminal, bars on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.cli.progress import LineProgress, StepTimes

STEPS = (
    "from kdelta.cli.progress import shown_progress\n"
    "with shown_progress() as progress:\n"
    "    progress.say('[bold]fetching[/bold]')\n"
    "    progress.begin('boot 6.1')\n"
    "    progress.doing('boot 6.1', 'waiting until it is quiet')\n"
    "    progress.end('boot 6.1', 'ready')\n"
    "    progress.end('never begun', 'ready')\n"
)


def test_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = LineProgress(StepTimes(tmp_path / "timings.json"))
    progress.say("fetching")
    progress.begin("boot 6.1")
    progress.doing("boot 6.1", "waiting")
    progress.end("boot 6.1", "ready")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("fetching\nboot 6.1 ...\nboot 6.1: ready (0.")


def test_timings_are_remembered_by_step_and_by_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 0.0, 100.0, 200.0, 200.1])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    path = tmp_path / "timings.json"
    path.write_text('{"boot a": 10, "boot b": 20, "run a": 1}')
    timings = StepTimes(path)
    assert timings.begin("boot a") == 10
    assert timings.begin("boot c") == 15
    assert timings.begin("fetch") is None
    assert timings.end("fetch") == 100
    assert timings.begin("fetch") == 100
    timings.end("fetch")  # at once, so there was nothing to do
    timings.save()
    monkeypatch.undo()
    assert StepTimes(path).begin("fetch") == 100


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"a": "b"}'])
def test_damaged_timings_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "timings.json"
    path.write_bytes(content)
    assert StepTimes(path).begin("boot a") is None


def test_timings_that_cannot_be_kept_are_no_error() -> None:
    StepTimes(Path("/proc/kdelta/timings.json")).save()


def test_bars_on_a_terminal(own_cache: Path) -> None:
    assert own_cache.is_dir()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", STEPS], stderr=theirs, env=environment) as child:
        os.close(theirs)
        seen = b""
        while True:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert child.returncode == 0
    assert b"[bold]fetching[/bold]" in seen
    assert b"waiting until it is quiet" in seen or b"boot 6.1" in seen
    assert b"boot 6.1: ready (" in seen
    assert b"\x1b[" in seen


def test_plain_lines_without_a_terminal(own_cache: Path) -> None:
    assert own_cache.is_dir()
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, check=True)
    assert b"\x1b" not in done.stderr
    assert done.stderr.startswith(b"[bold]fetching[/bold]\nboot 6.1 ...\n")
