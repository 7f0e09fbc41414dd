# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulated series of docs/cases/clock-series: verdicts are wrong as seldom as they may be."""

import msgspec
import pytest
from clock_series import (
    BEGIN,
    END,
    FOLDER,
    KINDS,
    PAGE,
    TRIALS,
    Operations,
    Record,
    faults,
    records,
    tables,
)

from kdelta.infer.clock.decide import ALPHA

RECORDS = records()
MANY = msgspec.json.decode((FOLDER / "operations.json").read_bytes(), type=Operations)


def test_there_is_a_record_of_each_kind_and_the_page_has_them() -> None:
    assert list(RECORDS) == list(KINDS)
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert text.strip() == tables(RECORDS, MANY)


@pytest.mark.parametrize("one", RECORDS.values(), ids=lambda one: one.kind)
def test_record_has_all_series_of_each_effect(one: Record) -> None:
    assert one.trials == TRIALS
    assert tuple(row.effect for row in one.rows) == KINDS[one.kind].effects
    for row in one.rows:
        assert row.differs + row.same <= 1
        assert row.wrong <= row.differs + row.same


def test_verdicts_and_intervals_are_wrong_in_five_percent_at_most() -> None:
    assert faults(RECORDS) == []
    assert MANY.false_share <= ALPHA


def test_links_that_are_used_again_are_wrong_and_new_ones_are_not() -> None:
    assert RECORDS["links-1"].rows[0].wrong > 0.4
    assert RECORDS["links-5"].rows[0].wrong > 0.3
    assert RECORDS["links-new"].rows[0].wrong <= ALPHA


def test_effects_of_one_and_two_standard_deviations_are_found_soon() -> None:
    pairs = {row.effect: row.pairs for row in RECORDS["normal"].rows}
    assert pairs["1"] <= 13
    assert pairs["2"] <= 7
    assert pairs["0.5"] < 60
