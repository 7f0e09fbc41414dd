# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a run of some work may take."""

from kdelta.guests.job import Job
from kdelta.lab.lab import RunPlan
from kdelta.spec.run import MachineOptions

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
