# SPDX-License-Identifier: GPL-2.0-or-later
"""The calibrations that docs/calibration shows: fitted again from what was recorded."""

from pathlib import Path

import msgspec
import pytest

from kdelta.infer.calibration import fit
from kdelta.infer.calibration_model import Fitted
from kdelta.report.calibration_json import JsonCalibration, rows_from
from kdelta.report.calibration_text import quality_lines

DOCS = Path(__file__).parents[2] / "docs" / "calibration"
TEXT = (DOCS / "README.md").read_text()
PRICED = "redirected-windows"


@pytest.fixture(scope="module", params=["first", "second"])
def both(request: pytest.FixtureRequest) -> tuple[JsonCalibration, Fitted]:
    recorded = msgspec.json.decode(
        (DOCS / f"{request.param}.json").read_bytes(), type=JsonCalibration
    )
    return recorded, fit([rows_from(one) for one in recorded.rows])


def test_the_fit_is_that_of_the_document(both: tuple[JsonCalibration, Fitted]) -> None:
    recorded, found = both
    assert set(found.prices) == set(recorded.prices) == {PRICED}
    one, other = found.prices[PRICED], recorded.prices[PRICED]
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
    for again, kept in zip(found.quality, recorded.quality, strict=True):
        assert again.name == kept.name
        assert again.predicted_spread == pytest.approx(kept.predicted_spread)


def test_the_tables_are_those_of_the_document(both: tuple[JsonCalibration, Fitted]) -> None:
    recorded, _ = both
    for line in quality_lines(recorded.quality, "")[2:]:
        assert line.rstrip() in TEXT


def test_prices_repeat_within_their_intervals() -> None:
    first, second = (
        msgspec.json.decode((DOCS / f"{name}.json").read_bytes(), type=JsonCalibration)
        for name in ("first", "second")
    )
    for one, other in ((first, second), (second, first)):
        assert one.prices[PRICED].low <= other.prices[PRICED].value <= one.prices[PRICED].high
