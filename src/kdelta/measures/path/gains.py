# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts that paths of the CPU could turn round which QEMU cannot offer: these are not firm."""

from collections.abc import Sequence

from kdelta.cpus.model import CPU
from kdelta.cpus.representative import paths_not_taken
from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.gains import PathGain, path_gains, with_gains
from kdelta.lab.lab import RunResult
from kdelta.lab.reports import default_like
from kdelta.measures.path.comparable import guest_of
from kdelta.store.store import Store

Sides = tuple[Sequence[RunResult], Sequence[RunResult]]


def like_of(cpu: CPU | None, runs: Sequence[RunResult]) -> CPU | None:
    """Return the CPU that is named; else the default one, if the runs' machine is like it."""
    if cpu is not None or not runs:
        return cpu
    return default_like(str(runs[0].run.machine.get("cpu", "")))


def gained(
    effects: Effects, cpu: CPU | None, sides: Sides, store: Store
) -> tuple[Effects, tuple[PathGain, ...]]:
    """Return the effects without verdicts that paths of the CPU could turn round, and what these
    could add to each operation.

    cpu: as for `like_of`. sides: the runs of the base and of the other.
    """
    like = like_of(cpu, sides[0])
    base, other = (next((one.counts for one in runs if one.counts), None) for runs in sides)
    if like is None or base is None or other is None:
        return effects, ()
    guests = [guest_of(runs, store) for runs in sides]
    mine, theirs = (paths_not_taken(like, one.cpuinfo, one.vulnerabilities) for one in guests)
    gains = path_gains(effects, (mine, theirs), (base, other))
    return with_gains(effects, gains, like.name), gains
