# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for differs between two kernels."""

from fractions import Fraction

import pytest

from kdelta.counts.conflicts import (
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
)
from kdelta.infer.conflicts.changes import (
    NEVER,
    Contention,
    FieldChange,
    Often,
    compare_all,
    compare_conflicts,
)


def field(
    place: str, accesses: int = 20, function: str = "f", *, named: bool = True
) -> ContestedField:
    return ContestedField(place, named, function, accesses, accesses // 2)


def line(*fields: ContestedField, true: bool = True, steady: bool = True) -> ContendedLine:
    done = CpuAccesses(5, 5), CpuAccesses(10)
    uses = tuple(FieldUse(one.place, one.function, done) for one in fields)
    return ContendedLine("object", fields, true, steady, 1, uses)


def found(*lines: ContendedLine, region: str = "stat", iterations: int = 10) -> Conflicts:
    return Conflicts(region, iterations, 2, False, lines)


A, B = line(field("dentry.d_lockref.lock")), line(field("file.f_count"))


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        (found(A), found(A), Contention.SAME),
        (found(), found(), Contention.SAME),
        (found(A), found(A, B), Contention.MORE),
        (found(A, B), found(A), Contention.FEWER),
        (found(A), found(B), Contention.OTHERS),
    ],
)
def test_the_word_goes_by_fields_that_came_and_went(
    base: Conflicts, other: Conflicts, word: Contention
) -> None:
    assert compare_conflicts(base, other).contention is word


def test_what_came_and_went_is_named() -> None:
    change = compare_conflicts(found(A), found(B))
    assert [one.place for one in change.added] == ["file.f_count"]
    often = Often(Fraction(2), Fraction(1))
    assert change.gone == (FieldChange("dentry.d_lockref.lock", often, NEVER),)


@pytest.mark.parametrize(
    ("accesses", "word"),
    [
        (40, Contention.SAME),  # of 20 iterations, as often as 20 of 10
        (58, Contention.SAME),  # by less than a write in two iterations
        (60, Contention.MORE_OFTEN),
        (20, Contention.LESS_OFTEN),
    ],
)
def test_how_often_is_an_iteration(accesses: int, word: Contention) -> None:
    other = found(line(field("file.f_count", accesses=accesses)), iterations=20)
    change = compare_conflicts(found(B), other)
    assert change.contention is word
    assert bool(change.moved) == (word is not Contention.SAME)


def test_more_of_one_and_less_of_another_is_the_same_in_sum_and_listed() -> None:
    base = found(line(field("a.x", 20)), line(field("b.y", 60)))
    other = found(line(field("a.x", 60)), line(field("b.y", 20)))
    change = compare_conflicts(base, other)
    assert change.contention is Contention.SAME
    assert [one.place for one in change.moved] == ["a.x", "b.y"]


def test_interrupts_that_are_sent_more_often_are_more() -> None:
    one, two = {"TLB shootdown": Fraction(1)}, {"TLB shootdown": Fraction(2)}
    change = compare_conflicts(found(A), found(A), (one, two))
    assert change.contention is Contention.MORE
    assert [one.place for one in change.added] == ["TLB shootdown interrupts"]
    assert compare_conflicts(found(A), found(A), (two, one)).contention is Contention.FEWER
    assert compare_conflicts(found(A), found(A), ({}, one)).contention is Contention.MORE
    rare = {"rescheduling": Fraction(1, 3)}
    assert compare_conflicts(found(A), found(A), ({}, rare)).contention is Contention.SAME
    every = compare_all([found(A)], [found(A)], ({"stat": one}, {"stat": {}}))
    assert [each.contention for each in every] == [Contention.FEWER]


def test_a_field_that_moved_to_another_line_is_the_same() -> None:
    base = found(line(field("mm_struct.a"), field("mm_struct.b")))
    other = found(line(field("mm_struct.b")), line(field("mm_struct.a")))
    assert compare_conflicts(base, other).contention is Contention.SAME


def test_a_field_that_moved_into_another_ones_line_is_more() -> None:
    other = found(A, line(field("dentry.d_flags"), true=False))
    change = compare_conflicts(found(A), other)
    assert change.contention is Contention.MORE
    assert [one.place for one in change.added] == ["dentry.d_flags"]


def test_now_and_then_decides_nothing() -> None:
    rare = line(field("x.y"), steady=False)
    assert compare_conflicts(found(A), found(A, rare)).contention is Contention.SAME


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("runqueues of CPU 0.nr_running", "runqueues of CPU 1.nr_running"),
        ("file?.f_count", "file.f_count"),
    ],
)
def test_one_field_under_two_names_is_the_same(ours: str, theirs: str) -> None:
    change = compare_conflicts(found(line(field(ours))), found(line(field(theirs))))
    assert change.contention is Contention.SAME


def test_places_without_names_go_by_their_function() -> None:
    base = line(field("kmalloc-1k+0x2b0", function="open", named=False))
    same = line(field("kmalloc-512+0x100", function="open", named=False))
    other = line(field("kmalloc-1k+0x2b0", function="close", named=False))
    assert compare_conflicts(found(base), found(same)).contention is Contention.SAME
    assert compare_conflicts(found(base), found(other)).contention is Contention.OTHERS


def test_regions_that_one_kernel_lacks_are_left_out() -> None:
    both = [found(A), found(B, region="only")]
    assert [one.region for one in compare_all(both, [found(A)])] == ["stat"]
