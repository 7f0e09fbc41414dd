# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of a comparison: golden files, and what holds of any."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.effects.effects import compare
from kdelta.report.kind import ALL
from kdelta.report.model import Compared, CompareReport, Side
from kdelta.studies.compare.answer import LEAST_PPM
from kdelta.studies.compare.first_screen import LINES, first_screen
from kdelta.studies.forms import FORMS
from tests.report.example import report
from tests.report.example_cycles import with_cycles
from tests.report.shown import stored
from tests.report.test_text import against_golden, fits_a_mail, several
from tests.synthetic import own, region, run

OPERATIONS = 44


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("first-screen.txt", lambda: first_screen([report()])),
        ("first-screen-several.txt", lambda: first_screen([several()])),
        ("first-screen-cycles.txt", lambda: first_screen([with_cycles("zen3")])),
    ],
)
def test_golden(name: str, text: "object") -> None:
    assert callable(text)
    against_golden(name, text())


def sides(spec: str, release: str = "") -> Side:
    return Side(spec, "0" * 64, release, ())


def table(changes: list[int], base: Side, other: Side) -> CompareReport:
    """Operations of 10,000 instructions that change by so many hundredths of a per cent."""
    names = [f"operation-{number}" for number in range(len(changes))]
    runs = [
        [run(*(region(name, {own("f"): 100 * (10_000 + more)}) for name, more in rows))] * 2
        for rows in (zip(names, [0] * len(names), strict=True), zip(names, changes, strict=True))
    ]
    return CompareReport("syscalls", {"name": "tcg"}, base, (Compared(other, compare(*runs)),))


A, B = sides("deb:linux-image-a=6.1.192-2"), sides("deb:linux-image-b=6.12.117-1", "6.12.117")


@given(st.lists(st.integers(-9_000, 9_000), min_size=1, max_size=OPERATIONS))
def test_any_table_fits_a_screen_and_each_operation_is_listed_or_counted(
    changes: list[int],
) -> None:
    text = first_screen([table(changes, A, B)])
    lines = text.splitlines()
    fits_a_mail(text)
    assert len(lines) <= LINES
    answer = " ".join(text.partition("\n\n")[0].split())
    assert answer.startswith("Linux 6.12.117 against 6.1.192, ")
    body = text.partition("\n\n")[2].splitlines()
    rows = [line for line in body if line.startswith("operation-") and "," not in line]
    more = [int(line.split()[1]) for line in lines if line.startswith("  ... ")]
    large = [change for change in changes if abs(change) >= 50]
    others = len(changes) - len(large)
    assert len(rows) + sum(more) == len(large) + (others if others <= 5 or not large else 0)
    slower, faster = (sum(sign * change > 0 for change in large) for sign in (1, -1))
    for count, word in ((slower, "slower"), (faster, "faster")):
        assert (f"{count} {word}" in answer) == bool(count)
    small = sum(0 < abs(change) < 50 for change in changes)
    assert (f"{small} changed by less than 0.5%" in answer) == bool(small)


def test_equal_operations_without_others_have_rows_with_their_figures() -> None:
    text = first_screen([table([0, 0, 3], A, B)])
    assert "2 same" in " ".join(text.split())
    rows = [line.split()[:4] for line in text.splitlines() if line.startswith("operation-")]
    assert ["operation-0", "10000", "10000", "0%"] in rows
    assert ["operation-2", "10000", "10003", "+0.03%"] in rows


def test_the_worst_and_the_best_are_in_the_answer_with_the_function_that_did_it() -> None:
    text = " ".join(first_screen([table([100, 700, -200, -300], A, B)]).split())
    assert "2 slower, 2 faster." in text
    assert "Slower by most: operation-1 +7.00% (+700 f)." in text
    assert "Faster by most: operation-3 -3.00% (-300 f)." in text


def test_a_smaller_margin_lists_what_a_larger_one_counts() -> None:
    found = table([10, 600, 0, 0, 0, 0, 0], A, B)
    assert "\noperation-0" not in first_screen([found])
    assert "\nless than 0.5%: operation-0\n" in first_screen([found])
    assert "\noperation-0" in first_screen([found], Fraction(1, 1000))


def test_kernels_of_one_version_are_base_and_other() -> None:
    one = sides("~/linux", "6.12.117")
    text = first_screen([table([100], one, msgspec.structs.replace(one, spec="~/linux +x.patch"))])
    assert text.startswith("other against base, 1 operation of syscalls: 1 slower.")


def test_the_stored_comparison_is_shown_as_it_was_asked_for() -> None:
    one = stored("compare", table([10, 600], A, B))
    text = FORMS["text"].render
    assert text(one) == first_screen(one.of(CompareReport))
    shown = msgspec.structs.replace(one, shown={LEAST_PPM: 0})
    assert text(shown) == first_screen(one.of(CompareReport), Fraction(0))
    assert "same (2)" in text(msgspec.structs.replace(stored("compare", report()), shown={ALL: 1}))
