# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of bundles' files, and what is to be done where there are none."""

import errno
from typing import Any

import pytest

from kdelta.measures.clock.counters import retired
from kdelta.measures.clock.results import TimedRun, parse_run
from kdelta.spec.errors import UserError
from tests.measures.clock.made_runs import content, region

ALL = {"user_instructions": [30_000, 900, 900], "kernel_instructions": [90_000, 900, 900]}


def run(*regions: dict[str, Any], **facts: Any) -> TimedRun:
    return parse_run(content({}, *regions, **facts), "1.json")


def counted(**counters: list[int]) -> dict[str, Any]:
    """A region of 300 iterations and 1.04 ms, of which the counters saw as much as they say."""
    return region("stat", 200.0, counters=counters)


def test_instructions_of_an_iteration() -> None:
    found = retired([run(counted(**ALL))])["stat"]
    assert (found.user, found.kernel) == (100.0, 300.0)
    assert (found.iterations, found.samples, found.shared) == (300, 3, False)


def test_counters_that_took_turns_are_scaled() -> None:
    half = {"user_instructions": [30_000, 900, 450]}
    found = retired([run(counted(**half))])["stat"]
    assert (found.user, found.kernel, found.shared) == (200.0, None, True)


def test_part_of_the_time_that_was_counted() -> None:
    ns = region("stat", 200.0)["ns"]
    found = retired([run(counted(user_instructions=[300, ns // 2, ns // 2]))])["stat"]
    assert found.counted == pytest.approx(0.5, rel=0.01)


def test_median_over_passes() -> None:
    each = [counted(user_instructions=[300 * n, 900, 900]) for n in (1, 7, 2)]
    assert retired([run(*each[:2]), run(each[2])])["stat"].user == 2.0


@pytest.mark.parametrize(
    ("failed", "message", "hint"),
    [
        (errno.EACCES, "perf_event_paranoid is 3", "sysctl kernel.perf_event_paranoid=1"),
        (errno.EPERM, "perf_event_paranoid is 3", "sysctl kernel.perf_event_paranoid=1"),
        (errno.ENOENT, "the CPU shows no counters of instructions to 6.12.0", "virtual PMU"),
        (errno.EOPNOTSUPP, "the CPU shows no counters of instructions", "virtual PMU"),
        (errno.ENOSYS, "6.12.0 cannot count instructions", "CONFIG_PERF_EVENTS=y"),
        (errno.EMFILE, "nothing was counted: Too many open files", "again"),
        (0, "nothing was counted: no region has a count", "again"),
    ],
)
def test_nothing_counted_says_why_and_what_to_do(failed: int, message: str, hint: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        retired([run(region("stat", 1.0, counter_errno=failed), paranoid="3")])
    assert hint in error.value.hint
