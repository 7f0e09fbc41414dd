# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a study is: one line on a terminal, plain lines elsewhere; both on stderr."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kdelta.cli.output import Stderr, shows_progress
from kdelta.cli.time_left import StepTimes, StudyTime, elapsed_text
from kdelta.host.command import log_to_stderr
from kdelta.host.dirs import cache_dir
from kdelta.lab.progress import Progress, Silent
from kdelta.spec.visible import visible

_KEPT_FREE = 3
"""Lines of a terminal that what is shown leaves free: for the updated one, and for log lines."""

_SILENT_SECONDS = 15.0
"""Without a terminal, how far a study is has a line after so long without one."""

_LONG_SECONDS = 30.0
"""A step that is expected to take so long has a line when it begins."""

_APART_SECONDS = 10.0
"""Lines of steps that went well are so far apart, without a terminal: there may be hundreds."""

_AS_EXPECTED = frozenset({"ok", "ready"})
"""Results that are no news."""


@contextlib.contextmanager
def shown_progress() -> Iterator[Progress]:
    """A progress that fits stderr; when the body ends, it is gone from the terminal."""
    if not shows_progress():
        yield Silent()
        return
    times = StepTimes(cache_dir() / "timings.json")
    try:
        if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            with TerminalProgress(StudyTime(times)) as line:
                yield line
        else:
            with LineProgress(StudyTime(times)) as lines:
                yield lines
    finally:
        times.save()


class _Reported:
    """What both forms of a `Progress` have in common: the steps, for which threads take turns."""

    def __init__(self, study: StudyTime) -> None:
        self._study = study
        self._lock = threading.Lock()
        self._logged: set[str] = set()
        self._doing: dict[str, str] = {}

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        with self._lock:
            self._study.expect(kind, count, at_once, rough=rough)

    def found(self, step: str) -> None:
        with self._lock:
            self._study.found(step)

    def log(self, line: str) -> None:
        """Write a line, once: kernels of one package are looked up one by one."""
        if line not in self._logged:
            self._logged.add(line)
            self._write(line)

    def _write(self, line: str) -> None:
        raise NotImplementedError

    def show(self, text: Callable[[], str]) -> None:
        """Nothing: where output is no terminal, only the end is printed."""

    def doing(self, step: str, what: str) -> None:
        with self._lock:
            self._study.doing(step, what)
        self._doing[step] = what

    def line(self) -> str:
        """Return the line: how far the study is, then the step that has taken longest so far."""
        with self._lock:
            whole, current = self._study.text(), self._study.current()
        if current is None:
            return whole
        step, seconds = current
        what = self._doing.get(step, "")
        now = f"{step} ({what}, {elapsed_text(seconds)})" if what else step
        return f"{whole}: {now}" if whole else now

    def _ended(self, step: str, result: str) -> tuple[str, str]:
        """What is reported of a step that ends now, and how far the study is."""
        with self._lock:
            seconds = self._study.end(step)
            return f"{step}: {result} ({seconds:.1f} s)", self._study.text()


class LineProgress(_Reported):
    """A `Progress`: a line for what is news, and now and then for how far the study is."""

    def __init__(self, study: StudyTime, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(study)
        self._clock = clock
        self._last = clock() - _APART_SECONDS
        self._ended_all = threading.Event()

    def __enter__(self) -> "LineProgress":
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended_all.set()

    def _beat(self) -> None:
        while not self._ended_all.wait(1.0):
            self.beat()

    def beat(self) -> None:
        """Log how far the study is, if nothing was logged for a while: it is not stuck."""
        if self._clock() - self._last >= _SILENT_SECONDS and (line := self.line()):
            self._write(line)

    def _write(self, line: str) -> None:
        self._last = self._clock()
        log_to_stderr(line)

    def begin(self, step: str, seconds: float | None = None) -> None:
        with self._lock:
            expected = self._study.begin(step, seconds)
        if expected and expected >= _LONG_SECONDS:
            self._write(f"{step} ... (about {expected:.0f} s)")

    def end(self, step: str, result: str) -> None:
        self._doing.pop(step, None)
        line, whole = self._ended(step, result)
        if result in _AS_EXPECTED and self._clock() - self._last < _APART_SECONDS:
            return
        self._write(f"{line}; {whole}" if whole else line)


class TerminalProgress(_Reported):
    """A `Progress`: one line that is updated, below what is shown; log lines scroll by above."""

    def __init__(self, study: StudyTime) -> None:
        super().__init__(study)
        self._shown: list[str] = []
        self._console = Console(file=cast("IO[str]", Stderr()))
        self._live = Live(
            console=self._console,
            get_renderable=self._lines,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> "TerminalProgress":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _lines(self) -> Text:
        """Return as much of what is shown as there is room for, then the line."""
        room = max(0, self._console.height - _KEPT_FREE)
        shown = self._shown[:room]
        if len(shown) < len(self._shown):
            shown = [*shown[:-1], "..."] if shown else []
        return Text(
            "\n".join(visible(line) for line in (*shown, self.line())),
            no_wrap=True,
            overflow="ellipsis",
        )

    def show(self, text: Callable[[], str]) -> None:
        self._shown = text().splitlines()

    def _write(self, line: str) -> None:
        self._console.print(visible(line), markup=False, highlight=False, soft_wrap=True)

    def begin(self, step: str, seconds: float | None = None) -> None:
        with self._lock:
            self._study.begin(step, seconds)

    def end(self, step: str, result: str) -> None:
        self._doing.pop(step, None)
        line, _ = self._ended(step, result)
        if result not in _AS_EXPECTED:
            self._write(line)
