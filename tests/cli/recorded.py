# SPDX-License-Identifier: GPL-2.0-or-later
"""Two recorded runs for the views of a profile."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.cli import main as cli
from kdelta.counts.model import Iterations, RegionCounts, RunCounts
from kdelta.counts.profile import Profile
from kdelta.counts.profile_file import encode_profiles
from kdelta.lab.lab import MODULE_SYMBOLS, PROFILES, SYMBOLS
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from tests.profiles import Stack, profile_of

A: dict[Stack, int] = {
    ("work:main",): 10,
    ("work:main", "entry"): 7,
    ("work:main", "entry", "vfs_read"): 100,
    ("work:main", "entry", "vfs_read", "small"): 50,
    ("irq",): 3,
}


def kdelta(*arguments: str) -> int:
    return cli.ended(arguments)


def recorded(folder: Path, stacks: Mapping[Stack, int], calls: str = "all") -> Run:
    """A run in the store of that folder, with its profile."""
    profile = profile_of(stacks, contexts={("irq",): 1})
    profile = msgspec.structs.replace(profile, calls=calls)
    counts = RunCounts((RegionCounts("work", Iterations(), profile.function_costs()),))
    new = NewRun(
        key=f"key of {len(stacks)}",
        kernel_identity="a" * 64,
        kernel_spec="tree:/linux",
        kernel_release="6.12.0",
        machine={"name": "tcg", "cpu": "qemu64", "memory_mib": 1024, "qemu": "7.2"},
        workload="syscalls",
        workload_identity="b" * 64,
        perturbation=0,
    )
    attachments = {
        PROFILES: encode_profiles((profile,)),
        SYMBOLS: symbols(profile),
        MODULE_SYMBOLS: b"",
    }
    with Store.open(folder) as store:
        return store.finish_run(
            store.start_run(new),
            RunStatus.OK,
            counts=counts,
            attachments=attachments,
        )


def symbols(profile: Profile) -> bytes:
    rows = [f for f in profile.functions if f.origin == "kernel"]
    return "".join(f"{f.address:016x} T {f.name}\n" for f in rows).encode()
