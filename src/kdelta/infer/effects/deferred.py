# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that an operation leaves to others: what RCU, kworkers, softirqs and timers do for it later.

What is freed by RCU, say, costs the task little and another one more. An operation's word is that
of its own work, unless what it leaves is known to outweigh that.
"""

from fractions import Fraction

from kdelta.counts.model import LeftWork, RegionCounts, is_kernel
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.functions import strip_suffixes

WITH_OTHERS = "with what other tasks do for it"
"""The reason of a word that is not that of an operation's own work."""

MAY_OUTWEIGH = "what other tasks do for it may outweigh it"
"""The reason of a word that few runs leave open for that."""

LEAVING = frozenset(
    {
        "call_rcu",  # kernel/rcu/tree.c; the next five are its other forms
        "call_rcu_hurry",
        "__call_rcu_common",
        "__call_rcu",
        "call_rcu_sched",  # what call_rcu was called before 5.0 in kernels that do not preempt
        "call_rcu_bh",
        "kvfree_call_rcu",  # kfree_rcu
        "kfree_call_rcu",
        "call_srcu",  # kernel/rcu/srcutree.c
        "__call_srcu",
        "call_rcu_tasks",  # kernel/rcu/tasks.h
        "call_rcu_tasks_generic",
        "call_rcu_tasks_trace",
        "queue_work_on",  # kernel/workqueue.c; all forms of queueing come to __queue_work or here
        "__queue_work",
        "queue_delayed_work_on",
        "__queue_delayed_work",
        "mod_delayed_work_on",
        "queue_rcu_work",
        "kthread_queue_work",  # kernel/kthread.c
        "__kthread_queue_delayed_work",
        "kthread_mod_delayed_work",
        "wake_up_process",  # kernel/sched/core.c: a kernel thread that is woken by name
        "irq_work_queue",  # kernel/irq_work.c
        "irq_work_queue_on",
        "raise_softirq",  # kernel/softirq.c
        "raise_softirq_irqoff",
        "__raise_softirq_irqoff",
        "__tasklet_schedule",
        "__tasklet_hi_schedule",
        "add_timer",  # kernel/time/timer.c
        "add_timer_on",
        "mod_timer",
        "mod_timer_pending",
        "timer_reduce",
        "__mod_timer",
    }
)
"""Functions of the kernel by which a task leaves work to be done later, not on its time."""


def leaves_work(region: RegionCounts) -> bool:
    """Whether the region's own work calls a function that leaves work to others."""
    return any(
        row.context == "own" and is_kernel(row.origin) and strip_suffixes(row.name) in LEAVING
        for row in region.functions
    )


def left_work(region: RegionCounts, rest: RegionCounts, busy: RegionCounts) -> LeftWork | None:
    """Return what a region leaves to others, from a window that ends long after its last iteration.

    rest, busy: the same window of tasks that leave nothing: one does nothing before, one takes
    time. From both it is known what interrupts and other tasks do anyway while the CPU is idle, and
    while it is not. None where the virtual time is not known.
    """
    times = [one.clock_ticks for one in (region, rest, busy)]
    if not all(times) or times[1] == times[2]:
        return None
    taken, at_rest, at_work = (ticks or 0 for ticks in times)
    idle = _of_others(rest)
    rate = Fraction(_of_others(busy) - idle, at_work - at_rest)
    anyway = idle + rate * max(0, taken - at_rest)
    return LeftWork(round(_of_others(region) - anyway), region.iteration_count)


def _of_others(region: RegionCounts) -> int:
    """What interrupts and other tasks executed."""
    return region.cost("interrupts").insns + region.cost("other").insns


def has_mean(effect: Estimate) -> bool:
    """Return whether runs are so many that the interval of an effect is that of means: of few, what
    begins now and then is in some by chance.
    """
    return effect.is_enough


def is_beyond(effect: Estimate, allowed: Fraction) -> bool:
    """Whether an effect is larger than what is allowed, whatever is in its interval."""
    return effect.low > allowed or effect.high < -allowed
