# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta conflicts` as text, JSON and page."""

from fractions import Fraction

import msgspec

from kdelta.infer.conflicts.changes import Contention, FieldChange, Often, RegionChange
from kdelta.report.document import Outcome, Table
from kdelta.report.kind import ALL
from kdelta.studies.conflicts.model import ConflictsReport
from kdelta.studies.documents import document_text
from kdelta.studies.forms import html as page
from kdelta.studies.forms import text as text_of
from kdelta.studies.kinds import document_of, question_of
from tests.report.example_conflicts import (
    BASE,
    compared_conflicts,
    conflicts_report,
    failed_conflicts,
    found,
    same_kernel,
    side,
)
from tests.report.shown import shown, stored, unwrapped
from tests.report.test_text import fits_a_mail


def first_screen(report: ConflictsReport) -> str:
    """Its text in one line, where nothing is asked for."""
    kept = msgspec.structs.replace(stored("conflicts", report), shown={})
    return " ".join(text_of(kept).split())


def test_text_fits_a_mail_and_a_screen() -> None:
    for report in (conflicts_report(), compared_conflicts(), failed_conflicts(), same_kernel()):
        fits_a_mail(shown("conflicts", report), width=150)  # names are last, and whole


def test_one_kernel_says_which_regions_contend_for_nothing() -> None:
    text = unwrapped("conflicts", conflicts_report())
    assert (
        "of 4 regions 3 contend for lines of the kernel in each iteration and 1 contends for none."
        in text
    )
    assert "Without one: stat-two-files." in text
    assert "In most regions: dentry.d_lockref.lock (2)" in text


def test_a_first_screen_of_many_regions_has_no_lines() -> None:
    text = first_screen(conflicts_report())
    assert "The lines of 4 regions more" in text
    assert "lockref_get_not_dead" not in text
    everything = msgspec.structs.replace(stored("conflicts", conflicts_report()), shown={ALL: 1})
    assert "lockref_put_return" in text_of(everything)
    few = side("./a", "a", *BASE.conflicts[:2])
    text = first_screen(msgspec.structs.replace(conflicts_report(), sides=(few,)))
    assert "lockref_get_not_dead and lockref_put_return" in text
    assert "stat-two-files" in text
    assert "jiffies" not in text  # now and then
    everything = msgspec.structs.replace(stored("conflicts", conflicts_report()), shown={ALL: 1})
    assert "Now and then, 1 line: jiffies." in " ".join(text_of(everything).split())


def test_what_is_read_next_to_a_lock_is_on_the_first_screen_and_a_row() -> None:
    text = first_screen(conflicts_report())
    assert "dentry.d_sb (4 by do_dentry_open)" in text
    kept = msgspec.structs.replace(stored("conflicts", conflicts_report()), shown={"explain": 9})
    section = next(
        one for one in document_of(kept).sections if one.id == "lines-open-close-same-file"
    )
    table = section.blocks[0]
    assert isinstance(table, Table)
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert cells["next to it: dentry.d_sb"] == ["-", "2", "0", "2", "0", "0", "do_dentry_open"]


def test_a_sentence_counts_nothing_that_is_none() -> None:
    text = unwrapped("conflicts", compared_conflicts())
    assert " 0 " not in text.split("regions")[1].split(".")[0]


def test_lines_are_shown_by_cpu_and_function() -> None:
    kept = msgspec.structs.replace(stored("conflicts", conflicts_report()), shown={"explain": 9})
    document = document_of(kept)
    section = next(one for one in document.sections if one.id == "lines-pipe-across")
    table = section.blocks[0]
    assert isinstance(table, Table)
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert cells["kernel stack (2 lines)"][:6] == ["true", "2", "1", "2", "1", "1"]
    assert cells["runqueues of CPU 1.nr_running"][0] == "false"
    assert cells["file.f_count"][-1] == "fget, fput, get_file_rcu and 2 more"
    texts = " ".join(str(block) for block in section.blocks)
    assert "lines may be missing" in texts
    assert "jiffies" in texts


def test_interrupts_are_shown_by_who_sends_them() -> None:
    kept = msgspec.structs.replace(stored("conflicts", compared_conflicts()), shown={ALL: 1})
    text = " ".join(text_of(kept).split())
    assert "__smp_call_single_queue < ttwu_queue_wakelist < try_to_wake_up < wake_up_q < " in text
    assert "< futex_wake < ... < __x64_sys_futex" in text
    assert "resched_curr" not in text
    assert (
        "6.1.90: interrupts to other CPUs, an iteration: function call 2, TLB shootdown 1. "
        "By whom: -o pipe-across."
    ) in text


def test_two_kernels_say_what_came_and_went() -> None:
    text = unwrapped("conflicts", compared_conflicts())
    assert (
        "of 4 regions 1 contends for more fields, 1 contends for fewer, 1 writes the same more "
        "often and 1 is unresolved. Unresolved: pipe-across."
    ) in text
    assert "dentry.d_lockref.lock 4 -> 8 writes" in text
    assert "New in most regions: file.f_count (1)" in text
    assert "+file.f_count" in text
    assert "-kmalloc-512+0x100 by apparmor_file_free_security" in text


def test_what_is_no_longer_next_to_a_field_is_on_the_first_screen_of_one_that_is_the_same() -> None:
    often = Often(Fraction(2))
    near = FieldChange("mm_struct.pgd", often, often, "f", "mm_struct.mm_count")
    report = compared_conflicts()
    change = RegionChange(report.changes[0].region, Contention.SAME, left=(near,))
    text = first_screen(msgspec.structs.replace(report, changes=(change, *report.changes[1:])))
    assert "mm_struct.pgd (read 2 times by f) no longer next to mm_struct.mm_count" in text


def test_cases_have_the_word() -> None:
    suite = document_of(stored("conflicts", compared_conflicts())).suites[-1]
    assert {case.name: (case.outcome, case.verdict) for case in suite.cases} == {
        "stat-same-file": (Outcome.SLOWER, "more often"),
        "stat-two-files": (Outcome.SLOWER, "more"),
        "open-close-same-file": (Outcome.OK, "fewer"),
        "pipe-across": (Outcome.UNKNOWN, "unresolved"),
    }


def test_one_kernel_twice_changed_nothing() -> None:
    text = unwrapped("conflicts", same_kernel())
    assert "nothing was changed, so nothing is compared" in text


def test_a_region_that_contends_for_nothing_is_reported() -> None:
    quiet = msgspec.structs.replace(
        conflicts_report(), sides=(side("./a", "a", found("stat-two-files")),)
    )
    text = unwrapped("conflicts", quiet)
    assert "on 2 CPUs: stat-two-files contends for no line of the kernel" in text
    assert "no line is contended for in each iteration" in text


def test_a_region_of_one_iteration_is_noted() -> None:
    once = msgspec.structs.replace(BASE.conflicts[0], region="command", iterations=1)
    report = msgspec.structs.replace(conflicts_report(), sides=(side("./a", "a", once),))
    assert "command: of fewer than 4 iterations." in unwrapped("conflicts", report)
    assert "fewer than 4 iterations" not in unwrapped("conflicts", conflicts_report())


def test_without_a_kernel_nothing_is_known() -> None:
    text = unwrapped("conflicts", failed_conflicts())
    assert "Nothing is known of pairs on 2 CPUs: no run went well." in text
    assert "no rule" in text


def test_page_and_question() -> None:
    text = page(stored("conflicts", compared_conflicts()))
    assert "lockref_put_return" in text
    assert question_of("conflicts", [conflicts_report()]).startswith("What do 2 CPUs contend for")
    assert "against" in question_of("conflicts", [compared_conflicts()])


def test_json_has_the_lines() -> None:
    read = msgspec.json.decode(document_text(compared_conflicts(), "1"))
    assert read["schema"] == "kdelta.conflicts/1"
