# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of what scripts/proofs/intervals.py simulates: how often rows that vary are misjudged."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kdelta.infer.effects.chance import SAME_CODE_RUNS
from kdelta.infer.effects.effects import MARGIN, Word
from kdelta.infer.effects.estimate import FEWEST_PAIRS

pytestmark = pytest.mark.slow

TRIALS = 1000
SCRIPT = Path(__file__).parents[3] / "scripts/proofs/intervals.py"
FIRM = {Word.SLOWER, Word.FASTER}


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("intervals", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SIMULATED = _script()
SHAPES = [shape for scale in (20, 100) for shape in SIMULATED.shapes(scale)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_rows_without_an_effect_are_seldom_firm_and_covered(shape: object) -> None:
    random = np.random.default_rng(7)
    found = [SIMULATED.judged(random, shape, shape, 0.0) for _ in range(TRIALS)]
    # 0.1 % of 1,000, with three standard errors more.
    assert sum(one.word in FIRM for one in found) <= 4
    assert sum(one.covered for one in found) >= 0.99 * TRIALS


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_rows_with_an_effect_are_seldom_the_same(shape: object) -> None:
    random = np.random.default_rng(8)
    effect = 1.5 * float(MARGIN) * SIMULATED.BASE
    found = [SIMULATED.judged(random, shape, shape, effect) for _ in range(TRIALS)]
    assert sum(one.word is Word.SAME for one in found) <= 10
    assert sum(one.word is Word.FASTER for one in found) <= 1


def test_planted_share_of_levels_alone_is_right_or_unresolved() -> None:
    random = np.random.default_rng(9)
    base, other = SIMULATED.levels(0.2, 400, 1.0), SIMULATED.levels(0.8, 400, 1.0)
    found = [SIMULATED.judged(random, base, other, other.mean - base.mean) for _ in range(TRIALS)]
    assert {one.word for one in found} <= {Word.SLOWER, Word.UNRESOLVED}
    assert sum(one.word is Word.SLOWER for one in found) > TRIALS / 3


PAIR_SHAPES = [shape for scale in (20, 100) for shape in SIMULATED.pair_shapes(scale)]
HOSTILE = ("correlation -0.5", "correlation -1")
"""Where one run of a pair has what the other has not: six pairs may be equal by chance."""


@pytest.mark.parametrize("shape", PAIR_SHAPES, ids=lambda shape: shape.name)
def test_pairs_without_an_effect_are_seldom_firm_and_seldom_the_same_with_one(
    shape: Any,
) -> None:
    random = np.random.default_rng(10)
    least = SAME_CODE_RUNS if shape.name.endswith(HOSTILE) else FEWEST_PAIRS
    found = [SIMULATED.judged_pairs(random, shape, shape.effect, least) for _ in range(TRIALS)]
    wrong = {Word.FASTER} if shape.effect else FIRM
    assert sum(one.word in wrong for one in found) <= 4
    more = shape.effect + 1.5 * float(MARGIN) * SIMULATED.BASE
    found = [SIMULATED.judged_pairs(random, shape, more, least) for _ in range(TRIALS)]
    assert sum(one.word is Word.SAME for one in found) <= 10
    assert sum(one.word is Word.FASTER for one in found) <= 1


def test_six_equal_pairs_are_chance_where_a_pair_never_has_both() -> None:
    """What the rule for the same code is for: with it none is firm."""
    random = np.random.default_rng(11)
    shape = SIMULATED.correlated(20, -1.0)
    few, many = (
        sum(SIMULATED.judged_pairs(random, shape, 0.0, least).word in FIRM for _ in range(TRIALS))
        for least in (FEWEST_PAIRS, SAME_CODE_RUNS)
    )
    assert 10 < few < 60
    assert many <= 4
