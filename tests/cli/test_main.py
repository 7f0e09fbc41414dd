# SPDX-License-Identifier: GPL-2.0-or-later
"""The program as a whole: usage, failures, signals, and readers that go away."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from kdelta import __version__
from kdelta.cli.main import ended
from kdelta.spec.errors import LabError, UserError
from tests.cli.studies import Captured, Studies, kdelta

TRY = "try: kdelta compare --help\n"


def test_argument_that_is_not_utf8_is_a_slip(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "deb:aa", "--", "./caf\udce9", "b"]
    assert ended(words) == 2
    assert "an argument is not UTF-8: ./caf\\xe9" in capsys.readouterr().err


def test_version_and_help(capsys: Captured) -> None:
    assert kdelta("--version") == 0
    assert capsys.readouterr().out == f"kdelta {__version__}\n"
    commands = "compare gate run ablate build kernels runs show schema workloads doctor"
    for command in commands.split():
        assert kdelta(command, "--help") == 0
        shown = capsys.readouterr().out
        assert f"Usage: kdelta {command}" in shown
        assert shown.isascii()
        assert max(len(line) for line in shown.splitlines()) <= 80


def test_schema_prints_one_or_lists_all(capsys: Captured) -> None:
    assert kdelta("schema") == 0
    names = capsys.readouterr().out.split()
    assert {"kdelta.ablate/3", "kdelta.compare/4", "kdelta.studies/2"} <= set(names)
    assert kdelta("schema", "kdelta.runs/2") == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["title"] == "kdelta.runs/2"
    assert schema["$defs"]["Document"]["required"] == ["schema", "kdelta", "runs"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], "compare: BASE is missing"),
        (["compare", "deb:linux-a"], "nothing to compare with"),
        (["compare", "deb:linux-a", "+fix.patch"], "deb:linux-a"),
        (["compare", "+fix.patch"], "a change without a kernel: +fix.patch"),
        (["run", "deb:linux-a"], "no command"),
        (["run", "deb:linux-a", "--margin", "1", "--", "ls"], "--margin 1 without --against"),
        (["ablate", "deb:lin", "--from", "a", "--to", "b"], "not a source tree: deb:lin"),
        (["ablate", "./a", "./b", "--from", "a", "--to", "b"], "more than one tree"),
        (["ablate", "./a"], "--from is missing"),
        (["kernels", "nonesuch"], "no built kernel is called 'nonesuch'"),
        (["build", "./nonesuch"], "./nonesuch"),
        (["compare", "a", "b", "--perturb", "0"], "cannot use --perturb 0: it is at least 1"),
        (["compare", "a", "b", "--frobnicate"], "there is no option --frobnicate"),
        (["compare", "image:a", "image:b", "--cpu", "max"], "no CPU is called 'max'"),
        (["compare", "image:a", "image:b", "--cpu", "max"], "--qemu-cpu takes QEMU's own names"),
        (["compare", "image:a", "image:b", "--cpu", "zen"], "there is: zen5, zen4, zen3"),
        (
            ["compare", "image:a", "image:b", "--cpu", "./nowhere.toml"],
            "nowhere.toml cannot be read",
        ),
        (["compare", "image:a", "image:b", "--cpu", "zen3", "--qemu-cpu", "max"], "at once"),
        (["compare", "image:a", "image:b", "--margin", "0"], "a margin of 0 %"),
        (["compare", "image:a", "image:b", "--margin", "inf"], "a margin of inf %"),
        (
            ["compare", "image:a", "image:b", "--layouts", "1"],
            "--layouts 1: it is at least 2",
        ),
        (["run", "a", "--cpu", "max", "--", "ls"], "no CPU is called 'max'"),
        (["ablate", "./a", "--from", "a", "--to", "b", "--cpu", "max"], "no CPU is called 'max'"),
        (["schema", "kdelta.compare/1"], "this kdelta knows kdelta.compare/4"),
        (["schema", "ablate"], "did you mean kdelta.ablate/3?"),
        (["kernels", "--prune", "1e400"], "--prune inf: it is no number of gibibytes"),
        (["kernels", "--prune", "nan"], "--prune nan: it is no number of gibibytes"),
        (["frobnicate"], "cannot run frobnicate: there is no such command"),
    ],
)
def test_usage(arguments: list[str], words: str, capsys: Captured) -> None:
    assert kdelta(*arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("no such kernel", "look"), 2, "kdelta: no such kernel\nhint: look\n" + TRY),
        (LabError("no QEMU"), 3, "kdelta: no QEMU\n"),
        (
            ExceptionGroup("", [ExceptionGroup("", [LabError("a", "b")]), LabError("a", "b")]),
            3,
            "kdelta: a\nhint: b\n",
        ),
        (
            ExceptionGroup("", [UserError("a"), LabError("b")]),
            3,
            "kdelta: a\nkdelta: b\n",
        ),
        (ExceptionGroup("", [UserError("a"), UserError("b")]), 2, "kdelta: a\nkdelta: b\n" + TRY),
        (KeyboardInterrupt(), 130, "kdelta: interrupted; runs that had ended are in the store\n"),
    ],
)
def test_how_a_study_can_fail(
    studies: Studies, capsys: Captured, error: BaseException, code: int, said: str
) -> None:
    studies.error = error
    assert kdelta("compare", "image:a", "image:b") == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", said)


@pytest.mark.parametrize(
    "words",
    [
        ("cpus", f"{'x' * 5000}.toml"),
        ("clock", "judge", ".", ".", "--html", "x" * 5000),
        ("build", f"tree:{'x' * 5000}"),
        ("run", f"image:{'x' * 5000}", "--", "true"),
        ("run", "image:a", "--file", "x" * 5000, "--", "true"),
    ],
    ids=lambda words: " ".join(words[:2])[:20],
)
def test_a_name_that_is_too_long_is_no_bug(words: tuple[str, ...], capsys: Captured) -> None:
    assert ended(words) == 2
    said = capsys.readouterr().err
    assert "this is a bug" not in said


def test_a_bug_is_written_down(studies: Studies, capsys: Captured, own_data: Path) -> None:
    studies.error = ZeroDivisionError("by zero")
    assert kdelta("compare", "image:a", "image:b") == 3
    shown = capsys.readouterr().err
    assert "this is a bug in kdelta: ZeroDivisionError: by zero\n" in shown
    assert "Traceback" not in shown
    (path,) = (own_data / "crashes").iterdir()
    assert shown.endswith(f"with the file {path}\n")
    assert "Traceback" in path.read_text()


def process(code: str, stdout: int | BinaryIO) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE)


MAIN = "import sys; from kdelta.__main__ import main; sys.argv = ['kdelta', 'workloads']; main()"


def test_a_reader_that_has_had_enough() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    child = process(MAIN, theirs)
    os.close(theirs)
    _, err = child.communicate()
    assert (child.returncode, err) == (0, b"")


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_main_with_closed_streams_is_no_bug(closed: str) -> None:
    streams = "".join(f" {one}>&-" for one in closed.split())
    argv = ["sh", "-c", f'exec "$0" -c "$1"{streams}', sys.executable, MAIN]
    ended = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert ended.returncode == (3 if "1" in closed else 0)
    said = "kdelta: the report cannot be written: stdout is closed\n"
    assert ended.stderr.startswith(said if closed == "1" else "")
    assert "bug" not in ended.stderr
    assert bool(ended.stdout) == ("1" not in closed)


def test_main_with_a_terminal_that_hung_up_is_no_bug(own_data: Path) -> None:
    ours, theirs = os.openpty()
    os.close(ours)  # from now on EIO
    code = (
        "from kdelta.cli.progress import TerminalProgress as P\n"
        "from kdelta.cli.time_left import StepTimes, StudyTime\n"
        "from pathlib import Path\n"
        "with P(StudyTime(StepTimes(Path('/nonexistent/x')))) as p: p.log('a')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code + MAIN], stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert child.wait() == 0
    assert not (own_data / "crashes").exists()


def test_a_full_disk_at_stdout() -> None:
    with Path("/dev/full").open("wb") as full:
        child = process(MAIN, full)
        _, err = child.communicate()
    assert child.returncode == 3
    assert err.startswith(b"kdelta: the report cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("before", "signal", "code"),
    [
        ("", "SIGINT", 130),
        ("", "SIGTERM", 143),
        ("", "SIGHUP", 129),
        # A job that a shell started in the background ignores Ctrl-C, and must end all the same.
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", "SIGTERM", 143),
    ],
)
def test_signals(before: str, signal: str, code: int) -> None:
    child = process(
        f"import asyncio, signal, sys\n{before}\n"
        "from kdelta.cli.guard import guarded\n"
        "async def study():\n"
        "    try:\n"
        f"        signal.raise_signal(signal.{signal})\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n"
        "        print('tidied')\n"
        "sys.exit(guarded(lambda: asyncio.run(study())))\n",
        subprocess.PIPE,
    )
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (code, b"tidied\n")
    assert err == b"kdelta: interrupted; runs that had ended are in the store\n"


def test_hangup_ignored_by_nohup_does_not_end_a_command() -> None:
    child = process(
        "import signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from kdelta.cli.guard import guarded\n"
        "sys.exit(guarded(lambda: signal.raise_signal(signal.SIGHUP) or print('done') or 0))\n",
        subprocess.PIPE,
    )
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (0, b"done\n", b"")


@pytest.mark.parametrize("ended_by", ["asyncio.CancelledError()", "ZeroDivisionError()"])
def test_no_word_of_asyncio_reaches_the_user(ended_by: str) -> None:
    """Neither of a task that is cancelled, nor of one whose error nothing asked for."""
    child = process(
        "import asyncio, gc, sys\n"
        "from kdelta.cli.guard import guarded\n"
        "from kdelta.host.interrupt import run_async\n"
        "async def fails():\n"
        f"    raise {ended_by}\n"
        "async def study():\n"
        "    task = asyncio.create_task(fails())\n"
        "    await asyncio.sleep(0.1)\n"
        "    del task\n"
        "    gc.collect()\n"
        "    raise asyncio.CancelledError\n"
        "sys.exit(guarded(lambda: run_async(study())))\n",
        subprocess.PIPE,
    )
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err == b"kdelta: interrupted; runs that had ended are in the store\n"


def test_errors_next_to_a_cancelled_task_are_reported_alone(
    studies: Studies, capsys: Captured
) -> None:
    studies.error = BaseExceptionGroup("", [asyncio.CancelledError(), LabError("no QEMU")])
    assert kdelta("compare", "image:a", "image:b") == 3
    assert capsys.readouterr().err == "kdelta: no QEMU\n"
