# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded proof of docs/cases/planted: all culprits from each end, and nothing else."""

import math
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from kdelta.spec.run import RunStatus
from scripts.proofs.planted import (
    BACK,
    BAD,
    CULPRITS,
    FASTER,
    GOOD,
    INSNS,
    PAIR,
    PLANTS,
    RANGES,
    SLOWER,
    Record,
    Search,
    reverted,
)

RECORD = Path(__file__).parents[2] / "docs/cases/planted/planted.json"
MOST_BYTES = 100_000
MORE = 3
"""Builds that each search may take besides log2 of its candidates, whatever it has to skip."""


@pytest.fixture(scope="module")
def record() -> Record:
    return msgspec.json.decode(RECORD.read_bytes(), type=Record)


def subjects(one: Search) -> set[str]:
    """All commits that were found, alone or with others."""
    return {subject for found in one.found for subject in found.commits}


def as_named(one: Search, *names: str) -> set[str]:
    """These commits, or where those are searched their reverts."""
    return {reverted(name) if one.bad == BACK else name for name in names}


def test_forty_commits_are_planted() -> None:
    assert len(PLANTS) == 40
    assert sum(one.merge for one in PLANTS) == 1
    assert {SLOWER, FASTER, *PAIR} < {one.subject for one in PLANTS}


def test_each_culprit_and_all_are_searched_from_each_end(record: Record) -> None:
    found = {(one.good, one.bad, one.region) for one in record.searches}
    assert found == {(*ends, region) for ends in RANGES for region in ("", *CULPRITS)}
    assert len(record.searches) == len(found) == 12
    assert {(GOOD, BAD), (BAD, GOOD), (BAD, BACK)} == set(RANGES)


def test_it_is_as_the_program_says(record: Record) -> None:
    assert [fault for one in record.searches for fault in one.faults()] == []


def test_all_culprits_are_found_and_nothing_else(record: Record) -> None:
    for one in record.searches:
        if not one.region:
            assert subjects(one) == as_named(one, SLOWER, FASTER, *PAIR)
            assert len(one.found) == 3
    by_region = {"open-close": {SLOWER}, "uname": {FASTER}, "stat": set(PAIR)}
    for one in record.searches:
        if one.region:
            assert subjects(one) == as_named(one, *by_region[one.region])


def test_nothing_is_left_to_explain(record: Record) -> None:
    for one in record.searches:
        assert one.whole.keys() == ({one.region} if one.region else CULPRITS.keys())
        assert one.left == {}


def test_those_that_hang_together_are_one(record: Record) -> None:
    for one in record.searches:
        several = [set(found.commits) for found in one.found if len(found.commits) > 1]
        assert several == ([as_named(one, *PAIR)] if one.region in ("", "stat") else [])


def test_effects_are_what_was_planted(record: Record) -> None:
    seen: Counter[str] = Counter()
    for one in record.searches:
        sign = -1 if one.bad == BACK else 1
        for found in one.found:
            (region,) = found.effects
            seen[region] += 1
            if region == "open-close":
                assert found.functions == {region: {"do_sys_openat2": sign * INSNS}}
            assert found.confirmed or region == "stat"
            change = found.effects[region]
            assert change.low <= change.value <= change.high
            assert change.value * sign == pytest.approx(
                {"open-close": INSNS, "uname": -30, "stat": INSNS + 6}[region], abs=1
            )
    assert seen == {"open-close": 6, "uname": 6, "stat": 6}


def test_no_more_builds_than_log2_and_three(record: Record) -> None:
    for one in record.searches:
        assert len({kernel.commit for kernel in one.kernels}) == len(one.kernels)
        assert 2 <= one.candidates <= one.commits - len(one.ruled_out)
        each = math.log2(one.candidates)
        assert one.builds <= (1 if one.region else 3) * each + MORE


def test_what_fails_was_met(record: Record) -> None:
    met = Counter(kernel.status for one in record.searches for kernel in one.kernels)
    assert met[RunStatus.BUILD_FAILED] > 0
    assert met[RunStatus.BOOT_FAILED] > 0
    assert met.keys() == {RunStatus.OK, RunStatus.BUILD_FAILED, RunStatus.BOOT_FAILED}


def test_it_names_nothing_of_the_machine_that_it_was_made_on() -> None:
    text = RECORD.read_text()
    assert len(text) <= MOST_BYTES
    assert not [word for word in text.split('"') if word.startswith(("/", "~"))]
