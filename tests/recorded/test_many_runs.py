# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that docs/cases/many-runs recorded are right by 64 runs a side."""

import many_runs
import pytest
from many_runs import FOLDER, RUNS, Record, Row, records


@pytest.mark.parametrize("one", records(FOLDER), ids=lambda one: one.pair)
def test_no_recorded_word_is_wrong_by_many_runs(one: Record) -> None:
    assert [row.wrong for row in one.rows if row.wrong] == []
    assert {len(side) for row in one.rows for side in (row.base, row.other)} == {RUNS}
    assert one.pair in many_runs.PAIRS


def row(word: str, base: float, other: float, spread: float = 1.0) -> Row:
    """Many runs of two means, each a level above and below in turn."""
    levels = [-spread, spread] * (RUNS // 2)
    sides = [tuple(mean + level for level in levels) for mean in (base, other)]
    return Row("pipe", word, (8, 8), 0.0, 0.0, *sides)


@pytest.mark.parametrize(
    ("word", "other", "wrong"),
    [
        ("slower", 1020.0, False),
        ("slower", 980.0, True),
        ("slower", 1000.1, True),
        ("faster", 980.0, False),
        ("faster", 1020.0, True),
        ("same", 1004.0, False),
        ("same", 1006.5, True),
        ("same", 993.5, True),
        ("unresolved", 1100.0, False),
    ],
)
def test_word_is_compared_with_many_runs(word: str, other: float, *, wrong: bool) -> None:
    assert bool(row(word, 1000.0, other).wrong) is wrong


def test_what_many_runs_do_not_show_is_no_difference() -> None:
    assert row("slower", 1000.0, 1003.0, spread=20.0).wrong
    assert not row("slower", 1000.0, 1030.0, spread=20.0).wrong
