# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts that the measured tasks send to other CPUs, by the functions that send them."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import CONTEXTS, RegionCounts
from kdelta.counts.profile import NodeEntry, Profile

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


class InterruptSender(msgspec.Struct, frozen=True):
    """What makes measured tasks send interrupts of a kind, so often an iteration. callers: of the
    function that sends, the nearest first, up to the system call's or the exception's.
    """

    kind: str
    callers: tuple[str, ...]
    count: Fraction


_ENTRIES = {NodeEntry.ROOT, NodeEntry.SYSCALL, NodeEntry.EXCEPTION, NodeEntry.SIGNAL}
_SYSTEM_CALL = ("__x64_sys_", "__ia32_")
_OWN = CONTEXTS.index("own")


def interrupt_senders(profiles: Iterable[Profile]) -> dict[str, tuple[InterruptSender, ...]]:
    """Return by region who sends interrupts to other CPUs, those first that send most. All counts
    of a region add up to what it sends; each TLB shootdown is there once.
    """
    return {profile.region: tuple(_senders(profile)) for profile in profiles}


def _senders(profile: Profile) -> Iterator[InterruptSender]:
    tree = profile.tree
    names = [one.name for one in profile.functions]
    sends = [
        node
        for node in range(len(tree))
        if names[tree.function[node]] in _SENDERS
        and tree.context[node] == _OWN
        and tree.entered[node]
    ]
    found = by_key((_sent_by(profile, names, node), int(tree.entered[node])) for node in sends)
    iterations = max(1, profile.iterations)  # without marks for them, a region is one
    for (kind, callers), counts in sorted(found.items(), key=lambda one: (-sum(one[1]), one[0])):
        yield InterruptSender(kind, callers, Fraction(sum(counts), iterations))


def _sent_by(profile: Profile, names: list[str], node: int) -> tuple[str, tuple[str, ...]]:
    """The kind of what a node sends, and its callers."""
    tree, callers = profile.tree, []
    kind = _SENDERS[names[tree.function[node]]]
    while tree.entry[node] not in _ENTRIES and tree.parent[node] >= 0:
        node = int(tree.parent[node])
        callers.append(names[tree.function[node]])
        if callers[-1].startswith(_SYSTEM_CALL):
            break
    return SHOOTDOWN if _SHOOTDOWN in callers else kind, tuple(callers)
