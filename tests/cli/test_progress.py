# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress: lines where output is no terminal, one line on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.cli.progress import LineProgress, TerminalProgress
from kdelta.cli.time_left import StepTimes, StudyTime
from tests.cli.test_time_left import NOWHERE, Clock

STEPS = (
    "print('data')\n"
    "from kdelta.cli.progress import shown_progress\n"
    "with shown_progress() as progress:\n"
    "    progress.log('[bold]fetching[/bold]')\n"
    "    progress.expect('run', 2)\n"
    "    print('more data')\n"
    "    progress.begin('boot 6.1')\n"
    "    progress.doing('boot 6.1', 'waiting until it is quiet')\n"
    "    progress.end('boot 6.1', '6.1.192')\n"
    "    progress.found('run 6.1')\n"
    "    progress.end('never begun', 'ready')\n"
)
DATA = b"data\nmore data\n"


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = LineProgress(StudyTime(StepTimes(NOWHERE), clock), clock)
    progress.log("fetching")
    progress.log("fetching")
    progress.expect("run", 2)
    progress.begin("run 6.1", 7)
    progress.doing("run 6.1", "boots")
    clock.now += 31
    progress.doing("run 6.1", "runs")
    progress.beat()
    progress.doing("run 6.1", "runs on")
    progress.beat()
    progress.begin("boot 6.12", 40)
    clock.now += 9
    progress.end("boot 6.12", "ready")
    clock.now += 1
    progress.end("run 6.1", "ok")
    progress.begin("run 6.1 #1", 7)
    progress.end("run 6.1 #1", "failed")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "fetching\n"
        "runs 0 of 2: run 6.1 (runs, 31 s)\n"
        "boot 6.12 ... (about 40 s)\n"
        "run 6.1: ok (41.0 s); runs 1 of 2, about 50 s left\n"
        "run 6.1 #1: failed (0.0 s); runs 2 of 2\n"
    )


def test_the_line_of_a_terminal() -> None:
    clock = Clock()
    progress = TerminalProgress(StudyTime(StepTimes(NOWHERE), clock))
    lines = [progress.line()]
    progress.expect("build", 2)
    progress.begin("build ~/linux", 300)
    lines.append(progress.line())
    progress.doing("build ~/linux", "512 files compiled, now fork.o")
    clock.now += 200
    progress.begin("boot 6.1", 9)
    lines.append(progress.line())
    progress.end("build ~/linux", "6.18.0")
    lines.append(progress.line())
    assert lines == [
        "",
        "kernels 0 of 2: build ~/linux",
        "kernels 0 of 2: build ~/linux (512 files compiled, now fork.o, 3 min 20 s)",
        "kernels 1 of 2, about 4 min left: boot 6.1",
    ]


def seen_on_a_terminal(code: str) -> tuple[bytes, bytes]:
    """What a program writes to stdout, and to stderr if that is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as child:
        os.close(theirs)
        seen = b""
        while True:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
        assert child.stdout
        printed = child.stdout.read()
    os.close(ours)
    assert child.returncode == 0
    return printed, seen


@pytest.mark.usefixtures("own_cache")
def test_one_line_on_a_terminal_is_gone_at_the_end() -> None:
    printed, seen = seen_on_a_terminal(STEPS)
    assert printed == DATA
    assert b"[bold]fetching[/bold]" in seen
    assert b"boot 6.1: 6.1.192 (" in seen
    assert b"ready" not in seen
    assert b"\x1b[" in seen
    assert seen.rstrip().endswith(b"\x1b[2K")  # the last thing is that the line is erased


@pytest.mark.usefixtures("own_cache")
def test_what_is_shown_fits_the_terminal_and_is_gone_at_the_end() -> None:
    table = "'\\n'.join(f'row {at}' for at in range(40))"
    code = STEPS + f"    progress.show(lambda: {table})\n    progress.log('next')\n"
    printed, seen = seen_on_a_terminal(code)
    assert printed == DATA
    rows = [f"row {at}".encode() in seen for at in range(40)]
    assert (rows[0], rows[-1], b"..." in seen) == (True, False, True)
    last = seen.rindex(b"runs 1 of 2")
    assert seen.count(b"\x1b[2K", last) >= 20  # each line that was shown is erased
    shown = "from kdelta.cli.output import silence_progress\nsilence_progress(wanted=True)\n" + code
    assert seen_on_a_terminal(shown.replace(table, "1 / 0")) == (DATA, b"")


@pytest.mark.usefixtures("own_cache")
def test_quiet_writes_nothing_to_a_terminal() -> None:
    silenced = "from kdelta.cli.output import silence_progress\nsilence_progress(wanted=True)\n"
    assert seen_on_a_terminal(silenced + STEPS) == (DATA, b"")


@pytest.mark.usefixtures("own_cache")
def test_plain_lines_without_a_terminal(own_cache: Path) -> None:
    assert own_cache.is_dir()
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, check=True)
    assert done.stdout == DATA
    assert b"\x1b" not in done.stderr
    assert b"\r" not in done.stderr
    assert done.stderr.startswith(b"[bold]fetching[/bold]\nboot 6.1: 6.1.192 (")
    assert b"ready" not in done.stderr
