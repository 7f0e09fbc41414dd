# SPDX-License-Identifier: GPL-2.0-or-later
"""A region in which several processes worked."""

import msgspec
import numpy as np

from kdelta.counts.model import Iterations, RegionCounts
from kdelta.counts.profile import Profile, Task
from kdelta.infer.profiles.processes import Processes, processes
from tests.profiles import profile_of

STACKS = {
    ("entry",): 10,
    ("entry", "sys_read"): 50,
    ("cc1:main",): 300,
    ("sh:main",): 40,
    ("fork",): 2,
    ("fork", "do_exit"): 3,
    ("timer",): 7,
    ("worker",): 9,
}

CONTEXTS: dict[tuple[str, ...], int] = {("timer",): 1, ("worker",): 2}
TASKS = ("cc1", "cc1", "sh", "kernel")
TASK_OF = (0, 0, 1, 2, 2, 2, 1, 3)


def made() -> Profile:
    profile = profile_of(STACKS, region="make", contexts=CONTEXTS)
    tree = msgspec.structs.replace(profile.tree, task=np.array(TASK_OF, np.int32))
    return msgspec.structs.replace(profile, tree=tree, tasks=tuple(map(Task, TASKS)))


def counted(profile: Profile, ticks: int | None = None) -> RegionCounts:
    return RegionCounts("make", Iterations(), profile.function_costs(), ticks)


def found(ticks: int | None = None) -> Processes:
    """By process, what `made` has."""
    return processes(made(), counted(made(), ticks))
