# SPDX-License-Identifier: GPL-2.0-or-later
"""What operations leave to other tasks, counted in guests of their own."""

import asyncio
from pathlib import Path

import pytest

from kdelta.counts.model import merged_regions
from kdelta.infer.effects.same import partings
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import lab_like
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.store.store import Store
from tests.machines.bench import NEW

FREES = "mmap-munmap"
"""6.12 frees its nodes of the maple tree by RCU."""


async def _run(store: Store, *, windows: bool = True) -> RunResult:
    request = lab_like(LabRequest(perturbations=1, rerun=True), None)
    lab = Lab(store, Silent(), request)
    kernel = lab.kernel(NEW)
    assert isinstance(kernel, Kernel)
    plan = Work("syscalls", (FREES, "getppid")).plan(kernel, request)
    ((done,),) = await lab.runs([kernel], [plan if windows else plan.without_windows()])
    return done


@pytest.mark.guest
@pytest.mark.slow
def test_what_rcu_frees_later_is_left_by_the_operation_that_asked_for_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        made = [asyncio.run(_run(store)) for _ in range(2)]
        alone = asyncio.run(_run(store, windows=False))
    counts = [one.counts for one in (*made, alone) if one.counts]
    assert list(partings(counts[0], counts[1])) == []
    first, _, without = map(merged_regions, counts)
    assert first["getppid"].left is None
    assert without[FREES].left is None
    left = first[FREES].left
    assert left
    assert left.iterations == first[FREES].iteration_count
    # Less than the call itself, and more than a tick's share of it.
    assert 100 < left.mean_insns < first[FREES].mean_own_insns()
    # Windows change nothing of what is counted besides.
    assert first[FREES].iterations == without[FREES].iterations
