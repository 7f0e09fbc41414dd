# SPDX-License-Identifier: GPL-2.0-or-later
"""A better order of a kernel's functions, for one or several workloads."""

import contextlib
import difflib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.counts.model import merged_regions
from kdelta.cpus.model import MissKind
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.cycles import model_cycles
from kdelta.infer.cycles.ensembles import Interval
from kdelta.kernels.kbuild.order_file import write_order
from kdelta.lab.cpus import lab_like
from kdelta.lab.found import in_rounds
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Progress
from kdelta.lab.reports import (
    facts_of_machine,
    merged_unlike,
    reported_cpu,
    reported_side,
    unlike,
)
from kdelta.lab.work import Work
from kdelta.measures.cycles.cut import cut_note
from kdelta.measures.cycles.placement import (
    L2,
    PlacedKernel,
    caches_of,
)
from kdelta.replay.order import SHIPPED, PlaceResult, RegionOrder, place_in_order
from kdelta.replay.search import WeightedRegion
from kdelta.report.model import Mismatch
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import require_relinkable
from kdelta.store.store import Store
from kdelta.studies.layout.study import cache_texts, notes_on
from kdelta.studies.layout.traced_kernel import TracedKernel, traced_kernel
from kdelta.studies.place.apply import (
    FEW_SETS,
    NOT_SEARCHED,
    applied,
    l2_of,
    notes_on_policy,
    put_back,
    relinked_kernel,
)
from kdelta.studies.place.model import PlacedMisses, PlacedRegion, PlaceReport
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.timed import must_measure, place_measures, with_measures
from kdelta.studies.place.together import placed_together, prefix_of
from kdelta.studies.search.pairs import not_known
from kdelta.workloads.catalog import find_workload

_PARTS_SAID = 4


@in_rounds
async def run_place(request: PlaceRequest, lab: Lab) -> PlaceReport:
    """Looks for the order, writes it, and if asked relinks the kernel in it. A run that failed is
    in the report as such.

    UserError for an unknown workload, operation or weight, a file that cannot be written, a kernel
    without symbols or, where that is asked for, that cannot be relinked, and when nothing that is
    executed can move.
    """
    cpu = request.cpu
    request = msgspec.structs.replace(request, cpu=cpu.least_recent)
    wanted = _operations(request)
    names = tuple(wanted)
    _must_be_writable(request.file)
    _must_weigh(request.weights, wanted)
    if request.apply:
        require_relinkable(request.kernel, "--apply")
    works = [Work(name, operations) for name, operations in wanted.items()]
    measures = place_measures(request, works)
    machine = lab.with_request(lab_like(request.lab, request.cpu))
    must_measure(measures, (), machine)
    found = await traced_kernel(
        request.kernel,
        request.cpu,
        works,
        lab.with_request(request.lab),
    )
    report = _head(request, names, found, lab.store)
    if found.kernel is None or not found.ok:
        return report
    must_measure(measures, [found.kernel], machine)
    with interruptible():
        placed = placed_together(found.kernel, found.done, names, lab.store)
        result = _searched(request, placed, lab.progress)
        report = _with(report, request, placed, result)
        notes = notes_on_policy(placed, cpu, result)
    report = msgspec.structs.replace(report, notes=(*report.notes, *notes))
    if result.method == SHIPPED:
        missing = not_known(measures, "no order is better, so nothing was relinked")
        return msgspec.structs.replace(report, notes=(*report.notes, *missing))
    with put_back(request.file) if request.apply else contextlib.nullcontext():
        write_order(request.file, result.order, _comments(request, result))
        if request.apply:
            relinked = await relinked_kernel(request, wanted, lab)
            regions = report.regions
            done = applied(relinked, names, placed, regions, cpu=request.cpu, store=lab.store)
            done = await with_measures(done, measures, (found, relinked), regions, machine)
            report = msgspec.structs.replace(report, applied=done)
    return report


def _searched(request: PlaceRequest, placed: PlacedKernel, progress: Progress) -> PlaceResult:
    """The order; progress reports now and then how good what was found so far is."""
    if not placed.traces and placed.cut:
        raise UserError(
            f"cannot look for an order: {'; '.join(map(cut_note, placed.cut))}",
            "raise the limit, or take operations that are shorter",
        )
    step = f"order for {request.cpu.name}"

    said = 0

    def watch(judged: int, cost: float) -> None:
        """Say how far the search is: on a bar always, and in a line of its own now and then."""
        nonlocal said
        text = f"{judged} of {request.evaluations} orders judged, misses cost {100 * cost:.2f} %"
        progress.doing(step, text)
        part = _PARTS_SAID * judged // max(1, request.evaluations)
        if part > said:
            said = part
            progress.log(f"{step}: {text}")

    def doing(what: str) -> None:
        progress.doing(step, what)

    progress.begin(step)
    result = place_in_order(
        placed.placement,
        [WeightedRegion(trace, request.weights.get(trace.region, 1.0)) for trace in placed.traces],
        request.cpu,
        seed=request.seed,
        evaluations=request.evaluations,
        layouts=request.layouts,
        watch=watch,
        further=l2_of(placed, request.cpu, doing) if request.lab.data_lines else None,
    )
    progress.end(step, result.method)
    return result


def _operations(request: PlaceRequest) -> dict[str, tuple[str, ...]]:
    """Of each workload the operations that are wanted; none means all of them. A workload that has
    none of those that are asked for is left out.
    """
    workloads = [find_workload(name) for name in dict.fromkeys(request.workloads)]
    found = {
        workload.name: tuple(
            operation.name
            for operation in workload.operations
            if operation.name in request.operations
        )
        for workload in workloads
    }
    for name in request.operations:
        if not any(name in held for held in found.values()):
            workloads[0].operation(name)  # raises, with the nearest
    return {name: of for name, of in found.items() if of} if request.operations else found


def _must_be_writable(file: Path) -> None:
    """Before anything is run for minutes."""
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise UserError(f"the order cannot be written to {file}", "name a file in a folder that is")


def _must_weigh(weights: dict[str, float], wanted: Mapping[str, tuple[str, ...]]) -> None:
    """Before anything is run: UserError for a weight of what was not asked for, and if all are
    0.
    """
    names = [
        prefix_of(workload, tuple(wanted)) + name
        for workload, operations in wanted.items()
        for name in operations or [one.name for one in find_workload(workload).operations]
    ]
    if unknown := [name for name in weights if name not in names]:
        near = difflib.get_close_matches(unknown[0], names, n=3) or names[:8]
        raise UserError(
            f"no operation that is run is called {unknown[0]!r}", f"there is: {', '.join(near)}"
        )
    if not any(weights.get(name, 1.0) for name in names):
        raise UserError(
            "no operation counts: all weights are 0",
            "leave one out, or give one more than that: --weight OPERATION=1",
        )


def _comments(request: PlaceRequest, result: PlaceResult) -> list[str]:
    return [
        f"an order of functions for {request.kernel}, by kdelta place",
        f"workloads {', '.join(request.workloads)}; CPU {result.cpu}",
        f"method {result.method}, seed {result.seed}",
    ]


def _head(
    request: PlaceRequest, names: tuple[str, ...], found: TracedKernel, store: Store
) -> PlaceReport:
    cpu, data = reported_cpu(request.cpu), request.lab.data_lines
    replayed = {*caches_of(request.cpu), *([L2] if data else [])}
    guessed = tuple(kind for kind in cpu.without_measured_cost if kind in replayed)
    return PlaceReport(
        workloads=names,
        cpu=msgspec.structs.replace(cpu, without_measured_cost=guessed),
        caches=cache_texts(request.cpu, data=data),
        machine=facts_of_machine(found.done, store),
        kernel=reported_side(found.spec, found.kernel, found.done, found.failure, store),
        layouts=request.layouts,
        seed=request.seed,
        mismatches=_unlike(request, names, found, store),
    )


def _unlike(
    request: PlaceRequest, names: tuple[str, ...], found: TracedKernel, store: Store
) -> tuple[Mismatch, ...]:
    return merged_unlike(
        msgspec.structs.replace(
            one, regions=tuple(prefix_of(workload, names) + region for region in one.regions)
        )
        for done, workload in zip(found.done, names, strict=False)
        for one in unlike(request.cpu, done, store)
    )


def _with(
    report: PlaceReport, request: PlaceRequest, placed: PlacedKernel, result: PlaceResult
) -> PlaceReport:
    data = request.lab.data_lines
    on_l2 = [NOT_SEARCHED] if data else [FEW_SETS] if result.padding else []
    regions = tuple(
        _region(request, placed, index, row, result.method)
        for index, row in enumerate(result.regions)
    )
    return msgspec.structs.replace(
        report,
        file=str(request.file) if result.method != SHIPPED else "",
        functions=len(result.order),
        padding=len(result.padding),
        method=result.method,
        costs=result.costs,
        median=result.ensemble.median,
        best=result.ensemble.least,
        evaluations=result.evaluations,
        regions=regions,
        cut=placed.cut,
        notes=(*notes_on(request.cpu, placed, data=data), *on_l2),
        warnings=placed.counts.warnings,
    )


def _region(
    request: PlaceRequest, placed: PlacedKernel, index: int, row: RegionOrder, method: str
) -> PlacedRegion:
    per = placed.iterations(index)
    region = merged_regions(placed.counts)[row.region]
    misses = {
        kind: PlacedMisses(
            as_linked=row.methods[SHIPPED][kind] / per,
            predicted=row.methods[method][kind] / per,
            median=row.ensemble[kind].median / per,
            best=row.ensemble[kind].least / per,
            associative=_per(row.associative.get(kind), per),
            methods={name: found[kind] / per for name, found in row.methods.items()},
        )
        for kind in row.ensemble
    }

    def cycles(name: str) -> Interval:
        """An iteration's; the trace may be of fewer than the counts are of."""
        count = region.iteration_count
        priced: dict[MissKind, float] = {
            kind: misses[kind].methods[name] * count
            for kind in request.cpu.misses
            if kind in misses
        }
        whole = model_cycles(region.cost("own"), priced, request.cpu)
        return Interval(whole.low / count, whole.high / count)

    return PlacedRegion(
        name=row.region,
        weight=row.weight,
        iterations=row.iterations,
        misses=misses,
        as_linked=cycles(SHIPPED),
        predicted=cycles(method),
    )


def _per(count: int | None, per: float) -> float | None:
    return None if count is None else count / per
