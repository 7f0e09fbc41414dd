# SPDX-License-Identifier: GPL-2.0-or-later
"""The boots of docs/cases/clock: tables are made from them, and verdicts are seldom wrong."""

import clock_boots
import msgspec
import numpy as np
import pytest
from clock_boots import (
    BEGIN,
    END,
    FOLDER,
    KERNELS,
    KINDS,
    OPERATIONS,
    STUDIES,
    STUDY_PAIRS,
    Executed,
    Paths,
    Studies,
    first_words,
    is_false,
    judged,
    order_of,
    records,
    tables,
    whole,
)
from clock_series import PAGE

from kdelta.infer.clock.decide import ALPHA
from kdelta.infer.effects.effects import Word

ALL = records()
BOOTS = whole(ALL)
PATHS = msgspec.json.decode((FOLDER / "paths.json").read_bytes(), type=Paths)
FOUND = msgspec.json.decode((FOLDER / "studies.json").read_bytes(), type=Studies)
ROWS = {(one.kind, one.operation): one for one in FOUND.rows}
FEW = 20


def test_boots_are_pairs_in_the_order_that_was_drawn() -> None:
    pairs = range(len(ALL) // 2)
    assert [one.kernel for one in ALL] == [one for pair in pairs for one in order_of(pair)]
    assert [(one.pair, one.first) for one in ALL] == [
        (pair, first) for pair in pairs for first in (True, False)
    ]
    assert [one.when for one in ALL] == sorted(one.when for one in ALL)
    assert len({one.boot_id for one in ALL}) == len(ALL)


def test_nearly_all_pairs_are_whole() -> None:
    assert len(BOOTS) >= 240
    assert len(BOOTS) > 0.9 * len(ALL)
    assert {tuple(one.ns) for one in BOOTS} == {OPERATIONS}


def test_page_and_studies_are_of_these_boots() -> None:
    assert (FOUND.boots, FOUND.studies) == (len(BOOTS), STUDIES)
    assert PATHS.kernels == KERNELS
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert text.strip() == tables(FOUND, PATHS)
    for one in judged(BOOTS, PATHS, FEW).rows:
        kept = ROWS[one.kind, one.operation]
        assert (one.welch, one.quartiles) == (kept.welch, kept.quartiles)


def test_verdicts_are_wrong_in_five_percent_of_the_studies_at_most() -> None:
    assert FOUND.any_false["alike"] <= ALPHA
    assert FOUND.any_false["planted"] <= ALPHA


def test_what_was_planted_is_found() -> None:
    (path,) = (one for one in PATHS.rows if one.operation == "getppid")
    assert (path.word, round(path.per_cent, 1)) == ("slower", 3.7)
    assert ROWS["planted", "getppid"].slower > 0.9
    assert ROWS["planted", "stat"].slower > 0.9


@pytest.mark.parametrize(("effect", "word"), [(0.05, Word.SLOWER), (-0.05, Word.FASTER)])
def test_first_word_is_that_after_the_first_pairs_that_decide(effect: float, word: Word) -> None:
    noise = np.random.default_rng(1).standard_normal((len(OPERATIONS), STUDY_PAIRS))
    found = first_words(effect + 0.005 * noise)
    assert {one for one, _ in found.values()} == {word}
    assert all(7 <= pairs <= 10 for _, pairs in found.values())
    assert first_words(0.0 * noise + np.resize([0.3, -0.3], STUDY_PAIRS)) == {}


@pytest.mark.parametrize(
    ("word", "of_more", "of_less", "of_none"),
    [
        (Word.SLOWER, False, False, True),
        (Word.FASTER, True, True, True),
        (Word.SAME, True, False, False),
    ],
)
def test_false_words(word: Word, of_more: bool, of_less: bool, of_none: bool) -> None:
    more, less = (Executed("a", "slower", 100.0, by) for by in (2.0, 0.5))
    assert is_false("planted", (word, 7), more) is of_more
    assert is_false("planted", (word, 7), less) is of_less
    assert is_false("alike", (word, 7), more) is of_none
    assert not is_false("planted", None, more)


def test_orders_are_drawn() -> None:
    first = [order_of(pair)[0] for pair in range(clock_boots.PAIRS)]
    assert 0.4 < first.count("A") / len(first) < 0.6
    assert set(KINDS) == {"alike", "fixed order", "planted"}
