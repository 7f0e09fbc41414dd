# SPDX-License-Identifier: GPL-2.0-or-later
"""What all forms of a history name alike: its kernels, and the operations that moved most."""

from fractions import Fraction

from kdelta.store.model import moment_text
from kdelta.studies.log.model import (
    REAL,
    HistoryKernel,
    HistorySeries,
    HistoryTrack,
)


def kernel_words(kernel: HistoryKernel) -> str:
    """A kernel's date, name, version and subject in a line."""
    day = moment_text(kernel.date)[:10]
    dated = "" if kernel.dated == "commit" else " (run)"
    version = f", {kernel.version}" if kernel.version not in kernel.name else ""
    subject = f' ("{kernel.subject}")' if kernel.subject else ""
    return f"{day}{dated} {kernel.name}{version}{subject}"


def moved_most(series: HistorySeries) -> list[tuple[HistoryTrack, Fraction, int]]:
    """The operations with real steps, with by how much each moved over the series, in per cent, and
    at which kernel most; those that moved most first.
    """
    found = []
    for track in series.tracks:
        steps = [
            (abs(point.step.percent or Fraction(0)), at)
            for at, point in enumerate(track.points)
            if point.step and point.step.word in REAL
        ]
        known = [point.figure.value for point in track.points if point.figure]
        if steps and known[0]:
            largest = max(steps, key=lambda step: (step[0], -step[1]))
            found.append((track, 100 * (known[-1] - known[0]) / known[0], largest[1]))
    return sorted(found, key=lambda one: -abs(one[1]))
