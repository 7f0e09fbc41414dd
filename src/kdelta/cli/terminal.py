# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --top`: functions to be looked through on a terminal that is drawn whole."""

import contextlib
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from kdelta.cli.output import emit
from kdelta.spec.errors import UserError
from kdelta.spec.visible import visible
from kdelta.studies.profile.top import Top
from kdelta.studies.profile.top_screen import (
    LEAST_COLUMNS,
    LEAST_LINES,
    ScreenRow,
    Style,
    page_of,
    screen,
    table,
)

_ENTER = "\x1b[?1049h\x1b[?25l"  # the other screen, no cursor
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_STYLES = {Style.PLAIN: "", Style.HEAD: "\x1b[1m", Style.CURSOR: "\x1b[7m"}
_PLAIN = "\x1b[0m"

_KEYS = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[5~": "pageup",
    "\x1b[6~": "pagedown",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
}
# An unknown sequence ends with a letter or a tilde.
_UNKNOWN = r"\x1b[\[O][^@-~]*(?:[@-~]|\Z)"
_KEY = re.compile("|".join([*map(re.escape, _KEYS.keys() - {"\x1b"}), _UNKNOWN, "."]), re.DOTALL)
_REST_SECONDS = 0.05
"""What is left of a key that is several characters follows sooner."""


def keys_of(text: str) -> list[str]:
    """What was typed as keys: characters, or names such as "up". Unknown sequences are left out."""
    typed = [one for one in _KEY.findall(text) if one in _KEYS or len(one) == 1]
    return [_KEYS.get(one, one) for one in typed]


class Terminal:
    """stdin and stdout, while they are a screen. Use `opened`."""

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        # A signal that comes right before the wait has to end it as well.
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._wakened = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._before = termios.tcgetattr(self._in)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        size = os.get_terminal_size(self._out)
        return size.columns, size.lines

    def enter(self) -> None:
        """Takes the screen, and keys as they are typed."""
        tty.setcbreak(self._in, termios.TCSANOW)
        self._write(_ENTER)

    def leave(self) -> None:
        """Gives both back."""
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)
        with contextlib.suppress(OSError):
            self._write(_LEAVE)

    def close(self) -> None:
        """Ends what wakes it."""
        signal.set_wakeup_fd(self._wakened)
        os.close(self._woken)
        os.close(self._wake)

    def draw(self, rows: Sequence[ScreenRow]) -> None:
        lines = (f"{_STYLES[row.style]}{visible(row.text)}{_PLAIN}{_CLEAR_LINE}" for row in rows)
        self._write(_HOME + "\r\n".join(lines) + _CLEAR_BELOW)

    def keys(self) -> list[str] | None:
        """Waits for keys, or for another size of the screen: then there are none. None when there
        is no user to type any more.
        """
        ready, _, _ = select.select([self._in, self._woken], [], [])
        if self._woken in ready:
            os.read(self._woken, 1024)
        if self._in not in ready:
            return []
        typed = self._read()
        if typed.endswith("\x1b") and select.select([self._in], [], [], _REST_SECONDS)[0]:
            typed += self._read()
        return keys_of(typed) if typed else None

    def stop(self, *_: object) -> None:
        """Gives the terminal back while the program is stopped."""
        self.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.enter()

    def _read(self) -> str:
        try:
            return os.read(self._in, 1024).decode(errors="replace")
        except OSError:
            return ""

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._out, data) :]


@contextlib.contextmanager
def opened() -> Iterator[Terminal]:
    """The terminal as a screen; afterwards it is as it was, whatever happens. UserError if it is
    too small to begin with.
    """
    terminal = Terminal()
    columns, lines = terminal.size
    if columns < LEAST_COLUMNS or lines < LEAST_LINES:
        terminal.close()
        raise UserError(
            f"the terminal has {columns} columns and {lines} lines; "
            f"--top needs {LEAST_COLUMNS} and {LEAST_LINES}",
            "make it larger, or pipe the output: then it is a table",
        )
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {
        signal.SIGWINCH: lambda *_: None,
        signal.SIGTSTP: terminal.stop,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        terminal.enter()
        yield terminal
    finally:
        terminal.leave()
        for number, handler in before.items():
            signal.signal(number, handler)
        terminal.close()


def show_top(top: Top, title: str, functions: int) -> None:
    """Shows them until the user quits. Where there is no terminal it prints the first `functions`
    as a table. UserError for a terminal that is too small.
    """
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    if dumb or not (sys.stdin.isatty() and sys.stdout.isatty()):
        emit(table(top.functions, title, functions))
        return
    with opened() as terminal:
        while not top.state.done:
            columns, lines = terminal.size
            terminal.draw(screen(top, title, columns, lines))
            keys = terminal.keys()
            if keys is None:
                return
            for key in keys:
                top.press(key, page_of(lines))
