# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing` as text, JSON and page."""

import msgspec
from reading import read_document

from kdelta.report.document import Table
from kdelta.studies.crossing.model import CrossingReport
from kdelta.studies.documents import document_text
from kdelta.studies.forms import FORMS
from kdelta.studies.forms import html as page
from kdelta.studies.kinds import document_of
from tests.report.example_crossing import crossing_report, without_kernel_mode
from tests.report.example_stored import EXAMPLES
from tests.report.shown import shown, stored, unwrapped
from tests.report.test_text import fits_a_mail


def test_it_fits_a_mail() -> None:
    fits_a_mail(shown("crossing", crossing_report()))
    fits_a_mail(shown("crossing", without_kernel_mode()))


def rows(table: str) -> dict[str, list[float]]:
    """The figures total or gained, user and system of a table's rows."""
    blocks = document_of(stored("crossing", crossing_report())).sections[0].blocks
    (found,) = [one for one in blocks if isinstance(one, Table) and one.id == table]
    every = (*found.rows, *found.last)
    return {row[0].text: [float(cell.text) for cell in row[1:4]] for row in every}


def test_shares_add_up_as_printed() -> None:
    parts = rows("shares")
    whole = parts.pop("whole")
    assert set(parts) == {"mitigations", "crossing", "direct call", "entry work"}
    for at in range(3):
        assert round(sum(row[at] for row in parts.values()), 2) == whole[at]
    arms = rows("variants-table")
    for total, user, system in arms.values():
        assert round(user + system, 2) == total
    assert round(arms["stock"][0] - arms["no entry work"][0], 2) == whole[0]


def test_fewer_operations_are_named_on_request() -> None:
    kept = msgspec.structs.replace(stored("crossing", crossing_report()), shown={"explain": 1})
    text = FORMS["text"].render(kept)
    assert "and 3 more" in text
    assert "mmap-touch-4m" not in text


def test_what_only_the_text_had_is_in_every_form() -> None:
    text = unwrapped("crossing", crossing_report())
    assert "The variants: total of 2 operations, one iteration" in text
    assert "Not in the total, since not every run has it: only-stock, rest." in text
    assert "iret 30 to 300 assumed by the CPU's file" in text
    assert "Vulnerable; STIBP: disabled" in text
    assert "In no variant affected by 1 of 2." in text
    assert "+0.02% +-20" in text


def test_what_has_no_figures_is_reported() -> None:
    report = without_kernel_mode()
    nothing = msgspec.structs.replace(
        report, found=msgspec.structs.replace(report.found, operations=())
    )
    text = shown("crossing", report)
    assert "build-failed: +kernel-mode: 0001.patch does not apply" in " ".join(text.split())
    assert "signal 11 SIGSEGV" in text
    assert "| [ 2.1] oops" in text
    assert shown("crossing", nothing)


def test_json_has_all_figures() -> None:
    report = crossing_report()
    found = read_document(document_text(report, "0.1"))
    assert [arm.name for arm in found.variants] == [arm.name for arm in report.variants]
    total = found.found.total
    assert total.whole is not None
    assert sum(share.insns for share in total.shares) == total.whole.insns
    (getppid,) = [one for one in found.found.operations if one.name == "getppid"]
    assert getppid.variants[0].amounts["syscall"] == 1
    assert getppid.variants[0].insns.value == 270
    assert found.cpu.name == "zen2"
    assert "syscall" in found.found.assumed
    alone = msgspec.json.decode(document_text(without_kernel_mode(), "0.1"))
    assert alone["cpu"] is None
    assert alone["variants"][2]["side"]["failure"].startswith("build-failed")


def test_the_page_has_arms_shares_and_operations() -> None:
    text = page(EXAMPLES["crossing"])
    for words in ("no entry work", "entry work", "mmap-touch-4m", "Retpolines", "iret"):
        assert words in text
    assert "kernel mode: no kernel: build-failed" in page(EXAMPLES["crossing failed"])


def test_a_ci_is_told_which_arm_is_missing() -> None:
    text = FORMS["ktap"].render(EXAMPLES["crossing failed"])
    assert "not ok" in text
    assert "kernel kernel mode" in text


def test_nothing_at_all() -> None:
    report: CrossingReport = without_kernel_mode()
    total = msgspec.structs.replace(report.found.total, variants=(), shares=(), whole=None)
    found = msgspec.structs.replace(report.found, operations=(), total=total)
    empty = msgspec.structs.replace(report, found=found, machine={})
    kept = msgspec.structs.replace(EXAMPLES["crossing"], reports=(empty,))
    for form in FORMS.values():
        assert form.render(kept)
