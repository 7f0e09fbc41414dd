# SPDX-License-Identifier: GPL-2.0-or-later
"""Who sends interrupts between CPUs of real kernels: it adds up to what is sent."""

import asyncio

import pytest

from kdelta.infer.conflicts.interrupts import all_sent
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.conflicts.study import ConflictsRequest, run_conflicts
from tests.machines.bench import NEW, OLD

SENDERS = {
    "futex-ping-pong-across": ("function call", "futex_wake"),
    "pipe-across": ("function call", "pipe_write"),
    "mprotect-threads": ("TLB shootdown", "flush_tlb_mm_range"),
}


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("spec", [OLD, NEW])
def test_senders_add_up_to_what_is_sent(spec: str, store: Store) -> None:
    request = ConflictsRequest(
        kernels=(spec,),
        operations=tuple(SENDERS),
        lab=LabRequest(perturbations=1, machine=MachineOptions(cpus=2)),
    )
    (side,) = asyncio.run(run_conflicts(request, Lab(store, Silent()))).sides
    assert side.senders.keys() == SENDERS.keys()
    for region, (kind, caller) in SENDERS.items():
        found = side.senders[region]
        assert sum(one.count for one in found) == all_sent(side.sent[region])
        assert (found[0].kind, caller in found[0].callers) == (kind, True)
        assert found[0].callers[-1].startswith("__x64_sys_")
