# SPDX-License-Identifier: GPL-2.0-or-later
"""A region by process: what each program executed itself and had the kernel execute for it."""

from collections import Counter

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import sums_at
from kdelta.counts.model import CONTEXTS, KERNEL, RegionCounts
from kdelta.counts.profile import Profile
from kdelta.spec.errors import LabError

_OWN, _INTERRUPTS, _OTHER = range(len(CONTEXTS))
_ENDS = "do_exit"
"""What the kernel executes once when a process (or thread) ends."""


class ProgramCost(msgspec.Struct, frozen=True):
    """Instructions of all processes while they execute one program, and of the kernel on their
    behalf. ended: how many of them ended as that program.
    """

    program: str
    ended: int
    user: int
    kernel: int

    @property
    def insns(self) -> int:
        """Both."""
        return self.user + self.kernel


class Processes(msgspec.Struct, frozen=True):
    """One region. programs: of the measured tasks, most executed first; other: those of tasks that
    are not. interrupts: instructions of interrupts, on anybody's time. idle_ticks: clock ticks of
    1 ns in which nothing was executed; None if unknown.
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
    ends = np.isin(profile.rows.group, _entries(profile, _ENDS))
    columns = []
    for where, figures in (
        (chosen & ends, profile.rows.entered),
        (chosen & ~in_kernel, insns),
        (chosen & in_kernel, insns),
    ):
        sums = sums_at(task[where], figures[where], len(names))
        column: Counter[str] = Counter()
        for name, count in zip(names, sums, strict=True):
            column[name] += int(count)
        columns.append(column)
    seen = {names[index] for index in np.unique(task[chosen])}
    found = [ProgramCost(name, *(column[name] for column in columns)) for name in seen]
    return tuple(sorted(found, key=lambda one: (-one.insns, one.program)))


def _entries(profile: Profile, function: str) -> npt.NDArray[np.int64]:
    """The groups that begin where a function of the kernel does."""
    code = profile.code
    starts = [
        one.address
        for one in profile.functions
        if (one.origin, one.name) == (KERNEL, function) and one.address
    ]
    first = np.flatnonzero(np.diff(code.group_block, prepend=-1))
    return first[np.isin(code.block_address[code.group_block[first]], np.array(starts, np.uint64))]


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
