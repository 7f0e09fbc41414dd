# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/cases/starts keeps shows that an operation costs the same alone and in any order."""

import json
from pathlib import Path

import pytest

from kdelta.workloads.catalog import find_workload

FOLDER = Path(__file__).parents[2] / "docs/cases/starts"
TRIALS = {"reverse", "random-0", "random-1", "random-2", "alone"}
LEAST_EQUAL = 40
RECORDS = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
KERNELS = sorted({one["kernel"] for one in RECORDS})


def test_two_kernels_are_recorded_with_all_operations() -> None:
    assert len(KERNELS) == 2
    operations = len(find_workload("syscalls").operations)
    assert {one["operations"] for one in RECORDS} == {operations}


@pytest.mark.parametrize("kernel", KERNELS)
def test_operations_cost_the_same_in_all_trials(kernel: str) -> None:
    trials = {one["trial"]: one for one in RECORDS if one["kernel"] == kernel}
    assert set(trials) == TRIALS
    for one in trials.values():
        assert one["operations"] - len(one["differing"]) >= LEAST_EQUAL
        for here, there in one["differing"].values():
            assert there == pytest.approx(here, rel=0.01)
