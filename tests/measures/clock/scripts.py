# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts in place of bundles, which print runs that never took place."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdelta.measures.clock.here import TimedProgram
from tests.measures.clock.made_runs import content


def script(folder: Path, text: str, name: str = "bundle", seconds: float = 50.0) -> TimedProgram:
    """A program of these lines of a shell's, which begin in that folder."""
    path = folder / name
    path.write_text(f"#!/bin/sh\ncd {folder} || exit 1\n{text}\n")
    path.chmod(0o755)
    return TimedProgram((str(path),), name, seconds)


def printing(
    folder: Path, runs: Sequence[Mapping[str, float]], name: str = "bundle", **facts: Any
) -> TimedProgram:
    """A program that prints one of these runs after the other."""
    for at, times in enumerate(runs):
        (folder / f"{name}{at}.json").write_bytes(content(times, **facts))
    count = folder / f"{name}.count"
    count.write_text("0\n")
    lines = f"read n <{count.name}; echo $((n + 1)) >{count.name}; cat {name}$n.json"
    return script(folder, lines, name)
