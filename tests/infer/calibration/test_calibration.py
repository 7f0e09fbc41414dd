# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices are found again in made timings; what prices nothing is left out."""

from collections.abc import Sequence
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.infer.calibration import fit as calibration
from kdelta.infer.calibration.fit import predicted, program_fit
from kdelta.infer.calibration.model import Fitted, FittedPrice, ProgramRows
from kdelta.infer.calibration.nonnegative import nonnegative, rank_correlation
from kdelta.spec.errors import UserError

pytestmark = pytest.mark.slow

KINDS = ("btb", "conditional", "l1i")


def fit(rows: Sequence[ProgramRows], resamples: int = 20) -> Fitted:
    return calibration.fit(rows, resamples=resamples)


def made(
    prices: dict[str, float],
    *,
    seed: int = 1,
    programs: int = 6,
    links: int = 20,
    noise: float = 2.0,
    flow: str = "random",
) -> list[ProgramRows]:
    """Programs whose cycles are their events at these prices, and noise."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(programs):
        events = {
            kind: random.integers(0, 100 * (1 + number % 3), links).astype(float) for kind in KINDS
        }
        base = float(random.integers(5_000, 50_000))
        cycles = base + sum(prices.get(kind, 0.0) * of for kind, of in events.items())
        cycles = cycles + random.normal(0, noise, links)
        found.append(ProgramRows(f"p{number}", flow, cycles, noise, events))
    return found


@settings(max_examples=6, deadline=None)
@given(l1i=st.floats(2, 14), conditional=st.floats(5, 25), seed=st.integers(1, 1000))
def test_known_prices_are_found_within_their_intervals(
    l1i: float, conditional: float, seed: int
) -> None:
    fitted = fit(made({"l1i": l1i, "conditional": conditional}, seed=seed), resamples=100)
    for name, truth in (("l1i", l1i), ("conditional", conditional)):
        price = fitted.prices[name]
        assert price.low <= price.value <= price.high
        # Nineteen intervals of twenty hold it: nearly all do when they are widened by half.
        wide = (price.high - price.low) / 2
        assert price.low - wide <= truth <= price.high + wide
        assert price.value == pytest.approx(truth, rel=0.05)


def test_an_interval_ends_no_lower_than_what_programs_log_alone() -> None:
    """Some programs pay in full what others hide."""
    paid, hidden = made({"l1i": 8.0}, programs=8), made({}, programs=4, seed=2)
    hidden = [msgspec.structs.replace(one, name=f"hidden-{one.name}") for one in hidden]
    price = fit([*paid, hidden[0]]).prices["l1i"]
    assert price.high >= 7.6
    left = {one.name: one.most for one in fit([*hidden, *paid[:2]]).left_out}
    assert left["l1i"] == pytest.approx(8.0, rel=0.05)
    assert (left["btb"] or 0) < 1.0


def test_a_mechanism_that_costs_nothing_is_left_out() -> None:
    fitted = fit(made({"l1i": 5.0}))
    assert set(fitted.prices) == {"l1i"}
    assert {one.name for one in fitted.left_out} == {"btb", "conditional"}
    assert all(one.gain < 0.01 for one in fitted.left_out)
    (contribution,) = fitted.contributions
    assert contribution.gain > 0.9
    assert all((one.rank or 0) > 0.99 and (one.explained or 0) > 0.99 for one in fitted.quality)


def test_noise_alone_prices_nothing() -> None:
    fitted = fit(made({}, noise=30.0))
    assert fitted.prices == {}
    assert all(one.rank is None for one in fitted.quality)
    assert not fitted.contributions


def test_a_mechanism_that_makes_code_faster_is_not_priced() -> None:
    fitted = fit(made({"l1i": 5.0, "btb": -3.0}))
    assert set(fitted.prices) == {"l1i"}


def test_a_mechanism_that_no_link_changes_is_named_so() -> None:
    rows = [
        msgspec.structs.replace(one, events={**one.events, "itlb": np.full(20, 7.0)})
        for one in made({"l1i": 5.0})
    ]
    (left,) = [one for one in fit(rows).left_out if one.name == "itlb"]
    assert left.why == "no link changes it"


@settings(max_examples=4, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_does_not_matter(random: Random) -> None:
    rows = made({"l1i": 5.0, "conditional": 11.0})
    other = []
    for one in rows:
        order = list(range(len(one.cycles)))
        random.shuffle(order)
        events = {name: of[order] for name, of in one.events.items()}
        other.append(msgspec.structs.replace(one, cycles=one.cycles[order], events=events))
    random.shuffle(other)
    assert fit(rows) == fit(other)


@settings(max_examples=4, deadline=None)
@given(st.floats(0.1, 50))
def test_prices_scale_with_cycles(factor: float) -> None:
    rows = made({"l1i": 5.0, "conditional": 11.0})
    scaled = [
        msgspec.structs.replace(one, cycles=one.cycles * factor, noise=one.noise * factor)
        for one in rows
    ]
    once, then = fit(rows), fit(scaled)
    assert once.prices.keys() == then.prices.keys()
    for name, price in once.prices.items():
        assert then.prices[name].value == pytest.approx(price.value * factor, rel=1e-6)


def test_a_link_that_something_slowed_does_not_move_prices() -> None:
    rows = made({"l1i": 5.0})
    slowed = []
    for one in rows:
        cycles = one.cycles.copy()
        cycles[3] += 40_000
        slowed.append(msgspec.structs.replace(one, cycles=cycles))
    assert fit(slowed).prices["l1i"].value == pytest.approx(5.0, rel=0.02)


def test_programs_of_one_code_are_left_out_together() -> None:
    # Two programs that agree with each other alone: neither may vouch for the other.
    rows = [msgspec.structs.replace(one, code=one.name) for one in made({"l1i": 5.0})]
    odd = [
        msgspec.structs.replace(one, name=f"odd{n}", code="odd")
        for n, one in enumerate(made({"btb": 9.0}, seed=7, programs=2))
    ]
    quality = {one.name: one for one in fit([*rows, *odd]).quality}
    assert abs(quality["odd0"].rank or 0) < 0.6
    assert (quality["p0"].rank or 0) > 0.9


def test_differences_between_programs_price_data() -> None:
    random = np.random.default_rng(3)
    rows = []
    for number, one in enumerate(made({"l1i": 5.0}, programs=9)):
        misses = float((number // 3) * 400)
        insns = 10_000.0
        paid = 5.0 * one.events["l1i"]
        cycles = 0.5 * insns + 12.0 * misses + paid + random.normal(0, 2, len(paid))
        rows.append(
            msgspec.structs.replace(
                one, cycles=cycles, insns=insns, data={"l1d": misses}, code=f"c{number % 3}"
            )
        )
    fitted = fit(rows)
    assert fitted.between["l1d"].value == pytest.approx(12.0, rel=0.05)
    assert fitted.base_rate is not None
    assert fitted.base_rate.value == pytest.approx(0.5, rel=0.05)


def test_too_few_programs_are_refused() -> None:
    with pytest.raises(UserError, match="2 programs of 5 links"):
        fit(made({"l1i": 5.0}, programs=2))
    with pytest.raises(UserError, match="0 programs of 5 links"):
        fit(made({"l1i": 5.0}, links=4))


def test_held_out_program() -> None:
    (rows,) = made({"l1i": 5.0}, programs=1)
    found = predicted({"l1i": FittedPrice("l1i", 5.0, 4.0, 6.0)}, rows)
    assert (found.rank or 0) > 0.99
    assert (found.explained or 0) > 0.99
    assert found.above_noise
    assert found.predicted_spread == pytest.approx(5.0 * np.ptp(rows.events["l1i"]))
    assert predicted({}, rows).rank is None
    assert program_fit(rows, -rows.cycles).rank == pytest.approx(-1)
    assert (program_fit(rows, -rows.cycles).explained or 0) < 0


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10_000), st.integers(1, 6))
def test_nonnegative_least_squares_meet_their_conditions(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    table, wanted = random.normal(size=(30, k)), random.normal(size=30)
    gram, moments = table.T @ table, table.T @ wanted
    found = nonnegative(gram, moments)
    slope = moments - gram @ found
    assert (found >= 0).all()
    assert (slope <= 1e-6).all()  # Karush, Kuhn and Tucker
    assert np.abs(slope[found > 0]).max(initial=0) <= 1e-6


def test_nonnegative_takes_columns_that_log_the_same() -> None:
    column = np.arange(10.0)
    table = np.column_stack([column, column, np.zeros(10)])
    found = nonnegative(table.T @ table, table.T @ (3 * column))
    assert table @ found == pytest.approx(3 * column)
    assert found[2] == 0


def test_rank_correlation() -> None:
    one = np.array([1.0, 2.0, 3.0, 4.0])
    assert rank_correlation(one, one**3) == pytest.approx(1)
    assert rank_correlation(one, -one) == pytest.approx(-1)
    assert rank_correlation(one, np.ones(4)) is None
    assert rank_correlation(one[:2], one[:2]) is None
    # Equal values share a rank: 1.5 0 1.5 and 0 1 2.
    assert rank_correlation(np.array([5.0, 1.0, 5.0]), one[:3]) == pytest.approx(0)
    # As worked out by hand: ranks 0 1 2 3 and 1 0 2 3, so 1 - 6 * 2 / (4 * 15).
    assert rank_correlation(one, np.array([2.0, 1.0, 5.0, 9.0])) == pytest.approx(0.8)
