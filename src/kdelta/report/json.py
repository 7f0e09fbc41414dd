# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports as JSON; report/documents.py has the schemas.

A field may be added under the same number; what changes or removes one gets the next.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import msgspec

from kdelta.counts.model import (
    CONTEXTS,
    Cost,
    RegionCounts,
    RunCounts,
    is_kernel,
    merged_regions,
)
from kdelta.infer.effects import BackgroundEffect, Costs, OperationEffect
from kdelta.infer.functions import FunctionEffect
from kdelta.report.cycles_json import JsonCPU, JsonCycles, json_cpu, json_cycles
from kdelta.report.estimate_json import (
    JsonEstimate,
    JsonQuantity,
    JsonVerdict,
    Number,
    json_estimate,
    json_number,
    json_quantity,
    json_verdict,
)
from kdelta.report.model import (
    Compared,
    CompareReport,
    Facts,
    ReportedCPU,
    ReportedRun,
    RunReport,
    Side,
)
from kdelta.report.packets_json import (
    JsonPackets,
    JsonRegionPackets,
    json_packets,
    json_region_packets,
)
from kdelta.store.model import Run


class JsonFunction(msgspec.Struct, frozen=True):
    """A function whose cost changed or was spread."""

    name: str
    origin: str
    kernel: bool
    change: str
    moved_from: str | None
    insns: JsonQuantity


class JsonUnchanged(msgspec.Struct, frozen=True):
    """The functions that cost the same on both sides, summed: with them the functions add up."""

    functions: int
    insns: Number


class JsonCosts(msgspec.Struct, frozen=True):
    """All means an iteration of the tasks' own work, and what others did meanwhile."""

    insns: JsonQuantity
    median_insns: JsonQuantity
    kernel_insns: JsonQuantity
    user_insns: JsonQuantity
    string_iterations: JsonQuantity
    string_bytes: JsonQuantity
    loads: JsonQuantity
    stores: JsonQuantity
    specials: dict[str, JsonQuantity]
    interrupts: JsonQuantity
    background: JsonQuantity


class JsonOperation(msgspec.Struct, frozen=True):
    """One operation; costs is null for one that is not comparable."""

    name: str
    verdict: JsonVerdict
    base: JsonEstimate | None
    other: JsonEstimate | None
    costs: JsonCosts | None
    functions: list[JsonFunction]
    unchanged: JsonUnchanged
    notes: list[str]


class JsonBackground(msgspec.Struct, frozen=True):
    """What interrupts or other tasks did, in instructions a virtual second."""

    context: str
    verdict: JsonVerdict
    insns_per_second: JsonQuantity
    functions: list[JsonFunction]
    unchanged: JsonUnchanged


class JsonRun(msgspec.Struct, frozen=True):
    """One run; `started` in seconds since 1970, `seconds` of the host."""

    id: str
    status: str
    detail: str
    kernel_spec: str
    kernel_release: str
    kernel_identity: str
    machine: Facts
    workload: str
    workload_identity: str
    perturbation: int
    started: float
    seconds: float | None
    from_store: bool
    console_tail: list[str]


class JsonSide(msgspec.Struct, frozen=True):
    """One kernel and its runs; `failure` says why there is no kernel."""

    spec: str
    release: str
    identity: str
    failure: str
    runs: list[JsonRun]


class JsonMoreRuns(msgspec.Struct, frozen=True):
    """The runs of an operation by itself, which its path is judged on: fewer might have differed so
    by chance.
    """

    operation: str
    base: list[JsonRun]
    other: list[JsonRun]


class JsonCompared(msgspec.Struct, frozen=True):
    """Another kernel against the base. more_runs: where the sides' own left a path to chance."""

    kernel: JsonSide
    operations: list[JsonOperation]
    background: list[JsonBackground]
    warnings: list[str]
    cycles: JsonCycles | None
    more_runs: list[JsonMoreRuns]
    packets: list[JsonPackets]


class JsonMachine(msgspec.Struct, frozen=True):
    """The comparisons on one machine. `cpu`: the one that it looks like, by whose prices model
    cycles are; null where none was named.
    """

    machine: Facts
    cpu: JsonCPU | None
    base: JsonSide
    others: list[JsonCompared]
    warnings: list[str]


class JsonCompare(msgspec.Struct, frozen=True):
    """The whole of `kdelta compare`: one machine for each CPU that was named, or a single one."""

    schema: Literal["kdelta.compare/2"]
    kdelta: str
    workload: str
    machines: list[JsonMachine]


class JsonCost(msgspec.Struct, frozen=True):
    """What was executed in a whole region, by one function or all."""

    insns: int
    string_iterations: int
    loads: int
    stores: int
    string_bytes: int
    specials: dict[str, int]


class JsonFunctionCost(msgspec.Struct, frozen=True):
    """One function's cost in a whole region; the name is the symbol's, with its suffixes."""

    context: str
    origin: str
    name: str
    cost: JsonCost


class JsonRegion(msgspec.Struct, frozen=True):
    """One region; the four rows of iterations have one entry an iteration. `packets`: null for a
    region that is not about any.
    """

    name: str
    iterations: int
    mean_insns: Number
    median_insns: Number
    clock_ns: int | None
    idle_ns: int | None
    own: JsonCost
    interrupts: JsonCost
    other: JsonCost
    own_user: list[int]
    own_kernel: list[int]
    by_interrupts: list[int]
    by_other: list[int]
    functions: list[JsonFunctionCost]
    packets: JsonRegionPackets | None


class JsonRunReport(msgspec.Struct, frozen=True):
    """The whole of `kdelta run` and `kdelta show`."""

    schema: Literal["kdelta.run/1"]
    kdelta: str
    run: JsonRun
    stdout: str
    stderr: str
    regions: list[JsonRegion]
    warnings: list[str]


class JsonRuns(msgspec.Struct, frozen=True):
    """The whole of `kdelta runs`."""

    schema: Literal["kdelta.runs/1"]
    kdelta: str
    runs: list[JsonRun]


def compare_json(reports: Sequence[CompareReport], version: str) -> str:
    """A comparison, at least on one machine; `version` is kdelta's."""
    return document_text(
        JsonCompare(
            schema="kdelta.compare/2",
            kdelta=version,
            workload=reports[0].workload,
            machines=[json_machine(report) for report in reports],
        )
    )


def run_json(report: RunReport, version: str) -> str:
    """One run with all its counts."""
    counts = report.counts or RunCounts(())
    return document_text(
        JsonRunReport(
            schema="kdelta.run/1",
            kdelta=version,
            run=json_run(report.run),
            stdout=report.stdout,
            stderr=report.stderr,
            regions=[_region(region) for region in merged_regions(counts).values()],
            warnings=[*counts.warnings, *report.warnings],
        )
    )


def runs_json(runs: list[Run], version: str) -> str:
    """A list of runs without their counts."""
    listed = [json_run(ReportedRun(run, from_store=True)) for run in runs]
    return document_text(JsonRuns(schema="kdelta.runs/1", kdelta=version, runs=listed))


def document_text(document: msgspec.Struct) -> str:
    """A document as it is printed."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _costs(costs: Costs) -> JsonCosts:
    plain = {
        name: json_quantity(getattr(costs, name))
        for name in costs.__struct_fields__
        if name != "specials"
    }
    specials = {kind: json_quantity(cost) for kind, cost in costs.specials.items()}
    return JsonCosts(specials=specials, **plain)


def _functions(functions: tuple[FunctionEffect, ...]) -> tuple[list[JsonFunction], JsonUnchanged]:
    moved = [function for function in functions if function.cost.moved]
    still = [function for function in functions if not function.cost.moved]
    listed = [
        JsonFunction(
            name=function.name,
            origin=function.origin,
            kernel=is_kernel(function.origin),
            change=function.change.value,
            moved_from=function.moved_from,
            insns=json_quantity(function.cost),
        )
        for function in moved
    ]
    total = sum((function.cost.base.value for function in still), Fraction(0))
    return listed, JsonUnchanged(len(still), json_number(total))


def _operation(operation: OperationEffect) -> JsonOperation:
    functions, unchanged = _functions(operation.functions)
    return JsonOperation(
        name=operation.name,
        verdict=json_verdict(operation.verdict),
        base=None if operation.base is None else json_estimate(operation.base),
        other=None if operation.other is None else json_estimate(operation.other),
        costs=None if operation.costs is None else _costs(operation.costs),
        functions=functions,
        unchanged=unchanged,
        notes=list(operation.notes),
    )


def _background(row: BackgroundEffect) -> JsonBackground:
    functions, unchanged = _functions(row.functions)
    return JsonBackground(
        row.context, json_verdict(row.verdict), json_quantity(row.rate), functions, unchanged
    )


def json_run(reported: ReportedRun) -> JsonRun:
    """A run, and how its console ended."""
    run = reported.run
    same = (
        "id detail kernel_spec kernel_release kernel_identity machine workload "
        "workload_identity perturbation started seconds"
    )
    return JsonRun(
        status=run.word,
        from_store=reported.from_store,
        console_tail=list(reported.console_tail),
        **{name: getattr(run, name) for name in same.split()},
    )


def json_side(side: Side) -> JsonSide:
    """A kernel and its runs."""
    runs = [json_run(run) for run in side.runs]
    return JsonSide(side.spec, side.release, side.identity, side.failure, runs)


def json_machine(report: CompareReport) -> JsonMachine:
    """The comparisons on one machine."""
    return JsonMachine(
        machine=report.machine,
        cpu=json_cpu(report.cpu) if report.cpu else None,
        base=json_side(report.base),
        others=[_compared(compared, report.cpu) for compared in report.others],
        warnings=list(report.warnings),
    )


def _compared(compared: Compared, cpu: ReportedCPU | None) -> JsonCompared:
    effects = compared.effects
    return JsonCompared(
        kernel=json_side(compared.side),
        operations=[_operation(operation) for operation in effects.operations],
        background=[_background(row) for row in effects.background],
        warnings=list(effects.warnings),
        cycles=json_cycles(compared.cycles) if compared.cycles else None,
        more_runs=[
            JsonMoreRuns(
                one.operation, [json_run(r) for r in one.base], [json_run(r) for r in one.other]
            )
            for one in compared.more
        ],
        packets=[
            json_packets(one, compared.cycles, cpu, compared.phases) for one in compared.packets
        ],
    )


def json_cost(cost: Cost) -> JsonCost:
    """What was executed, by whomever."""
    return msgspec.convert(cost, JsonCost, from_attributes=True)


def _region(region: RegionCounts) -> JsonRegion:
    costs = {name: json_cost(region.cost(name)) for name in CONTEXTS}
    return JsonRegion(
        name=region.name,
        iterations=region.iteration_count,
        mean_insns=json_number(region.mean_own_insns()),
        median_insns=json_number(region.median_own_insns()),
        clock_ns=region.clock_ticks,
        idle_ns=region.idle_ticks(),
        **costs,
        own_user=list(region.iterations.own_user),
        own_kernel=list(region.iterations.own_kernel),
        by_interrupts=list(region.iterations.interrupts),
        by_other=list(region.iterations.other),
        packets=json_region_packets(region),
        functions=[
            JsonFunctionCost(
                row.context,
                row.origin,
                row.name,
                json_cost(row.cost),
            )
            for row in region.functions
        ],
    )
