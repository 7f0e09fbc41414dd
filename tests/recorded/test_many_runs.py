# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that docs/cases/many-runs recorded are right by 64 runs a side."""

from collections.abc import Sequence
from fractions import Fraction

import many_runs
import msgspec
import numpy as np
import pytest
from many_runs import FIRM, FOLDER, RUNS, Record, Row, records

from kdelta.infer.effects.effects import Word, verdict_on
from kdelta.infer.effects.estimate import LOOKS, MANY_PAIRS, PAIR_LOOKS, Quantity, estimate
from kdelta.infer.effects.pairs import RunPairs, kept_pairs
from kdelta.spec.run import boot_of

BOOTS = 3
"""The recorded runs are of so many boots, in turn."""

ORDERS = 100
"""In how many orders the pairs of a row are judged."""


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


def after(row: Row, indexes: Sequence[int], boots: Sequence[int], *, alike: bool) -> Row:
    """The row with the word that today's rules give these runs of it, which are of these boots.

    Iterations are not recorded, so what too few runs call faster or slower is unresolved.
    """
    base, other = ([Fraction(str(side[at])) for at in indexes] for side in (row.base, row.other))
    differences = {at: its - own for at, (own, its) in enumerate(zip(base, other, strict=True))}
    shaken = kept_pairs(differences) if alike else list(differences)[1:]
    if alike:
        base, other = ([side[at] for at in shaken] for side in (base, other))
    cost = Quantity(estimate(base), estimate(other))
    if alike or len(shaken) >= MANY_PAIRS:
        pairs = RunPairs((), tuple(boots[at] for at in shaken), alike)
        effect = pairs.effect(cost.base, cost.other, [differences[at] for at in shaken])
        cost = Quantity(cost.base, cost.other, effect)
    word = verdict_on(cost).word
    if word in FIRM and not cost.effect.is_enough:
        word = Word.UNRESOLVED
    return msgspec.structs.replace(row, word=word.value)


def is_alike(one: Record) -> bool:
    return one.releases[0] == one.releases[1]


@pytest.mark.parametrize("one", records(FOLDER), ids=lambda one: one.pair)
def test_no_word_of_the_first_runs_by_the_rules_of_today_is_wrong_by_all(one: Record) -> None:
    boots = [index % BOOTS for index in range(RUNS)]
    alike = is_alike(one)
    judged = [
        after(row, range(runs), boots, alike=alike)
        for row in one.rows
        for runs in sorted({*(PAIR_LOOKS if alike else LOOKS), RUNS})
    ]
    assert [row for row in judged if row.wrong_by(row.paired_error)] == []


ALIKE = [one for one in records(FOLDER) if is_alike(one)]


@pytest.mark.parametrize("one", ALIKE, ids=lambda one: one.pair)
def test_no_word_of_pairs_in_other_orders_is_wrong_by_all(one: Record) -> None:
    random = np.random.default_rng(1)
    boots = [boot_of(index) for index in range(PAIR_LOOKS[-1])]
    for row in one.rows:
        for _ in range(ORDERS):
            order = [0, *(int(index) for index in 1 + random.permutation(RUNS - 1))]
            for runs in PAIR_LOOKS:
                judged = after(row, order[:runs], boots, alike=True)
                assert not judged.wrong_by(row.paired_error)
                if judged.word != Word.UNRESOLVED:
                    break
