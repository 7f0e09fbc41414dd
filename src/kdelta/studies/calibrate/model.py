# SPDX-License-Identifier: GPL-2.0-or-later
"""A calibration as it is reported."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from kdelta.infer.calibration.model import Fitted, FittedPrice, ProgramFit, ProgramRows
from kdelta.spec.timings import MachineFacts, Quiet, TimedSpecial


class CheckedLink(msgspec.Struct, frozen=True):
    """One link of a program that took no part in the fit. measured, predicted: cycles of an
    iteration beyond the program's median; events: beyond the mean of its links, those that differ
    most first.
    """

    seed: int
    measured: float
    predicted: float
    events: tuple[tuple[str, float], ...]
    functions: tuple[tuple[str, float], ...] = ()


class CheckedProgram(msgspec.Struct, frozen=True, eq=False):
    """A held-out program, how well it is predicted, and the links that fit worst."""

    fit: ProgramFit
    worst: tuple[CheckedLink, ...]
    rows: ProgramRows


class CalibrationReport(msgspec.Struct, frozen=True, eq=False):
    """cpu: whose geometry the replay had; written: the file with the prices, if there is one.
    rows: what prices were fitted to, or empty where a file's were used. kernel: under which
    programs were traced.
    """

    when: str
    machine: MachineFacts
    quiet: Quiet
    cpu: str
    kernel: str
    relinks: int
    fitted: Fitted
    specials: tuple[TimedSpecial, ...]
    rows: tuple[ProgramRows, ...]
    written: str = ""
    notes: tuple[str, ...] = ()


class CheckReport(msgspec.Struct, frozen=True, eq=False):
    """Programs compared with a CPU's prices."""

    when: str
    machine: MachineFacts
    quiet: Quiet
    cpu: str
    kernel: str
    prices: dict[str, FittedPrice]
    programs: tuple[CheckedProgram, ...]
    notes: tuple[str, ...] = ()


class RecordedCalibration(Fitted, frozen=True, kw_only=True):
    """What can be read of a calibration's document: when and where, the fit, and what it is of."""

    schema: Literal["kdelta.calibration/1"]
    when: str
    machine: MachineFacts
    rows: tuple[ProgramRows, ...]


def read_calibration(content: bytes | str) -> RecordedCalibration:
    """Return the calibration of a document; raises msgspec.DecodeError if it is none."""
    return msgspec.json.decode(
        content, type=RecordedCalibration, dec_hook=lambda _kind, value: np.array(value, float)
    )


def unpredictable_ranks(quality: Sequence[ProgramFit]) -> list[float]:
    """Return the rank correlations of programs with unpredictable flow that have something to be
    ranked: 0 where all links are predicted alike.
    """
    return [one.rank or 0.0 for one in quality if not one.predictable and one.above_noise]
