# SPDX-License-Identifier: GPL-2.0-or-later
"""A calibration as JSON: documents kdelta.calibration/1 and kdelta.calibration-check/1.

All that prices were fitted to is in it, so that the fit can be made again from the document.
"""

from typing import Literal

import msgspec
import numpy as np

from kdelta.infer.calibration_model import (
    Contribution,
    FittedPrice,
    LeftOut,
    ProgramFit,
    ProgramRows,
)
from kdelta.report.calibration_model import CalibrationReport, CheckedLink, CheckReport
from kdelta.report.json import document_text
from kdelta.spec.timings import MachineFacts, Quiet, TimedSpecial


class JsonRows(msgspec.Struct, frozen=True):
    """The links of a program: `cycles` and each of `events` have a figure for each, an iteration.
    data: what no link changes, an iteration. noise: cycles.
    """

    name: str
    code: str
    flow: str
    insns: float
    noise: float
    cycles: list[float]
    events: dict[str, list[float]]
    data: dict[str, float]


class JsonCalibration(msgspec.Struct, frozen=True):
    """The document. prices: in core cycles, by what they are of; between: those that links do not
    tell, from differences between programs; base_rate: cycles an instruction; quality: each program
    predicted by prices of all others. relinks: the most that a program has. written: a CPU file.
    """

    schema: Literal["kdelta.calibration/1"]
    kdelta: str
    when: str
    machine: MachineFacts
    quiet: Quiet
    cpu: str
    kernel: str
    relinks: int
    prices: dict[str, FittedPrice]
    between: dict[str, FittedPrice]
    base_rate: FittedPrice | None
    contributions: list[Contribution]
    left_out: list[LeftOut]
    quality: list[ProgramFit]
    specials: list[TimedSpecial]
    rows: list[JsonRows]
    written: str
    notes: list[str]


class JsonChecked(msgspec.Struct, frozen=True):
    """A held-out program: how well it is predicted, its links, and those that fit worst."""

    fit: ProgramFit
    worst: list[CheckedLink]
    rows: JsonRows


class JsonCheck(msgspec.Struct, frozen=True):
    """The document of a check. prices: of `cpu`, by which the programs were predicted."""

    schema: Literal["kdelta.calibration-check/1"]
    kdelta: str
    when: str
    machine: MachineFacts
    quiet: Quiet
    cpu: str
    kernel: str
    prices: dict[str, FittedPrice]
    programs: list[JsonChecked]
    notes: list[str]


def calibration_json(report: CalibrationReport, version: str) -> str:
    """The document as text."""
    fitted = report.fitted
    return document_text(
        JsonCalibration(
            schema="kdelta.calibration/1",
            kdelta=version,
            when=report.when,
            machine=report.machine,
            quiet=report.quiet,
            cpu=report.cpu,
            kernel=report.kernel,
            relinks=report.relinks,
            prices=fitted.prices,
            between=fitted.between,
            base_rate=fitted.base_rate,
            contributions=list(fitted.contributions),
            left_out=list(fitted.left_out),
            quality=list(fitted.quality),
            specials=list(report.specials),
            rows=[json_rows(one) for one in report.rows],
            written=report.written,
            notes=list(report.notes),
        )
    )


def check_json(report: CheckReport, version: str) -> str:
    """The document as text."""
    return document_text(
        JsonCheck(
            schema="kdelta.calibration-check/1",
            kdelta=version,
            when=report.when,
            machine=report.machine,
            quiet=report.quiet,
            cpu=report.cpu,
            kernel=report.kernel,
            prices=report.prices,
            programs=[
                JsonChecked(one.fit, list(one.worst), json_rows(one.rows))
                for one in report.programs
            ],
            notes=list(report.notes),
        )
    )


def json_rows(rows: ProgramRows) -> JsonRows:
    """The links of a program, as lists."""
    return JsonRows(
        name=rows.name,
        code=rows.code,
        flow=rows.flow,
        insns=rows.insns,
        noise=rows.noise,
        cycles=[float(cycles) for cycles in rows.cycles],
        events={name: [float(count) for count in of] for name, of in rows.events.items()},
        data=rows.data,
    )


def rows_from(rows: JsonRows) -> ProgramRows:
    """The links of a program, as the fit takes them."""
    return ProgramRows(
        name=rows.name,
        flow=rows.flow,
        cycles=np.array(rows.cycles, dtype=np.float64),
        noise=rows.noise,
        events={name: np.array(of, dtype=np.float64) for name, of in rows.events.items()},
        insns=rows.insns,
        data=rows.data,
        code=rows.code,
    )
