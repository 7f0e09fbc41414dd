# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/unsteady keeps of planted changes: no word is wrong, and the text says so."""

import pytest
from unsteady import BEGIN, END, FOLDER, INSNS, ROUNDS, Record, Row, parameters, records, table

from kdelta.infer.effects.effects import Word
from kdelta.spec.parameters import split_parameters

RECORDS = {one.name: one for one in records()}
ROWS = [row for one in RECORDS.values() for row in one.rows]


def test_there_is_a_record_of_each_round_and_the_table_has_them() -> None:
    assert list(RECORDS) == list(ROUNDS)
    text = (FOLDER / "README.md").read_text()
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == table(records())


@pytest.mark.parametrize("one", RECORDS.values(), ids=lambda one: one.name)
def test_record_is_of_what_is_planted(one: Record) -> None:
    trials = ROUNDS[one.name]
    assert one.base == parameters(trials, base=True)
    assert one.other == parameters(trials, base=False)
    assert len(split_parameters(one.other)) == len(trials)
    for trial, row in zip(trials, one.rows, strict=True):
        assert (row.operation, row.what, row.limit) == (trial.operation, trial.what, trial.limit)
        assert row.right == pytest.approx(INSNS * trial.right, abs=1e-3)
        assert row.low <= row.diff <= row.high


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation}: {row.what}")
def test_word_is_right_or_not_firm(row: Row) -> None:
    assert bool(row.limit) or not row.wrong


def test_cost_of_each_nth_call_is_measured_right() -> None:
    found = [row for row in ROWS if row.what.startswith("each")]
    assert len(found) > 3
    for row in found:
        assert row.diff == pytest.approx(row.right, rel=0.02)
        assert row.word in {Word.SLOWER, Word.SAME, Word.UNRESOLVED}
    assert [row.word for row in found].count(Word.SLOWER) > 1


@pytest.mark.parametrize(
    ("word", "right", "diff", "wrong"),
    [
        ("slower", 300.0, 300.0, False),
        ("slower", 300.0, 280.0, False),
        ("slower", 300.0, 150.0, True),
        ("slower", 0.0, 1.0, True),
        ("faster", 300.0, -300.0, True),
        ("same", 0.0, 1.0, False),
        ("same", 300.0, 0.0, True),
        ("not steady", 0.0, 300.0, False),
        ("unresolved", 300.0, -300.0, False),
    ],
)
def test_word_that_is_not_true_in_the_long_run_is_wrong(
    word: str, right: float, diff: float, wrong: bool
) -> None:
    row = Row("op", "", "", right, word, "", 1000.0, diff, diff - 5, diff + 5, (3, 3))
    assert row.wrong is wrong


def test_sites_and_operations_of_a_round_are_planted_once() -> None:
    for trials in ROUNDS.values():
        assert len({one.site for one in trials}) == len(trials)
        assert len({one.operation for one in trials}) == len(trials)
