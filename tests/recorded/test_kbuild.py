# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/kbuild keeps of a kernel compile on two kernels holds what its text says."""

from pathlib import Path

import msgspec
import pytest

from scripts.proofs.kbuild import SHOWN, Record, listing

CASE = Path(__file__).parents[2] / "docs/cases/kbuild"


@pytest.fixture(scope="module")
def record() -> Record:
    return msgspec.json.decode((CASE / "kbuild.json").read_bytes(), type=Record)


def test_the_functions_add_up_to_the_kernels_residency(record: Record) -> None:
    a, b = record.sides
    assert sum(line.a for line in record.lines) == a.residency
    assert sum(line.b for line in record.lines) == b.residency
    added = [line.b - line.a for line in record.lines]
    assert added == sorted(added, reverse=True)


def test_the_listing_is_of_the_record_and_adds_up(record: Record) -> None:
    text = (CASE / "listing.txt").read_text()
    assert text == listing(record)
    *rows, total = [line.split(maxsplit=2) for line in text.splitlines()]
    assert total[2] == "total"
    added = [int(row[0].replace(",", "")) for row in rows]
    others = [index for index, row in enumerate(rows) if row[2].startswith("other functions, ")]
    named = [figure for index, figure in enumerate(added) if index not in others]
    assert named == sorted(named, reverse=True)
    assert [added[index] > 0 for index in others] == [True, False]
    assert all(named[others[0] - 1] > 0 > figure for figure in named[others[0] :])
    assert sum(added) == int(total[0].replace(",", ""))
    assert len(rows) == SHOWN + 2
    a, b = record.sides
    assert total[1] == f"{100 * (b.residency - a.residency) / a.residency:.1f}%"


def test_one_that_vanished_and_one_that_is_new(record: Record) -> None:
    """-100 % and 0 %, as the published listing has it."""
    rows = [row.split(maxsplit=2) for row in listing(record).splitlines()]
    by_name = {name: percent for _, percent, name in rows}
    shown = {line.name: line for line in record.lines if line.name in by_name}
    assert any(not line.b and by_name[name] == "-100.0%" for name, line in shown.items())
    assert any(not line.a and by_name[name] == "0.0%" for name, line in shown.items())


def test_user_work_is_the_same_on_both_kernels(record: Record) -> None:
    """The same programs do the same: what moves is the kernel."""
    a, b = record.sides
    assert b.own_user == pytest.approx(a.own_user, rel=1e-3)
    assert a.idle_ticks == b.idle_ticks == 0


def test_processes_add_up(record: Record) -> None:
    rows, side = record.programs, record.small
    assert sum(row.user for row in rows) == side.own_user
    assert sum(row.kernel for row in rows) == side.own_kernel + side.other
    ended = {row.program: row.ended for row in rows}
    # One for each of the three objects; the others try which options the compiler has.
    assert ended["fixdep"] == 3
    assert ended["cc1"] == ended["as"] + 1 == 35
    assert ended["make"] == 14
    assert max(rows, key=lambda row: row.user).program == "cc1"
