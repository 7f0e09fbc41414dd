# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a study is: bars on a terminal, plain lines elsewhere; both on stderr."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from kdelta.cli.output import talk
from kdelta.host.dirs import cache_dir
from kdelta.host.files import write_atomic
from kdelta.spec.errors import LabError
from kdelta.studies.lab.requests import Progress

_TICK_SECONDS = 0.25
_MOST_TIMINGS = 500
_LEAST_SECONDS = 0.5
"""What takes less found its work done already, and says nothing of how long it takes."""


@contextlib.contextmanager
def shown_progress() -> Iterator[Progress]:
    """A progress that fits stderr; when the body ends, it is gone from the terminal."""
    timings = StepTimes(cache_dir() / "timings.json")
    try:
        if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            with BarProgress(timings) as bars:
                yield bars
        else:
            yield LineProgress(timings)
    finally:
        timings.save()


class StepTimes:
    """How long steps took the last time, by name: what says how long they will take."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        self._begun: dict[str, float] = {}
        with contextlib.suppress(OSError, msgspec.DecodeError):
            self._seconds = msgspec.json.decode(path.read_bytes(), type=dict[str, float])

    def begin(self, step: str) -> float | None:
        """Notes that a step begins; returns how long it, or one of its kind, took before."""
        self._begun[step] = time.monotonic()
        if step in self._seconds:
            return self._seconds[step]
        alike = [seconds for name, seconds in self._seconds.items() if _kind(name) == _kind(step)]
        return sum(alike) / len(alike) if alike else None

    def end(self, step: str) -> float:
        """Notes that a step ended; returns how long it took."""
        now = time.monotonic()
        seconds = now - self._begun.pop(step, now)
        if seconds >= _LEAST_SECONDS:
            self._seconds.pop(step, None)
            self._seconds[step] = seconds
        return seconds

    def save(self) -> None:
        """Keeps them for the next time; not being able to is no error."""
        latest = dict(list(self._seconds.items())[-_MOST_TIMINGS:])
        with contextlib.suppress(LabError):
            write_atomic(self._path, msgspec.json.encode(latest))


def _kind(step: str) -> str:
    return step.partition(" ")[0]


class LineProgress:
    """A line for each step that begins or ends."""

    def __init__(self, timings: StepTimes) -> None:
        self._timings = timings
        self._lock = threading.Lock()

    def say(self, line: str) -> None:
        """See Progress."""
        talk(line)

    def begin(self, step: str, seconds: float | None = None) -> None:
        """See Progress."""
        with self._lock:
            known = self._timings.begin(step)
        expected = seconds or known
        talk(f"{step} ..." + (f" (about {expected:.0f} s)" if expected else ""))

    def doing(self, step: str, what: str) -> None:
        """Nothing: lines that stay are for what stays true."""

    def end(self, step: str, result: str) -> None:
        """See Progress."""
        with self._lock:
            seconds = self._timings.end(step)
        talk(f"{step}: {result} ({seconds:.1f} s)")


class BarProgress:
    """A bar for each step that is under way; log lines scroll by above them."""

    def __init__(self, timings: StepTimes) -> None:
        self._timings = timings
        self._lock = threading.Lock()
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._tasks: dict[str, tuple[TaskID, float]] = {}
        self._stopped = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "BarProgress":
        self._bars.start()
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._ticker.join()
        self._bars.stop()

    def say(self, line: str) -> None:
        """See Progress."""
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def begin(self, step: str, seconds: float | None = None) -> None:
        """See Progress."""
        with self._lock:
            expected = seconds or self._timings.begin(step)
            task = self._bars.add_task(step, total=expected, what="")
            self._tasks[step] = task, time.monotonic()

    def doing(self, step: str, what: str) -> None:
        """See Progress."""
        with self._lock:
            if step in self._tasks:
                self._bars.update(self._tasks[step][0], what=what)

    def end(self, step: str, result: str) -> None:
        """See Progress."""
        with self._lock:
            seconds = self._timings.end(step)
            if step in self._tasks:
                self._bars.remove_task(self._tasks.pop(step)[0])
        self.say(f"{step}: {result} ({seconds:.1f} s)")

    def _tick(self) -> None:
        """Moves the bars: how far a step is, is how long it has taken of what it took before."""
        while not self._stopped.wait(_TICK_SECONDS):
            with self._lock:
                for task, begun in self._tasks.values():
                    self._bars.update(task, completed=time.monotonic() - begun)
