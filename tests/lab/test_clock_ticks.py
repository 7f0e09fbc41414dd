# SPDX-License-Identifier: GPL-2.0-or-later
"""The region clock's message, which any program of a guest can send."""

import pytest

from kdelta.lab.execute import clock_ticks


def test_clock_ticks_by_region() -> None:
    assert clock_ticks(b"read 100 7\ntwo words 5 5\n") == ({"read": 93, "two words": 0}, ())


@pytest.mark.parametrize(
    "odd", [b"x 9 nan", b"x 1e9 1", b"x " + b"9" * 5000 + b" 1", b"\xff", b"1 2"]
)
def test_clock_ticks_odd_line_is_left_out_and_named(odd: bytes) -> None:
    ticks, warnings = clock_ticks(odd + b"\nread 100 7\n")
    assert ticks == {"read": 93}
    assert warnings == ("lines of the region clock that are none, and were left out: 1",)
