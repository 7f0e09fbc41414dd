# SPDX-License-Identifier: GPL-2.0-or-later
"""Conflicts with something of everything their report can say."""

from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import (
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
    Place,
)
from kdelta.cpus.model import LineTransfer
from kdelta.infer.conflicts.changes import Contended, compare_all
from kdelta.infer.conflicts.interrupts import InterruptSender
from kdelta.infer.conflicts.waiting import Waiting
from kdelta.infer.effects.estimate import estimate
from kdelta.report.model import KernelRuns, ReportedRun
from kdelta.spec.run import RunStatus
from kdelta.studies.conflicts.model import ConflictSide, ConflictsReport, ReportedTransfer
from tests.report.example import MACHINE, stored

OLD, NEW = "deb:linux-image-cloud-amd64", "deb:linux-image-6.12-cloud-amd64"


def line(
    where: Place,
    place: str,
    *functions: str,
    named: bool = True,
    true: bool = True,
    steady: bool = True,
    count: int = 1,
    times: int = 400,
) -> ContendedLine:
    """Each CPU reads and writes it so often."""
    done = CpuAccesses(2 * times, times, times), CpuAccesses(2 * times, times, 0)
    uses = tuple(FieldUse(place, function, done) for function in functions)
    total = 6 * times * len(functions)
    field = ContestedField(place, named, functions[0], total, total // 3)
    return ContendedLine(where, (field,), true, steady, count, uses)


LOCK = line("object", "dentry.d_lockref.lock", "lockref_get_not_dead", "lockref_put_return")
COUNT = line("object", "file.f_count", "fget", "fput", "get_file_rcu", "vfs_read", "vfs_write")
READ = msgspec.structs.replace(
    LOCK,
    fields=(
        *LOCK.fields,
        ContestedField("dentry.d_sb", True, "do_dentry_open", 1600, 0, is_neighbor=True),
    ),
    uses=(
        *LOCK.uses,
        FieldUse("dentry.d_sb", "do_dentry_open", (CpuAccesses(800), CpuAccesses(800))),
    ),
)
LABEL = line("object", "kmalloc-512+0x100", "apparmor_file_free_security", named=False)
QUEUE = line("per-CPU", "runqueues of CPU 1.nr_running", "enqueue_task", true=False)
RARE = line("variable", "jiffies", "do_timer", steady=False, times=3)
STACK = line("stack", "kernel stack", "pipe_write", count=2)


def found(region: str, *lines: ContendedLine, is_cut: bool = False) -> Conflicts:
    return Conflicts(region, 400, 2, is_cut, lines)


WAITS = {
    OLD: (
        Waiting(
            "open-close-same-file",
            estimate([Fraction(190), Fraction(210)]),
            estimate([Fraction(1)]),
            ("rwsem_spin_on_owner", "osq_lock", "rwsem_down_write_slowpath"),
            ("inode.i_rwsem", "dentry.d_lockref.lock", "sb.s_umount"),
        ),
    ),
    NEW: (
        Waiting(
            "pipe-across",
            estimate([Fraction(1, 2)]),
            estimate([Fraction(1, 100)]),
            ("native_queued_spin_lock_slowpath",),
            ("pipe_inode_info.rd_wait.lock",),
        ),
    ),
}


WAKES = ("__smp_call_single_queue", "ttwu_queue_wakelist", "try_to_wake_up", "wake_up_q")
SENDERS: dict[str, dict[str, tuple[InterruptSender, ...]]] = {
    NEW: {
        "pipe-across": (
            InterruptSender(
                "function call", (*WAKES, "futex_wake", "do_futex", "__x64_sys_futex"), Fraction(1)
            ),
            InterruptSender("TLB shootdown", ("smp_call_function_many_cond",), Fraction(1)),
            InterruptSender("rescheduling", ("resched_curr",), Fraction(1, 400)),
        )
    }
}


def side(spec: str, letter: str, *regions: Conflicts) -> ConflictSide:
    first, second = (stored(index, RunStatus.OK) for index in (0, 1))
    second = msgspec.structs.replace(second, machine={**second.machine, "turn_us": 20})
    runs = ReportedRun(first), ReportedRun(second)
    release = "6.12.90-cloud-amd64" if spec == NEW else "6.1.90-cloud-amd64"
    sent = {"pipe-across": {"function call": Fraction(2), "TLB shootdown": Fraction(1)}}
    kernel = KernelRuns(spec, letter * 64, release, runs)
    return ConflictSide(kernel, regions, sent, WAITS.get(spec, ()), SENDERS.get(spec, {}))


BASE = side(
    OLD, "a",
    found("stat-same-file", LOCK, RARE),
    found("stat-two-files"),
    found("open-close-same-file", READ, LABEL),
    found("pipe-across", STACK, COUNT, QUEUE, RARE, is_cut=True),
)  # fmt: skip
OTHER = side(
    NEW, "b",
    found("stat-same-file", line("object", "dentry.d_lockref.lock", "lockref_get", times=1600)),
    found("stat-two-files", COUNT),
    found("open-close-same-file", LOCK),
    found("pipe-across", STACK, LABEL, QUEUE),
)  # fmt: skip


def conflicts_report() -> ConflictsReport:
    """One kernel."""
    machine = {**MACHINE, "cpus": 2}
    on = ReportedTransfer("zen4", LineTransfer((15, 19), (68, 79.5)), "a review, page 3")
    warnings = ("a region never ended (1)",)
    return ConflictsReport("pairs", 2, machine, (BASE,), warnings=warnings, on=on)


def _runs(one: ConflictSide) -> list[list[Contended]]:
    return [[Contended(of)] for of in one.conflicts]


def compared_conflicts() -> ConflictsReport:
    """Two kernels: regions of each word."""
    changes = compare_all(_runs(BASE), _runs(OTHER))
    return ConflictsReport("pairs", 2, {**MACHINE, "cpus": 2}, (BASE, OTHER), changes)


def same_kernel() -> ConflictsReport:
    """One kernel twice."""
    report = compared_conflicts()
    changes = compare_all(_runs(BASE), _runs(BASE))
    return msgspec.structs.replace(report, sides=(BASE, BASE), changes=changes, same_kernel=True)


def failed_conflicts() -> ConflictsReport:
    """A kernel that could not be built."""
    none = ConflictSide(KernelRuns("./linux", "", "", (), "build-failed: no rule"))
    return ConflictsReport("pairs", 2, {}, (none,))
