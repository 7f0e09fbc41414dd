# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded proof of docs/cases/relinks: predictions held, and so did verdicts."""

import math
from pathlib import Path

import msgspec
import pytest
from relinks import Prediction, Record

from kdelta.workloads.catalog import find_workload

RECORD = Path(__file__).parents[2] / "docs/cases/relinks/relinks.json"
REGIONS = ("open-close", "mmap-munmap", "fork-exit-wait", "tcp-round-trip")
LINKS = 12
SAME_COURSE = 0.001
"""Paths that differ by no more are taken for the same, if as much was interrupted."""

NEVER = {"faster", "slower"}


@pytest.fixture(scope="module")
def record() -> Record:
    return msgspec.json.decode(RECORD.read_bytes(), type=Record)


def took_the_same_course(one: Prediction) -> bool:
    return (
        abs(one.insns[1] - one.insns[0]) <= SAME_COURSE * one.insns[0]
        and one.interrupts[0] == one.interrupts[1]
    )


def test_it_is_of_twelve_links_and_the_whole_workload(record: Record) -> None:
    regions = {one.name for one in find_workload(record.workload).operations}
    assert len(set(record.seeds)) == LINKS
    assert record.operations == ()
    found = {(one.seed, one.region) for one in record.predictions}
    assert found == {(seed, region) for seed in record.seeds for region in regions}
    assert len(record.predictions) == len(found)


@pytest.mark.parametrize("region", REGIONS)
def test_each_prediction_of_these_regions_holds(record: Record, region: str) -> None:
    found = [one for one in record.predictions if one.region == region]
    assert len(found) == LINKS
    assert [one for one in found if not one.holds] == []


def test_of_the_same_course_each_prediction_holds(record: Record) -> None:
    alike = [one for one in record.predictions if took_the_same_course(one)]
    assert len(alike) > len(record.predictions) * 3 / 4
    assert [one for one in alike if not one.holds] == []


def test_links_differ_by_far_more_than_predictions_are_wrong(record: Record) -> None:
    found = [one for one in record.predictions if one.region == "open-close"]
    measured = {one.measured for one in found}
    assert len(measured) > LINKS / 3
    assert max(measured) - min(measured) > 1000 * max(one.off for one in found)


def test_links_of_the_same_objects_are_never_faster_or_slower(record: Record) -> None:
    regions = {one.region for one in record.predictions}
    for words in (record.same.path, record.same.cycles, record.same.unknown):
        assert words.pairs == math.comb(LINKS, 2)
        assert sum(words.words.values()) == words.pairs * len(regions)
        assert NEVER.isdisjoint(words.words)


@pytest.mark.parametrize(("region", "word"), [("chdir", "slower"), ("open-close", "same")])
def test_work_past_the_margin_is_slower_and_work_below_it_the_same_in_all_pairs(
    record: Record, region: str, word: str
) -> None:
    (found,) = [one for one in record.changes if one.region == region]
    assert found.bases == record.seeds
    assert found.cycles_there.words == {word: LINKS**2}
    assert found.path_there.words == {"slower": LINKS**2}
    assert found.insns[0] > 0


def test_nothing_is_reported_of_the_calls_that_a_change_does_not_touch(record: Record) -> None:
    assert len(record.changes) == 2
    for change in record.changes:
        for words in (change.path_elsewhere, change.cycles_elsewhere):
            assert sum(words.words.values()) == LINKS**2 * (len(change.operations) - 1)
            assert NEVER.isdisjoint(words.words)
