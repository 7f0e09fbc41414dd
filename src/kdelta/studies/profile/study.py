# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as a profile: from its counts alone, or from all that can be recorded of it."""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import CONTEXTS, RegionCounts, RunCounts, merged_regions
from kdelta.counts.profile import Profile
from kdelta.counts.symbols import NO_SYMBOL, SymbolTable, code_table
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU, L2_OF_DATA, Cache, MissKind
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.cycles import model_cycles
from kdelta.infer.effects.marks import region_warnings
from kdelta.infer.profiles.calls import called_profile
from kdelta.infer.profiles.profile import (
    FunctionLine,
    Modelled,
    RegionProfile,
    Selection,
    check_profile,
    chosen_regions,
    nameless_text,
    region_profile,
)
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.lab.found import in_rounds, with_found_files
from kdelta.lab.lab import Lab, RunResult, traces_of
from kdelta.lab.plan import COMMAND_REGION
from kdelta.lab.progress import Progress
from kdelta.lab.reports import unlike
from kdelta.lab.request import LabRequest
from kdelta.lab.steps import expect_kernels
from kdelta.lab.work import Work
from kdelta.measures.cycles.placement import REPLAYED, caches_of
from kdelta.replay.as_executed import (
    LabelOf,
    data_misses_by_function,
    known_kinds,
    misses_by_function,
)
from kdelta.replay.simulate import Kind
from kdelta.report.model import Mismatch, ReportedRun
from kdelta.store.model import Run
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.views import Views, profiles_named, views_of
from kdelta.studies.recorded.recorded import (
    Recorded,
    own_regions,
    recorded_run,
    run_counts,
    which_recorded,
)

NOT_IN_USER_CODE = (
    "Calls were followed in the kernel alone: who called whom in user code is not known."
)


class ProfileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be shown of a run. regions: those that are looked at, none means all. calls: with
    what each function called, even if the run has to be made again for it. cpu: with misses and
    model cycles, likewise; data: with what its accesses to data miss. lab: how runs are made.
    """

    regions: tuple[str, ...] = ()
    selection: Selection = Selection()
    views: Views = Views()
    calls: bool = False
    cpu: CPU | None = None
    data: bool = False
    lab: LabRequest = LabRequest()

    @property
    def recording(self) -> LabRequest:
        """How a run is recorded that has all of it."""
        trace = self.cpu is not None
        return msgspec.structs.replace(
            self.lab,
            calls="all",
            trace=self.lab.trace or trace,
            data_lines=self.lab.data_lines or (trace and self.data),
        )


async def run_profile(run: Run, request: ProfileRequest, lab: Lab) -> ProfileReport:
    """The profile of a stored run. What its counts do not have is taken from its recording; without
    one, the same run is made again.

    UserError for a run that did not go well, for a region that it has not, for a function that did
    nothing, and for a run that cannot be made again; LabError when its counts are gone.
    """
    counts = run_counts(run, lab.store)
    # Known before anything is run: a slip in a region's name.
    chosen = chosen_counts(counts, request.regions)
    found = None
    asked = request.views.any or request.calls or request.cpu is not None
    lab = lab.with_request(request.recording)
    if asked or which_recorded(run, lab) is not None:
        found = await recorded_run(run, lab)
    return await _report(found or CountedRun(run, counts), chosen, request, lab)


async def kernel_profile(
    spec: str, what: Work, request: ProfileRequest, lab: Lab
) -> ProfileReport | Run | None:
    """The profile of a kernel under a workload, of which `regions` are operations, or a command. A
    run that failed is returned as it is; None if there is no kernel, which is reported to progress.
    """
    recording = lab.with_request(request.recording)
    done = await kernel_run(spec, what, recording)
    if done is None or done.counts is None:
        return done.run if done else None
    found = await recorded_run(done.run, recording)
    found = await with_work(found, what, lab.with_request(request.lab))
    return await _report(found, chosen_counts(found.counts, request.regions), request, lab)


@in_rounds
async def kernel_run(spec: str, what: Work, lab: Lab) -> RunResult | None:
    """Return the run of a kernel, which may have failed; None without a kernel, which is reported
    to progress.
    """
    what.check([spec], lab.request.machine)
    progress = lab.progress
    expect_kernels(progress, [spec])
    progress.expect("run", 1)
    kernel = lab.kernel(spec)
    if isinstance(kernel, NoKernel):
        progress.log(f"no kernel: {kernel.text}")
        return None
    what = await with_found_files(what, [kernel], lab)
    (plan,) = what.plans([kernel], lab.request, progress.log)
    settled = await lab.settled([kernel], [plan])
    return await settled.one(kernel, plan, 0)


async def with_work(found: Recorded, what: Work, lab: Lab) -> Recorded:
    """The same with what the run did: of a command the store keeps the name alone."""
    if not found.kernel:
        return found
    what = await with_found_files(what, [found.kernel], lab)
    plan = what.plan(found.kernel, lab.request, lab.progress.log)
    return msgspec.structs.replace(found, work=plan)


def chosen_counts(counts: RunCounts, regions: Sequence[str]) -> dict[str, RegionCounts]:
    """Return the regions of a run that are looked at: those of these names, or all."""
    known = merged_regions(counts)
    return chosen_regions(known if regions else own_regions(known), regions)


class CountedRun(msgspec.Struct, frozen=True):
    """A run of which nothing but counts is known."""

    run: Run
    counts: RunCounts


async def _report(
    one: Recorded | CountedRun,
    chosen: dict[str, RegionCounts],
    request: ProfileRequest,
    lab: Lab,
) -> ProfileReport:
    found = one if isinstance(one, Recorded) else None
    regions = region_profiles(chosen, found)
    lines = [line for region in regions for line in region.chosen(request.selection)]
    report = ProfileReport(
        run=ReportedRun(one.run, from_store=True),
        regions=regions,
        notes=nameless_text(lines),
        selection=request.selection,
        left_out=tuple(name for name in merged_regions(one.counts) if name not in chosen),
        warnings=(
            *one.counts.warnings,
            *region_warnings(chosen.values(), COMMAND_REGION),
        ),
    )
    if found is None:
        return report
    if request.cpu is not None:
        regions, notes = with_model_cycles(
            report.regions,
            found.profiles,
            traces_of(lab.store, found.kept),
            symbols=found.symbols,
            cpu=request.cpu,
            progress=lab.progress,
            data=request.data,
        )
        unlike_it = unlike(request.cpu, RunResult(found.run, found.counts), lab.store)
        report = msgspec.structs.replace(
            report,
            regions=regions,
            notes=(*report.notes, *notes, *_otherwise(request.cpu, unlike_it)),
        )
    calls = next((one.calls for one in profiles_named(found, chosen)), "none")
    if calls == "kernel":
        report = msgspec.structs.replace(report, notes=(*report.notes, NOT_IN_USER_CODE))
    return msgspec.structs.replace(
        report,
        calls=calls,
        views=await views_of(found, list(chosen), request.selection, request.views, lab.progress),
    )


def _otherwise(cpu: CPU, found: Sequence[Mismatch]) -> list[str]:
    """In what the machine was not like that CPU."""
    if not found:
        return []
    names = ", ".join(one.name for one in found)
    return [f"The kernel did otherwise than on {cpu.name}, as kdelta layout lists: {names}."]


def region_profiles(
    chosen: dict[str, RegionCounts], found: Recorded | None
) -> tuple[RegionProfile, ...]:
    """The regions by function, with what they called where that was recorded. LabError unless the
    recording adds up to the counts.
    """
    followed = {one.region: one for one in found.profiles} if found else {}
    made = []
    for name, region in chosen.items():
        profile = called_profile(followed[name]) if name in followed else region_profile(region)
        check_profile(profile, region)
        made.append(profile)
    return tuple(made)


def with_model_cycles(
    regions: Sequence[RegionProfile],
    profiles: Sequence[Profile],
    traces: Sequence[Trace],
    *,
    symbols: Sequence[tuple[int, str, str, str]],
    cpu: CPU,
    progress: Progress,
    data: bool = False,
) -> tuple[tuple[RegionProfile, ...], tuple[str, ...]]:
    """The regions with what each function missed and cost, as far as a trace shows; and what is to
    be known about it. data: with what its accesses to data missed.
    """
    by_region = {trace.region: trace for trace in traces}
    of = {profile.region: profile for profile in profiles}
    caches: dict[str, tuple[Kind, Cache]] = {
        str(kind): (REPLAYED[kind], cache) for kind, cache in caches_of(cpu).items()
    }
    kernel = code_table(symbols)
    step = f"replay on {cpu.name}"
    progress.begin(step)
    made, cut = [], []
    for region in regions:
        trace = by_region.get(region.name)
        if trace is None or trace.truncated:
            cut.append(region.name)
        if trace is None:
            made.append(region)
            continue
        progress.doing(step, region.name)
        with interruptible():
            labels = _labels(kernel, of.get(region.name))
            misses = misses_by_function(trace, labels, caches)
            for label, counts in (
                data_misses_by_function(trace, labels, cpu).items() if data else ()
            ):
                misses.setdefault(label, {}).update(counts)
        # What is counted of a trace.
        kinds = (*caches_of(cpu), *(known_kinds(cpu, trace) if data else ()))
        lines = tuple(_modelled(line, misses, cpu, kinds) for line in region.lines)
        made.append(msgspec.structs.replace(region, lines=lines))
    progress.end(step, f"{len(made)} regions")
    return tuple(made), _notes(cpu, cut, data=data)


def _modelled(
    line: FunctionLine,
    misses: dict[tuple[int, str, str], dict[str, int]],
    cpu: CPU,
    kinds: Sequence[MissKind],
) -> FunctionLine:
    found = misses.get((CONTEXTS.index(line.context), line.origin, line.name), {})
    counts = {kind: float(found.get(str(kind), 0)) for kind in kinds}
    priced = {kind: count for kind, count in counts.items() if kind in cpu.misses}
    # Without a price of its own, what data misses in the unified L2 costs what code misses there.
    of_l2 = [kind for kind in L2_OF_DATA if kind in counts and kind not in cpu.misses]
    if of_l2:
        priced["l2"] = sum(counts[kind] for kind in of_l2)
    cycles = model_cycles(line.cost, priced, cpu)
    shown = {str(kind): count for kind, count in counts.items()}
    return msgspec.structs.replace(line, modelled=Modelled(shown, cycles.low, cycles.high))


def _labels(kernel: SymbolTable, profile: Profile | None) -> LabelOf:
    """What functions are called that blocks are in: as the profile has them, else by symbols."""
    known: dict[int, tuple[str, str]] = {}
    if profile is not None:
        code = profile.code
        rows = zip(code.block_address.tolist(), code.block_function.tolist(), strict=True)
        known = {
            address: (profile.functions[index].origin, profile.functions[index].name)
            for address, index in rows
        }

    def labels(addresses: npt.NDArray[np.uint64]) -> list[tuple[str, str]]:
        indexes = kernel.indexes(addresses).tolist()
        return [
            known.get(address) or (kernel.labels[index] if index >= 0 else ("[unknown]", NO_SYMBOL))
            for address, index in zip(addresses.tolist(), indexes, strict=True)
        ]

    return labels


def _notes(cpu: CPU, cut: Sequence[str], *, data: bool) -> tuple[str, ...]:
    said = (
        f"Misses are those of {', '.join(caches_of(cpu))} on {cpu.name}, with the code where it "
        "lay; model cycles go from misses that other work hides to misses in full, and are no "
        "clock's reading: docs/cpus.md has what is not in them. "
    )
    notes = [said + (_data_note(cpu) if data else "Misses of the L2 are not in them.")]
    if cut:
        notes.append(f"Not all was traced, so misses are missing, in: {', '.join(cut)}.")
    return tuple(notes)


def _data_note(cpu: CPU) -> str:
    free = [k for k in known_kinds(cpu) if k not in cpu.misses and k not in L2_OF_DATA]
    said = (
        "Accesses to data miss in l1d, l2-data and TLBs, stores apart from loads; layouts of code "
        "do not change that, but for the L2's. TLBs go by the size that pages at such addresses "
        "usually have."
    )
    return said + (f" Without a price, and free: {', '.join(free)}." if free else "")
