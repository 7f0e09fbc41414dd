# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs whose output is logged: what is heard, how they end, and that none of theirs is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.host.command import echo_commands
from kdelta.host.stream import run_logged
from kdelta.spec.errors import LabError

pytestmark = pytest.mark.long

# A program that starts another one, as make does, and says so when both are there. Both end by
# themselves, so that a test which fails leaves nothing.
TWO = "sh -c '{before} : >{started}; sleep 300; :' & wait"


def wait_until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < end, f"never seen: {what}"
        time.sleep(0.01)


def group_of(mark: Path) -> list[int]:
    """The processes that have this path among their words."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(mark) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def test_each_line_is_heard_and_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    heard: list[str] = []
    code = run_logged(["sh", "-c", "echo a b; echo c >&2; exit 3"], log, line=heard.append)
    assert code == 3
    assert heard == ["a b", "c"]
    assert log.read_text() == "before\n$ sh -c 'echo a b; echo c >&2; exit 3'\na b\nc\n"


def test_what_is_echoed_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    echo_commands(wanted=True)
    try:
        run_logged(["env", "A=b c", "sh", "-c", 'echo "$A"'], tmp_path / "log", cwd=tmp_path)
    finally:
        echo_commands(wanted=False)
    echoed = capsys.readouterr().err.removeprefix("+ ")
    assert subprocess.check_output(["sh", "-c", echoed], text=True) == "b c\n"


def test_a_missing_program_is_the_labs(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no-such-program"):
        run_logged(["no-such-program"], tmp_path / "log")


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="No space left"):
        run_logged(["sh", "-c", f": >{tmp_path}/ran"], Path("/dev/full"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("stubborn", "stays"),
    [(False, False), pytest.param(True, True, marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_an_interrupt_ends_all_processes(tmp_path: Path, *, stubborn: bool, stays: bool) -> None:
    started, unfinished = tmp_path / "started", tmp_path / "unfinished"
    program = TWO.format(before='trap "" TERM;' if stubborn else "", started=started)

    def heard(_line: str) -> None:
        wait_until(started.exists, "the second program")
        assert unfinished.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_logged(
            ["sh", "-c", f"echo go; {program}"],
            tmp_path / "log",
            line=heard,
            unfinished=unfinished,
        )
    wait_until(lambda: not group_of(started), "the end of all")
    assert unfinished.exists() is stays


def test_what_ends_alone_is_finished_also_when_it_fails(tmp_path: Path) -> None:
    unfinished = tmp_path / "unfinished"
    assert run_logged(["false"], tmp_path / "log", unfinished=unfinished) == 1
    assert not unfinished.exists()


def test_what_was_killed_is_not_finished(tmp_path: Path) -> None:
    unfinished = tmp_path / "unfinished"
    run_logged(["sh", "-c", "kill -KILL $$"], tmp_path / "log", unfinished=unfinished)
    assert unfinished.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_ours(tmp_path: Path, number: signal.Signals) -> None:
    started = tmp_path / "started"
    words = ["sh", "-c", TWO.format(before="", started=started)]
    script = f"""
import pathlib
from kdelta.host.stream import run_logged
run_logged({words!r}, pathlib.Path({str(tmp_path / "log")!r}))
"""
    with subprocess.Popen([sys.executable, "-c", script]) as ours:
        wait_until(started.exists, "the second program")
        assert len(group_of(started)) >= 2
        ours.send_signal(number)
    wait_until(lambda: not group_of(started), "the end of all")
