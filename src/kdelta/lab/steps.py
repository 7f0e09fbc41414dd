# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps that studies have in common: kernels that are fetched or built, boots, and runs."""

import contextlib
from collections.abc import Sequence

from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import not_built, obtain
from kdelta.lab.plan import RunPlan
from kdelta.lab.progress import Progress
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.spec.kernel import BuiltSpec, KernelSpec, parse_kernel_spec
from kdelta.spec.run import perturbation


def kernel_kind(spec: KernelSpec) -> str:
    """Return the kind of the step that obtains the kernel of a spec."""
    return "fetch" if isinstance(spec, BuiltSpec) else "build"


def expect_kernels(progress: Progress, specs: Sequence[str], *, rough: bool = False) -> None:
    """Report that the kernels of these specs are needed; rough: see `Progress.expect`. What is no
    spec is refused by who obtains it.
    """
    kinds = []
    for spec in specs:
        with contextlib.suppress(UserError):
            kinds.append(kernel_kind(parse_kernel_spec(spec)))
    for kind in dict.fromkeys(kinds):
        progress.expect(kind, kinds.count(kind), rough=rough)


def expect_runs(
    progress: Progress,
    asked: LabRequest,
    kernels: int,
    works: int = 1,
    *,
    indexes: Sequence[int] | None = None,
    rough: bool = False,
) -> None:
    """Report that so many kernels will boot, and run so many works each, under the perturbations of
    these indexes, or as many as are requested.
    """
    indexes = range(asked.perturbations) if indexes is None else indexes
    boots = {perturbation(index).boot for index in indexes}
    progress.expect("boot", kernels * len(boots), asked.jobs)
    progress.expect("run", kernels * works * len(indexes), asked.jobs, rough=rough)


def refused_of(specs: Sequence[str], progress: Progress) -> list[str]:
    """Return those of these specs of which it takes seconds to know that no kernel is built of
    them: where there are several kernels, before the others are fetched or built.
    """
    if len(set(specs)) < 2:
        return []
    found = []
    for spec in dict.fromkeys(specs):
        with contextlib.suppress(KdeltaError):  # which is raised when it is obtained
            if refusal := _asked_first(spec, progress):
                progress.log(f"{spec}: {refusal.text}")
                found.append(spec)
    return found


def _asked_first(spec: str, progress: Progress) -> NoKernel | None:
    """Why no kernel is built of a spec: see `not_built`."""
    wanted = parse_kernel_spec(spec)
    if isinstance(wanted, BuiltSpec):
        return None
    step = f"configure {spec}"
    progress.begin(step)
    result = "failed"
    try:
        found = not_built(wanted, progress.log)
        result = "refused" if found else "ready"
        return found
    finally:
        progress.end(step, result)


def obtained(spec: KernelSpec, progress: Progress) -> Kernel | NoKernel:
    """Return what `obtain` does; what takes time is a step."""
    step = f"{kernel_kind(spec)} {spec}"
    begun = False

    def report(line: str) -> None:
        nonlocal begun
        if not begun:
            begun = True
            progress.begin(step)
        if not line.startswith(" "):
            progress.log(line)
        progress.doing(step, line.strip())

    result = "failed"
    try:
        found = obtain(spec, report)
        if isinstance(found, Kernel):
            result = found.release
        return found
    finally:
        if begun:
            progress.end(step, result)
        else:
            progress.found(step)


def log_memory(progress: Progress, asked: LabRequest, works: Sequence[RunPlan]) -> None:
    """Report what needs more memory than was asked for."""
    for name, least in {work.name: work.memory_mib for work in works}.items():
        if least > asked.machine.memory_mib:
            progress.log(f"{name} needs {least} MiB of memory: its guests have that")
