# SPDX-License-Identifier: GPL-2.0-or-later
"""What verdicts by path and by clock cost: figures and page are of the trials that are kept."""

import clock_ratio
import msgspec
import numpy as np
import pytest
from clock_boots import FOLDER
from clock_ratio import (
    BEGIN,
    END,
    LEAST_PAIRS,
    PATHS,
    POWER,
    SIZES,
    Compared,
    Pair,
    Ratio,
    boots_needed,
    pairs_of,
    passes_of,
    paths_of,
    power,
    records,
    row_of,
    seconds_of,
    table,
)
from clock_series import PAGE

from kdelta.infer.effects.effects import Word

ALL = records(FOLDER / "ratio.jsonl")
FOUND = msgspec.json.decode((FOLDER / "ratio.json").read_bytes(), type=Ratio)


def made(effect: float, deviation: float, pairs: int = 200) -> list[Pair]:
    noise = np.random.default_rng(1).normal(0.0, deviation, (pairs, 2))
    times = 1000 * np.exp(noise - noise.mean(axis=0) + np.array([0.0, effect]))
    return [
        Pair(1, at, 20, "base", 0.5, ns=(base, other), seconds=(1.0, 1.5))
        for at, (base, other) in enumerate(times.tolist())
    ]


def test_figures_and_page_are_of_these_trials() -> None:
    assert FOUND.rows == tuple(row_of(ALL, change, FOUND.limit) for change in SIZES)
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert text.strip() == table(FOUND)


def test_trials_are_whole() -> None:
    assert set(passes_of(ALL)) == set(SIZES)
    for change, passes in passes_of(ALL).items():
        pairs = pairs_of(ALL, change)
        assert [one.pair for one in pairs] == sorted({one.pair for one in pairs})
        assert len(pairs) >= LEAST_PAIRS or seconds_of(pairs) >= FOUND.limit
        paths = [one for again in (False, True) for one in paths_of(ALL, change, again=again)]
        assert len(paths) == 2 * PATHS
        assert {one.passes for one in pairs} == {one.passes for one in paths} == {passes}


def test_no_verdict_is_wrong() -> None:
    slower = Word.SLOWER.value
    for row in FOUND.rows:
        assert set(row.words) == {slower}
        assert row.word in (slower, Word.UNRESOLVED.value)


def test_path_adds_what_was_planted() -> None:
    paths = [one for one in ALL if isinstance(one, Compared)]
    assert {one.more / one.passes for one in paths} == {3.0}


@pytest.mark.parametrize(("effect", "deviation"), [(0.01, 0.02), (0.05, 0.03)])
def test_welch_needs_as_many_boots_as_its_formula_says(effect: float, deviation: float) -> None:
    pairs = made(effect, deviation)
    needed = boots_needed(pairs)
    formula = 2 * ((1.96 + 0.84) * deviation / effect) ** 2
    assert 0.6 * formula < needed < 1.6 * formula + 2
    assert power(pairs, needed) >= POWER


def test_welch_does_not_find_what_is_not_there() -> None:
    pairs = made(0.0, 0.02)
    centred = [
        msgspec.structs.replace(one, ns=(one.ns[0], other.ns[0]))
        for one, other in zip(pairs, reversed(pairs), strict=True)
    ]
    assert power(centred, 50) < 0.06


def test_what_has_no_verdict_in_time_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = made(0.001, 0.1, 20)
    paths = [
        Compared(1, 20, again, 40.0 - 30 * again, "slower", 2000.0, 60.0) for again in (False, True)
    ]
    calibrated = msgspec.structs.replace(pairs[0], change=0, passes=1000, ns=(1000.0, 1500.0))
    monkeypatch.setattr(clock_ratio, "MOST", 64)
    row = row_of([calibrated, *paths, *pairs], 1, 50.0)
    shown = clock_ratio.lines_of(row, 50.0)
    assert (row.word, row.boots, row.sequential, row.welch) == ("unresolved", 0, 50.0, 50.0)
    assert shown["their processor time"] == "at least 50 s: at least 1.2 times the path's"
    assert shown["processor time of so many"] == "at least 50 s: at least 1.2 times the path's"
    assert shown["boots that Welch's test needs"] == "over 2 x 64"
