# SPDX-License-Identifier: GPL-2.0-or-later
"""What it takes to start a command, next to a bare Python in the same minutes."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator

COMMANDS = (("--help",), ("runs",), ("compare", "--help"), ("report", "--list"))


def measured(repeats: int) -> Iterator[str]:
    """Lines with the least processor time of each command, and how many bare starts that is."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], check=True)
    words = [["-c", "pass"], *(["-m", "kdelta", *command] for command in COMMANDS)]
    found: list[list[float]] = [[] for _ in words]
    for _ in range(repeats):
        for seconds, one in zip(found, words, strict=True):
            seconds.append(_processor_seconds(one))
    bare, *others = (min(seconds) for seconds in found)
    yield f"start: python -c pass takes {bare:.3f} s of processor time, the least of {repeats}"
    for command, least in zip(COMMANDS, others, strict=True):
        yield f"start: kdelta {' '.join(command)}: {least:.3f} s, {least / bare:.0f} times as much"


def _processor_seconds(words: list[str]) -> float:
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONUNBUFFERED"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
