# SPDX-License-Identifier: GPL-2.0-or-later
"""The calibrations that docs/calibration shows: fitted again from what was recorded."""

from pathlib import Path

import pytest
from calibration import told_by

from kdelta.infer.calibration.fit import fit
from kdelta.infer.calibration.model import Fitted
from kdelta.studies.calibrate.document import quality_table
from kdelta.studies.calibrate.model import RecordedCalibration, read_calibration

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "calibration"
CLEAR = 2
TEXT = (DOCS / "README.md").read_text()


@pytest.fixture(scope="module", params=["first", "second"])
def both(request: pytest.FixtureRequest) -> tuple[RecordedCalibration, Fitted]:
    recorded = read_calibration((DOCS / f"{request.param}.json").read_bytes())
    return recorded, fit(recorded.rows)


def test_the_fit_is_that_of_the_document(both: tuple[RecordedCalibration, Fitted]) -> None:
    recorded, found = both
    assert set(found.prices) == set(recorded.prices)
    for name, one in found.prices.items():
        other = recorded.prices[name]
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
    left = {one.name: one.most for one in recorded.left_out}
    for kind in found.left_out:
        assert kind.most == pytest.approx(left[kind.name])
    for again, kept in zip(found.quality, recorded.quality, strict=True):
        assert again.name == kept.name
        assert again.predicted_spread == pytest.approx(kept.predicted_spread)


def test_the_tables_are_those_of_the_document(both: tuple[RecordedCalibration, Fitted]) -> None:
    recorded, _ = both
    lines = {"".join(line.split()) for line in TEXT.splitlines()}
    for row in quality_table(recorded.quality).rows:
        assert "".join(cell.text for cell in row) in lines


def test_prices_repeat_within_their_intervals() -> None:
    """Of what one keeps and the other does not, the value is within the other's interval."""
    first, second = (
        read_calibration((DOCS / f"{name}.json").read_bytes()) for name in ("first", "second")
    )
    for one, other in ((first, second), (second, first)):
        left = {kind.name: kind.most or 0.0 for kind in other.left_out}
        for name, price in one.prices.items():
            low, high = 0.0, left.get(name, 0.0)
            if name in other.prices:
                low, high = other.prices[name].low, other.prices[name].high
            assert low <= price.value <= high


@pytest.mark.parametrize("mechanism", ["l1i-exposed", "fetch-waits"])
def test_what_programs_log_alone_is_in_the_text(
    mechanism: str, both: tuple[RecordedCalibration, Fitted]
) -> None:
    recorded, _ = both
    lines = list(told_by(recorded.rows, mechanism, least=CLEAR))
    assert len(lines) > 6
    for line in lines:
        assert line in TEXT
