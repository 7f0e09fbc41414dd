# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a whole study is, and how long what is left of it will take."""

import contextlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.files import read_regular, write_atomic
from kdelta.host.lock import WAITING
from kdelta.spec.errors import LabError

_MOST_TIMINGS = 500
_LEAST_SECONDS = 0.5
"""What takes less found its work done already, and says nothing of how long it takes."""

_LATEST = 3
"""Steps of a kind that say how long the next one takes: later builds of a tree are shorter."""

_COUNTED = {"fetch": "kernels", "build": "kernels", "run": "runs"}
"""The kinds of steps that the user is shown the number of, and what they are called."""

_SOON_SECONDS = 10
"""Below this a few seconds are left; a step that takes so much longer than it should is overdue."""


def kind_of(step: str) -> str:
    """Return the kind of a step: its first word."""
    return step.partition(" ")[0]


class StepTimes:
    """How many seconds steps took the last time, by name, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        with contextlib.suppress(OSError, msgspec.DecodeError):
            self._seconds = msgspec.json.decode(read_regular(path), type=dict[str, float])

    def of(self, step: str) -> float | None:
        """Return how long a step took; None if that is not known."""
        return self._seconds.get(step)

    def note(self, step: str, seconds: float) -> None:
        """Enter how long a step took, unless it had nothing to do."""
        if seconds >= _LEAST_SECONDS:
            self._seconds.pop(step, None)
            self._seconds[step] = seconds

    def save(self) -> None:
        """Keep them for the next time; that this fails is no error."""
        latest = dict(list(self._seconds.items())[-_MOST_TIMINGS:])
        with contextlib.suppress(LabError):
            write_atomic(self._path, msgspec.json.encode(latest))


class _Running(msgspec.Struct):
    """A step that is under way: since when, and how long it should take; None is unknown. waited:
    for another process, so its time says nothing of the next one.
    """

    begun: float
    expected: float | None
    waited: bool = False


class StudyTime:
    """The steps of one study: those that ended, those under way, and those that will come."""

    def __init__(self, times: StepTimes, clock: Callable[[], float] = time.monotonic) -> None:
        self._times, self._clock = times, clock
        self._begun: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._planned: Counter[str] = Counter()
        self._at_once: dict[str, int] = {}
        self._rough: set[str] = set()
        self._took: defaultdict[str, list[float]] = defaultdict(list)
        self._running: dict[str, _Running] = {}

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        """See `Progress.expect`."""
        planned = self._begun[kind] + count
        self._planned[kind] = planned if rough else max(self._planned[kind], planned)
        self._at_once[kind] = max(1, at_once)
        if rough:
            self._rough.add(kind)

    def begin(self, step: str, seconds: float | None = None) -> float | None:
        """Enter that a step begins; returns how many seconds it should take, if that is known."""
        kind = kind_of(step)
        expected = seconds or self._times.of(step) or self._usual(kind)
        self._begun[kind] += 1
        self._running[step] = _Running(self._clock(), expected)
        return expected

    def doing(self, step: str, what: str) -> None:
        """Enter what a step is at: it may wait for another process, nothing knows for how long."""
        running = self._running.get(step)
        if running and what.startswith(WAITING):
            running.waited, running.expected = True, None

    def end(self, step: str) -> float:
        """Enter that a step ended; returns how many seconds it took."""
        running = self._running.pop(step, None)
        if running is None:
            return 0.0
        seconds = max(0.0, self._clock() - running.begun)
        if not running.waited:
            self._took[kind_of(step)].append(seconds)
            self._times.note(step, seconds)
        self._ended[kind_of(step)] += 1
        return seconds

    def found(self, step: str) -> None:
        """Enter that what a step would make is there."""
        self._begun[kind_of(step)] += 1
        self._ended[kind_of(step)] += 1

    def current(self) -> tuple[str, float] | None:
        """Return the step that has been under way for longest, and for how many seconds."""
        for step, running in self._running.items():
            return step, max(0.0, self._clock() - running.begun)
        return None

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return how many kernels and runs are there, of how many that are known to be needed."""
        found: dict[str, tuple[int, int]] = {}
        for kind, name in _COUNTED.items():
            if total := max(self._planned[kind], self._begun[kind]):
                ended, others = found.get(name, (0, 0))
                found[name] = ended + self._ended[kind], others + total
        return found

    def seconds_left(self) -> float | None:
        """Return how long the known steps will take from now on; None if nothing says it."""
        work: defaultdict[str, float] = defaultdict(float)
        longest = 0.0
        for kind in self._planned:
            if (count := self._planned[kind] - self._begun[kind]) > 0:
                usual = self._usual(kind)
                if usual is None:
                    return None
                work[kind] += count * usual
        for step, running in self._running.items():
            if running.expected is None:
                return None
            rest = running.begun + running.expected - self._clock()
            if rest < -_SOON_SECONDS:
                return None
            rest = max(0.0, rest)
            longest = max(longest, rest)
            work[kind_of(step)] += rest
        return max(longest, sum(work[kind] / self._at_once.get(kind, 1) for kind in work))

    def text(self) -> str:
        """Return all of it in words, empty when there is nothing to say."""
        rough = {_COUNTED[kind] for kind in self._rough & _COUNTED.keys()}
        parts = [
            f"{name} {ended} of {'about ' * (name in rough)}{total}"
            for name, (ended, total) in self.counts().items()
        ]
        if left := self.seconds_left():
            parts.append(left_text(left))
        return ", ".join(parts)

    def _usual(self, kind: str) -> float | None:
        """How long the latest steps of a kind took in this study: others had other work."""
        latest = self._took[kind][-_LATEST:]
        return sum(latest) / len(latest) if latest else None


def left_text(seconds: float) -> str:
    """Return how long something will take yet, as exactly as an estimate is worth."""
    if seconds < _SOON_SECONDS:
        return "a few seconds left"
    if seconds < 95:
        return f"about {10 * math.ceil(seconds / 10)} s left"
    if seconds < 95 * 60:
        return f"about {math.ceil(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


def elapsed_text(seconds: float) -> str:
    """Return how long something has taken: seconds, or minutes and seconds."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"
