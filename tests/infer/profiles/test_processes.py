# SPDX-License-Identifier: GPL-2.0-or-later
"""A region by process adds up to what was counted, and its table says so."""

import msgspec
import pytest

from kdelta.counts.model import Cost
from kdelta.infer.profiles.processes import ProgramCost, processes
from kdelta.spec.errors import LabError
from kdelta.studies.processes.document import region_table
from tests.infer.made_processes import STACKS, counted, made


def test_each_program_has_its_own_and_the_kernels_work_for_it() -> None:
    profile = made()
    found = processes(profile, counted(profile, 1000))
    assert found.programs == (
        ProgramCost("cc1", 0, user=300, kernel=60),
        # Its one instruction was executed three times: so many ended.
        ProgramCost("sh", 3, user=40, kernel=5),
    )
    assert found.other == (ProgramCost("kernel", 0, user=0, kernel=9),)
    assert found.interrupts == 7
    assert found.insns == sum(STACKS.values()) == 421
    assert found.residency == 60 + 5 + 9 + 7
    assert found.idle_ticks == 1000 - 421


def test_what_does_not_add_up_is_refused() -> None:
    profile = made()
    counts = counted(profile)
    first = msgspec.structs.replace(counts.functions[0], cost=Cost(insns=1))
    wrong = msgspec.structs.replace(counts, functions=(first, *counts.functions[1:]))
    with pytest.raises(LabError, match="processes add up to 405 instructions, not 106"):
        processes(profile, wrong)


def test_table() -> None:
    profile = made()
    table = region_table(processes(profile, counted(profile, 1000)))
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in (*table.rows, table.total)}
    assert rows["cc1"] == ["measured", "0", "300", "60", "85.5 %", "16.7 %"]
    assert rows["kernel"] == ["other", "0", "0", "9", "2.1 %", "100.0 %"]
    assert rows["interrupts"] == ["interrupts", "", "0", "7", "1.7 %", "100.0 %"]
    assert rows["total"] == ["", "", "340", "81", "100.0 %", "19.2 %"]
