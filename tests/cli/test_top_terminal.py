# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --top` on a real terminal: a pseudo-terminal whose screen is read."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdelta.cli.terminal import keys_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
OWN_TERMINAL = """
import fcntl, signal, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""Then it is told of another size, and of Ctrl-C: what runs in the background ignores that."""

PROGRAM = """
import sys
from kdelta.cli.guard import guarded
from kdelta.cli.terminal import show_top
from tests.report.top.looked_at import TITLE, top
sys.exit(guarded(lambda: show_top(top(), TITLE, 3)))
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_PATIENCE = 60


class Session:
    """A program at a terminal."""

    def __init__(self, columns: int, lines: int, term: str = "xterm") -> None:
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.resize(columns, lines)
        self.said = ""
        self.program = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL + PROGRAM],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            cwd=ROOT,
            env={**os.environ, "TERM": term, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def screen(self) -> list[str]:
        """What was drawn last."""
        drawn = self.said.rpartition("\x1b[H")[2]
        return _ESCAPES.sub("", drawn).split("\r\n")

    def until(self, holds: Callable[[], object]) -> None:
        """Reads until something holds, or fails."""
        end = time.monotonic() + _PATIENCE
        while not holds():
            assert time.monotonic() < end, self.said
            if select.select([self.master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.said += os.read(self.master, 65536).decode()

    def shows(self, text: str) -> None:
        """Waits until the screen is whole and has a text in it."""
        self.until(lambda: self.said.endswith("\x1b[J") and text in "\n".join(self.screen()))

    def ends(self) -> int:
        self.until(lambda: self.program.poll() is not None)
        self.until(lambda: not select.select([self.master], [], [], 0)[0])
        return self.program.wait()

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def session() -> Iterator[Callable[..., Session]]:
    sessions: list[Session] = []

    def start(columns: int = 80, lines: int = 12, term: str = "xterm") -> Session:
        sessions.append(Session(columns, lines, term))
        return sessions[-1]

    yield start
    for one in sessions:
        one.close()


def test_keys_are_obeyed_and_the_terminal_is_given_back(
    session: Callable[..., Session],
) -> None:
    one = session()
    one.shows("?:help")
    assert one.screen()[2].split()[-1] == "[work]"
    assert len(one.screen()) == 12
    one.type("\x1b[B\r")
    one.shows("- main work")
    assert "  + do_syscall_64" in one.screen()[4]
    one.type("/walk")
    one.shows("filter: walk_")
    one.type("\n")
    one.shows("filter: walk ")
    one.type("\x1b")
    one.shows("- main work")
    one.type("q")
    assert one.ends() == 0
    assert one.said.endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(one.slave) == one.before


@pytest.mark.slow
def test_it_follows_the_size_of_the_terminal(session: Callable[..., Session]) -> None:
    one = session()
    one.shows("?:help")
    one.resize(60, 20)
    one.until(lambda: len(one.screen()) == 20 and one.said.endswith("\x1b[J"))
    one.resize(30, 5)
    one.shows("needs 50x8")
    one.resize(80, 12)
    one.shows("?:help")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.slow
def test_the_terminal_is_given_back_however_it_ends(
    session: Callable[..., Session], end: signal.Signals
) -> None:
    one = session()
    one.shows("?:help")
    one.program.send_signal(end)
    assert one.ends() == 128 + end
    assert "\x1b[?1049l" in one.said
    assert termios.tcgetattr(one.slave) == one.before


@pytest.mark.slow
def test_it_stops_and_goes_on(session: Callable[..., Session]) -> None:
    one = session()
    one.shows("?:help")
    one.program.send_signal(signal.SIGTSTP)
    one.until(lambda: one.said.endswith("\x1b[?1049l"))
    assert termios.tcgetattr(one.slave) == one.before
    os.waitid(os.P_PID, one.program.pid, os.WSTOPPED | os.WNOWAIT)
    one.program.send_signal(signal.SIGCONT)
    one.shows("?:help")
    one.type("q")
    assert one.ends() == 0


@pytest.mark.slow
def test_a_terminal_that_is_too_small_is_reported(session: Callable[..., Session]) -> None:
    one = session(40, 12)
    assert one.ends() == 2
    assert "the terminal has 40 columns and 12 lines; --top needs 50 and 8" in one.said
    assert "\x1b[?1049h" not in one.said


@pytest.mark.slow
def test_without_a_terminal_it_is_a_table(session: Callable[..., Session]) -> None:
    dumb = session(term="dumb")
    assert dumb.ends() == 0
    assert "\x1b" not in dumb.said
    assert "4 more functions" in dumb.said
    piped = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert piped.stdout.splitlines() == dumb.said.splitlines()


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("a\x1b[5~q", ["a", "pageup", "q"]),
        ("\x1b", ["escape"]),
        ("\x1b[1;5Cq", ["q"]),
        ("\x1bOHé\r", ["home", "é", "enter"]),
        ("\x1b[", []),
    ],
)
def test_what_is_typed_are_keys(typed: str, keys: list[str]) -> None:
    assert keys_of(typed) == keys
