# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for differs between two kernels."""

from fractions import Fraction

import msgspec
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
    Contended,
    Contention,
    FieldChange,
    Often,
    RegionChange,
    Sent,
    compare_all,
    compare_contended,
)
from kdelta.measures.conflicts.words import because


def field(
    place: str, accesses: int = 20, function: str = "f", *, named: bool = True
) -> ContestedField:
    return ContestedField(place, named, function, accesses, accesses // 2)


def line(
    *fields: ContestedField, true: bool = True, steady: bool = True, placed: bool = False
) -> ContendedLine:
    done = CpuAccesses(5, 5), CpuAccesses(10)
    uses = tuple(FieldUse(one.place, one.function, done) for one in fields)
    return ContendedLine("object", fields, true, steady, 1, uses, is_placed=placed)


def found(*lines: ContendedLine, region: str = "stat", iterations: int = 10) -> Conflicts:
    return Conflicts(region, iterations, 2, False, lines)


def changed(base: Conflicts, other: Conflicts, sent: tuple[Sent, Sent] = ({}, {})) -> RegionChange:
    """By one run of each."""
    return compare_contended([Contended(base, sent[0])], [Contended(other, sent[1])])


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
    assert changed(base, other).contention is word


def test_what_came_and_went_is_named() -> None:
    change = changed(found(A), found(B))
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
    change = changed(found(B), other)
    assert change.contention is word
    assert bool(change.moved) == (word is not Contention.SAME)


def test_more_of_one_and_less_of_another_is_the_same_in_sum_and_listed() -> None:
    base = found(line(field("a.x", 20)), line(field("b.y", 60)))
    other = found(line(field("a.x", 60)), line(field("b.y", 20)))
    change = changed(base, other)
    assert change.contention is Contention.SAME
    assert [one.place for one in change.moved] == ["a.x", "b.y"]


def test_interrupts_that_are_sent_more_often_are_more() -> None:
    one, two = {"TLB shootdown": Fraction(1)}, {"TLB shootdown": Fraction(2)}
    change = changed(found(A), found(A), (one, two))
    assert change.contention is Contention.MORE
    assert [one.place for one in change.added] == ["TLB shootdown interrupts"]
    assert changed(found(A), found(A), (two, one)).contention is Contention.FEWER
    assert changed(found(A), found(A), ({}, one)).contention is Contention.MORE
    rare = {"rescheduling": Fraction(1, 3)}
    assert changed(found(A), found(A), ({}, rare)).contention is Contention.SAME


def test_a_field_that_moved_to_another_line_is_the_same() -> None:
    base = found(line(field("mm_struct.a"), field("mm_struct.b")))
    other = found(line(field("mm_struct.b")), line(field("mm_struct.a")))
    assert changed(base, other).contention is Contention.SAME


def test_a_field_that_moved_into_another_ones_line_is_more() -> None:
    other = found(A, line(field("dentry.d_flags"), true=False))
    change = changed(found(A), other)
    assert change.contention is Contention.MORE
    assert [one.place for one in change.added] == ["dentry.d_flags"]


def test_now_and_then_decides_nothing() -> None:
    rare = line(field("x.y"), steady=False)
    assert changed(found(A), found(A, rare)).contention is Contention.SAME


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("runqueues of CPU 0.nr_running", "runqueues of CPU 1.nr_running"),
        ("file?.f_count", "file.f_count"),
    ],
)
def test_one_field_under_two_names_is_the_same(ours: str, theirs: str) -> None:
    change = changed(found(line(field(ours))), found(line(field(theirs))))
    assert change.contention is Contention.SAME


def test_places_without_names_go_by_their_function() -> None:
    base = line(field("kmalloc-1k+0x2b0", function="open", named=False))
    same = line(field("kmalloc-512+0x100", function="open", named=False))
    other = line(field("kmalloc-1k+0x2b0", function="close", named=False))
    assert changed(found(base), found(same)).contention is Contention.SAME
    assert changed(found(base), found(other)).contention is Contention.OTHERS


def test_regions_that_one_kernel_lacks_are_left_out() -> None:
    both = [[Contended(found(A))], [Contended(found(B, region="only"))]]
    assert [one.region for one in compare_all(both, both[:1])] == ["stat"]


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        ([found(), found()], [found(A), found(A)], Contention.MORE),
        ([found(A), found(A)], [found(), found()], Contention.FEWER),
        ([found(), found()], [found(A), found()], Contention.UNRESOLVED),
        ([found(A), found()], [found(), found()], Contention.UNRESOLVED),
        # Both kernels were seen to contend for it.
        ([found(A), found()], [found(A), found(A)], Contention.SAME),
        # What all runs say is enough for more of it, whatever another field does.
        ([found(), found()], [found(A, B), found(B)], Contention.MORE),
        ([found(B), found(B)], [found(A), found()], Contention.UNRESOLVED),
    ],
)
def test_all_runs_of_a_kernel_have_to_say_so(
    base: list[Conflicts], other: list[Conflicts], word: Contention
) -> None:
    change = compare_contended(*([Contended(one) for one in side] for side in (base, other)))
    assert change.contention is word


def test_what_only_some_runs_say_is_named() -> None:
    runs = [Contended(found(A)), Contended(found())]
    change = compare_contended([Contended(found())], runs)
    assert [one.place for one in change.open] == ["dentry.d_lockref.lock"]
    assert change.open[0].other == Often(Fraction(1), Fraction(1, 2))  # the mean of both runs


def test_how_often_is_told_if_each_run_tells() -> None:
    few, many, between = (found(line(field("a.b", n))) for n in (20, 60, 25))
    runs = [[Contended(few), Contended(between)], [Contended(many), Contended(many)]]
    assert compare_contended(*runs).contention is Contention.MORE_OFTEN
    runs[1][0] = Contended(few)
    assert compare_contended(*runs).contention is Contention.SAME


def reader(place: str, accesses: int = 20, *, placed: bool = False) -> ContestedField:
    """Of a line that another field is contended for in."""
    return ContestedField(place, True, "finish", accesses, 0, is_neighbor=True, is_placed=placed)


READ = line(field("mm_struct.mm_count"), reader("mm_struct.membarrier_state"))
ALONE = line(field("mm_struct.mm_count"))
BY_PLACE = line(field("mm_struct.mm_count"), reader("mm_struct.membarrier_state", placed=True))
SKEWED = line(msgspec.structs.replace(field("mm_struct.mm_count"), skew_bytes=8))


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        (found(ALONE), found(READ), Contention.MORE),
        (found(READ), found(ALONE), Contention.FEWER),
        (found(READ), found(READ), Contention.SAME),
        (found(READ), found(line(field("mm_struct.mm_count"), reader("mm_struct.b"))),
         Contention.OTHERS),
        (found(BY_PLACE), found(READ), Contention.SAME),
        # It is read in a line of its own, or where its object begins in a line's middle.
        (found(SKEWED), found(READ), Contention.PLACEMENT),
        (found(ALONE), found(line(field("mm_struct.mm_count"), reader("jiffies", placed=True))),
         Contention.PLACEMENT),
    ],
)  # fmt: skip
def test_a_reader_that_came_or_went_is_more_or_fewer(
    base: Conflicts, other: Conflicts, word: Contention
) -> None:
    assert changed(base, other).contention is word


def test_a_reader_is_named_with_its_function_and_count_and_what_is_written() -> None:
    (change,) = changed(found(ALONE), found(READ)).added
    assert (change.place, change.function, change.next_to) == (
        "mm_struct.membarrier_state",
        "finish",
        "mm_struct.mm_count",
    )
    assert change.other.accesses == 2
    assert because(changed(found(ALONE), found(READ))) == (
        "+mm_struct.membarrier_state (read 2 times by finish, next to mm_struct.mm_count)"
    )


def test_a_reader_of_a_line_that_came_is_not_named_again() -> None:
    change = changed(found(), found(READ))
    assert [one.place for one in change.added] == ["mm_struct.mm_count"]


def together(*others: ContestedField, skew_bytes: int = 0) -> Conflicts:
    """The reader next to mm_users, or also to others."""
    fields = (field("mm_struct.mm_users"), *others, reader("mm_struct.membarrier_state"))
    return found(line(*(msgspec.structs.replace(one, skew_bytes=skew_bytes) for one in fields)))


COUNT = field("mm_struct.mm_count")
APART = found(*together().lines, line(COUNT))


def test_what_a_reader_is_no_longer_next_to_is_named_and_the_word_stays() -> None:
    went, came = changed(together(COUNT), APART), changed(APART, together(COUNT))
    assert (went.contention, came.contention) == (Contention.SAME, Contention.SAME)
    what = "mm_struct.membarrier_state (read 2 times by finish)"
    assert because(went) == f"{what} no longer next to mm_struct.mm_count"
    assert because(came) == f"{what} now next to mm_struct.mm_count"
    (field,) = came.joined
    assert field.base == field.other == Often(Fraction(2))


@pytest.mark.parametrize(
    ("base", "other"),
    [
        ([together(COUNT)], [together()]),  # the other field went
        ([together(COUNT), APART], [APART]),
        ([together(COUNT)], [APART, together(COUNT)]),
        ([together(COUNT, skew_bytes=8)], [APART]),
        ([together(COUNT)], [found(*together(skew_bytes=8).lines, line(COUNT))]),
        ([together(field("jiffies"))], [found(*together().lines, line(field("jiffies")))]),
    ],
)
def test_nothing_is_no_longer_next_to_a_field_in_some_runs_or_by_its_place(
    base: list[Conflicts], other: list[Conflicts]
) -> None:
    change = compare_contended(list(map(Contended, base)), list(map(Contended, other)))
    assert change.left == change.joined == ()


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ("area.vm_start", "area.vm_start/vm_rcu.next", Contention.SAME),
        ("area.vm_start/vm_rcu.next", "area.vm_rcu.next", Contention.SAME),
        ("page.ptl", "ptdesc.ptl", Contention.SAME),
        ("page.a/b/...", "page.c/d/...", Contention.OTHERS),
        ("area.vm_start", "page.vm_start/vm_rcu.next", Contention.OTHERS),
    ],
)
def test_fields_of_unions_are_the_same_by_any_of_their_names(
    ours: str, theirs: str, word: Contention
) -> None:
    assert changed(found(line(field(ours))), found(line(field(theirs)))).contention is word
    base, other = (found(line(field("a.b"), reader(one))) for one in (ours, theirs))
    assert changed(base, other).contention is word


def test_the_stack_is_named_last() -> None:
    change = changed(found(), found(line(field("kernel stack")), A, READ))
    assert [one.place for one in change.added] == [
        "dentry.d_lockref.lock", "mm_struct.mm_count", "kernel stack"
    ]  # fmt: skip


def test_readers_are_among_what_is_searched_for() -> None:
    assert Contended(found(READ)).accesses == Contended(found(ALONE)).accesses + 2


PLACED = line(field("jiffies"), true=False, placed=True)


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        (found(A), found(A, PLACED), Contention.PLACEMENT),
        (found(A, PLACED), found(A), Contention.PLACEMENT),
        (found(PLACED), found(PLACED), Contention.SAME),
        (found(A, PLACED), found(A, B), Contention.MORE),
        (found(A, B), found(A, PLACED), Contention.FEWER),
        (found(A), found(A, line(field("jiffies"), true=False)), Contention.MORE),
    ],
)
def test_what_the_linker_put_into_a_line_is_no_more_and_no_less(
    base: Conflicts, other: Conflicts, word: Contention
) -> None:
    assert changed(base, other).contention is word


def test_what_came_and_went_by_placement_is_named_and_not_searched_for() -> None:
    change = changed(found(A), found(A, PLACED))
    assert [one.place for one in change.placed] == ["jiffies"]
    assert (change.added, change.gone, change.parted) == ((), (), ())
    assert [one.place for one in changed(found(PLACED), found()).parted] == ["jiffies"]
    assert Contended(found(A, PLACED)).accesses == Contended(found(A)).accesses


HEAP = line(field("content of a page", function="___slab_alloc", named=False))
UNKNOWN = line(field("unknown memory", function="do_count", named=False))


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        (found(A), found(A, HEAP), Contention.UNRESOLVED),
        (found(A, HEAP), found(A), Contention.UNRESOLVED),
        (found(HEAP), found(HEAP), Contention.SAME),
        (found(A, HEAP), found(A, B), Contention.MORE),
        (found(A), found(A, UNKNOWN), Contention.MORE),  # a variable, whose name is not known
    ],
)
def test_pages_of_an_unknown_heap_say_neither_more_nor_less(
    base: Conflicts, other: Conflicts, word: Contention
) -> None:
    assert changed(base, other).contention is word


def test_a_region_that_accesses_too_much_is_not_the_same() -> None:
    cut = msgspec.structs.replace(found(A), is_cut=True)
    assert changed(found(A), cut).contention is Contention.UNRESOLVED


def test_accesses_are_those_to_what_is_contended_for_and_interrupts() -> None:
    rare = line(field("x.y"), steady=False)
    sent = {"function call": Fraction(3), "TLB shootdown": Fraction(3)}  # which are calls
    assert Contended(found(A, B, rare), sent).accesses == 2 + 2 + 3
