# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/round-trips keeps shows that three ways agree, and where a state decides."""

from statistics import mean

import pytest
from round_trips import (
    FOLDER,
    OPERATIONS,
    RELEASES,
    TRIALS,
    WAYS,
    apart,
    figures,
    init_rows,
    insns,
    own_insns,
    records,
    with_tables,
)

from kdelta.spec.errors import LabError

RECORDS = records()
OLD, NEW, RT, NEWEST = RELEASES
UNIX = "unix-round-trip"
CELLS = [(release, operation) for release in RELEASES for operation in OPERATIONS]
STATE_DECIDES = (NEW, UNIX)
"""Where kdelta's guests have other bytes charged in advance than those of the init."""


def test_records_are_complete_and_the_readme_has_their_tables() -> None:
    found = [(one.release, one.way, one.boot) for one in RECORDS]
    assert found == [(release, way, boot) for release in RELEASES for way, boot in TRIALS]
    text = (FOLDER / "README.md").read_text()
    assert with_tables(text, RECORDS) == text


@pytest.mark.parametrize(("release", "operation"), [one for one in CELLS if one != STATE_DECIDES])
def test_three_ways_in_one_state_agree_within_1_per_cent(release: str, operation: str) -> None:
    ways = figures(RECORDS, release, operation)
    assert set(ways) == set(WAYS)
    assert apart(ways.values()) < 1
    # "own" leaves out interrupts and elements of string operations.
    own = own_insns(RECORDS, release, operation)
    assert own < ways["counted"] < 1.022 * own


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("release", [NEW, RT, NEWEST])
def test_three_ways_have_one_sign(release: str, operation: str) -> None:
    before, after = (figures(RECORDS, one, operation) for one in (OLD, release))
    signs = {after[way] > before[way] for way in WAYS}
    own = own_insns(RECORDS, release, operation) > own_insns(RECORDS, OLD, operation)
    assert signs == {own}


def test_what_the_plugin_counts_is_what_the_clock_says() -> None:
    for one in RECORDS:
        for row in one.rows:
            if one.way in ("counted", "longer"):
                assert insns(row) == pytest.approx(row.ticks, rel=1e-4)
                assert row.idle == pytest.approx(0, abs=0.1)


def test_unix_round_trip_of_6_12_differs_by_the_charged_page() -> None:
    ways = figures(RECORDS, *STATE_DECIDES)
    assert apart([ways["counted"], ways["longer"]]) < 1
    assert 3 < apart([ways["init"], ways["counted"]]) < 6
    uncharges = {
        (one.release, bool(one.row(UNIX).uncharges)) for one in RECORDS if one.way == "counted"
    }
    assert uncharges == {(OLD, False), (NEW, True), (RT, False), (NEWEST, False)}


@pytest.mark.parametrize("release", RELEASES)
def test_unix_round_trip_has_two_levels_and_kdelta_counts_one_of_them(release: str) -> None:
    (sweep,) = (one for one in RECORDS if (one.release, one.way) == (release, "sweep"))
    medians = sorted(row.median for row in sweep.rows if row.operation == UNIX)
    low, high = medians[0], medians[-1]
    assert high - low > 800
    assert all(abs(one - low) < 50 or abs(one - high) < 50 for one in medians)
    for one in RECORDS:
        if one.release == release and one.way == "counted":
            row = one.row(UNIX)
            assert row.median == pytest.approx(high if row.uncharges else low, abs=50)


def test_kdelta_counts_the_other_level_after_another_operation() -> None:
    (after,) = (one.row(UNIX) for one in RECORDS if (one.release, one.way) == (NEW, "after"))
    (sweep,) = (one for one in RECORDS if (one.release, one.way) == (NEW, "sweep"))
    assert after.uncharges == 0
    low = min(row.median for row in sweep.rows if row.operation == UNIX)
    assert after.median == pytest.approx(low, abs=50)
    assert apart([after.ticks, figures(RECORDS, NEW, UNIX)["init"]]) < 1


def test_init_that_does_not_end_is_an_error() -> None:
    with pytest.raises(LabError, match="did not come to its end"):
        init_rows("trip pipe-round-trip 0 1000 1 2 3 4 5\r\nKernel panic\r\n")


def test_init_rows_are_ticks_an_iteration() -> None:
    (row,) = init_rows("trip pipe-round-trip 2 1000 1000 2000 3000 4000 7\r\ntrips done\r\n")
    assert (row.operation, row.held, row.ticks, row.median) == ("pipe-round-trip", 2, 2.5, 7)
    assert row.quarters == (1, 2, 3, 4)


def test_sign_of_unix_round_trip_depends_on_the_levels() -> None:
    means: dict[tuple[str, bool], list[float]] = {}
    for one in RECORDS:
        if one.way == "sweep":
            rows = [row for row in one.rows if row.operation == UNIX]
            middle = (max(row.median for row in rows) + min(row.median for row in rows)) / 2
            for row in rows:
                means.setdefault((one.release, row.median > middle), []).append(row.ticks)
    level = {key: mean(ticks) for key, ticks in means.items()}
    for high in (False, True):
        assert 1.02 < level[NEW, high] / level[OLD, high] < 1.04
    assert level[NEW, False] < level[OLD, True]
