# SPDX-License-Identifier: GPL-2.0-or-later
"""From ticks of a clock to cycles of a core. Pure functions.

The reference loop beside each pass says how many ticks a cycle took just then; passes in which the
frequency moved are left out.
"""

import math
from collections.abc import Sequence

import numpy as np

from kdelta.machines.timings_text import Process, Processor, Said, Ticks
from kdelta.spec.errors import UserError
from kdelta.spec.timings import Quiet, TimedLink, TimedSpecial

STEADY = 0.005
"""Two reference loops, before and after a pass, that differ by more were not of one frequency: its
steps are of 2 to 4 %, and two loops of one frequency differ by 0.1 %.
"""
CONTENDED = 1.05
"""A width loop that takes so many times its level had not the whole core for itself. With one that
was within 1.04 (timing.h's), 95 % of passes were within 4 % of the least; with others, 5 % were.
"""
LEAST_NEAR = 0.01
"""So many of the rounds are near a level that is none by chance."""
REFERENCE_CHAIN = 256
"""Cycles of a turn of the reference loop, as timing.h has it."""
_LEAST_SAMPLES = 5
_LEAST_THERE = 0.5
_NTH = 2

LIMITS = {
    "steal_share": (0.02, 0.10, "the hypervisor gave {:.0%} of the core's time to others"),
    "other_share": (0.02, 0.10, "other programs had {:.0%} of the core's time"),
    "elsewhere_share": (0.50, 1.01, "the other cores were busy for {:.0%} of the time"),
    "reference_spread": (0.25, 1.00, "the frequency moved by {:.0%}"),
    "dropped_share": (0.30, 0.80, "the frequency moved within {:.0%} of the repetitions"),
    "contended_share": (0.20, 1.01, "another thread of the core was busy in {:.0%} of the rounds"),
}
"""What is said of a machine that is not quiet: from which share on, and from which refused."""


def cycles_of(process: Process) -> tuple[Ticks, Ticks]:
    """Cycles (rounds, passes), NaN where the frequency moved; and ticks a cycle, likewise."""
    before = process.ticks[:, 1:-2:2]
    after = process.ticks[:, 3:-1:2]
    passes = process.ticks[:, 2:-2:2] - process.empty_ticks
    rate = (before + after) / 2 / process.reference_cycles
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.abs(after / before - 1) < STEADY
    rate = np.where(steady & (before > 0), rate, np.nan)
    return passes / rate, rate


def widths_of(process: Process) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """For each round the wider of its two width loops, in turns of the reference loop."""
    turns = process.reference_cycles / REFERENCE_CHAIN
    with np.errstate(divide="ignore"):
        before = process.ticks[:, 0] / process.ticks[:, 1]
        after = process.ticks[:, -1] / process.ticks[:, -2]
    return np.asarray(np.maximum(before, after) * turns)


def level_of(said: Said) -> float:
    """What the width loop takes on a core that is alone. The level that processes agreed on, unless
    hardly a round was near it: then it was a slip of the clock, and a low width of rounds serves.
    """
    widths = np.concatenate([widths_of(process) for process in said.processes])
    near = (widths > said.level / CONTENDED) & (widths < said.level * CONTENDED)
    return said.level if near.mean() > LEAST_NEAR else float(np.quantile(widths, 0.05))


def alone_in(process: Process, level: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each round, whether its core was not shared, before it and after it."""
    return np.asarray(widths_of(process) < CONTENDED * level)


def link_of(
    seed: int, sha256: str, name: str, processes: Sequence[Process], level: float
) -> TimedLink:
    """All processes of one link. UserError when the frequency was never steady for long enough."""
    both = [cycles_of(process) for process in processes]
    mine = [
        (cycles[alone], rate[alone])
        for (cycles, rate), process in zip(both, processes, strict=True)
        for alone in (alone_in(process, level),)
    ]
    alone = bool(_samples(mine).min() >= _LEAST_SAMPLES)
    both = mine if alone else both
    cycles = np.sort(np.concatenate([one for one, _ in both]), axis=0)
    samples = _samples(both)
    if np.median(samples) < _LEAST_SAMPLES or not samples.all():
        raise UserError(
            f"{name}: the core's frequency moved in nearly every repetition",
            "set it by the governor `performance`, or switch off what moves it",
        )
    quantiles = np.nanquantile(cycles, (0.10, 0.25, 0.50), axis=0).mean(axis=1)
    of_each = [_least(one, np.nanmedian(cycles, axis=0)) for one, _ in both if _has_most(one)]
    rates = np.concatenate([rate.ravel() for _, rate in both])
    # Of a pass that has no third, the 10 % quantile serves.
    third = float(cycles[_NTH].mean()) if samples.min() > _NTH else math.inf
    least = min(third, float(quantiles[0]))
    return TimedLink(
        seed=seed,
        sha256=sha256,
        iterations=cycles.shape[1],
        cycles_min=least,
        quantiles=(float(quantiles[0]), float(quantiles[1]), float(quantiles[2])),
        processes=tuple(of_each),
        ticks_per_cycle=float(np.nanmedian(rates)),
        alone=alone,
    )


def _samples(
    both: Sequence[tuple[Ticks, Ticks]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many there are of each pass."""
    counts = [np.count_nonzero(~np.isnan(cycles), axis=0) for cycles, _ in both]
    return np.asarray(np.sum(counts, axis=0))


def _has_most(cycles: Ticks) -> bool:
    """Whether a process has times of at least half of its passes."""
    there = ~np.isnan(cycles).all(axis=0)
    return bool(len(cycles)) and float(there.mean()) >= _LEAST_THERE


def _least(cycles: Ticks, others: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The mean over passes of the least; of a pass that has none, what it takes in others."""
    least = np.where(np.isnan(cycles), np.inf, cycles).min(axis=0)
    return float(np.where(np.isinf(least), others, least).mean())


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
    """How quiet the machine was, by /proc/stat before and after, and by the loops beside passes."""
    core = int(said.facts["core"])
    first, second = said.processors
    shares = _shares(first, second, core)
    shared, references, steady, count = [], [], 0, 0
    level = level_of(said)
    for process in said.processes:
        cycles, _ = cycles_of(process)
        steady, count = steady + int(np.count_nonzero(~np.isnan(cycles))), count + cycles.size
        references.append(process.ticks[:, 1:-1:2].ravel() / process.reference_cycles)
        shared.append(~alone_in(process, level))
    reference = np.concatenate(references)
    fast, slow = np.quantile(reference, (0.1, 0.9))
    shares |= {
        "reference_spread": float(slow / fast - 1),
        "dropped_share": 1 - steady / count,
        "contended_share": float(np.concatenate(shared).mean()),
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
