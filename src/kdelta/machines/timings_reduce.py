# SPDX-License-Identifier: GPL-2.0-or-later
"""From ticks of a clock to cycles of a core. Pure functions.

The reference loop next to each pass says how many ticks a cycle took just then; passes in which the
frequency moved are left out.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kdelta.machines.timings_text import Process, Processor, Said, Ticks
from kdelta.spec.errors import UserError
from kdelta.spec.timings import Quiet, TimedLink, TimedSpecial

STEADY = 0.005
"""Two reference loops, before and after a pass, that differ by more were not of one frequency: its
steps are of 2 to 4 %, and two loops of one frequency differ by 0.1 %.
"""
CONTENDED = 1.05
"""A width loop that takes so many times its level had not the whole core for itself."""
LEAST_NEAR = 0.01
"""So many of the width loops are near a level that is none by chance."""
REFERENCE_CHAIN = 256
"""Cycles of a turn of the reference loop, as timing.h has it."""
LOW = 0.15
"""The quantile over processes that is taken of each pass: what slows one only ever slows it, and
the least of all is that of a slip.
"""
_NUMBERS = 5  # of a pass: timing.h's
_LEAST_SAMPLES = 3
_LEAST_THERE = 0.5
_NTH = 2

LIMITS = {
    "steal_share": (0.02, 0.10, "the hypervisor gave {:.0%} of the core's time to others"),
    "other_share": (0.02, 0.10, "other programs had {:.0%} of the core's time"),
    "elsewhere_share": (0.50, 1.01, "the other cores were busy for {:.0%} of the time"),
    "reference_spread": (0.25, 1.00, "the frequency moved by {:.0%}"),
    "dropped_share": (0.30, 0.80, "the frequency moved within {:.0%} of the repetitions"),
    "contended_share": (0.20, 1.01, "another thread of the core was busy in {:.0%} of the passes"),
}
"""What is reported of a machine that is not quiet: from which share on, and from which refused."""


class Passes(NamedTuple):
    """Of one process, (rounds, passes) each: cycles and ticks a cycle, NaN where the frequency
    moved; and whether the core was not shared before and after.
    """

    cycles: Ticks
    rate: Ticks
    alone: np.ndarray[tuple[int, int], np.dtype[np.bool_]]


def passes_of(process: Process, level: float) -> Passes:
    """What one process said, in cycles."""
    _, before, ticks, after, _ = _columns(process)
    rate = (before + after) / 2 / process.reference_cycles
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.abs(after / before - 1) < STEADY
    rate = np.where(steady & (before > 0), rate, np.nan)
    alone = widths_of(process) < CONTENDED * level
    return Passes((ticks - process.empty_ticks) / rate, rate, np.asarray(alone))


def widths_of(process: Process) -> Ticks:
    """For each pass the wider of the width loops before and after it, in turns of the reference
    loop: (rounds, passes).
    """
    turns = process.reference_cycles / REFERENCE_CHAIN
    wide_before, before, _, after, wide_after = _columns(process)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(wide_before / before, wide_after / after) * turns)


def _columns(process: Process) -> tuple[Ticks, Ticks, Ticks, Ticks, Ticks]:
    """Width and reference loop before each pass, the pass, reference and width loop after it."""
    columns = process.ticks.reshape(len(process.ticks), -1, _NUMBERS)
    one, two, three, four, five = (columns[:, :, column] for column in range(_NUMBERS))
    return one, two, three, four, five


def level_of(said: Said) -> float:
    """What the width loop takes on a core that is alone. The level that processes agreed on, unless
    hardly a loop was near it: then it was a slip of the clock, and a low width serves.
    """
    widths = np.concatenate([widths_of(process).ravel() for process in said.processes])
    near = (widths > said.level / CONTENDED) & (widths < said.level * CONTENDED)
    return said.level if near.mean() > LEAST_NEAR else float(np.quantile(widths, 0.05))


def links_of(
    name: str, sha256: Sequence[str], processes: Sequence[Sequence[Process]], level: float
) -> tuple[TimedLink, ...]:
    """All links of one program, from seed 1 on: of each its file's hash, and what its processes
    said. UserError when the frequency was never steady for long enough.
    """
    links = []
    for seed, (said, file) in enumerate(zip(processes, sha256, strict=True), 1):
        every = [passes_of(process, level) for process in said]
        alone = [np.where(one.alone, one.cycles, np.nan) for one in every]
        is_alone = _enough(alone)
        samples = alone if is_alone else [one.cycles for one in every]
        if not _enough(samples):
            raise UserError(
                f"{name}: the core's frequency moved in nearly every repetition",
                "set it by the governor `performance`, or switch off what moves it",
            )
        rates = np.concatenate([one.rate.ravel() for one in every])
        links.append((seed, file, samples, float(np.nanmedian(rates)), is_alone))
    cycles = _low([np.concatenate(samples) for _, _, samples, _, _ in links])
    halves = [
        _low([np.concatenate(samples[first::2] or samples) for _, _, samples, _, _ in links])
        for first in (0, 1)
    ]
    return tuple(
        TimedLink(
            seed=seed,
            sha256=file,
            iterations=samples[0].shape[1],
            cycles=float(cycles[at]),
            halves=(float(halves[0][at]), float(halves[1][at])),
            samples=int(np.median(_counts(samples))),
            cycles_min=_third_least(np.concatenate(samples)),
            ticks_per_cycle=rate,
            alone=is_alone,
        )
        for at, (seed, file, samples, rate, is_alone) in enumerate(links)
    )


def _counts(samples: Sequence[Ticks]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many there are of each pass."""
    return np.asarray(np.sum([np.count_nonzero(~np.isnan(one), axis=0) for one in samples], axis=0))


def _enough(samples: Sequence[Ticks]) -> bool:
    """Whether at least half of the passes were seen often enough."""
    return bool((_counts(samples) >= _LEAST_SAMPLES).mean() >= _LEAST_THERE)


def _low(links: Sequence[Ticks]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """For each link (samples, passes), of which some are NaN: the mean over passes of the low
    quantile of its samples. What a pass that it lacks would have added is derived from other links:
    by how much that pass is usually above or below the others.
    """
    low = np.full((len(links), links[0].shape[1]), np.nan)
    for at, samples in enumerate(links):
        there = ~np.isnan(samples).all(axis=0)
        low[at, there] = np.nanquantile(samples[:, there], LOW, axis=0)
    known = ~np.isnan(low).all(axis=0)
    usual = np.nanmedian(low[:, known], axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a half may have no times of a link
        above = np.nanmean(low[:, known] - usual, axis=1)
    return np.asarray(usual.mean() + np.nan_to_num(above))


def _third_least(samples: Ticks) -> float:
    """The mean over passes of the third least, or of the most where there are fewer."""
    least = np.sort(samples, axis=0)  # NaN last
    counts = np.count_nonzero(~np.isnan(samples), axis=0)
    there = np.flatnonzero(counts)
    return float(least[np.minimum(_NTH, counts[there] - 1), there].mean())


def special_of(
    kind: str, argument: int, turns: int, reference_cycles: int, ticks: Sequence[int]
) -> TimedSpecial:
    """One line of specials. The empty loop's least is what the loop itself takes."""
    triples = np.array(ticks, dtype=np.float64).reshape(-1, 3)
    rate = triples[:, 2] / reference_cycles
    # A reference loop that was interrupted says nothing.
    good = rate < np.median(rate) * (1 + 10 * STEADY)
    empty = (triples[good, 0] / rate[good]).min()
    cycles = np.maximum(triples[good, 1] / rate[good] - empty, 0) / turns
    low, median, high = np.quantile(cycles, (0.0, 0.5, 0.9))
    return TimedSpecial(kind, argument, float(low), float(median), float(high))


def quiet_of(said: Said) -> Quiet:
    """How quiet the machine was, by /proc/stat before and after, and by the loops next to
    passes.
    """
    core = int(said.facts["core"])
    first, second = said.processors
    shares = _shares(first, second, core)
    level = level_of(said)
    every = [passes_of(process, level) for process in said.processes]
    cycles = np.concatenate([one.cycles.ravel() for one in every])
    reference = np.concatenate(
        [_columns(process)[1].ravel() / process.reference_cycles for process in said.processes]
    )
    fast, slow = np.quantile(reference, (0.1, 0.9))
    shares |= {
        "reference_spread": float(slow / fast - 1),
        "dropped_share": float(np.isnan(cycles).mean()),
        "contended_share": 1 - float(np.concatenate([one.alone.ravel() for one in every]).mean()),
    }
    remarks = tuple(
        text.format(shares[name])
        for name, (from_, _, text) in LIMITS.items()
        if shares[name] > from_
    )
    return Quiet(
        seconds=second.uptime - first.uptime,
        load_average=said.load_average,
        ok=not remarks,
        said=remarks,
        **shares,
    )


def refuse_busy(quiet: Quiet) -> None:
    """UserError for a machine that was too busy for its times to mean anything."""
    for name, (_, most, text) in LIMITS.items():
        if getattr(quiet, name) > most:
            raise UserError(
                f"the machine was too busy: {text.format(getattr(quiet, name))}",
                "stop what else runs there and try again, or go on with --busy-ok",
            )


def _shares(first: Processor, second: Processor, core: int) -> dict[str, float]:
    busy = {one: second.busy[one] - first.busy[one] for one in second.busy if one in first.busy}
    idle = {one: second.idle[one] - first.idle[one] for one in busy}
    stolen = {one: second.stolen[one] - first.stolen[one] for one in busy}
    own = second.own - first.own
    time = max(busy[core] + idle[core] + stolen[core], 1e-9)
    others = [one for one in busy if one != core]
    others_time = max(sum(busy[one] + idle[one] for one in others), 1e-9)
    return {
        "steal_share": stolen[core] / time,
        "other_share": max(0.0, busy[core] - own) / time,
        "elsewhere_share": sum(busy[one] for one in others) / others_time,
    }
