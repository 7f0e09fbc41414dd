# SPDX-License-Identifier: GPL-2.0-or-later
"""How the plugin asks QEMU's monitor, with a monitor that answers by the book or not at all."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kdelta.host.native import native_folder

from .conftest import compile_c

GREETING = b'{"QMP": {"version": {}, "capabilities": []}}\r\n'
EVENT = b'{"timestamp": {"seconds": 1}, "event": "RESUME"}\r\n'
DONE = b'{"return": {}}\r\n'
ASKED = '{"execute": "qom-set"}\n'
ASKS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for _ in range(2):
    library.monitor_execute(sys.argv[2].encode(), sys.argv[3].encode())
print("done")
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("monitor") / "monitor.so"
    return compile_c(path, [native_folder() / "plugin/monitor.c"], "-shared", "-fPIC")


def _asked(
    library: Path, folder: Path, answers: list[bytes]
) -> tuple[subprocess.CompletedProcess[str], list[bytes]]:
    """Ask twice, by one connection, a monitor that has so many answers; and what it was asked."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "m"))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as lines:
                for answer in answers:
                    heard.append(lines.readline())
                    connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        ended = subprocess.run(
            [sys.executable, "-c", ASKS, library, "m", ASKED],
            cwd=folder, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        server.join()
    return ended, heard


def test_answers_are_awaited_and_events_are_none(library: Path, tmp_path: Path) -> None:
    answers = [GREETING + EVENT + DONE, EVENT + DONE, DONE]
    ended, heard = _asked(library, tmp_path, answers)
    assert (ended.stdout, ended.stderr) == ("done\n", "")
    assert heard == [b'{"execute": "qmp_capabilities"}\n', ASKED.encode(), ASKED.encode()]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([GREETING + DONE, b'{"error": {"desc": "no such"}}\r\n'], "refused: {"),
        ([GREETING + DONE, EVENT], "went away at: {"),
    ],
)
def test_what_fails_ends_qemu(
    library: Path, tmp_path: Path, answers: list[bytes], said: str
) -> None:
    ended, _ = _asked(library, tmp_path, answers)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"kdelta plugin: QEMU's monitor {said}")


def test_a_monitor_that_does_not_listen_is_named(library: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ASKS, library, str(tmp_path / "none"), ASKED],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "QEMU's monitor cannot be connected to at" in ended.stderr
