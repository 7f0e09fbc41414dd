# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of boots in an order that is drawn, until all operations are decided."""

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from kdelta.host.files import make_folder, write_atomic
from kdelta.infer.effects.effects import OPEN
from kdelta.measures.clock.boots import TimedKernels, paired
from kdelta.measures.clock.judged import timed_effects
from kdelta.measures.clock.results import TimedRun
from kdelta.report.measured import MeasuredEffects
from kdelta.spec.errors import KdeltaError

_LEAST_PAIRS = 2
_SIDES = ("base", "other")


class PairsWanted(msgspec.Struct, frozen=True):
    """What is measured of two kernels.

    most        pairs at most
    margin      which differences matter, as a fraction
    operations  that are judged; none: all
    folder      gets a file for each boot, below base and other
    """

    most: int
    margin: float
    operations: tuple[str, ...]
    folder: Path


class PairsTimed(msgspec.Struct, frozen=True):
    """The verdicts after so many pairs, and what is to be known about them."""

    found: MeasuredEffects
    count: int
    notes: tuple[str, ...]


def drawn_pairs(
    run: Callable[[int], TimedRun], most: int, doing: Callable[[str], None]
) -> Iterator[TimedKernels]:
    """Yield, after each of so many pairs in an order that is drawn, all pairs so far.

    run: returns what a run of the base (0) or of the other (1) says. doing: gets words before one.
    """
    runs: tuple[list[TimedRun], list[TimedRun]] = ([], [])
    for number in range(1, most + 1):
        doing(f"pair {number} of at most {most}")
        for side in (0, 1) if secrets.randbelow(2) else (1, 0):
            runs[side].append(_numbered(run(side), len(runs[0]) + len(runs[1])))
        yield paired(*runs)


def time_pairs(
    boot: Callable[[int], TimedRun], wanted: PairsWanted, doing: Callable[[str], None]
) -> PairsTimed:
    """Boot pairs and judge them after each. KdeltaError where fewer than two pairs can be timed;
    later, such a pair is the last. boot: see `drawn_pairs`.
    """
    numbers = itertools.count()

    def kept(side: int) -> TimedRun:
        run = boot(side)
        path = make_folder(wanted.folder / _SIDES[side]) / f"{next(numbers)}.json"
        write_atomic(path, run.content)
        return run

    notes: list[str] = []
    timed: TimedKernels | None = None
    found: MeasuredEffects | None = None
    try:
        for timed in drawn_pairs(kept, wanted.most, doing):
            if len(timed.pairs) < _LEAST_PAIRS:
                continue
            found = timed_effects(timed, wanted.margin, wanted.operations)
            if not any(one.word in OPEN for one in found.effects):
                break
    except KdeltaError as error:
        if found is None or timed is None:
            raise
        notes.append(f"pair {len(timed.pairs) + 1} was not timed, and is the last: {error.message}")
    assert timed
    assert found
    notes.append(f"{len(timed.pairs)} pairs of boots, each in an order that was drawn")
    if jumped := timed.jumped:
        notes.append(f"left out where the clock jumped: {', '.join(jumped)}")
    return PairsTimed(found, len(timed.pairs), tuple(notes))


def _numbered(run: TimedRun, number: int) -> TimedRun:
    """Return the run as that of a study's boot of this number, whose order is known even of guests
    without a clock of the date.
    """
    facts = msgspec.structs.replace(run.facts, when=number, boot_id=str(number))
    return msgspec.structs.replace(run, facts=facts)
