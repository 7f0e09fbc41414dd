# SPDX-License-Identifier: GPL-2.0-or-later
"""A report says whether prices were calibrated, on what, when, and how well they predict."""

from kdelta.cpus.model import Calibration
from kdelta.report.cpus import calibrated_on
from kdelta.report.cycles import cpu_line
from kdelta.report.json import Writer
from kdelta.report.model import ReportedCPU
from kdelta.studies.documents import SHAPES

JSON = Writer(SHAPES)
FOUND = Calibration("2026-11-22T04:30:00", "A core", 12, 30, (0.8, 0.931), "kdelta 0.9")


def test_a_cpu_that_was_calibrated_in_part() -> None:
    cpu = ReportedCPU("host", "this host", ("l1i", "itlb"), ("itlb",), calibration=FOUND)
    assert cpu_line(cpu) == (
        "host (this host); prices of misses are intervals; calibrated on A core, 2026-11-22, "
        "rank correlation 0.93 (least 0.80); never calibrated: itlb"
    )
    assert JSON.plain(cpu)["calibration"]["least_rank_correlation"] == 0.8


def test_one_that_was_not_calibrated() -> None:
    cpu = ReportedCPU("zen4", "AMD Zen 4", ("l1i",), ("l1i",))
    assert cpu_line(cpu).endswith("are intervals; never calibrated: l1i")
    assert JSON.plain(cpu)["calibration"] is None
    assert calibrated_on(None) == "not calibrated"


def test_prices_of_an_unknown_origin() -> None:
    assert cpu_line(ReportedCPU("mine", "mine", ("l1i",))).endswith("are intervals; calibrated")
