# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that is wanted, and whether the store has it, perhaps as a part of a larger one."""

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.kernels.model import Kernel
from kdelta.lab.plan import RunPlan, same_program
from kdelta.machines.tcg import Guest
from kdelta.spec.identity import identity
from kdelta.spec.run import perturbation
from kdelta.store.model import Run
from kdelta.store.store import Store

RECORD = 4
"""What is kept of a run; a run of which less was kept is made again."""


class RunResult(msgspec.Struct, frozen=True):
    """A run and what it counted (None unless it went well); `stored`: it was in the store. The
    counts have the index of the run's perturbation.
    """

    run: Run
    counts: RunCounts | None
    stored: bool = False

    def __post_init__(self) -> None:
        """Enters the index."""
        if self.counts is not None:
            counts = msgspec.structs.replace(self.counts, perturbation=self.run.perturbation)
            msgspec.structs.force_setattr(self, "counts", counts)


class WantedRun(msgspec.Struct, frozen=True):
    """One run to be made."""

    kernel: Kernel
    guest: Guest
    work: RunPlan
    index: int

    @property
    def key(self) -> str:
        """What makes it the same run as another."""
        return run_key(self.guest, self.work.identity, self.index)

    @property
    def step(self) -> str:
        """What progress calls it; a run of other operations takes another time."""
        count = len(self.work.parts)
        operations = f", {count} operations" if count > 1 else ""
        return f"run {self.kernel.title} {self.work.name} #{self.index}{operations}"


def run_key(guest: Guest, work: str, index: int) -> str:
    """Return what makes two runs the same run; work: its identity. Snapshot or power-on is no part:
    the counts are equal.
    """
    return identity(
        {
            "guest": guest.snapshot_facts(),
            "job": work,
            "perturbation": msgspec.to_builtins(perturbation(index)),
            "plugin": guest.emulator.plugin().parent.name,
            "record": RECORD,
            **({"turn_us": guest.turn_us} if guest.turn_us else {}),
        }
    )


def part_of_stored(store: Store, wanted: WantedRun) -> RunResult | None:
    """Return a stored run that did more than is wanted, with the counts of what is wanted; None if
    there is none.

    Each operation has a guest of its own, so its counts are equal. A run that warned of something
    is not taken: the warning may be about what is not wanted.
    """
    work, names = wanted.work, {part.name for part in wanted.work.parts}
    for run in store.runs_of(wanted.kernel.identity):
        if run.perturbation != wanted.index or not same_program(
            run.workload_identity, work.identity
        ):
            continue
        if run.key != run_key(wanted.guest, run.workload_identity, wanted.index):
            continue
        counts = store.counts(run)
        regions = tuple(one for one in counts.regions if one.name in names)
        if not counts.warnings and {one.name for one in regions} == names:
            return RunResult(run, RunCounts(regions), stored=True)
    return None
