# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a run of some work may take, and which regions of it count."""

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.lab.lab import RunPlan
from kdelta.lab.plan import COMMAND_REGION
from kdelta.lab.request import Program
from kdelta.lab.work import works_of
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from tests.synthetic import own, region, run

USUAL = MachineOptions().timeout_seconds


def test_long_work_has_time_unless_the_user_says() -> None:
    short, long = (
        RunPlan("made", "a" * 64, Job(argv=("/x",)), {}, host_seconds=seconds)
        for seconds in (0.0, 5 * USUAL)
    )
    assert short.seconds_on(MachineOptions()) == USUAL
    assert long.seconds_on(MachineOptions()) == 5 * USUAL
    for asked in (USUAL / 2, 9 * USUAL):
        machine = MachineOptions(timeout_seconds=asked)
        assert short.seconds_on(machine) == long.seconds_on(machine) == asked


def test_only_regions_that_are_asked_for_count() -> None:
    plan = RunPlan("made", "a" * 64, Job(argv=("/x",), region=COMMAND_REGION), {})
    counts = run(
        *(region(name, {own("main"): 100}) for name in (COMMAND_REGION, "first", "second"))
    )
    for asked, found in (
        ((), ["first", "second"]),
        (("second",), ["second"]),
        ((COMMAND_REGION,), [COMMAND_REGION]),
    ):
        counted = msgspec.structs.replace(plan, regions=asked).counted(counts)
        assert [one.name for one in counted.regions] == found
    twice = run(*(region(name, {own("main"): 100}) for name in ("command", "parse", "command")))
    with pytest.raises(UserError, match="marks a region 'command', which is kdelta's own"):
        plan.counted(twice)
    with pytest.raises(UserError, match="no region 'seconds'") as error:
        msgspec.structs.replace(plan, regions=("seconds",)).counted(counts)
    assert "second" in error.value.hint


def test_work_of_a_program_has_the_regions_that_are_asked_for() -> None:
    (work,) = works_of((), ("second",), Program(("ls",)))
    assert work.operations == ("second",)
    assert work.program == Program(("ls",))
