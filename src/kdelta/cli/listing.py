# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta runs`, `report --list`, `kernels` and `workloads` print."""

from collections.abc import Iterable, Sequence

from kdelta.kernels.build.built import BuiltKernel, load_built
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.build.prune import Cached
from kdelta.kernels.config.kconfig import line_of
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.deb import CachedKernel
from kdelta.report.lines import ascii_only, wrapped
from kdelta.spec.identity import short
from kdelta.spec.kernel import DebSpec
from kdelta.store.model import Run, Study
from kdelta.studies.lab.configs import ConfigDifference
from kdelta.workloads.catalog import Operation, Parameter, Workload

_ID = 8
_NAME = 24
_SHOWN = 12


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


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
    return _text(lines)


def studies_text(studies: Sequence[Study]) -> str:
    """A line for each study, with what it asked on a line of its own."""
    if not studies:
        return "no studies yet: kdelta compare makes one\n"
    length = _unique_length([study.id for study in studies])
    lines = [f"{'study':<{length}} {'started (UTC)':<16} {'kind':<8} question"]
    for study in studies:
        head = f"{study.id[:length]} {study.started_text[:16]} {study.kind:<8} "
        lines += wrapped(ascii_only(study.question.replace("\n", " ")), head, " " * len(head))
    return _text(lines)


def _unique_length(ids: Sequence[str]) -> int:
    """How much of the ids distinguishes them."""
    longest = max(map(len, ids))
    lengths = range(_ID, longest)
    return next((n for n in lengths if len({one[:n] for one in ids}) == len(ids)), longest)


def kernels_text(fetched: Sequence[CachedKernel], built: Sequence[BuiltKernel]) -> str:
    """Some lines for each kernel that is there already."""
    if not fetched and not built:
        return "no kernels here yet: naming one in a command fetches or builds it\n"
    lines: list[str] = []
    for one in fetched:
        lines += [str(DebSpec(one.package, one.version, one.architecture)), _release(one)]
    for kernel in built:
        built_in = f"built in {kernel.seconds:.0f} s"
        lines += [built_name(kernel), f"{_release(kernel)}, {built_in}"]
    return _text(lines)


def _release(kernel: CachedKernel | BuiltKernel | Kernel) -> str:
    return f"    release {kernel.release}, {kernel.arch}, identity {short(kernel.identity)}"


def built_name(kernel: BuiltKernel) -> str:
    """A built kernel by the beginning of its key, and how it was asked for."""
    return f"{short(kernel.key)}  {kernel.spec}"


def built_text(kernel: Kernel | NoKernel) -> str:
    """What became of a kernel spec: where the kernel is and how its config came about."""
    if isinstance(kernel, NoKernel):
        return f"{kernel.spec}\n    {kernel.text}\n"
    lines = [kernel.spec, _release(kernel), f"    {kernel.image_format} {kernel.image}"]
    built = load_built(kernel.built) if kernel.built else None
    if built is not None:
        lines += [f"    {line}" for line in _history(built)]
    return _text(lines)


def _history(built: BuiltKernel) -> list[str]:
    lines = [
        f"key {built.key[:12]}, tree {built.tree[:12]} of {built.source}",
        f"built in {built.seconds:.0f} s by {', '.join(built.versions)}",
        f"config from {built.base}",
    ]
    if built.linked is not None:
        lines += built.linked.lines
    if built.asked:
        lines.append("asked: " + ", ".join(line_of(*one) for one in built.asked.items()))
    if built.lab:
        lines.append("set for the lab: " + ", ".join(str(flip) for flip in built.lab))
    if built.changed:
        shown = ", ".join(str(flip) for flip in built.changed[:_SHOWN])
        more = len(built.changed) - _SHOWN
        lines.append(f"granted otherwise: {shown}" + (f" and {more} more" if more > 0 else ""))
    if built.missing:
        lines.append("the lab misses: " + ", ".join(one.option for one in built.missing))
    if built.modules_left:
        lines.append(
            f"{built.modules_left} options are modules and were not built; +mod2yesconfig or "
            "CONFIG_X=y builds them in"
        )
    return lines


def removed_text(removed: Sequence[Cached], left: Sequence[Cached], limit_bytes: int) -> str:
    """What pruning removed, what is left, and the limit that holds from now on."""
    freed = sum(one.bytes for one in removed)
    kept = sum(one.bytes for one in left)
    return (
        f"removed {len(removed)} ({freed >> 20} MiB); {len(left)} are left ({kept >> 20} MiB); "
        f"the limit is {limit_bytes >> 30} GiB (KDELTA_CACHE_GIB)\n"
    )


def differences_text(found: ConfigDifference) -> str:
    """How two kernels' configs differ, and which of the differences reach executed code."""
    lines = [built_name(one) for one in found.kernels]
    if not found.flips:
        return _text([*lines, "", "the configs are equal"])
    lines += ["", f"{len(found.flips)} options differ; {found.known}"]
    width = max(len(str(flip)) for flip in found.flips)
    for flip in found.flips:
        reach = found.reach.get(flip.option) or ""
        lines.append(f"    {flip!s:<{width}}  {reach}".rstrip())
    return _text(lines)


def _operation(one: Operation) -> str:
    request = " (only if asked for)" if one.on_request else ""
    return f"    {one.name:<{_NAME}} {one.summary}{request}"


def _parameter(workload: Workload, one: Parameter) -> str:
    told = f"-w {workload.name}:{one.name}=N"
    return f"    {told} {one.summary}, from 1 to {one.most} (otherwise {one.default})"


def workloads_text(workloads: Iterable[Workload]) -> str:
    """Each workload with what it can be given, and its operations unless another has the same."""
    lines = []
    seen: dict[tuple[Operation, ...], str] = {}
    for workload in workloads:
        lines += [f"{workload.name}: {workload.summary}"]
        lines += [_parameter(workload, one) for one in workload.parameters]
        if seen.setdefault(workload.operations, workload.name) != workload.name:
            lines += [f"    the operations of {seen[workload.operations]}"]
        else:
            lines += [_operation(one) for one in workload.operations]
    return _text(lines)
