# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta runs`, `kernels` and `workloads` print."""

from collections.abc import Iterable, Sequence

from kdelta.kernels.cache import CachedKernel
from kdelta.spec.identity import short
from kdelta.spec.kernel import DebSpec
from kdelta.store.model import Run
from kdelta.workloads.catalog import Workload

_ID = 8
_NAME = 24


def runs_text(runs: Sequence[Run]) -> str:
    """A line for each run."""
    if not runs:
        return "no runs yet: kdelta compare and kdelta run make some\n"
    length = _unique_length([run.id for run in runs])
    lines = [f"{'run':<{length}} {'started (UTC)':<16} {'status':<15} {'kernel':<26} workload"]
    lines += [
        f"{run.id[:length]} {run.started_text[:16]} {run.word:<15} {run.kernel_release:<26} "
        f"{run.workload} #{run.perturbation}"
        for run in runs
    ]
    return "".join(f"{line}\n" for line in lines)


def _unique_length(ids: Sequence[str]) -> int:
    """How much of the ids tells them apart."""
    longest = max(len(one) for one in ids)
    for length in range(_ID, longest):
        if len({one[:length] for one in ids}) == len(ids):
            return length
    return longest


def kernels_text(kernels: Sequence[CachedKernel]) -> str:
    """A line for each kernel that is there already."""
    if not kernels:
        return "no kernels here yet: naming one in a command fetches it\n"
    return "".join(
        f"{DebSpec(kernel.package, kernel.version)}\n"
        f"    release {kernel.release}, {kernel.arch}, identity {short(kernel.identity)}\n"
        for kernel in kernels
    )


def workloads_text(workloads: Iterable[Workload]) -> str:
    """Each workload with its operations."""
    lines = []
    for workload in workloads:
        lines += [f"{workload.name}: {workload.summary}"]
        lines += [f"    {one.name:<{_NAME}} {one.summary}" for one in workload.operations]
    return "".join(f"{line}\n" for line in lines)
