# SPDX-License-Identifier: GPL-2.0-or-later
"""An order that was found, applied: the kernel relinked in it, run, and measured."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.cpus.model import Cache
from kdelta.host.files import lab_errors, write_atomic
from kdelta.spec.change import OrderChange, RelinkChange
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec, ImageSpec, parse_kernel_spec, with_changes
from kdelta.store.store import Store
from kdelta.studies.lab.lab import Done, misses_of
from kdelta.studies.lab.reports import reported_side
from kdelta.studies.lab.requests import LabRequest, PlaceRequest, Progress
from kdelta.studies.layout.traced_kernel import traced_kernel
from kdelta.studies.place.model import Applied, AppliedRegion, PlacedRegion


class _Measured(msgspec.Struct, frozen=True):
    """A region of one run: its counts, and what of its own work missed while it ran."""

    counts: RegionCounts
    misses: int


def require_relinkable(spec: str) -> None:
    """UserError for a kernel that cannot be linked in another order, with what to ask for."""
    kernel = parse_kernel_spec(spec)
    if isinstance(kernel, DebSpec | ImageSpec):
        raise UserError(
            f"{kernel} is built already: --apply cannot link it in another order",
            "name its source and its config: PATH +FILE.config +sections. Or leave --apply out",
        )
    if not any(isinstance(change, RelinkChange) for change in kernel.changes):
        raise UserError(
            f"{kernel} is not built with a section for each function: --apply cannot move them",
            f"append +sections: {kernel} +sections",
        )


def simulating(lab: LabRequest, cache: Cache) -> LabRequest:
    """The same request for runs that also count what they miss in that cache."""
    return msgspec.structs.replace(lab, simulate=cache)


@contextlib.contextmanager
def put_back(file: Path) -> Iterator[None]:
    """Leaves the file as it was if the body is ended by Ctrl-C, or by an error."""
    with lab_errors("reading", file):
        before = file.read_bytes() if file.exists() else None
    try:
        yield
    except BaseException:
        if before is None:
            file.unlink(missing_ok=True)
        else:
            write_atomic(file, before)
        raise


async def applied(
    request: PlaceRequest,
    workloads: Mapping[str, tuple[str, ...]],
    shipped: Sequence[Done],
    predicted: Sequence[PlacedRegion],
    *,
    store: Store,
    progress: Progress,
) -> Applied:
    """The kernel of the request relinked in the order of its file, and what it does, measured.

    workloads: with the operations that are wanted of each. shipped: the runs of the kernel as it
    was, one a workload; predicted: what was told of its regions; the others have a warning. That
    the relinked kernel cannot be built or run is in what is returned.
    """
    spec = with_changes(parse_kernel_spec(request.kernel), [OrderChange(str(request.file))])
    found = await traced_kernel(
        str(spec),
        request.cpu,
        list(workloads.items()),
        lab=msgspec.structs.replace(request.lab, data_lines=False),
        store=store,
        progress=progress,
    )
    side = reported_side(found.spec, found.kernel, found.done, found.failure, store)
    if found.kernel is None or not found.ok:
        return Applied(side)
    names = tuple(workloads)
    before = _measured(shipped, names, request.cpu.l1i, store)
    after = _measured(found.done, names, request.cpu.l1i, store)
    warnings = [text for one in found.done if one.counts for text in one.counts.warnings]
    told = {one.name for one in predicted}
    warnings += [
        _not_predicted(name, before[name], after[name])
        for name in before
        if name in after and name not in told
    ]
    return Applied(
        kernel=side,
        regions=tuple(
            _region(one, before[one.name], after[one.name])
            for one in predicted
            if one.name in before and one.name in after
        ),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _measured(
    done: Sequence[Done], names: Sequence[str], cache: Cache, store: Store
) -> dict[str, _Measured]:
    """By region, which is named WORKLOAD/OPERATION if there are several workloads."""
    found = {}
    for one, workload in zip(done, names, strict=True):
        if one.counts is None:
            continue
        prefix = f"{workload}/" if len(names) > 1 else ""
        missed = {region.region: region.misses[0] for region in misses_of(store, one.run, cache)}
        for name, counts in merged_regions(one.counts).items():
            found[prefix + name] = _Measured(counts, missed.get(name, 0))
    return found


def _not_predicted(name: str, before: _Measured, after: _Measured) -> str:
    """Of a region without a trace."""
    shipped, measured = (one.misses / one.counts.iteration_count for one in (before, after))
    return (
        f"{name}: nothing was predicted, since nothing of it fitted into a trace; L1I misses an "
        f"iteration: {shipped:.2f} as linked, {measured:.2f} in the order"
    )


def _region(one: PlacedRegion, before: _Measured, after: _Measured) -> AppliedRegion:
    misses = one.misses["l1i"]
    per = before.counts.iteration_count
    path = after.counts.cost("own").insns - before.counts.cost("own").insns
    return AppliedRegion(
        name=one.name,
        iterations=per,
        shipped=before.misses / per,
        median=misses.median,
        best=misses.best,
        predicted=misses.predicted,
        measured=after.misses / after.counts.iteration_count,
        path=path / per,
    )
