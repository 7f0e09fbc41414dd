# SPDX-License-Identifier: GPL-2.0-or-later
"""What every study needs: kernels obtained, guests booted once, runs made side by side and kept."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kdelta.cpus.catalog import list_cpus
from kdelta.guests.image import base_image
from kdelta.guests.job import handed_over
from kdelta.host.command import echo_line
from kdelta.host.dirs import data_dir
from kdelta.host.emulator import find_qemu
from kdelta.host.interrupt import in_thread, interruptible
from kdelta.host.lock import work_folder
from kdelta.host.target import target
from kdelta.infer.effects.same import partings
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import arch_of
from kdelta.kernels.sources.given import announce
from kdelta.lab.attachments import (
    EXECUTED,
    MODULE_SYMBOLS,
    PROFILES,
    SYMBOLS,
    TRACES,
    has_recorded,
    is_recording,
    kept_of,
    profiles_of,
    traces_of,
)
from kdelta.lab.cpus import machine_for, must_be_for
from kdelta.lab.execute import KeptFiles, Ready, execute
from kdelta.lab.explain import (
    NotForcedError,
    advice,
    clears,
    must_agree,
    must_be_forced,
    must_be_taken,
    must_fit_in_command_line,
    must_not_clear,
)
from kdelta.lab.failed_program import about_program
from kdelta.lab.plan import RunPlan, guest_compiler, work_of
from kdelta.lab.progress import Progress
from kdelta.lab.request import USUAL_LAB, LabRequest
from kdelta.lab.run_facts import ending_of, new_run, no_kernel_key, no_kernel_run
from kdelta.lab.smp import must_have_cpus, must_take_turns
from kdelta.lab.steps import expect_runs, log_memory, obtained
from kdelta.lab.wanted import RunResult, WantedRun, part_of_stored, run_key
from kdelta.machines.answering import Answer, run_answering
from kdelta.machines.arch import arch_machine
from kdelta.machines.chunks import read_messages
from kdelta.machines.device_tree import device_tree
from kdelta.machines.outcome import GuestOutcome, read_console
from kdelta.machines.snapshots import (
    keep_refusal,
    known_forcing,
    known_refusal,
    obtain_forcing,
    obtain_snapshot,
)
from kdelta.machines.tcg import Guest, Recording, Setting, Snapshot, TraceMode
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import perturbation, turn_us
from kdelta.store.model import Run
from kdelta.store.store import Store

__all__ = [
    "EXECUTED",
    "MODULE_SYMBOLS",
    "PROFILES",
    "SYMBOLS",
    "TRACES",
    "Lab",
    "RunPlan",
    "RunResult",
    "no_kernel_key",
    "open_store",
    "profiles_of",
    "traces_of",
    "work_of",
]

_T = TypeVar("_T")
_Start = Snapshot | GuestOutcome | None
"""A guest's snapshot; how its boot failed; or None when runs are to begin at power-on."""

_Booted = tuple[Guest, _Start]
"""A guest, with how features are forced in it, and where its runs begin."""


class Lab:
    """What studies run kernels with: a store, the progress, and how runs are made.

    `runs` makes all runs of several kernels, as many at a time as the request allows.
    """

    def __init__(self, store: Store, progress: Progress, request: LabRequest = USUAL_LAB) -> None:
        self.store: Final = store
        self.progress: Final = progress
        self.request: Final = request
        self._hung: dict[str, GuestOutcome] = {}
        # A run has many guests. They share the slots, and no more runs begin than there are slots.
        self._slots = asyncio.Semaphore(max(1, request.jobs))
        self._runs_at_once = asyncio.Semaphore(max(1, request.jobs))

    def with_request(self, request: LabRequest) -> "Lab":
        """Return a lab with the same store and progress that makes runs as that request says."""
        other = Lab(self.store, self.progress, request)
        other._hung = self._hung
        return other

    def kernel(self, spec: str) -> Kernel | NoKernel:
        """Return the kernel of a spec; one that cannot be built is kept as a run that failed.

        LabError or UserError, before it is fetched or built, if there is no QEMU to run it.
        """
        wanted = parse_kernel_spec(spec)
        announce(wanted.changes, self.progress.log)
        with interruptible():
            if arch := arch_of(wanted):
                self._must_have_qemu(arch)
            found = obtained(wanted, self.progress)
            if isinstance(found, Kernel) and found.arch != arch:
                self._must_have_qemu(found.arch)
        if isinstance(found, NoKernel):
            self._keep(found)
        self.store.is_understood = True
        return found

    def _must_have_qemu(self, arch: str) -> None:
        """Raise unless the QEMU for it has the machine's CPU, as many, and loads the plugin."""
        cpu = self.request.machine.cpu
        like = [one for one in list_cpus().values() if cpu and one.qemu.cpu == cpu]
        if like and arch not in {one.arch for one in like}:
            must_be_for(like[0], arch)
        emulator = find_qemu(target(arch), self.request.machine.qemu, self.progress.log)
        _ = emulator.plugin_apis
        must_take_turns(self.request, arch, emulator)
        if cpu and not like:
            emulator.must_have_cpu(cpu)

    def _keep(self, failure: NoKernel) -> None:
        run_id = self.store.start_run(no_kernel_run(failure))
        self.store.finish_run(run_id, failure.status, detail=failure.detail, console="")

    def guest(self, kernel: Kernel, work: RunPlan | None = None, index: int = 0) -> Guest:
        """That kernel with the base image, on the machine that the request describes, with as much
        memory as the work needs, for the perturbation of that index.
        """
        guest = self._guest(kernel, work, index)
        must_fit_in_command_line(kernel, guest.command_line)
        must_not_clear(kernel, guest)
        return guest

    def _guest(self, kernel: Kernel, work: RunPlan | None, index: int) -> Guest:
        machine = machine_for(self.request.machine, kernel.arch)
        memory_mib = max(machine.memory_mib, work.memory_mib if work else 0)
        arch_machine(kernel.arch).board(machine.cpu).must_have(memory_mib)
        by = (work and work.by) or guest_compiler(kernel.arch, machine, self.progress.log)
        image = base_image(by, self.progress.log, machine.cpus)
        qemu = find_qemu(target(kernel.arch), machine.qemu, self.progress.log)  # perhaps fetched
        must_take_turns(self.request, kernel.arch, qemu)
        return Guest(
            kernel_identity=kernel.identity,
            kernel_image=kernel.image,
            arch=kernel.arch,
            initrd=str(image.path),
            initrd_identity=image.identity,
            stop_address=image.stop_address,
            memory_mib=memory_mib,
            cpu=machine.cpu,
            qemu=machine.qemu,
            append=machine.append,
            device_tree=device_tree(kernel, machine.cpu),
            runs_as=machine.runs_as,
            loaded=machine.loaded,
            icount_shift=machine.icount_shift,
            parameters=kernel.parameters,
            boot=perturbation(index).boot,
            force=machine.force,
            cpus=machine.cpus,
            turn_us=turn_us(index) if machine.short_turns and machine.cpus > 1 else 0,
            programs_by="" if by.pin and by.pin == qemu.pin else by.title,
        )

    async def settled(self, kernels: Sequence[Kernel], works: Sequence[RunPlan] = ()) -> "Lab":
        """Return the lab for runs of these kernels that are compared with each other. Where the
        request names no CPU, and features of the default one cannot be forced in each of them, they
        are forced in none. Kernels are booted for that, unless it is known.

        works: of the kernels, as far as they decide how much memory guests have.
        """
        if self.request.machine.cpu or not kernels:
            return self
        with interruptible():
            plans: Sequence[RunPlan | None] = works or [None] * len(kernels)
            guests = {
                kernel.identity: (kernel, self._guest(kernel, plan, 0))
                for kernel, plan in zip(kernels, plans, strict=True)
            }
            for guest in [guest for _, guest in guests.values()]:
                guest.emulator.plugin(self.progress.log)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._refusal(*one)) for one in guests.values()]
        refusals = [task.result() for task in tasks if task.result()]
        if not refusals:
            return self
        machine = machine_for(self.request.machine, kernels[0].arch)
        self.progress.log(f"no features of the default CPU are forced: {'; '.join(refusals)}")
        machine = msgspec.structs.replace(machine, force=())
        return self.with_request(msgspec.structs.replace(self.request, machine=machine))

    async def take_parameters(
        self, kernels: Sequence[Kernel], plan: Callable[[Kernel], RunPlan | None]
    ) -> None:
        """Boot those of these kernels that have boot parameters, which only a kernel itself knows;
        UserError if one does not take its own. plan: of what decides the guest that it will have.
        """
        with interruptible():
            guests = [(one, self._guest(one, plan(one), 0)) for one in kernels if one.parameters]
            for kernel, guest in guests:
                must_fit_in_command_line(kernel, guest.command_line)
                guest.emulator.plugin(self.progress.log)
        async with asyncio.TaskGroup() as group:
            for kernel, guest in guests:
                if not clears(guest):  # runs will force nothing then
                    group.create_task(self._tried(kernel, guest))

    async def _refusal(self, kernel: Kernel, guest: Guest) -> str:
        """Why features cannot be forced in a kernel that boots as asked; empty where they can."""
        if not guest.force:
            return ""
        if clears(guest):
            return f"clearcpuid= of {kernel.release} does nothing to features that are forced"
        try:
            return await self._tried(kernel, guest)
        except UserError:  # of its boot parameters, which its runs will report
            return ""

    async def _tried(self, kernel: Kernel, guest: Guest) -> str:
        """Boot a guest, unless it is known how that ends: see `_refusal`."""
        if (known := known_refusal(guest)) is not None:
            return known
        try:
            _, start = await self.start(kernel, guest, snapshots=True)
        except NotForcedError as error:
            keep_refusal(guest, error.message)
            return error.message
        if isinstance(start, Snapshot):
            keep_refusal(guest, "")
        return ""

    async def runs(
        self,
        kernels: Sequence[Kernel],
        works: Sequence[RunPlan],
        indexes: Sequence[int] | None = None,
        *,
        parts: bool = False,
    ) -> list[list[RunResult]]:
        """For each kernel, with its work, one run a perturbation, in that order: of these indexes,
        or as many as are requested.

        parts: a part of a stored run will do, where only counts are wanted.
        """
        if indexes is None:
            indexes = range(self.request.perturbations)
        with interruptible():
            wanted = [
                [
                    WantedRun(kernel, self.guest(kernel, work, index), work, index)
                    for index in indexes
                ]
                for kernel, work in zip(kernels, works, strict=True)
            ]
            log_memory(self.progress, self.request, works)
            for emulator in {one.guest.emulator for row in wanted for one in row}:
                emulator.plugin(self.progress.log)
        expect_runs(self.progress, self.request, len(wanted), indexes=indexes)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._runs_of(one, parts=parts)) for one in wanted]
        return [task.result() for task in tasks]

    async def one(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        """The run of that perturbation alone."""
        with interruptible():
            wanted = WantedRun(kernel, self.guest(kernel, work, index), work, index)
            wanted.guest.emulator.plugin(self.progress.log)
        (done,) = await self._runs_of([wanted])
        return done

    async def answered(self, kernel: Kernel, work: RunPlan, answer: Answer) -> GuestOutcome:
        """How the work's job ended, uncounted, with a host that answers what its program asks."""
        with interruptible():
            guest = self.guest(kernel, work)
            guest.emulator.plugin(self.progress.log)
        guest, start = await self.start(kernel, guest)
        if isinstance(start, GuestOutcome):
            return start
        step = f"find files of {work.name}"
        async with self._slots, _work_folder() as folder:
            self.progress.begin(step)
            setting = self._setting(folder, step, work)
            ended = await run_answering(guest, handed_over(work.job), setting, start, answer)
            self.progress.end(step, "done")
        return ended

    def key(self, kernel: Kernel, work: RunPlan, index: int) -> str:
        """What makes a run of that perturbation the same as another."""
        return run_key(self.guest(kernel, work, index), work.identity, index)

    async def _runs_of(
        self, wanted: Sequence[WantedRun], *, parts: bool = False
    ) -> list[RunResult]:
        """Runs of one kernel with one work."""
        known = {} if self.request.rerun else self._known(wanted, parts=parts)
        missing = [one for one in wanted if one.index not in known]
        boots = {one.guest.boot: one for one in missing}
        async with asyncio.TaskGroup() as group:
            starts = {
                boot: group.create_task(self.start(one.kernel, one.guest))
                for boot, one in boots.items()
            }
            tasks = {
                one.index: group.create_task(self._one(one, starts[one.guest.boot]))
                for one in missing
            }
        made = {index: task.result() for index, task in tasks.items()}
        found = [known.get(one.index) or made[one.index] for one in wanted]
        self.store.note_run(found[-1].run.id)
        return found

    def _known(self, wanted: Sequence[WantedRun], *, parts: bool) -> dict[int, RunResult]:
        found, parts = {}, parts and self._recording == Recording()
        for one in wanted:
            stored = self.store.find_run(one.key)
            if stored and has_recorded(self.store, stored, self._recording):
                counts = one.work.counted(self.store.counts(stored))
                found[one.index] = RunResult(stored, counts, stored=True)
            elif parts and (part := part_of_stored(self.store, one)):
                found[one.index] = part
            if one.index in found:
                self.progress.found(one.step)
        return found

    @property
    def _recording(self) -> Recording:
        request = self.request
        trace: TraceMode = "data" if request.data_lines else "on" if request.trace else "off"
        return Recording(trace, request.trace_limit, request.calls, conflicts=request.conflicts)

    async def start(
        self, kernel: Kernel, guest: Guest, *, snapshots: bool | None = None
    ) -> _Booted:
        """Return where runs on that guest begin. snapshots: as in the request, if it is None."""
        number = f" #{guest.boot}" if guest.boot else ""
        if guest.force:
            found: Guest | GuestOutcome | None = await in_thread(known_forcing, guest)
            if found is None:
                step = f"look up symbols of {kernel.title}{number}"
                look = functools.partial(self._must_take, kernel)
                looking = functools.partial(obtain_forcing, look=look)
                found = await self._booting(step, looking, guest)
            if isinstance(found, GuestOutcome):
                return guest, found
            guest = found
        wanted = self.request.snapshots if snapshots is None else snapshots
        if not (wanted and guest.board.snapshots):
            return guest, None
        step = f"boot {kernel.title}{number}"
        start = await self._booting(step, obtain_snapshot, guest)
        if isinstance(start, Snapshot) and (kernel.parameters or guest.force or guest.cpus > 1):
            messages = await in_thread(read_messages, start.boot)
            must_have_cpus(kernel, guest, messages)
            must_be_taken(kernel, messages)
            must_be_forced(kernel, guest, messages)
        return guest, start

    async def _booting(
        self, step: str, obtain: Callable[[Guest, Setting], Awaitable[_T]], guest: Guest
    ) -> _T:
        """What a boot of the guest is for, as a step."""
        async with self._slots, _work_folder() as folder:
            self.progress.begin(step)
            try:
                found = await obtain(guest, self._setting(folder, step, None))
            except UserError:
                self.progress.end(step, "failed")
                raise
            self.progress.end(step, "failed" if isinstance(found, GuestOutcome) else "ready")
        return found

    async def _must_take(self, kernel: Kernel, start: Snapshot) -> None:
        """Raise UserError unless a kernel that booted took its boot parameters."""
        if kernel.parameters:
            must_be_taken(kernel, await in_thread(read_messages, start.boot))

    def _setting(self, folder: Path, step: str, work: RunPlan | None) -> Setting:
        machine = self.request.machine
        return Setting(
            folder=folder,
            seconds=work.seconds_on(machine) if work else machine.timeout_seconds,
            log=lambda what: self.progress.doing(step, what),
            echo=echo_line,
            recording=self._recording,
            hung=self._hung,
        )

    async def _one(self, wanted: WantedRun, starting: asyncio.Task[_Booted]) -> RunResult:
        start = await starting
        step = wanted.step
        # There is one, too, when it lacks what is now to be recorded.
        earlier = self.store.find_run(wanted.key)
        async with self._runs_at_once, _work_folder() as folder:
            run_id = self.store.start_run(
                new_run(wanted.kernel, wanted.guest, wanted.work, wanted.index, wanted.key)
            )
            self.progress.begin(step)
            try:
                setting = self._setting(folder, step, wanted.work)
                counted, outcome = await self._executed(wanted, start, setting)
            except KdeltaError as error:
                status, detail = ending_of(error)
                console = read_console(folder)
                self.store.finish_run(run_id, status, detail=detail, console=console)
                self.progress.end(step, "failed")
                raise
            kept: dict[str, str] = {}
            if earlier and counted and not self.request.rerun:
                counted, kept = self._with_recorded(earlier, counted)
            finished = self.store.finish_run(
                run_id,
                outcome.status,
                detail=outcome.detail
                + advice(outcome, wanted.kernel, wanted.work.binaries, wanted.guest)
                + about_program(outcome, wanted.kernel, wanted.work),
                counts=counted.counts if counted else None,
                console=outcome.console,
                seconds=outcome.seconds,
                attachments=kept_of(
                    outcome, wanted.work.job, counted.attachments if counted else {}
                ),
                kept=kept,
            )
            self.progress.end(step, outcome.status.value)
        if earlier and counted:
            must_agree(self.store.counts(earlier), counted.counts, earlier, finished)
        return RunResult(finished, wanted.work.counted(counted.counts) if counted else None)

    async def _executed(
        self, wanted: WantedRun, booted: _Booted, setting: Setting
    ) -> tuple[KeptFiles | None, GuestOutcome]:
        """The run itself; of a guest that did not boot, how that ended."""
        guest, start = booted
        if isinstance(start, GuestOutcome):
            return None, start
        ready = Ready(wanted.kernel, guest, wanted.work, wanted.index, start)
        return await execute(ready, setting, self._slots)

    def _with_recorded(self, earlier: Run, counted: KeptFiles) -> tuple[KeptFiles, dict[str, str]]:
        """What an earlier run of that key recorded is as good for this one, if it counted the same:
        blobs by the names of attachments; and the counts with what was reported of its traces.
        """
        before = self.store.counts(earlier)
        if next(partings(before, counted.counts), None) is not None:
            return counted, {}
        kept = {
            name: blob
            for name, blob in earlier.attachments.items()
            if name not in counted.attachments and is_recording(name)
        }
        if TRACES in kept:
            warnings = tuple(dict.fromkeys((*counted.counts.warnings, *before.warnings)))
            counts = msgspec.structs.replace(counted.counts, warnings=warnings)
            counted = msgspec.structs.replace(counted, counts=counts)
        return counted, kept


def open_store() -> contextlib.AbstractContextManager[Store]:
    """The user's store."""
    return Store.open(data_dir())


@contextlib.asynccontextmanager
async def _work_folder() -> AsyncIterator[Path]:
    with work_folder() as folder:
        yield folder
