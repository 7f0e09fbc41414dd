# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the programs of the calibration, and links each under many orders of its functions."""

from collections.abc import Sequence
from pathlib import Path

from kdelta.workloads.calibration.generate import ProgramSource


def compiled(source: ProgramSource, folder: Path, *, arch: str) -> tuple[Path, ...]:
    """The program's objects in `folder`, each function in a section of its own."""
    raise NotImplementedError


def linked(objects: Sequence[Path], seed: int, output: Path) -> Path:
    """`output`, linked by ld.lld with the functions in the order of that seed (from 1 on)."""
    raise NotImplementedError
