# SPDX-License-Identifier: GPL-2.0-or-later
"""Conflicts that are planted in a kernel: each is found, named, and counted exactly.

The patch adds work to getppid, which boot parameter planted= chooses; no variant differs from
another in anything else.
"""

from fractions import Fraction
from pathlib import Path

import pytest

from kdelta.counts.conflicts import Conflicts
from kdelta.counts.model import merged_regions
from kdelta.infer.conflicts.changes import (
    Contended,
    Contention,
    RegionChange,
    compare_contended,
)
from kdelta.infer.conflicts.interrupts import sent_interrupts
from tests.machines.bench import guest
from tests.machines.test_conflicts import conflicts, run_pairs

pytestmark = [pytest.mark.guest, pytest.mark.build, pytest.mark.slow]

PATCH = Path(__file__).parent / "planted" / "conflicts.patch"
KERNEL = f"deb-src:linux-source-6.12 +defconfig +kvm_guest.config +{PATCH}"
PAIR = "getppid-processes"
NOTHING, GLOBAL, PADDED, UNPADDED, ONE_LOCK, TWO_LOCKS, OWN, OF_FIRST, CALL = (
    *(0, 1, 2, 4, 8, 16, 32, 64, 128),
)

Found = tuple[Conflicts, dict[str, Fraction]]


def found(planted: int) -> Found:
    where = guest(KERNEL, f"planted={planted}", cpus=2)
    outcome, counts = run_pairs(PAIR, where=where)
    return conflicts(outcome)[PAIR], sent_interrupts(merged_regions(counts)[PAIR])


def changed(base: Found, other: Found) -> RegionChange:
    return compare_contended([Contended(*base)], [Contended(*other)])


@pytest.mark.timeout(3600)
def test_each_planted_conflict_is_found_and_named_and_counted() -> None:
    nothing, padded, two, own = map(found, (NOTHING, PADDED, TWO_LOCKS, OWN))
    for quiet, sent in (nothing, padded, two, own):
        assert quiet.steady == ()
        assert sent == {}
    n = nothing[0].iterations
    # A counter of all CPUs.
    shared = found(GLOBAL)
    (line,) = shared[0].steady
    assert (line.name, line.is_true) == ("planted_global_count", True)
    assert [one.writes for one in line.cpus] == [n, n]
    assert changed(nothing, shared).contention is Contention.MORE
    # A slot of each CPU in one line.
    unpadded = found(UNPADDED)
    (line,) = unpadded[0].steady
    assert not line.is_true
    assert {one.place for one in line.fields} == {"planted_unpadded", "planted_unpadded+0x8"}
    assert changed(padded, unpadded).contention is Contention.MORE
    # One lock in place of two.
    locked = found(ONE_LOCK)
    (line,) = locked[0].steady
    assert (line.name, line.is_true) == ("planted_lock", True)
    assert [one.locked for one in line.cpus] == [n, n]
    assert changed(locked, two).contention is Contention.FEWER
    # A counter of each CPU that became one of the first CPU's.
    of_first = found(OF_FIRST)
    (line,) = of_first[0].steady
    assert (line.name, line.is_true) == ("planted_own_count of CPU 0", True)
    assert [one.writes for one in line.cpus] == [n, n]
    assert changed(own, of_first).contention is Contention.MORE


@pytest.mark.timeout(3600)
def test_an_interrupt_for_other_cpus_is_found() -> None:
    nothing, called = found(NOTHING), found(CALL)
    assert called[1] == {"function call": 2}  # one of each CPU an iteration
    change = changed(nothing, called)
    assert change.contention is Contention.MORE
    assert "function call interrupts" in {one.place for one in change.added}
