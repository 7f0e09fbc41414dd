# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing` as text, JSON and page."""

import re

import msgspec

from kdelta.report.crossing_json import JsonCrossingReport, crossing_json
from kdelta.report.crossing_model import CrossingReport
from kdelta.report.crossing_text import crossing_text
from kdelta.report.documents import schema_text, shipped_schema
from kdelta.report.forms import FORMS
from kdelta.report.html.page import page
from tests.report.example_crossing import crossing_report, without_kernel_mode
from tests.report.example_stored import EXAMPLES
from tests.report.test_text import against_golden, fits_a_mail


def test_golden() -> None:
    against_golden("crossing.txt", crossing_text(crossing_report()))


def test_golden_of_what_is_missing() -> None:
    against_golden("crossing-failed.txt", crossing_text(without_kernel_mode()))


def test_it_fits_a_mail() -> None:
    fits_a_mail(crossing_text(crossing_report()))
    fits_a_mail(crossing_text(without_kernel_mode()))


def columns(text: str, head: str, count: int) -> dict[str, list[float]]:
    """The figures of the lines after one that has these words, up to an empty one."""
    lines = text.split(head, 1)[1].splitlines()[1:]
    found = {}
    for line in lines:
        if not line.strip():
            break
        name, *cells = re.split(r" {2,}", line.strip())
        figures = [float(cell.rstrip("%")) for cell in cells[:count]]
        found[name] = figures
    return found


def test_shares_add_up_as_printed() -> None:
    text = crossing_text(crossing_report())
    rows = columns(text, "gained", 3)
    whole = rows.pop("whole")
    assert set(rows) == {"mitigations", "crossing", "direct call", "entry work"}
    for at in range(3):
        assert round(sum(row[at] for row in rows.values()), 2) == whole[at]
    arms = columns(text, "total         user       system", 3)
    for total, user, system in arms.values():
        assert round(user + system, 2) == total
    assert round(arms["stock"][0] - arms["no entry work"][0], 2) == whole[0]


def test_fewer_operations_are_named_on_request() -> None:
    text = crossing_text(crossing_report(), 1)
    assert "and 3 more" in text


def test_what_has_no_figures_is_said() -> None:
    report = without_kernel_mode()
    nothing = msgspec.structs.replace(
        report, found=msgspec.structs.replace(report.found, operations=())
    )
    text = crossing_text(report)
    assert "no kernel: build-failed: +kernel-mode: 0001.patch does not apply" in text
    assert "signal 11 SIGSEGV" in text
    assert "| [ 2.1] oops" in text
    assert crossing_text(nothing)


def test_json_has_all_figures() -> None:
    report = crossing_report()
    found = msgspec.json.decode(crossing_json(report, "0.1"), type=JsonCrossingReport)
    assert [arm.name for arm in found.arms] == [arm.name for arm in report.arms]
    assert found.total.whole is not None
    assert sum(share.insns for share in found.total.shares) == found.total.whole.insns
    (getppid,) = [one for one in found.operations if one.name == "getppid"]
    assert getppid.arms[0].specials["syscall"] == 1
    assert getppid.arms[0].insns.value == 270
    assert found.cpu == "zen2"
    assert "syscall" in found.assumed
    alone = msgspec.json.decode(crossing_json(without_kernel_mode(), "0.1"))
    assert alone["cpu"] is None
    assert alone["arms"][2]["side"]["failure"].startswith("build-failed")


def test_the_schema_is_that_of_the_document() -> None:
    assert shipped_schema("kdelta.crossing/1") == schema_text("kdelta.crossing/1")


def test_the_page_has_arms_shares_and_operations() -> None:
    text = page(EXAMPLES["crossing"])
    for words in ("no entry work", "entry work", "mmap-touch-4m", "Retpolines", "iret"):
        assert words in text
    assert "there is no kernel" in page(EXAMPLES["crossing failed"])


def test_a_ci_is_told_which_arm_is_missing() -> None:
    text = FORMS["ktap"].render(EXAMPLES["crossing failed"])
    assert "not ok" in text
    assert "kernel kernel mode" in text


def test_nothing_at_all() -> None:
    report: CrossingReport = without_kernel_mode()
    total = msgspec.structs.replace(report.found.total, arms=(), shares=(), whole=None)
    found = msgspec.structs.replace(report.found, operations=(), total=total)
    empty = msgspec.structs.replace(report, found=found, machine={})
    stored = msgspec.structs.replace(EXAMPLES["crossing"], reports=(empty,))
    for form in FORMS.values():
        assert form.render(stored)
