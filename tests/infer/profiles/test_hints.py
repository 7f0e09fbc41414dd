# SPDX-License-Identifier: GPL-2.0-or-later
"""What may have become of functions that one side alone executed."""

from fractions import Fraction

from kdelta.infer.profiles.diff import DiffLine, Hint, HintOutcome, callers_of, diff_lines, hints
from kdelta.infer.profiles.profile import Selection
from tests.profiles import Stack, profile_of

OWN = Selection()


def guessed(a: dict[Stack, int], b: dict[Stack, int]) -> tuple[Hint, ...]:
    sides = [profile_of(a), profile_of(b)]
    figures = [
        {(row.origin, row.name): Fraction(row.cost.insns) for row in side.function_costs()}
        for side in sides
    ]
    lines: tuple[DiffLine, ...] = diff_lines(figures[0], figures[1])
    return hints(lines, *(callers_of([side], OWN) for side in sides))


def kernel(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(("kernel", name) for name in names)


def test_inlined_into_its_callers() -> None:
    a: dict[Stack, int] = {("f",): 10, ("g",): 10, ("f", "small"): 9, ("g", "small"): 9, ("h",): 1}
    b: dict[Stack, int] = {("f",): 16, ("g",): 17, ("h",): 1}
    (hint,) = guessed(a, b)
    assert (hint.outcome, hint.key, hint.others) == (
        HintOutcome.INLINED,
        *kernel("small"),
        kernel("f", "g"),
    )
    assert [hint.figure, hint.added] == [Fraction(18), Fraction(13)]
    (back,) = guessed(b, a)
    assert (back.outcome, back.key, back.others) == (
        HintOutcome.OUTLINED,
        *kernel("small"),
        kernel("f", "g"),
    )
    assert back.added == -13


def test_not_if_its_callers_did_not_grow() -> None:
    a: dict[Stack, int] = {("f",): 10, ("f", "small"): 9}
    assert guessed(a, {("f",): 11}) == ()
    # It is not called any more, and its caller is gone as well.
    assert guessed({**a, ("g",): 1}, {("g",): 1}) == ()


def test_renamed() -> None:
    a: dict[Stack, int] = {("f",): 10, ("f", "alloc"): 90, ("g", "alloc"): 10, ("g",): 5}
    b: dict[Stack, int] = {
        ("f",): 10,
        ("f", "alloc_new"): 70,
        ("g", "alloc_new.isra.0"): 5,
        ("g",): 5,
    }
    (hint,) = guessed(a, b)
    assert (hint.outcome, hint.key, hint.others) == (
        HintOutcome.RENAMED,
        *kernel("alloc"),
        kernel("alloc_new"),
    )
    assert hint.added == -25


def test_not_if_it_may_be_one_of_two() -> None:
    a: dict[Stack, int] = {("f",): 10, ("f", "alloc"): 90}
    b: dict[Stack, int] = {("f",): 10, ("f", "alloc_one"): 50, ("f", "alloc_two"): 40}
    assert guessed(a, b) == ()
