# SPDX-License-Identifier: GPL-2.0-or-later
"""What kernels of a study run: some operations of a workload, or any program of the host."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.guests.image import stop_address
from kdelta.guests.job import Job, JobFile
from kdelta.guests.modules import modules_for, modules_if_there, with_dependencies
from kdelta.host.command import quiet
from kdelta.host.interrupt import interruptible
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import arch_of
from kdelta.lab.plan import (
    GuestPart,
    RunPlan,
    carried_files,
    check_needs,
    guest_compiler,
    in_mode,
    library_of,
    linked_in,
    must_have_mode,
    work_of,
)
from kdelta.lab.program import check_program, program_name, program_work
from kdelta.lab.request import USUAL_LAB, LabRequest, Program
from kdelta.lab.smp import must_offer_cpus
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.phase import PhaseRule
from kdelta.spec.run import CALLS, MachineOptions
from kdelta.workloads.catalog import Workload, build_workload, find_workload
from kdelta.workloads.kernel_part import KERNEL_FLAGS_ENDING, build_kernel_part


class Work(msgspec.Struct, frozen=True):
    """What each kernel of a study runs: some operations of a workload, none means all; or a
    program, whose operations are its regions.
    """

    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    program: Program | None = None

    @property
    def name(self) -> str:
        """What runs of it are called in the store."""
        return program_name(self.program) if self.program else self._described.name

    @property
    def title(self) -> str:
        """What reports call it."""
        return shlex.join(self.program.command) if self.program else self._described.name

    @property
    def _described(self) -> Workload:
        return find_workload(self.workload)

    @property
    def own_starts(self) -> bool:
        """Whether no figure of it depends on what else of it is run."""
        return self.program is not None or self._described.own_starts

    @property
    def phases(self) -> tuple[PhaseRule, ...]:
        """By which the work of its regions is split."""
        return () if self.program else self._described.phases

    def check(self, specs: Iterable[str] = (), machine: MachineOptions | None = None) -> None:
        """Raise UserError for what is not there, or cannot run on the kernels of these specs, or on
        that machine, before anything is fetched, built or booted.
        """
        if self.program:
            check_program(self.program, [arch_of(parse_kernel_spec(one)) for one in specs])
            return
        described = self._described
        for name in self.operations:
            described.operation(name)
        if machine:
            must_offer_cpus(described, machine)

    def must_run_on(self, kernel: Kernel) -> None:
        """UserError with what a kernel lacks, as far as its config shows."""
        if not self.program:
            check_needs(self._described, kernel)

    def has(self, operation: str) -> bool:
        """Whether it can be run for that region alone; a program is run as a whole."""
        return self.program is not None or any(
            one.name == operation for one in self._described.operations
        )

    def only(self, operations: tuple[str, ...]) -> "Work":
        """The same for these regions."""
        return self if self.program else msgspec.structs.replace(self, operations=operations)

    def plan(
        self, kernel: Kernel, asked: LabRequest = USUAL_LAB, log: Callable[[str], None] = quiet
    ) -> RunPlan:
        """Return what a run on that kernel does; UserError if it cannot run it."""
        self.must_run_on(kernel)
        if self.program:
            plan = program_work(self.program, kernel, asked)
            return msgspec.structs.replace(plan, regions=self.operations)
        must_offer_cpus(self._described, asked.machine)
        return workload_work(self._described, self.operations, kernel, log, asked)

    def plans(
        self, kernels: Sequence[Kernel], asked: LabRequest, log: Callable[[str], None] = quiet
    ) -> list[RunPlan]:
        """Return that for each of the kernels; UserError, before the first, if one cannot."""
        for kernel in kernels:
            self.must_run_on(kernel)
        return [self.plan(kernel, asked, log) for kernel in kernels]

    @property
    def bytes_worked_on(self) -> Mapping[str, int]:
        """By operation, how many bytes an iteration works on, where that is known."""
        operations = () if self.program else self._described.operations
        return {
            one.name: one.bytes_per_iteration
            for one in operations
            if one.bytes_per_iteration is not None
        }


def works_of(
    workloads: Sequence[str],
    operations: tuple[str, ...] = (),
    program: Program | None = None,
    specs: Iterable[str] = (),
    machine: MachineOptions | None = None,
) -> list[Work]:
    """Return the program, or the workloads where there is none, each with these operations;
    UserError for what is not there, or cannot run on the kernels of these specs, or that machine.
    """
    works = [Work(name, operations) for name in workloads]
    works = [Work(operations=operations, program=program)] if program else works
    for work in works:
        work.check(specs, machine)
    return works


def titles_of(workloads: tuple[str, ...], program: Program | None) -> tuple[str, ...]:
    """Return what reports call the program, or the workloads where there is none."""
    return (Work(program=program).title,) if program else workloads


def workload_work(
    workload: Workload,
    operations: tuple[str, ...],
    kernel: Kernel,
    log: Callable[[str], None] = quiet,
    asked: LabRequest = USUAL_LAB,
) -> RunPlan:
    """A workload, or some of its operations, as a job for that kernel, in the mode that is asked
    for. What of it cannot be built for the kernel is left out, and the work's warnings say why.
    UserError where programs cannot run in that mode.
    """
    mode = asked.mode
    must_have_mode(mode, kernel)
    with interruptible():
        by = guest_compiler(kernel.arch, asked.machine, log, workload)
        program = build_workload(workload, log, by=by, more=linked_in(mode, kernel))
        part = build_kernel_part(workload, kernel, log, by=by)
        carried = carried_files(workload, program, by, log)
        if mode in CALLS and workload.image == "small":  # that in the image calls as ever
            carried.append(JobFile(program, workload.program, 0o755))
    binaries, files = {workload.file_name: program.read_bytes()}, []
    warnings = list(part.warnings)
    files += carried
    programs = [file for file in carried if file.mode & 0o111]
    binaries |= {Path(file.guest).name: file.host.read_bytes() for file in programs}
    optional = modules_if_there(workload.modules_if_there, kernel)
    if part.program:
        binaries[part.program.name] = part.program.read_bytes()
        files.append(JobFile(part.program, workload.program + KERNEL_FLAGS_ENDING, 0o755))
    if part.module:
        try:
            optional += with_dependencies(part.module, kernel)
        except UserError as error:
            warnings.append(f"{part.module.stem} cannot be loaded: {error}")
    job = Job(
        argv=(workload.program, *workload.arguments, *workload.wanted(operations)),
        modules=modules_for(workload.modules, kernel),
        optional_modules=tuple(dict.fromkeys(optional)),
        seconds=workload.timeout_seconds,
        files=tuple(files),
    )
    job = in_mode(job, mode, kernel, asked.machine, log)
    return work_of(
        workload.name,
        job,
        binaries | library_of(job),
        tuple(warnings),
        parts=_parts(workload, operations, job),
        idle=_window(workload, job, *workload.idle),
        memory_mib=workload.memory_mib,
        host_seconds=workload.host_seconds,
        asks_at=stop_address(program) if workload.own_starts else 0,
        by=by,
    )


LEVELS = 3
"""How many times a region that is not steady is run for longer."""
LATER = "--later"
"""Makes a program of own starts ask what it is to do when it is ready."""
WINDOW_SECONDS = 7
"""How long a window is: kfree_rcu waits up to 5 s for more (kernel/rcu/tree.c), then for RCU."""


def _parts(workload: Workload, operations: tuple[str, ...], job: Job) -> tuple[GuestPart, ...]:
    """Each operation as a job of its own, so that its figure is the same whatever else is run."""
    if not workload.own_starts:
        return ()
    usual = tuple(one.name for one in workload.operations if not one.on_request)
    levels = [(), *((workload.longer, str(level + 1)) for level in range(LEVELS))]
    return tuple(
        GuestPart(
            name,
            tuple(
                _later(workload, job, *level, name)
                for level in (levels if workload.longer else levels[:1])
            ),
            _window(workload, job, name),
        )
        for name in operations or usual
    )


def _later(workload: Workload, job: Job, *words: str) -> Job:
    """Return the job of a program that is to do this when it is ready."""
    program = (workload.program, *workload.arguments, LATER)
    return msgspec.structs.replace(job, argv=program, later=words)


def _window(workload: Workload, job: Job, *operations: str) -> Job | None:
    """Return the job that shows what these operations leave to other tasks."""
    if not (workload.own_starts and workload.window):
        return None
    return _later(workload, job, workload.window, str(WINDOW_SECONDS), *operations)
