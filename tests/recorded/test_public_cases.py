# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/public recorded of public questions has the right words."""

import msgspec
import pytest
from public_cases import CASES, Case, record_of, wrong


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recorded_case_has_the_right_words(case: Case) -> None:
    record = record_of(case)
    assert record is not None
    assert wrong(case, record) == []
    assert record.command.split()[1:] == " ".join(case.words).split()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_other_words_and_another_code_are_wrong(case: Case) -> None:
    record = record_of(case)
    assert record is not None
    empty = msgspec.structs.replace(record, printed=("Linux: 1 same, exact, base, other",))
    assert len(wrong(case, empty)) >= len(case.prints)
    assert wrong(case, msgspec.structs.replace(record, code=7)) == [
        f"ended with 7, not {case.code}"
    ]
