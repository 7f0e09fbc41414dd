# SPDX-License-Identifier: GPL-2.0-or-later
"""Student's t: against printed tables, and by its own symmetry."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.effects.intervals import two_sided, upper_tail

# Two-sided 5 % and 0.1 %, as printed in any table of t.
TABLE = {
    1: (12.706, 636.619),
    2: (4.303, 31.599),
    3: (3.182, 12.924),
    4: (2.776, 8.610),
    5: (2.571, 6.869),
    10: (2.228, 4.587),
    29: (2.045, 3.659),
    30: (2.042, 3.646),
    60: (2.000, 3.460),
    120: (1.980, 3.373),
}


@pytest.mark.parametrize("degrees", TABLE)
def test_the_tables(degrees: int) -> None:
    for error, printed in zip((0.05, 0.001), TABLE[degrees], strict=True):
        assert two_sided(error, degrees) == pytest.approx(printed, abs=6e-4)


def test_many_degrees_are_normal_and_never_narrower() -> None:
    normal = statistics.NormalDist().inv_cdf(0.975)
    for degrees in (1000, 10**6):
        assert normal < two_sided(0.05, degrees) < 1.002 * normal


@given(st.floats(-50, 50), st.integers(1, 300))
def test_tails_are_symmetric_and_fall(t: float, degrees: int) -> None:
    tail = upper_tail(t, degrees)
    assert tail + upper_tail(-t, degrees) == pytest.approx(1)
    assert upper_tail(t + 0.1, degrees) <= tail + 1e-14


@given(st.floats(1e-9, 0.999), st.integers(1, 300))
def test_a_quantile_has_its_tail(error: float, degrees: int) -> None:
    tail = upper_tail(two_sided(error, degrees), degrees)
    assert 2 * tail == pytest.approx(error, rel=1e-4)


def test_without_degrees_or_with_an_impossible_error_there_is_no_answer() -> None:
    assert upper_tail(math.inf, 3) == 0
    with pytest.raises(ValueError, match="no degree of freedom"):
        upper_tail(1.0, 0)
    for error in (0.0, 1.0):
        with pytest.raises(ValueError, match="no probability"):
            two_sided(error, 5)
