# SPDX-License-Identifier: GPL-2.0-or-later
"""What documents are made of: tables that check themselves, figures as every form has them."""

from fractions import Fraction

import pytest

from kdelta.report import cells, figures
from kdelta.report.document import Cell, Column, Table
from kdelta.report.html.page import shown
from kdelta.spec.errors import LabError

COLUMNS = (Column("function", "name"), Column("diff", "number", sums=True))


def table(*texts: str, total: str) -> Table:
    rows = tuple((Cell("f"), Cell(text)) for text in texts)
    return Table("t", "Functions of uname", COLUMNS, rows, (Cell("total"), Cell(total)))


def test_table_rows_that_add_up_are_accepted() -> None:
    assert table("+1.25", "-0.25", "", "-", total="+1").last == ((Cell("total"), Cell("+1")),)


def test_table_rows_that_do_not_add_up_are_an_error() -> None:
    with pytest.raises(LabError, match=r"Functions of uname: the rows of diff add up to 3\.0, and"):
        table("+1", "+2", total="+3.01")


def test_parts_that_are_not_all_of_the_whole_are_an_error() -> None:
    thirds = [Fraction(1, 3)] * 3
    assert sum(figures.shared("x", thirds, Fraction(1), 100)) == 100
    with pytest.raises(LabError, match="x: the rows add up to"):
        figures.shared("x", thirds[:2], Fraction(1), 100)


@pytest.mark.parametrize(
    ("base", "other"),
    [(Fraction(1, 3), Fraction(2, 3)), (Fraction(10**7, 3), Fraction(10**7, 3) + Fraction(13, 10))],
)
def test_base_and_difference_make_the_other_as_printed(base: Fraction, other: Fraction) -> None:
    first, second, diff = (Fraction(cell.text) for cell in cells.between(base, other))
    assert first + diff == second


def test_a_page_groups_digits_of_figures_and_of_nothing_else() -> None:
    assert shown(Cell("-1234567.1234 +-10.5%"), "number") == (
        "\N{MINUS SIGN}1\u202f234\u202f567.1234 \N{PLUS-MINUS SIGN}10.5\u202f%"
    )
    assert shown(Cell("1e-05"), "number") == "1e-05"
    assert shown(Cell("a-1234"), "name") == "a-1234"
