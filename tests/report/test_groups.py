# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels whose programs ran in groups with other controllers: reports say so before any figure."""

import json
import re

import msgspec
import pytest

from kdelta.infer.effects.gate import Decision, Exit
from kdelta.report.groups import groups_text
from kdelta.report.model import Controllers
from kdelta.studies.compare.model import CompareReport
from kdelta.studies.forms import FORMS
from kdelta.studies.forms import html as page
from kdelta.studies.gate.document import GateReport
from tests.report.example import report
from tests.report.example_history import several
from tests.report.shown import stored

BOTH, PIDS = ("memory", "pids"), ("pids",)
TEXT = "base with memory and pids, other with pids alone: in other, memory is not charged"


def compared(base: Controllers, *others: Controllers) -> CompareReport:
    plain = report()
    sides = [msgspec.structs.replace(plain.others[0].side, controllers=one) for one in others]
    return msgspec.structs.replace(
        plain,
        base=msgspec.structs.replace(plain.base, controllers=base),
        others=tuple(msgspec.structs.replace(plain.others[0], side=one) for one in sides),
    )


@pytest.mark.parametrize(
    ("base", "other", "text"),
    [
        (BOTH, PIDS, TEXT),
        (
            PIDS,
            BOTH,
            "base with pids alone, other with memory and pids: in base, memory is not charged",
        ),
        (
            (),
            BOTH,
            (
                "base with none, other with memory and pids: "
                "in base, memory is not charged and tasks are not counted"
            ),
        ),
        (
            ("memory",),
            PIDS,
            (
                "base with memory, other with pids: "
                "in base, tasks are not counted; in other, memory is not charged"
            ),
        ),
    ],
)
def test_groups_that_differ_are_named_with_what_is_not_done(
    base: Controllers, other: Controllers, text: str
) -> None:
    assert groups_text([("base", base), ("other", other)]) == text


@pytest.mark.parametrize(
    ("base", "other"), [(BOTH, BOTH), (BOTH, ("pids", "memory")), ((), ()), (BOTH, None)]
)
def test_groups_that_are_alike_or_not_known_are_not_mentioned(
    base: Controllers, other: Controllers
) -> None:
    assert groups_text([("base", base), ("other", other)]) == ""
    assert all("groups" not in FORMS[form].render(stored("compare", compared(base, other)))
               for form in ("text", "mail", "markdown"))  # fmt: skip


def test_of_several_kernels_those_that_are_alike_are_one_group() -> None:
    three = [("kernel 1", BOTH), ("kernel 2", PIDS), ("kernel 3", PIDS)]
    assert groups_text(three) == (
        "kernel 1 with memory and pids, kernel 2 and kernel 3 with pids alone: "
        "in kernel 2 and kernel 3, memory is not charged"
    )
    text = FORMS["text"].render(stored("compare", compared(BOTH, BOTH, PIDS)))
    assert "base and other 1 with memory and pids, other 2 with pids\nalone: " in text


def unwrapped(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\n[#>|* ]*", " ", text))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "json"])
def test_groups_that_differ_are_in_every_form_before_the_first_operation(form: str) -> None:
    shown = unwrapped(FORMS[form].render(stored("compare", compared(BOTH, PIDS))))
    if form != "junit":  # its properties are above
        assert shown.index(TEXT) < shown.index("open-close")
    assert TEXT in shown


def test_controllers_of_each_kernel_are_in_json() -> None:
    (machine,) = json.loads(FORMS["json"].render(stored("compare", compared(BOTH, PIDS))))[
        "machines"
    ]
    assert machine["base"]["controllers"] == ["memory", "pids"]
    assert machine["others"][0]["side"]["controllers"] == ["pids"]


def test_groups_that_differ_stand_above_the_answers_of_a_page_and_of_a_gate_s() -> None:
    pair = compared(BOTH, PIDS)
    gate = GateReport(Decision(Exit.NOT_SLOWER, ()), (), (), (pair,))
    for one in (stored("compare", pair), stored("gate", gate)):
        made = page(one)
        assert made.index(TEXT) < made.index('<div class="answer')
    mail = unwrapped(FORMS["mail"].render(stored("gate", gate)))
    assert mail.index(TEXT) < mail.index("The gate says")


def test_log_names_kernels_whose_groups_differ() -> None:
    words = "kernel 1 with memory, kernel 2 with none: in kernel 2, memory is not charged"
    plain = several()
    series = tuple(msgspec.structs.replace(one, groups=words) for one in plain.series)
    one = stored("log", msgspec.structs.replace(plain, series=series))
    assert words in FORMS["json"].render(one)
    for form in ("text", "mail", "markdown", "ktap"):
        shown = unwrapped(FORMS[form].render(one))
        assert shown.index(words) < shown.index("%")
    made = page(one)
    assert made.index(words) < made.index('<div class="answer')
