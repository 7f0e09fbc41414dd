# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta workloads`: what can be run."""

from collections.abc import Iterable

from kdelta.cli.output import emit
from kdelta.workloads.catalog import Operation, Parameter, Workload
from kdelta.workloads.catalog import list_workloads as known_workloads

_NAME = 24


def workloads() -> None:
    """List the workloads and their operations."""
    emit(workloads_text(known_workloads().values()))


def _operation(one: Operation) -> str:
    return f"    {one.name:<{_NAME}} {one.summary}" + " (only if asked for)" * one.on_request


def _parameter(workload: Workload, one: Parameter) -> str:
    return (
        f"    -w {workload.name}:{one.name}=N {one.summary}, from 1 to {one.most} "
        f"(otherwise {one.default})"
    )


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
    return "".join(f"{line}\n" for line in lines)
