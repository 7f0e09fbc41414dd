# SPDX-License-Identifier: GPL-2.0-or-later
"""An arm64 guest whose emulated PMU counts instructions, next to exact runs of the same kernel."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.lab.lab import Lab
from kdelta.lab.plan import guest_compiler
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.measures.clock import guests
from kdelta.measures.clock.guests import ClockGuest, initramfs_of, timed_boot
from kdelta.measures.clock.jobs import timed_job
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.counters.request import CountersRequest
from kdelta.studies.counters.study import NOTHING, run_counters

SPEC = "deb:linux-image-cloud-arm64:arm64@bookworm"
SIMPLE = ("getppid", "stat", "write-null-1b", "clock_gettime-vdso", "select-1000")
FORKING = "fork-exit-wait"


@pytest.mark.guest
@pytest.mark.slow
def test_counters_of_a_guest_are_the_exact_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What neither forks nor sleeps retires what is counted exactly, within 1 %; all that it needs
    more in user mode is marks and readings of the clock.
    """
    kernel, machine = obtain(parse_kernel_spec(SPEC), lambda _: None), MachineOptions()
    assert isinstance(kernel, Kernel)
    plain = guests.guest_argv

    def counting(*words: Any) -> list[str]:
        return [*plain(*words), "-icount", "shift=0,sleep=off"]

    monkeypatch.setattr(guests, "guest_argv", counting)
    job = timed_job(Work(operations=(*SIMPLE, FORKING, NOTHING)), kernel, LabRequest())
    image = initramfs_of(job.archive, guest_compiler("arm64", machine))
    run = timed_boot(ClockGuest(machine), kernel, image)
    file = tmp_path / "1.json"
    file.write_bytes(run.content)
    request = CountersRequest(kernel=SPEC, files=(file,), lab=LabRequest(perturbations=2))
    with Store.open(tmp_path / "store") as store:
        report = asyncio.run(run_counters(request, Lab(store, Silent())))
    found = {one.region: one for one in report.operations}
    assert set(found) == {*SIMPLE, FORKING}
    assert report.marks
    assert 5 < report.marks < 50
    for name in SIMPLE:
        assert found[name].agrees, name
        user = found[name].user
        assert user
        assert user.left == 0
    forking = found[FORKING]
    assert not forking.agrees
    assert "page faults" in " ".join(forking.why)
    assert forking.retired.counted < 0.9
    assert (report.more_flags, report.fewer_flags) == ((), ())
