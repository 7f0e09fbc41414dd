# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that a clock ends are no totals to compare; others are left as they are."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Cost, RunCounts
from kdelta.infer.effects.clock_bound import times_more
from kdelta.infer.effects.effects import Word, compare_runs
from tests.synthetic import interrupts, own, region, run, user

LOOP = {("bench", "main"): 600_000, ("libc.so.6", "getppid"): 400_000}
START = {("ld-linux.so", "[no symbol]"): 90_000}
KERNEL = {("kernel", "do_syscall_64"): 50_000_000}
TIMER = frozenset({"main", "it_real_fn"})


def scaled(
    functions: dict[tuple[str, str], int], factor: Fraction
) -> dict[tuple[str, str], Fraction]:
    return {key: value * factor for key, value in functions.items()}


def plain(*parts: dict[tuple[str, str], int]) -> dict[tuple[str, str], Fraction]:
    return {key: Fraction(value) for part in parts for key, value in part.items()}


@given(st.fractions(Fraction(1, 2), 3, max_denominator=2000), st.booleans())
def test_the_factor_of_all_that_repeats_is_found(factor: Fraction, has_kernel: bool) -> None:
    kernel = KERNEL if has_kernel else {}
    base, other = plain(LOOP, START, kernel), scaled(LOOP, factor) | plain(START, kernel)
    expected = factor if abs(factor - 1) >= Fraction(1, 2000) else None
    assert times_more(base, other, {"main", "__vdso_clock_gettime"}) == expected
    assert times_more(base, other, {"main"}) is None


@pytest.mark.parametrize(
    ("base", "other", "names"),
    [
        # The same program, whose kernel does more.
        (plain(LOOP, KERNEL), plain(LOOP) | scaled(KERNEL, Fraction(2)), TIMER),
        # One of two functions has more to do: what it read is longer.
        (
            plain(LOOP),
            plain(LOOP) | scaled({("bench", "main"): 600_000}, Fraction(11, 10)),
            TIMER,
        ),
        # One function alone has more to do, and no timer ended.
        (plain({("bench", "main"): 600_000}), plain({("bench", "main"): 660_000}), ()),
        # The vDSO is the kernel's.
        (plain({("[vdso]", "a"): 6_000}), plain({("[vdso]", "a"): 7_000}), TIMER),
        # What repeats is the smaller part.
        (
            plain({("bench", "main"): 100, ("bench", "f"): 100, ("bench", "init"): 900}),
            plain({("bench", "main"): 200, ("bench", "f"): 200, ("bench", "init"): 900}),
            TIMER,
        ),
        (plain(KERNEL), plain(KERNEL), TIMER),
        ({}, {}, TIMER),
    ],
)
def test_other_programs_are_compared_as_they_are(
    base: dict[tuple[str, str], Fraction],
    other: dict[tuple[str, str], Fraction],
    names: frozenset[str],
) -> None:
    assert times_more(base, other, names) is None


def test_a_timer_shows_also_few_iterations_more_by_several_functions() -> None:
    factor = 1 - Fraction(27, 100_000)
    start = {("libc.so.6", "malloc"): 2_000}
    base, other = plain(LOOP, start), scaled(LOOP, factor) | plain(start)
    assert times_more(base, other, TIMER) == factor
    assert times_more(base, other, {"main", "__vdso_clock_gettime"}) is None
    alone = {("bench", "main"): 600_000}
    assert times_more(plain(alone), scaled(alone, factor), TIMER) is None
    assert times_more(base, scaled(LOOP, 1 - Fraction(1, 10**6)) | plain(start), TIMER) is None


def test_one_function_that_a_timer_ended_is_enough() -> None:
    base, other = plain({("bench", "main"): 600_000}), plain({("bench", "main"): 660_000})
    assert times_more(base, other, TIMER) == Fraction(11, 10)


def whole(loops: int, each: int) -> list[RunCounts]:
    functions = {
        own("do_syscall_64"): Cost(loops * each),
        user("main", "bench"): Cost(loops * 5),
        user("getppid", "libc.so.6"): Cost(loops * 3),
        interrupts("it_real_fn"): Cost(50),
    }
    return [run(region("command", functions, 1))] * 4


def test_a_total_of_more_iterations_is_not_comparable_and_has_the_figure_of_one() -> None:
    (found,) = compare_runs(whole(100_000, 400), whole(102_500, 390)).operations
    assert found.verdict.word is Word.NOT_COMPARABLE
    assert found.verdict.reason == (
        "a clock ends it: the other run did 2.5 % more iterations, and each executes -2.45 %; "
        "compare a fixed number of them"
    )


def test_as_many_iterations_have_their_verdict() -> None:
    (found,) = compare_runs(whole(100_000, 400), whole(100_000, 390)).operations
    assert found.verdict.word is Word.FASTER
