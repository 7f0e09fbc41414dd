# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/left-work recorded: planted work is counted wherever it is done."""

import alike
import left_work
import msgspec
import pytest
from left_work import FOLDER, NEAR, Record, records

FOUND = records(FOLDER)


def test_each_patch_has_a_record() -> None:
    assert {one.patch for one in FOUND} == set(left_work.PATCHES)


@pytest.mark.parametrize("one", FOUND, ids=lambda one: one.patch)
def test_own_work_and_what_is_left_are_all_that_a_guest_executes(one: Record) -> None:
    assert abs(one.off) < NEAR
    assert one.word == "slower"
    before, after = one.own if one.patch == "now" else one.left
    assert after - before == pytest.approx(20_000, rel=NEAR)
    lost = msgspec.structs.replace(one, left=(0.0, 0.0), own=one.own[:1] * 2)
    assert abs(lost.off) > NEAR


def test_pairs_that_are_alike_have_no_firm_word() -> None:
    found = alike.records(FOLDER / "alike")
    assert len(found) == 20
    assert {row.operation for one in found for row in one.rows} == {
        *("open-close", "mmap-munmap", "mmap-touch-4k", "thread-create-join")
    }
    assert [one.pair for one in found if one.firm] == []
