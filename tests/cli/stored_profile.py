# SPDX-License-Identifier: GPL-2.0-or-later
"""A run with a profile in the store."""

from collections.abc import Sequence
from pathlib import Path

from kdelta.counts.model import Iterations, RegionCounts, RunCounts
from kdelta.counts.profile import Profile
from kdelta.counts.profile_file import encode_profiles
from kdelta.lab.lab import PROFILES, SYMBOLS
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store


def stored(folder: Path, profiles: Sequence[Profile], *, recorded: bool = True) -> Run:
    """A run in the store of that folder, whose kernel is not there any more."""
    new = NewRun(
        key="key",
        kernel_identity="a" * 64,
        kernel_spec="image:/nowhere/$(reboot) <b>.img",
        kernel_release="6.1.0-a",
        machine={"name": "tcg", "qemu": "7.2.22", "cpu": "", "memory_mib": 1024},
        workload="syscalls",
        workload_identity="b" * 64,
        perturbation=0,
    )
    regions = [
        RegionCounts(profile.region, Iterations(), profile.function_costs()) for profile in profiles
    ]
    kept = {PROFILES: encode_profiles(profiles), SYMBOLS: b""} if recorded else {}
    with Store.open(folder) as store:
        started = store.start_run(new)
        counts = RunCounts(tuple(regions))
        return store.finish_run(started, RunStatus.OK, counts=counts, attachments=kept)
