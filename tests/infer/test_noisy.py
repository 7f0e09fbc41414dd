# SPDX-License-Identifier: GPL-2.0-or-later
"""The search of a shift under noise: as often right as it claims, by few measurements."""

import math
from statistics import NormalDist

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.infer.noisy import (
    ENDS,
    NONE,
    NoisySearch,
    begin,
    levels,
    most_telling,
)

Ints = npt.NDArray[np.int64]
COMMITS = 1000
TRIALS = 1000
ERROR = 0.05


class Trials(msgspec.Struct, frozen=True, eq=False):
    """What was found, 0 for none, what was true, and by how many measurements."""

    found: Ints
    true: Ints
    measurements: Ints


def simulated(shift: float, trials: int, seed: int) -> Trials:
    """Many searches side by side: what `NoisySearch` does, by the same functions."""
    random = np.random.default_rng(seed)
    true = random.integers(1, COMMITS + 1, trials)
    signed = shift * random.choice([-1.0, 1.0], trials)
    counts, sums = np.zeros((2, trials, COMMITS + 1))
    squares, found = np.zeros(trials), np.zeros(trials, dtype=np.int64)
    prior = begin(COMMITS).prior

    def measure(which: Ints, at: Ints) -> None:
        values = signed[which] * (at >= true[which]) + random.normal(size=len(which))
        counts[which, at] += 1
        sums[which, at] += values
        squares[which] += values * values

    active = np.arange(trials)
    for at in [0, COMMITS] * ENDS:
        measure(active, np.full(trials, at))
    while len(active):
        going = []
        # In parts that fit a cache.
        for part in np.array_split(active, max(1, len(active) // 32)):
            known = levels(counts[part], sums[part], squares[part], prior)
            best = known.probability.argmax(-1)
            done = known.probability[np.arange(len(part)), best] >= 1 - ERROR
            found[part[done]] = (best[done] + 1) % (COMMITS + 1)
            measure(part[~done], most_telling(known)[~done])
            going.append(part[~done])
        active = np.concatenate(going)
    return Trials(found, true, counts.sum(-1).astype(np.int64))


def repeated_bisection(shift: float, error: float) -> int:
    """The measurements of a plain bisection with so many at each step that all its steps are right
    with 1 - error, where both means and the deviation are known: more is not known to it in truth.
    """
    steps = math.ceil(math.log2(COMMITS))
    one = 1 - (1 - error) ** (1 / steps)
    return steps * math.ceil((NormalDist().inv_cdf(1 - one) / (shift / 2)) ** 2)


def test_as_often_right_as_it_claims() -> None:
    trials = simulated(1.0, TRIALS, seed=1)
    assert (trials.found == trials.true).mean() >= 1 - ERROR
    assert trials.measurements.mean() < 0.6 * repeated_bisection(1.0, ERROR)


def test_a_larger_shift_takes_fewer() -> None:
    trials = simulated(3.0, 100, seed=2)
    assert (trials.found == trials.true).mean() >= 1 - ERROR
    assert trials.measurements.mean() < 45


def run(search: NoisySearch, true: int, shift: float, seed: int) -> NoisySearch:
    random = np.random.default_rng(seed)
    while (at := search.next_position()) is not None:
        search = search.observe(at, 1e6 + shift * (at >= true) + float(random.normal()))
    return search


@settings(deadline=None, max_examples=25)
@given(
    commits=st.integers(1, 200),
    place=st.floats(0, 1),
    shift=st.sampled_from([-8.0, 6.0, 20.0]),
    seed=st.integers(0, 10**6),
)
def test_a_shift_that_is_clear(commits: int, place: float, shift: float, seed: int) -> None:
    """Whatever its sign, wherever it is, and however large the metric itself."""
    true = 1 + int(place * (commits - 1))
    answer = run(begin(commits, error=1e-6), true, shift, seed).answer()
    assert answer.commit == true
    assert answer.probability >= 1 - 1e-6
    assert answer.likely == (true,)
    assert answer.shift.low < shift + 3
    assert answer.shift.high > shift - 3
    assert answer.measurements <= 2 * ENDS + 12 * (1 + math.log2(commits))


def test_without_a_shift_hardly_any_commit_is_named() -> None:
    """No more than one in twenty is to be, and there is an end."""
    answers = [run(begin(50, most=150), 51, 0.0, seed).answer() for seed in range(40)]
    assert sum(one.probability >= 1 - ERROR and one.commit is not None for one in answers) <= 4
    assert {one.measurements for one in answers if one.probability < 1 - ERROR} == {150}


def test_what_is_likely_is_found_sooner() -> None:
    weights = np.ones(300)
    weights[99] = 300.0
    plain = np.mean([run(begin(300), 100, 1.5, seed).measurements for seed in range(10)])
    told = np.mean(
        [run(begin(300, likely=list(weights)), 100, 1.5, seed).measurements for seed in range(10)]
    )
    assert told < plain


def test_the_posterior_adds_up_and_begins_as_the_prior() -> None:
    search = begin(5, likely=[1, 1, 2, 2, 2])
    assert search.prior.sum() == pytest.approx(1)
    assert search.prior[-1] == NONE
    # One measurement tells nothing: any level would do.
    first = search.observe(3, 17.0)
    known = levels(first.counts, first.sums, np.asarray(first.squares), first.prior)
    assert known.probability == pytest.approx(search.prior)


def test_equal_measurements_are_no_fault() -> None:
    search = begin(5)
    for at in (0, 5) * ENDS:
        search = search.observe(at, 7.0)
    assert search.answer().measurements == 2 * ENDS
    assert np.isfinite(search.answer().probability)
    again = search.next_position()
    assert again is not None
    assert search.observe(again, 7.0).next_position() is not None


@pytest.mark.parametrize(
    ("commits", "error", "likely"),
    [(0, 0.05, None), (3, 0.0, None), (3, 0.5, None), (3, 0.05, [1, 2]), (2, 0.05, [1, 0])],
)
def test_what_is_no_search(commits: int, error: float, likely: list[float] | None) -> None:
    with pytest.raises(ValueError, match="commits"):
        begin(commits, error=error, likely=likely)


def test_what_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="position"):
        begin(3).observe(4, 1.0)
    with pytest.raises(ValueError, match="measurement"):
        begin(3).observe(3, math.nan)
    with pytest.raises(ValueError, match="nothing was measured"):
        begin(3).answer()
