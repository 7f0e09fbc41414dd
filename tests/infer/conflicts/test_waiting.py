# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs execute while they wait for each other, and for which locks."""

from fractions import Fraction

import pytest

from kdelta.counts.conflicts import (
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
)
from kdelta.counts.model import Cost, FunctionCost, RegionCounts
from kdelta.infer.conflicts.waiting import Waited, lock_of, waited, waiting
from kdelta.infer.effects.estimate import estimate
from tests.synthetic import region

NOTHING = Conflicts("create", 10, 2, False, ())


def counts(**insns: int) -> RegionCounts:
    """Return ten iterations; own functions, with a call for each ten instructions."""
    made = region("create", {}, 10)
    functions = tuple(
        FunctionCost("own", "kernel", name, Cost(n), calls=n // 10) for name, n in insns.items()
    )
    return RegionCounts(made.name, made.iterations, functions)


def looked_at(*uses: tuple[str, str, int]) -> Conflicts:
    """Return a line whose places these functions read so often."""
    found = tuple(FieldUse(place, by, (CpuAccesses(n), CpuAccesses())) for place, by, n in uses)
    fields = (ContestedField("x", True, "f", 1, 1),)
    line = ContendedLine("object", fields, True, False, 1, found)
    return Conflicts("create", 10, 2, False, (line,))


def test_slow_paths_and_what_spins_in_them_is_waiting() -> None:
    found = waited(
        counts(
            path_openat=900,
            rwsem_down_write_slowpath=100,
            rwsem_spin_on_owner=200,
            osq_lock=50,
        )
    )
    assert found == Waited(insns=Fraction(35), times=Fraction(1))


def test_a_mutex_is_waited_for_where_its_slow_path_is_called() -> None:
    # Its own code is the way of those that find it free, too; what spins in it is not.
    found = waited(counts(__mutex_lock=500, __mutex_lock_slowpath=20, mutex_spin_on_owner=300))
    assert found == Waited(insns=Fraction(30), times=Fraction(2, 10))


def test_functions_under_other_names_and_of_other_tasks() -> None:
    made = counts(**{"osq_lock.part.0": 40})
    others = FunctionCost("other", "kernel", "osq_lock", Cost(10**6), calls=5)
    made = RegionCounts(made.name, made.iterations, (*made.functions, others))
    assert waited(made).insns == 4


def test_polls_are_pauses_of_the_kernel_where_no_lock_spins() -> None:
    def paused(name: str, n: int, origin: str = "kernel") -> FunctionCost:
        return FunctionCost("own", origin, name, Cost(100, specials={"pause": n}))

    made = region("mprotect", {}, 10)
    functions = (
        paused("smp_call_function_many_cond", 40),
        paused("native_queued_spin_lock_slowpath", 700),
        paused("__mutex_lock.constprop.0", 700),
        paused("end_turn", 700, "pairs"),
    )
    made = RegionCounts(made.name, made.iterations, functions)
    assert waited(made) == Waited(Fraction(10), Fraction(0), Fraction(4))
    found = waiting([(made, NOTHING)])
    assert found
    assert found.polls == estimate([Fraction(4)])
    assert found.functions == ("native_queued_spin_lock_slowpath", "smp_call_function_many_cond")
    alone = RegionCounts(made.name, made.iterations, functions[:1])
    assert waiting([(alone, NOTHING)]) is not None


def test_without_waiting_there_is_nothing_to_say() -> None:
    assert waiting([(counts(path_openat=900), NOTHING)]) is None


def test_runs_have_a_range() -> None:
    runs = [(counts(osq_lock=100), NOTHING), (counts(path_openat=10), NOTHING)]
    found = waiting(runs)
    assert found
    assert found.insns == estimate([Fraction(10), Fraction(0)])
    assert found.functions == ("osq_lock",)
    assert found.locks == ()


def test_locks_are_what_is_looked_at_meanwhile() -> None:
    accesses = looked_at(
        ("inode.i_rwsem.owner", "rwsem_spin_on_owner", 60),
        ("inode.i_rwsem.osq.tail", "osq_lock", 20),
        ("dentry.d_lockref.lock", "native_queued_spin_lock_slowpath", 70),
        # Whether the one who has it executes; and what others do to the lock.
        ("task_struct.on_cpu", "rwsem_spin_on_owner", 900),
        ("task_struct.thread_info.flags", "rwsem_spin_on_owner", 900),
        ("sb.s_umount.count", "up_read", 900),
        ("task_struct.__state", "rwsem_down_write_slowpath", 900),
        ("task_struct.pi_lock", "native_queued_spin_lock_slowpath", 10),
        ("kernel stack", "rwsem_down_write_slowpath", 900),
        ("qnodes of CPU 1+0x8", "native_queued_spin_lock_slowpath", 900),
    )
    found = waiting([(counts(osq_lock=100), accesses)])
    assert found
    assert found.locks == ("inode.i_rwsem", "dentry.d_lockref.lock", "task_struct.pi_lock")


@pytest.mark.parametrize(
    ("place", "lock"),
    [
        ("inode.i_rwsem.count", "inode.i_rwsem"),
        ("files_struct.file_lock.rlock.raw_lock.val", "files_struct.file_lock"),
        ("pipe_inode_info.mutex.wait_lock.rlock", "pipe_inode_info.mutex"),
        ("dentry.d_lockref.lock", "dentry.d_lockref.lock"),
        ("kmalloc-2k+0x90", "kmalloc-2k+0x90"),
        ("tasklist_lock", "tasklist_lock"),
    ],
)
def test_a_lock_is_named_without_its_own_fields(place: str, lock: str) -> None:
    assert lock_of(place) == lock
