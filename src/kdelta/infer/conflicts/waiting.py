# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs execute while one waits for the other: the functions in which locks of the kernel spin,
and which locks these wait for.
"""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.conflicts import Conflicts
from kdelta.counts.model import RegionCounts, is_kernel
from kdelta.infer.effects.estimate import Estimate, estimate
from kdelta.infer.effects.functions import strip_suffixes

WAITING = frozenset(
    (
        "native_queued_spin_lock_slowpath",
        "__pv_queued_spin_lock_slowpath",
        "queued_spin_lock_slowpath",
        "queued_read_lock_slowpath",
        "queued_write_lock_slowpath",
        "osq_lock",
        "mutex_spin_on_owner",
        "rwsem_spin_on_owner",
        "rwsem_optimistic_spin",
        "rwsem_down_read_slowpath",
        "rwsem_down_write_slowpath",
    )
)
"""Of kernel/locking, 6.1 to 7.2: called by a CPU that found a lock taken, and until it has it. A
mutex's own slow path is not among them: it has the way of those that find the lock free, too."""

_MUTEX = frozenset(f"__mutex_lock_{how}slowpath" for how in ("", "killable_", "interruptible_"))

_MUTEX_ITSELF = "__mutex_lock"
_PAUSE = "pause"

_BEGIN = re.compile(r"_slowpath$")
"""By which functions a CPU begins to wait; the others are called by these, or by a mutex's."""

_PART = re.compile(
    r"\.(rlock|raw_lock|val|tail|locked|pending|locked_pending|owner|count|osq|wait_lock|wait_list"
    r"|cnts|next|prev|first_waiter)$"
)
"""A field of a lock, whatever it is in."""

_NO_LOCK = re.compile(r"^task_struct\??\.(?!\w*lock\b)|^kernel stack|^(qnodes|osq_node)\b")
"""What one who spins looks at besides: how the tasks that have the lock or wait for it are, and the
places in which these queue up.
"""


class Waited(msgspec.Struct, frozen=True):
    """What waiting takes in one run of a region: instructions, and how often a CPU began to wait,
    an iteration. polls: how often it looked whether others had answered (`pause` where no lock
    spins: after interrupts that it sent, say).
    """

    insns: Fraction
    times: Fraction
    polls: Fraction = Fraction(0)


class Waiting(msgspec.Struct, frozen=True):
    """What waiting takes in a region, over runs: an iteration's instructions, how often a CPU began
    to wait, how often it looked for an answer, the functions, and the locks, those first that are
    accessed most meanwhile.
    """

    region: str
    insns: Estimate
    times: Estimate
    functions: tuple[str, ...]
    locks: tuple[str, ...]
    polls: Estimate = estimate([Fraction(0)])


def waited(region: RegionCounts) -> Waited:
    """Return what the tasks of a region execute while they wait."""
    own = [(strip_suffixes(one.name), one) for one in region.functions if one.context == "own"]
    insns = sum(one.cost.insns for name, one in own if name in WAITING)
    times = sum(one.calls for name, one in own if name in WAITING | _MUTEX and _BEGIN.search(name))
    n = region.iteration_count
    return Waited(Fraction(insns, n), Fraction(times, n), Fraction(sum(_polls(region).values()), n))


def _polls(region: RegionCounts) -> dict[str, int]:
    """How often functions of the kernel pause that spin for no lock."""
    found = by_key(
        (strip_suffixes(one.name), one.cost.specials.get(_PAUSE, 0))
        for one in region.functions
        if one.context == "own" and is_kernel(one.origin)
    )
    return {
        name: sum(of)
        for name, of in found.items()
        if sum(of) and name not in WAITING and not name.startswith(_MUTEX_ITSELF)
    }


def waiting(runs: Sequence[tuple[RegionCounts, Conflicts]]) -> Waiting | None:
    """Return what waiting takes over runs of a region; None where no CPU waits in any."""
    every = [waited(region) for region, _ in runs]
    if not any(one.insns or one.polls for one in every):
        return None
    return Waiting(
        region=runs[0][0].name,
        insns=estimate([one.insns for one in every]),
        times=estimate([one.times for one in every]),
        functions=_functions(region for region, _ in runs),
        locks=_locks(conflicts for _, conflicts in runs),
        polls=estimate([one.polls for one in every]),
    )


def _functions(runs: Iterable[RegionCounts]) -> tuple[str, ...]:
    """Those that wait, the longest first; and those that look for answers."""
    runs = list(runs)
    insns = by_key(
        (strip_suffixes(one.name), one.cost.insns)
        for region in runs
        for one in region.functions
        if one.context == "own" and one.cost.insns
    )
    polls = by_key(pair for region in runs for pair in _polls(region).items())
    return (
        *_most({name: sum(of) for name, of in insns.items() if name in WAITING}),
        *_most({name: sum(of) for name, of in polls.items()}),
    )


def _locks(runs: Iterable[Conflicts]) -> tuple[str, ...]:
    """What they access meanwhile, as locks: without the lock's own fields."""
    accesses = by_key(
        (lock_of(use.place), sum(one.total for one in use.cpus))
        for conflicts in runs
        for line in conflicts.lines
        for use in line.uses
        if strip_suffixes(use.function) in WAITING and not _NO_LOCK.match(use.place)
    )
    return _most({name: sum(of) for name, of in accesses.items()})


def _most(counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def lock_of(place: str) -> str:
    """Return the lock that a field is of, by its name: "inode.i_rwsem" of its owner."""
    while match := _PART.search(place):
        place = place[: match.start()]
    return place
