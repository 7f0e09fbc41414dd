# SPDX-License-Identifier: GPL-2.0-or-later
"""From runs of bundles and exact runs of the same kernel to what a CPU retires otherwise."""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kdelta.counts.model import RegionCounts, is_kernel, merged_regions
from kdelta.cpus.cores import flags_of
from kdelta.host.interrupt import interruptible
from kdelta.host.target import target
from kdelta.infer.clock.counters import ExactCount, Retired, check_operation
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.reports import attachment, controllers, facts_of_machine, reported_side
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work
from kdelta.measures.clock.boots import read_folder
from kdelta.measures.clock.counters import retired
from kdelta.measures.clock.here import bundle_here, timed_here
from kdelta.measures.clock.results import TimedRun, read_run
from kdelta.spec.errors import LabError, UserError
from kdelta.studies.counters.model import CountersReport
from kdelta.studies.counters.request import CountersRequest
from kdelta.workloads.catalog import find_workload

NOTHING = "no-op"
"""The operation that does nothing, whose instructions are those of marks."""

_HAS_NOTHING = "syscalls"
_FAULT, _SWITCH = "handle_mm_fault", "finish_task_switch"
_GROUP = re.compile("memcg|mem_cgroup|obj_?cg|obj_cgroup|obj_stock|cgroup|cpuacct|page_counter")
"""In the names of functions that account and charge to control groups."""

_SHOWN = (
    "cpu_model", "microcode", "machine", "release", "version", "build_id", "command_line", "smt",
    "online", "paranoid", "bundle",
)  # fmt: skip


async def run_counters(request: CountersRequest, lab: Lab) -> CountersReport:
    """Compare what counters say with exact counts. UserError where nothing was counted, and for
    runs of another kernel; LabError for a kernel that cannot be had or run.
    """
    lab, progress = lab.with_request(request.lab), lab.progress
    runs = _counted(request, lab)
    found = retired(runs)
    expect_kernels(progress, [request.kernel])
    expect_runs(progress, request.lab, 1)
    kernel = lab.kernel(request.kernel)
    if isinstance(kernel, NoKernel):
        raise LabError(f"no kernel: {kernel.text}")
    _must_be_of(runs[0], kernel)
    work = Work(workload=runs[0].facts.workload)
    names = _names(request, work, found)
    plans = work.only(names).plans([kernel], request.lab, progress.log)
    settled = await lab.settled([kernel], plans)
    (done,) = await settled.runs([kernel], plans)
    good = [one for one in done if one.counts is not None]
    if not good:
        word, detail = done[0].run.word, done[0].run.detail
        raise LabError(f"{kernel.release} was not counted: {word}: {detail}")
    return _report(request, runs, (kernel, good), found, lab)


def _counted(request: CountersRequest, lab: Lab) -> list[TimedRun]:
    """Return the runs of the files, or one that is made here."""
    if not request.files:
        lab.progress.log("no file is named: the bundle runs here, under the kernel that runs")
        usual = [one.name for one in find_workload(request.workload).operations]
        names = request.operations or tuple(usual)
        program = bundle_here(request.workload, names, lab.progress.log)
        if request.workload == _HAS_NOTHING:
            program = msgspec.structs.replace(program, argv=(*program.argv, NOTHING))
        with interruptible():
            return [timed_here(program)]
    runs = [
        run
        for path in request.files
        for run in (read_folder(path) if path.is_dir() else [read_run(path)])
    ]
    first, *others = runs
    for one in others:
        if (one.facts.kernel, one.facts.workload) != (first.facts.kernel, first.facts.workload):
            raise UserError(
                f"{one.path} is of another kernel or workload than {first.path}",
                "name files of one kernel",
            )
    return runs


def _must_be_of(run: TimedRun, kernel: Kernel) -> None:
    """UserError if the run is not of that kernel, as far as both say what they are."""
    facts, hint = run.facts, "name the kernel that ran, or run the bundle under this one"
    if facts.machine not in target(kernel.arch).hosts:
        raise UserError(
            f"{run.path} is of {facts.machine}, and {kernel.spec} is for {kernel.arch}", hint
        )
    if facts.release != kernel.release:
        raise UserError(
            f"{run.path} is of {facts.release}, and {kernel.spec} is {kernel.release}", hint
        )
    builds = [_build_of(text) for text in (facts.version, kernel.banner)]
    if all(builds) and builds[0] != builds[1]:
        raise UserError(
            f"{run.path} is of another build than {kernel.spec}: {builds[0]}, not {builds[1]}", hint
        )


def _build_of(text: str) -> str:
    """Return what a kernel says of its build besides its number, which an arm64 image lacks."""
    found = re.search(r"#\d*\s+(.*)", text)
    return found[1].strip() if found else ""


def _names(request: CountersRequest, work: Work, found: Mapping[str, Retired]) -> tuple[str, ...]:
    """Return the operations to be checked, and the one that shows what marks cost."""
    for name in request.operations:
        if name not in found:
            raise UserError(f"{name} was not counted", f"counted: {', '.join(found)}")
    names = request.operations or tuple(name for name in found if work.has(name))
    if not names:
        raise UserError(f"no operation of {work.name} was counted", "run the bundle again")
    return tuple(dict.fromkeys([*names, *([NOTHING] if NOTHING in found else [])]))


def _report(
    request: CountersRequest,
    runs: Sequence[TimedRun],
    counted: tuple[Kernel, Sequence[RunResult]],
    found: Mapping[str, Retired],
    lab: Lab,
) -> CountersReport:
    kernel, done = counted
    exact, rate = _exact(done)
    marks = None
    nothing = found.get(NOTHING)
    if nothing and nothing.user is not None and NOTHING in exact:
        marks = nothing.user - exact[NOTHING].user
    facts, cpuinfo = runs[0].facts, attachment(done[0].run, "cpuinfo", lab.store)
    theirs, ours = frozenset(facts.cpu_flags.split()), flags_of(cpuinfo)
    margin = float(request.margin)
    return CountersReport(
        workload=facts.workload,
        kernel=reported_side(request.kernel, kernel, done, "", lab.store),
        emulated=facts_of_machine(done, lab.store),
        machine={name: str(getattr(facts, name)) for name in _SHOWN},
        runs=len(runs),
        margin=margin,
        operations=tuple(
            check_operation(name, found[name], one, margin, marks=marks, interrupts=rate)
            for name, one in exact.items()
            if name != NOTHING and name in found
        ),
        marks=marks,
        interrupts=1e6 * rate,
        more_flags=tuple(sorted(theirs - ours)),
        fewer_flags=tuple(sorted(ours - theirs)),
        notes=tuple(_notes(found, kernel, done, lab)),
        warnings=tuple(_warnings(runs, marks)),
    )


def _exact(done: Sequence[RunResult]) -> tuple[dict[str, ExactCount], float]:
    """Return the exact counts by region; and how many instructions handlers of interrupts execute
    in a nanosecond: the median region, since those of some have work that these leave to them.
    """
    passes: dict[str, list[RegionCounts]] = {}
    for one in done:
        for name, region in merged_regions(one.counts).items() if one.counts else ():
            passes.setdefault(name, []).append(region)
    rates = [
        sum(region.cost("interrupts").insns for region in of) / ns
        for name, of in passes.items()
        if name != NOTHING and (ns := sum(region.clock_ticks or 0 for region in of))
    ]
    found = {name: _count_of(of) for name, of in passes.items()}
    return found, statistics.median(rates) if rates else 0.0


def _count_of(passes: Sequence[RegionCounts]) -> ExactCount:
    rows = []
    for one in passes:
        user, kernel = one.cost("own", kernel=False), one.cost("own", kernel=True)
        functions = [row for row in one.functions if row.context == "own" and is_kernel(row.origin)]
        faults, switches = (
            sum(row.calls for row in functions if row.name.partition(".")[0] == name)
            for name in (_FAULT, _SWITCH)
        )
        strings = user.string_iterations + kernel.string_iterations
        group = sum(row.cost.insns for row in functions if _GROUP.search(row.name))
        figures = (user.insns, kernel.insns, strings, faults, switches, group)
        rows.append([figure / one.iteration_count for figure in figures])
    sums = [row[0] + row[1] for row in rows]
    means = [statistics.fmean(row[at] for row in rows) for at in range(len(rows[0]))]
    return ExactCount(means[0], means[1], max(sums) - min(sums), *means[2:])


def _notes(
    found: Mapping[str, Retired], kernel: Kernel, done: Sequence[RunResult], lab: Lab
) -> Iterator[str]:
    yield (
        "a string instruction (rep movs) is one instruction for a CPU and in the exact count; its "
        "further iterations are in a column of their own, and not in the difference"
    )
    yield (
        "interrupts are an estimate: at the rate of the exact runs' median operation, for the time "
        "that an operation took on the machine"
    )
    if group := controllers(done, lab.store):
        yield (
            f"the exact runs' programs are in a control group with {', '.join(group)}: what the "
            "kernel charges and schedules there, it does on the machine only in such a group"
        )
    yield (
        "the machine's kernel was booted with what is below, and the exact runs' with kdelta's own "
        "parameters: mitigations and features may be on under one of them"
    )
    if kernel.parameters:
        yield f"the exact runs' kernel was booted with {' '.join(kernel.parameters)}, too"
    if any(one.shared for one in found.values()):
        yield "counters took turns, since the CPU has too few: counts are estimates"


def _warnings(runs: Sequence[TimedRun], marks: float | None) -> Iterator[str]:
    if any(run.refused for run in runs):
        yield (
            "instructions of the kernel were not counted: perf_event_paranoid is "
            f"{runs[0].facts.paranoid}; as root: sysctl kernel.perf_event_paranoid=1"
        )
    if marks is None:
        yield (
            "what a mark costs is not known, so that all operations seem to need more of it: run "
            f"the bundle with the operation {NOTHING}, too"
        )
