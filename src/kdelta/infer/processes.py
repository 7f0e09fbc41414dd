# SPDX-License-Identifier: GPL-2.0-or-later
"""A region by process: what each program executed itself and had the kernel execute for it."""

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import CONTEXTS, RegionCounts
from kdelta.counts.profile import Profile
from kdelta.spec.errors import LabError

_OWN, _INTERRUPTS, _OTHER = range(len(CONTEXTS))


class ProgramCost(msgspec.Struct, frozen=True):
    """Instructions of all processes (a forked child and what it is after each exec are two `tasks`)
    that execute one program, and of the kernel on their behalf.
    """

    program: str
    tasks: int
    user: int
    kernel: int

    @property
    def insns(self) -> int:
        """Both."""
        return self.user + self.kernel


class Processes(msgspec.Struct, frozen=True):
    """One region. programs: of the measured tasks, most executed first; other: those of tasks that
    are not. interrupts: instructions of interrupts, on anybody's time. idle_ticks: clock ticks of
    1 ns in which nothing was executed; None if nobody knows.
    """

    region: str
    iterations: int
    programs: tuple[ProgramCost, ...]
    other: tuple[ProgramCost, ...]
    interrupts: int
    idle_ticks: int | None = None

    @property
    def insns(self) -> int:
        """All that was executed."""
        return sum(one.insns for one in (*self.programs, *self.other)) + self.interrupts

    @property
    def residency(self) -> int:
        """What was executed in the kernel: by processes, interrupts and the kernel's own tasks."""
        return sum(one.kernel for one in (*self.programs, *self.other)) + self.interrupts


def processes(profile: Profile, counts: RegionCounts) -> Processes:
    """The region by process. LabError unless all of it adds up to what was counted."""
    tree, rows = profile.tree, profile.rows
    insns = profile.row_costs().insns
    in_kernel = profile.in_kernel()[profile.row_function()]
    task = tree.task[rows.node].astype(np.int64)
    context = tree.context[rows.node]
    found = Processes(
        region=profile.region,
        iterations=profile.iterations,
        programs=_programs(profile, task, insns, in_kernel, context == _OWN),
        other=_programs(profile, task, insns, in_kernel, context == _OTHER),
        interrupts=int(insns[context == _INTERRUPTS].sum()),
        idle_ticks=counts.idle_ticks(),
    )
    _must_be_all(found, counts)
    return found


def _programs(
    profile: Profile,
    task: npt.NDArray[np.int64],
    insns: npt.NDArray[np.int64],
    in_kernel: npt.NDArray[np.bool_],
    chosen: npt.NDArray[np.bool_],
) -> tuple[ProgramCost, ...]:
    names = [one.program for one in profile.tasks]
    user, kernel, tasks = dict[str, int](), dict[str, int](), dict[str, int]()
    for side, where in ((user, chosen & ~in_kernel), (kernel, chosen & in_kernel)):
        sums = np.zeros(len(names), np.int64)
        np.add.at(sums, task[where], insns[where])
        for index, count in enumerate(sums):
            side[names[index]] = side.get(names[index], 0) + int(count)
    for index in np.unique(task[chosen]):
        tasks[names[index]] = tasks.get(names[index], 0) + 1
    found = [ProgramCost(name, tasks[name], user[name], kernel[name]) for name in tasks]
    return tuple(sorted(found, key=lambda one: (-one.insns, one.program)))


def _must_be_all(found: Processes, counts: RegionCounts) -> None:
    """The sums by process against the counts of the region."""
    own = sum(one.insns for one in found.programs), counts.cost("own").insns
    in_kernel = sum(one.kernel for one in found.programs), counts.cost("own", True).insns
    other = sum(one.insns for one in found.other), counts.cost("other").insns
    interrupts = found.interrupts, counts.cost("interrupts").insns
    for ours, counted in (own, in_kernel, other, interrupts):
        if ours != counted:
            raise LabError(
                f"region {found.region}: processes add up to {ours} instructions, not {counted}",
                "this is a fault of kdelta's; please report it with the kernel and the workload",
            )
