#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Proves what a calibration of this host is worth, on generated and on real programs.

    scripts/proofs/calibration.py --json docs/calibration/programs.json

calibrates the host twice, and holds real programs, which took no part in the fit, against the
prices of the first calibration. docs/calibration/programs.md says what is looked at.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from held_out_programs import PROGRAMS, built
from telling import a_row_a_line

from kdelta import __version__
from kdelta.cpus.catalog import load_cpu
from kdelta.host.dirs import cache_dir
from kdelta.host.files import write_atomic
from kdelta.infer.calibration.model import LEAST_LINKS, FittedPrice, ProgramFit, ProgramRows
from kdelta.infer.calibration.nonnegative import rank_correlation
from kdelta.spec.errors import UserError
from kdelta.studies.calibrate.check import held_out, run_check
from kdelta.studies.calibrate.model import read_calibration
from kdelta.studies.calibrate.study import CalibrateRequest, run_calibrate
from kdelta.studies.documents import document_text
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.progress import Silent

LEAST_RANK = 0.9
"""Of generated programs whose flow cannot be predicted."""
LEAST_REAL_RANK = 0.6
MOST_FIXED = 0.01
"""By how much of a pass the spread of programs whose flow can be predicted may be wrong."""
COLUMNS = (
    *("program", "links", "cycles a pass", "spread", "noise", "predicted"),
    *("rank", "by plain misses", "explained", "figure"),
)
NOISES = 2
"""A native spread of so many times the noise is asked to be predicted."""


class Repeat(msgspec.Struct, frozen=True, array_like=True):
    """A price in two calibrations of one host: (value, low, high) each."""

    name: str
    first: tuple[float, float, float]
    second: tuple[float, float, float]

    @property
    def holds(self) -> bool:
        """Whether the interval of each has the other's value."""
        (a, a_low, a_high), (b, b_low, b_high) = self.first, self.second
        return a_low <= b <= a_high and b_low <= a <= b_high


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept. generated: each program of the fit, predicted by the prices of all others."""

    generated: tuple[ProgramFit, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    only_once: tuple[str, ...] = ()
    check: dict[str, Any] | None = None


def repeats(
    first: Mapping[str, FittedPrice], second: Mapping[str, FittedPrice]
) -> tuple[tuple[Repeat, ...], tuple[str, ...]]:
    """The prices that both calibrations have, and the names of those that one has."""
    both = tuple(
        Repeat(
            name,
            *((one[name].value, one[name].low, one[name].high) for one in (first, second)),
        )
        for name in sorted(first.keys() & second.keys())
    )
    return both, tuple(sorted(first.keys() ^ second.keys()))


def real_word(fit: ProgramFit) -> str:
    """Of a real program: whether the figure that was asked for is reached."""
    if fit.spread <= NOISES * fit.noise:
        return "noise"
    return "reached" if fit.rank is not None and fit.rank >= LEAST_REAL_RANK else "missed"


def generated_word(fit: ProgramFit) -> str:
    """Of a generated program, likewise."""
    if fit.predictable:
        off = abs(fit.spread - fit.predicted_spread) / fit.cycles
        return "reached" if off <= MOST_FIXED else "missed"
    if fit.spread <= NOISES * fit.noise:
        return "noise"
    return "reached" if fit.rank is not None and fit.rank >= LEAST_RANK else "missed"


def listing(fits: Sequence[ProgramFit], *, generated: bool) -> Iterator[str]:
    """A table, as it stands in the text: a line a program."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for fit in fits:
        percents = (
            100 * part / fit.cycles for part in (fit.spread, fit.noise, fit.predicted_spread)
        )
        spread, noise, guess = (f"{percent:.2f} %" for percent in percents)
        word = generated_word(fit) if generated else real_word(fit)
        ranks = f"{_figure(fit.rank)} | {_figure(fit.plain_rank)} | {_figure(fit.explained)}"
        yield (
            f"| {fit.name} | {fit.links} | {fit.cycles:,.0f} | {spread} | {noise} | {guess} "
            f"| {ranks} | {word} |"
        )


def told_by(rows: Iterable[ProgramRows], mechanism: str, *, least: float) -> Iterator[str]:
    """A table of the programs whose links differ in a mechanism by `least` times the noise: how its
    events order their links, and what one of them costs there, by a line through the links.
    """
    yield "| program | spread | noise | events | range | rank | plain misses | cycles each |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        events = np.asarray(row.events[mechanism])
        if np.ptp(events) < least * row.noise or len(events) < LEAST_LINKS:
            continue
        middle = float(np.median(row.cycles))
        spread, noise = 100 * np.ptp(row.cycles) / middle, 100 * row.noise / middle
        price = float(np.polyfit(events, row.cycles, 1)[0])
        ranks = (
            _figure(rank_correlation(row.cycles, np.asarray(of)))
            for of in (events, row.events["l1i"])
        )
        yield (
            f"| {row.name} | {spread:.2f} % | {noise:.2f} % | {np.median(events):,.0f} "
            f"| {np.ptp(events):,.0f} | {' | '.join(ranks)} | {price:.2f} |"
        )


def explained(links: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    """A table of programs -> cycles and events of each link: which event orders links so."""
    yield "| program | links | spread | plain misses | exposed cycles | windows of 64 bytes |"
    yield "|---|---|---|---|---|---|"
    for name, events in links.items():
        cycles = np.array(events["cycles"])
        ranks = (
            _figure(rank_correlation(cycles, np.array(events[kind])))
            for kind in ("l1i", "exposed", "windows")
        )
        spread = 100 * np.ptp(cycles) / np.median(cycles)
        yield f"| {name} | {len(cycles)} | {spread:.2f} % | {' | '.join(ranks)} |"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main() -> None:
    """Asks the questions, or some of them, and keeps the answers."""
    options = _options()
    record = Record()
    if options.json.is_file():
        record = msgspec.json.decode(options.json.read_bytes(), type=Record)
    if "generated" in options.only:
        record = _calibrated(record, options)
        write_atomic(options.json, a_row_a_line(record))
    if "real" in options.only:
        record = msgspec.structs.replace(record, check=_checked(options))
        write_atomic(options.json, a_row_a_line(record))
    for fits, generated in ((record.generated, True), (real(record), False)):
        for line in listing(fits, generated=generated):
            sys.stdout.write(f"{line}\n")
    for one in record.repeats:
        word = "repeats" if one.holds else "does not repeat"
        sys.stdout.write(f"{one.name}: {one.first[0]:.3g}, {one.second[0]:.3g}: {word}\n")


def real(record: Record) -> list[ProgramFit]:
    """How well each real program is predicted by the prices of generated ones."""
    checked = record.check["programs"] if record.check else []
    return msgspec.convert([one["fit"] for one in checked], list[ProgramFit])


def _calibrated(record: Record, options: argparse.Namespace) -> Record:
    """Both calibrations; the first one is where --cpu host finds it."""
    found = []
    with open_store() as store, tempfile.TemporaryDirectory() as folder:
        for written in (None, Path(folder) / "again.toml"):
            request = CalibrateRequest(
                quick=options.quick, busy_ok=options.busy_ok, relinks=options.links, write=written
            )
            report = asyncio.run(run_calibrate(request, store, _Telling()))
            text = document_text(report, __version__)
            found.append(read_calibration(text))
    both, once = repeats(found[0].prices, found[1].prices)
    return msgspec.structs.replace(
        record, generated=tuple(found[0].quality), repeats=both, only_once=once
    )


def _checked(options: argparse.Namespace) -> dict[str, Any]:
    folder = cache_dir("held-out")
    wanted = [one for one in PROGRAMS if one.name in options.programs]
    programs = [held_out(str(built(one, folder))) for one in wanted]
    request = CalibrateRequest(
        busy_ok=options.busy_ok,
        relinks=options.relinks,
        cpu=load_cpu(options.cpu) if options.cpu else None,
    )
    with open_store() as store:
        report = asyncio.run(run_check(request, programs, store, _Telling()))
    found: dict[str, Any] = msgspec.json.decode(document_text(report, __version__))
    return found


class _Telling(Silent):
    """Tells what takes long."""

    def log(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True, help="where the answers are kept")
    parser.add_argument(
        "--only", nargs="*", choices=("generated", "real"), default=("generated", "real")
    )
    names = tuple(one.name for one in PROGRAMS)
    parser.add_argument("--programs", nargs="*", choices=names, default=names)
    parser.add_argument("--links", type=int, default=30, help="of each generated program")
    parser.add_argument("--relinks", type=int, default=16, help="of each real program")
    parser.add_argument("--cpu", default="", help="whose prices are compared with; host")
    parser.add_argument("--quick", action="store_true", help="fewer generated programs")
    parser.add_argument("--busy-ok", action="store_true", help="though the host is busy")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"{error}")
