# SPDX-License-Identifier: GPL-2.0-or-later
"""Two programs under one kernel: which executes more, in which functions and system calls."""

import itertools
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.infer.effects.chance import ENOUGH, by_chance, left_open, wanting_runs
from kdelta.infer.effects.effects import MARGIN, Effects, compare_runs
from kdelta.infer.effects.gate import decide_gate, judge_path
from kdelta.infer.profiles.system_calls import (
    CallNames,
    KernelCost,
    KernelCostChange,
    kernel_parts,
    part_changes,
)
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import arch_of
from kdelta.lab.failed_program import lacked
from kdelta.lab.found import in_rounds, with_found_files
from kdelta.lab.lab import Lab, RunPlan, RunResult, profiles_of
from kdelta.lab.options import TimedHere
from kdelta.lab.program import check_program
from kdelta.lab.progress import Progress
from kdelta.lab.reports import attachment, facts_of_machine, reported_side
from kdelta.lab.request import LabRequest
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work
from kdelta.machines.arch import arch_machine
from kdelta.measures.clock.here import TimedProgram, command_here
from kdelta.measures.clock.settings import busy
from kdelta.measures.path.judges import LEFT_OPEN
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.against.model import (
    AgainstRegion,
    AgainstReport,
    OutputChange,
    ProgramSide,
    names_of,
)
from kdelta.studies.against.timed import TimedPrograms, time_programs
from kdelta.studies.run.request import RunRequest

_ENDED = "(no such line)"
_STREAMS = (("stdout", "standard output"), ("stderr", "standard error"))


class AgainstRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two commands for one kernel, in one lab. What the new one executes more by no more than the
    fraction `margin` is not slower. timed: whether they are timed on this host as well.
    """

    old: RunRequest
    new: RunRequest
    margin: Fraction = Fraction(0)
    timed: TimedHere = TimedHere()

    @property
    def lab(self) -> LabRequest:
        """How runs are made."""
        return self.new.lab


class _Ran(msgspec.Struct, frozen=True):
    """The runs of a program: first the one whose system calls are counted."""

    done: tuple[RunResult, ...]

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        return tuple(one.counts for one in self.done if one.counts is not None)

    @property
    def first(self) -> RunResult:
        return self.done[0]


@in_rounds
async def run_against(request: AgainstRequest, lab: Lab) -> AgainstReport:
    """Run both, and compare them. UserError for a program that is not there or cannot run; a run
    that failed is in the report.
    """
    for who, one in (("old", request.old), ("new", request.new)):
        try:
            check_program(one.program, [arch_of(parse_kernel_spec(one.kernel))])
        except UserError as error:
            instead = error.instead if who == "new" else None  # which is what stands after --
            message = f"cannot run the {who} program: {error.message}"
            raise UserError(message, error.hint, instead) from error
    lab, store, progress = lab.with_request(request.lab), lab.store, lab.progress
    programs, load = _timed_here(request, progress), os.getloadavg()[0]  # before there are guests
    expect_kernels(progress, [request.new.kernel])
    expect_runs(progress, request.lab, 1, 2)
    kernel = lab.kernel(request.new.kernel)
    if isinstance(kernel, NoKernel):
        return _report(request, kernel, (_Ran(()), _Ran(())), store)
    works = [
        await _work(who, one, kernel, lab)
        for who, one in (("old", request.old), ("new", request.new))
    ]
    settled = await lab.settled([kernel] * 2, works)
    old, new = await _runs(kernel, works, settled)
    if not (old.counts and new.counts):
        return _report(request, kernel, (old, new), store)
    effects = _compared(request, old.counts, new.counts)
    if wanting_runs(effects, by_chance(effects, *_alike(request, old.counts, new.counts))):
        progress.log(f"too few runs to decide; {ENOUGH} of each")
        runs = max(ENOUGH, settled.request.perturbations)
        more = settled.with_request(msgspec.structs.replace(settled.request, perturbations=runs))
        old, new = await _runs(kernel, works, more)
        effects = _compared(request, old.counts, new.counts)
        doubtful = by_chance(effects, *_alike(request, old.counts, new.counts))
        effects = left_open(effects, doubtful, LEFT_OPEN)
    report = _report(request, kernel, (old, new), store, effects)
    if programs is None:
        return report
    timed = time_programs(programs, request.timed, effects, progress)
    return _with_times(report, timed, tuple(busy(load)))


def _timed_here(
    request: AgainstRequest, progress: Progress
) -> tuple[TimedProgram, TimedProgram] | None:
    """Return what times both programs on this host, if that was asked for."""
    if request.timed.clock is None:
        return None
    progress.expect("time", 1)
    old, new = (
        command_here(one.program.command, one.program.seconds, progress.log)
        for one in (request.old, request.new)
    )
    return old, new


def _with_times(
    report: AgainstReport, timed: TimedPrograms, warnings: Sequence[str]
) -> AgainstReport:
    judged = (*report.judged, *timed.judged)
    return msgspec.structs.replace(
        report,
        judged=judged,
        decision=decide_gate(judged, tuple(_failures((report.old, report.new)))),
        times=timed.found,
        warnings=(*report.warnings, *warnings, *timed.warnings),
    )


async def _work(who: str, request: RunRequest, kernel: Kernel, lab: Lab) -> RunPlan:
    work = Work(program=request.program)
    try:
        work = await with_found_files(work, [kernel], lab.with_request(request.lab))
        return work.plan(kernel, request.lab, lab.progress.log)
    except UserError as error:
        raise UserError(f"cannot run the {who} program: {error.message}", error.hint) from error


async def _runs(kernel: Kernel, works: Sequence[RunPlan], lab: Lab) -> tuple[_Ran, _Ran]:
    """The runs of both programs. Calls are followed in the unperturbed one of each alone, since
    that takes several times longer.
    """
    followed = msgspec.structs.replace(lab.request, perturbations=1, calls="kernel")
    kernels = [kernel] * len(works)
    first = await lab.with_request(followed).runs(kernels, works)
    if any(one.counts is None for row in first for one in row):
        rest: Sequence[Sequence[RunResult]] = [[], []]
    else:
        # Not again what was made right now.
        usual = msgspec.structs.replace(lab.request, rerun=False)
        rest = await lab.with_request(usual).runs(kernels, works)
    old, new = (
        _Ran((*row, *(one for one in more if one.run.perturbation)))
        for row, more in zip(first, rest, strict=True)
    )
    return old, new


def _alike(
    request: AgainstRequest, old: Sequence[RunCounts], new: Sequence[RunCounts]
) -> tuple[list[RunCounts], Sequence[RunCounts]]:
    """The counts of both, in which the programs themselves have one name: the new one's."""
    commands = request.old.program.command, request.new.program.command
    for ours, theirs in zip(*commands, strict=False):  # a program may be started by another one
        names = Path(ours).name, Path(theirs).name
        if names[0] != names[1] and Path(ours).is_file() and Path(theirs).is_file():
            old = [_renamed(counts, *names) for counts in old]
    return list(old), new


def _renamed(counts: RunCounts, old: str, new: str) -> RunCounts:
    regions = tuple(
        msgspec.structs.replace(
            region,
            functions=tuple(
                msgspec.structs.replace(one, origin=new) if one.origin == old else one
                for one in region.functions
            ),
        )
        for region in counts.regions
    )
    return msgspec.structs.replace(counts, regions=regions)


def _compared(
    request: AgainstRequest, old: Sequence[RunCounts], new: Sequence[RunCounts]
) -> Effects:
    return compare_runs(*_alike(request, old, new), margin=request.margin or MARGIN, alike=True)


def _report(
    request: AgainstRequest,
    obtained: Kernel | NoKernel,
    ran: tuple[_Ran, _Ran],
    store: Store,
    effects: Effects | None = None,
) -> AgainstReport:
    kernel, failure = (None, obtained.text) if isinstance(obtained, NoKernel) else (obtained, "")
    operations = effects.operations if effects else ()
    judged = tuple(judge_path(one, request.margin, request.margin or MARGIN) for one in operations)
    old, new = (
        ProgramSide(
            one.program.command,
            reported_side(one.kernel, kernel, side.done, failure, store),
            _peak_kib(side, store),
        )
        for one, side in zip((request.old, request.new), ran, strict=True)
    )
    parts = _changes(kernel, ran, store) if kernel and effects else {}
    return AgainstReport(
        machine=facts_of_machine(ran[1].done or ran[0].done, store),
        old=old,
        new=new,
        margin=request.margin,
        decision=decide_gate(judged, tuple(_failures((old, new)))),
        judged=judged,
        regions=tuple(AgainstRegion(one, parts.get(one.name, ())) for one in operations),
        output=tuple(_output(ran, store)) if effects else (),
        warnings=(*(effects.warnings if effects else ()), *_lacked(old, new, ran, store)),
    )


def _lacked(
    old: ProgramSide, new: ProgramSide, ran: tuple[_Ran, _Ran], store: Store
) -> tuple[str, ...]:
    """What either program wrote that it lacks in a guest, though it went well."""
    found = [
        lacked(attachment(one.first.run, "stderr", store)) if one.counts else () for one in ran
    ]
    names = names_of(old.command, new.command)
    texts = (
        text if text in others else f"{name}: {text}"
        for name, mine, others in zip(names, found, found[::-1], strict=True)
        for text in mine
    )
    return tuple(dict.fromkeys(texts))


def _failures(sides: tuple[ProgramSide, ProgramSide]) -> Iterator[str]:
    if sides[0].side.failure:
        yield f"no kernel: {sides[0].side.failure.strip().splitlines()[0]}"
    for who, one in zip(("old", "new"), sides, strict=True):
        for failed in dict.fromkeys(
            f"{who}: {run.run.word}" + (f": {run.run.detail}" if run.run.detail else "")
            for run in one.side.failed
        ):
            yield failed.splitlines()[0]


def _peak_kib(ran: _Ran, store: Store) -> int | None:
    """The most of the unperturbed run, if the guest reported it."""
    text = attachment(ran.first.run, "memory", store).strip() if ran.done else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _output(ran: tuple[_Ran, _Ran], store: Store) -> Iterator[OutputChange]:
    for name, stream in _STREAMS:
        if found := first_change(stream, *(attachment(one.first.run, name, store) for one in ran)):
            yield found


def first_change(stream: str, old: str, new: str) -> OutputChange | None:
    """Return where the output of two programs begins to differ; None where it does not."""
    lines = itertools.zip_longest(old.splitlines(), new.splitlines(), fillvalue=_ENDED)
    for number, (ours, theirs) in enumerate(lines, start=1):
        if ours != theirs:
            return OutputChange(stream, number, ours, theirs)
    return None


def _changes(
    kernel: Kernel, ran: tuple[_Ran, _Ran], store: Store
) -> dict[str, tuple[KernelCostChange, ...]]:
    names = call_names(kernel.arch)
    old, new = (_parts(one.first, names, store) for one in ran)
    return {name: part_changes(old[name], new[name]) for name in old if name in new}


def _parts(done: RunResult, names: CallNames, store: Store) -> dict[str, tuple[KernelCost, ...]]:
    """The kernel's work by system call, region by region."""
    if done.counts is None or done.run.status is not RunStatus.OK:
        return {}
    regions = merged_regions(done.counts)
    found = {
        one.region: kernel_parts(one, regions[one.region], names)
        for one in profiles_of(store, done.run)
        if one.region in regions
    }
    if missing := [name for name in regions if name not in found]:
        raise LabError(f"run {done.run.id} has no calls of the region {missing[0]}")
    return found


def call_names(arch: str) -> CallNames:
    """Return how that architecture names what enters its kernel."""
    machine = arch_machine(arch)
    symbols = machine.symbols
    return CallNames(
        prefixes=tuple(one.removesuffix("*") for one in symbols["system-call"]),
        names=machine.system_calls,
        page_faults=frozenset(symbols.get("page-fault", ())),
        starts=frozenset(symbols["starts"]),
    )
