# SPDX-License-Identifier: GPL-2.0-or-later
"""A calibration's text and JSON: what they say is what was fitted."""

import msgspec
import pytest

from kdelta.infer.calibration.fit import fit
from kdelta.infer.calibration.model import ProgramFit
from kdelta.report.stored import Stored
from kdelta.report.text import text_of
from kdelta.studies.calibrate.document import calibration_document, check_document
from kdelta.studies.calibrate.model import (
    CalibrationReport,
    CheckReport,
    read_calibration,
    unpredictable_ranks,
)
from kdelta.studies.documents import document_text, read_document
from tests.report.example_calibration import PRICE, calibration_report, check_report


def calibration_text(report: CalibrationReport) -> str:
    stored = Stored("calibrate", "What do misses cost?", "kdelta calibrate", 0, "1.2", (report,))
    return text_of(calibration_document(stored, report))


def check_text(report: CheckReport) -> str:
    stored = Stored("calibrate", "How good are prices?", "kdelta calibrate", 0, "1.2", (report,))
    return text_of(check_document(stored, report))


def test_text_fits_a_mail_and_names_each_price_and_program() -> None:
    report = calibration_report()
    text = calibration_text(report)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    (price,) = report.fitted.prices.values()
    assert price.value == pytest.approx(PRICE, rel=0.05)
    row = next(line for line in text.splitlines() if line.startswith("L1I miss, in full"))
    assert f"{price.value:.2f}" in row
    assert f"{price.low:.2f} to {price.high:.2f}" in row
    assert row.split()[-1] == f"{report.fitted.contributions[0].gain:.0%}"
    for one in report.rows:
        assert sum(line.startswith(f"{one.name} ") for line in text.splitlines()) == 1
    assert "no link changes it" in text
    assert "not quiet" in text
    assert "the frequency moved by 2%" in text
    assert "host.toml" in text


def test_programs_of_fixed_flow_do_not_count_as_unpredictable() -> None:
    report = calibration_report()
    ranks = unpredictable_ranks(report.fitted.quality)
    assert len(ranks) == 4
    text = calibration_text(report)
    assert f"at least {min(ranks):.2f}" in text
    assert "predictable" in text


def test_the_fit_can_be_made_again_from_the_document() -> None:
    report = calibration_report()
    text = document_text(report, "1.2")
    read = read_calibration(text)
    again = fit(read.rows, resamples=20)
    assert again.prices == read.prices == report.fitted.prices
    assert again.quality == read.quality
    assert read_document(text).kdelta == "1.2"


def test_check_names_what_fits_worst() -> None:
    report = check_report()
    text = check_text(report)
    assert max(map(len, text.splitlines())) <= 80
    for name in ("good", "bad"):
        assert [name, "3", "+150", "-20", "l1i", "+12", "copy0_f1", "+3"] in [
            line.split() for line in text.splitlines()
        ]
    good, bad = (one.fit for one in report.programs)
    assert (good.rank or 0) > 0.95
    assert (bad.rank or 0) < 0.9
    assert f"{good.rank:.2f}" in text
    read = read_document(document_text(report, "1.2"))
    fits = msgspec.convert(
        [one.fit for one in read.programs], list[ProgramFit], from_attributes=True
    )
    assert fits == [good, bad]
