# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts that the measured tasks send to other CPUs, by the functions that send them."""

from collections.abc import Mapping
from fractions import Fraction

from kdelta.counts.model import RegionCounts

_SENDERS = {
    "native_smp_send_reschedule": "rescheduling",
    "native_send_call_func_single_ipi": "function call",
    "native_send_call_func_ipi": "function call",
}
"""Of x86-64: arch/x86/kernel/smp.c. The last one may send to several CPUs at once."""

_SHOOTDOWN = "native_flush_tlb_multi"
SHOOTDOWN = "TLB shootdown"
"""Of function calls, those by which other CPUs flush what they know of an address space."""


def all_sent(kinds: Mapping[str, Fraction]) -> Fraction:
    """Return how many interrupts of all kinds an iteration sends."""
    return sum((n for kind, n in kinds.items() if kind != SHOOTDOWN), Fraction(0))


def sent_interrupts(region: RegionCounts) -> dict[str, Fraction]:
    """Return how often an iteration asks other CPUs for something, by kind; nothing that never
    happens. TLB shootdowns are function calls as well.
    """
    found: dict[str, int] = {}
    for function in region.functions:
        if function.context == "own" and function.calls:
            kind = SHOOTDOWN if function.name == _SHOOTDOWN else _SENDERS.get(function.name)
            if kind:
                found[kind] = found.get(kind, 0) + function.calls
    return {kind: Fraction(n, region.iteration_count) for kind, n in sorted(found.items())}
