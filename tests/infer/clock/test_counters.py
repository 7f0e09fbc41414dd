# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters next to exact counts: what of a difference is known, and what is left of it."""

import pytest

from kdelta.infer.clock.counters import (
    INTERRUPTS,
    MARKS,
    READINGS,
    CheckedOperation,
    ExactCount,
    Retired,
    check_operation,
)

EXACT = ExactCount(25.0, 450.0)


def checked(
    user: float | None,
    kernel: float | None,
    exact: ExactCount = EXACT,
    marks: float | None = 20.0,
    counted: float = 1.0,
) -> CheckedOperation:
    """20 ms of an operation that takes 500 ns, in 80 samples."""
    retired = Retired(user, kernel, 500.0, 40_000, 80, counted)
    return check_operation("getppid", retired, exact, 0.01, marks=marks, interrupts=0.002)


def test_difference_of_marks_readings_and_interrupts_agrees() -> None:
    found = checked(45.4, 451.0)
    assert found.user
    assert found.kernel
    assert found.user.parts == {MARKS: 20.0, READINGS: pytest.approx(0.4)}
    assert found.kernel.parts == {INTERRUPTS: pytest.approx(1.0)}
    assert found.left == pytest.approx(0.0)
    assert (found.agrees, found.why) == (True, ())


@pytest.mark.parametrize("more", [0.6, -0.1])
def test_more_than_readings_can_be_is_left(more: float) -> None:
    found = checked(45.0 + more, 450.0)  # 80 readings in 40,000 iterations are 0.5 at most
    assert found.user
    assert READINGS not in found.user.parts
    assert found.user.left == pytest.approx(more)


@pytest.mark.parametrize(("kernel", "agrees"), [(455.0, True), (456.5, False), (445.0, False)])
def test_agreement_is_within_the_margin(kernel: float, agrees: bool) -> None:
    assert checked(45.0, kernel).agrees is agrees


def test_differences_of_user_and_kernel_do_not_cancel() -> None:
    assert not checked(55.0, 441.0).agrees


def test_spread_of_exact_runs_counts() -> None:
    assert checked(45.0, 456.5, ExactCount(25.0, 450.0, spread=2.0)).agrees


def test_interrupts_are_those_of_the_time_that_was_counted() -> None:
    found = checked(45.0, 450.0, counted=0.5)
    assert found.kernel
    assert found.kernel.parts[INTERRUPTS] == pytest.approx(0.5)


def test_reasons_of_what_is_left() -> None:
    exact = ExactCount(25.0, 450.0, faults=1.0)
    assert any("62 % of its time" in one for one in checked(45.0, 300.0, counted=0.62).why)
    assert any("1 page faults" in one for one in checked(45.0, 300.0, exact).why)
    exact = ExactCount(25.0, 450.0, switches=2.0, group=30.4)
    assert checked(45.0, 300.0, exact).why == (
        "2 task switches an iteration, in which counters stop",
        "up to 30 instructions are of the exact runs' control group",
    )
    assert checked(45.0, 300.0).why[0].startswith("not explained")
    assert checked(45.0, 300.0, marks=None).why == ("what a mark costs is not known",)


def test_user_alone_where_the_kernel_is_not_counted() -> None:
    found = checked(45.0, None)
    assert found.kernel is None
    assert found.exact_insns == 25.0
    assert found.agrees


def test_nothing_counted_does_not_agree() -> None:
    assert not checked(None, None).agrees
