# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs timed by a machine's own clock: here, over SSH, or from a bundle that was run there."""

from collections.abc import Callable, Sequence
from pathlib import Path

from kdelta.host.command import quiet
from kdelta.spec.timings import Timings
from kdelta.workloads.calibration.generate import ProgramSource


def bundle(
    folder: Path,
    programs: Sequence[ProgramSource],
    *,
    arch: str,
    relinks: int = 30,
    talk: Callable[[str], None] = quiet,
) -> Path:
    """`folder`, made: links/CODE/SEED (static programs), `manifest`, `specials`, and run.sh, which
    writes RESULTS there without Python. A link runs in a guest as `SEED trace ARGUMENTS`: one
    region "pass" whose iterations are the passes that are timed.
    """
    raise NotImplementedError


def run_here(folder: Path, *, core: int | None = None, busy_ok: bool = False) -> Timings:
    """Runs a bundle on this host. UserError when it is too busy, has no clock or too few cores."""
    raise NotImplementedError


def read_results(path: Path, *, busy_ok: bool = False) -> Timings:
    """What run.sh wrote; UserError when it is not whole."""
    raise NotImplementedError


def over_ssh(host: str, folder: Path, *, busy_ok: bool = False) -> Timings:
    """Runs a bundle on another machine that `ssh HOST` reaches, and brings its results."""
    raise NotImplementedError
