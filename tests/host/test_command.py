# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of the host: results, missing ones, the echo that can be pasted."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdelta.host.command import echo_commands, run_program
from kdelta.spec.errors import LabError
from tests.conftest import FakeProgram


@pytest.fixture
def echoed(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[str]]]:
    echo_commands(wanted=True)
    yield lambda: [line.removeprefix("+ ") for line in capsys.readouterr().err.splitlines()]
    echo_commands(wanted=False)


def test_result_of_a_program() -> None:
    result = run_program(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert not result.ok
    assert result.last_words() == "err"


def test_programs_have_no_input_and_a_known_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run_program(["sh", "-c", 'cat; printf %s "$LC_ALL"']).stdout == "C"


def test_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="qemu-system-x86_64 is missing") as raised:
        run_program(["qemu-system-x86_64", "--version"])
    assert raised.value.hint.endswith(" qemu-system-x86")


def test_program_that_cannot_be_started(fake_program: FakeProgram) -> None:
    fake_program("broken", "#!/no/such/interpreter\n")
    with pytest.raises(LabError, match="broken could not be started"):
        run_program(["broken"])


def test_time_limit() -> None:
    with pytest.raises(LabError, match=r"did not end within 0\.1 seconds"):
        run_program(["sleep", "600"], seconds=0.1)


def test_of_a_program_without_an_end_a_long_last_line_is_quoted_in_part() -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do printf %0100d $i; done; exec sleep 600"
    with pytest.raises(LabError) as caught:
        run_program(["sh", "-c", script], seconds=0.5)
    assert caught.value.message.endswith(f"that it printed: {1:0100d}{2:0100d}")


def test_echo_can_be_pasted(echoed: Callable[[], list[str]], tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    run_program(["printf", "%s", "it's $HOME"], cwd=folder)
    (line,) = echoed()
    assert line == f"(cd {shlex.quote(str(folder))} && printf %s 'it'\"'\"'s $HOME')"
    assert subprocess.check_output(["sh", "-c", line], text=True) == "it's $HOME"


def test_tied_program_ends_with_one_that_is_killed(tmp_path: Path) -> None:
    wait = f"echo $$ >{tmp_path}/started && mv {tmp_path}/started {tmp_path}/pid && exec sleep 60"
    text = "from kdelta.host.command import run_program\n"
    text += f"run_program(['sh', '-c', {wait!r}], tied=True)"
    with subprocess.Popen([sys.executable, "-c", text]) as parent:
        while not (tmp_path / "pid").exists():
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
    child = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    end = time.monotonic() + 10
    # It is gone, or a zombie until it is waited for.
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)
