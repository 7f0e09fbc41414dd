# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts that tasks send to other CPUs."""

from fractions import Fraction

from kdelta.counts.model import Cost, FunctionCost
from kdelta.infer.conflicts.interrupts import (
    InterruptSender,
    interrupt_senders,
    sent_interrupts,
)
from tests.profiles import Stack, profile_of
from tests.synthetic import region


def test_senders_are_counted_by_their_calls_an_iteration() -> None:
    made = region("mprotect", {}, 10)
    functions = (
        FunctionCost("own", "kernel", "native_send_call_func_single_ipi", Cost(80), calls=20),
        FunctionCost("own", "kernel", "native_send_call_func_ipi", Cost(80), calls=5),
        FunctionCost("own", "kernel", "native_flush_tlb_multi", Cost(80), calls=20),
        FunctionCost("own", "kernel", "native_smp_send_reschedule", Cost(80), calls=1),
        FunctionCost("interrupts", "kernel", "native_smp_send_reschedule", Cost(80), calls=3),
        FunctionCost("own", "kernel", "getppid", Cost(80), calls=10),
    )
    found = sent_interrupts(made.__class__(made.name, made.iterations, functions))
    assert found == {
        "TLB shootdown": Fraction(2),
        "function call": Fraction(5, 2),
        "rescheduling": Fraction(1, 10),
    }


def test_a_region_that_sends_nothing_has_none() -> None:
    assert sent_interrupts(region("getppid", {}, 10)) == {}


def test_senders_are_named_from_the_system_call_on() -> None:
    one = "native_send_call_func_single_ipi"
    entry, wakes = ("work:main", "entry"), ("__x64_sys_futex", "futex_wake", "try_to_wake_up")
    flush = ("asm_exc_page_fault", "native_flush_tlb_multi")
    stacks = {
        (*entry, *wakes, one): 8,
        ("work:other", *wakes, one): 8,
        (*flush, "native_send_call_func_ipi"): 8,
        (*flush, "native_flush_tlb_one_user"): 8,
        ("asm_sysvec_reboot", "native_smp_send_reschedule"): 8,
    }
    contexts: dict[Stack, int] = {("asm_sysvec_reboot",): 1}
    found = interrupt_senders([profile_of(stacks, iterations=2, contexts=contexts)])
    assert found == {
        "work": (
            InterruptSender("function call", wakes[::-1], Fraction(1)),
            InterruptSender("TLB shootdown", flush[::-1], Fraction(1, 2)),
        )
    }


def test_a_region_without_marks_is_one_iteration() -> None:
    stacks: dict[Stack, int] = {
        ("work:main", "entry", "__x64_sys_futex", "native_smp_send_reschedule"): 8
    }
    found = interrupt_senders([profile_of(stacks, iterations=0)])
    assert found["work"][0].count == 1
