# SPDX-License-Identifier: GPL-2.0-or-later
"""What every study needs: kernels obtained, guests booted once, runs made side by side and kept."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.guests.image import base_image
from kdelta.host.command import echo_line
from kdelta.host.dirs import data_dir
from kdelta.host.interrupt import interruptible
from kdelta.host.lock import work_folder
from kdelta.host.native import build
from kdelta.infer.effects.same import partings
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.machines.arch import arch_machine
from kdelta.machines.chunks import read_messages
from kdelta.machines.device_tree import device_tree
from kdelta.machines.outcome import GuestOutcome, read_console
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Recording, Setting, Snapshot, TraceMode
from kdelta.spec.errors import KdeltaError, LabError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MODES, MachineOptions, Mode, RunStatus, perturbation
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from kdelta.studies.lab.attachments import (
    EXECUTED,
    MODULE_SYMBOLS,
    PROFILES,
    SYMBOLS,
    TRACES,
    has_recorded,
    is_recording,
    misses_name,
    misses_of,
    profiles_of,
    symbols_of,
    traces_of,
)
from kdelta.studies.lab.execute import KeptFiles, Ready, execute
from kdelta.studies.lab.explain import advice, must_be_taken, must_fit
from kdelta.studies.lab.requests import LabRequest, Progress
from kdelta.studies.lab.work import Work, work_of

__all__ = [
    "EXECUTED",
    "MODULE_SYMBOLS",
    "PROFILES",
    "RECORD",
    "SYMBOLS",
    "TRACES",
    "Done",
    "Lab",
    "Work",
    "is_recording",
    "misses_name",
    "misses_of",
    "mode_of",
    "no_kernel_key",
    "open_store",
    "profiles_of",
    "symbols_of",
    "traces_of",
    "work_of",
]

_FACTS_SHOWN = ("hello", "cpuinfo", "vulnerabilities", "group")
RECORD = 3
"""What is kept of a run; a run of which less was kept is made again."""


class Done(msgspec.Struct, frozen=True):
    """A run and what it counted (None unless it went well); `stored`: it was in the store."""

    run: Run
    counts: RunCounts | None
    stored: bool = False


class _Wanted(msgspec.Struct, frozen=True):
    """One run to be made."""

    kernel: Kernel
    guest: Guest
    work: Work
    index: int

    @property
    def key(self) -> str:
        """What makes it the same run as another."""
        return _key(self.guest, self.work, self.index)


_Start = Snapshot | GuestOutcome | None
"""A guest's snapshot; how its boot failed; or None when runs are to begin at power-on."""


class Lab:
    """The shared steps of studies, for one request.

    `runs` makes all runs of several kernels, as many at a time as the request allows.
    """

    def __init__(self, request: LabRequest, store: Store, progress: Progress) -> None:
        self._request = request
        self._store = store
        self._progress = progress
        # A run has many guests. They share the slots, and no more runs begin than there are slots.
        self._slots = asyncio.Semaphore(max(1, request.jobs))
        self._runs_at_once = asyncio.Semaphore(max(1, request.jobs))

    def kernel(self, spec: str) -> Kernel | NoKernel:
        """The kernel of a spec's text; one that cannot be built is kept as a run that failed."""
        with interruptible():
            found = obtain(parse_kernel_spec(spec), self._progress.say)
        if isinstance(found, NoKernel):
            self._keep(found)
        return found

    def _keep(self, failure: NoKernel) -> None:
        run_id = self._store.start_run(
            NewRun(
                key=no_kernel_key(failure.identity),
                kernel_identity=failure.identity,
                kernel_spec=failure.spec,
                kernel_release="",
                machine={},
                workload="",
                workload_identity="",
                perturbation=0,
            )
        )
        self._store.finish_run(run_id, failure.status, detail=failure.detail, console="")

    def guest(self, kernel: Kernel, work: Work | None = None, index: int = 0) -> Guest:
        """That kernel with the base image, on the machine that the request describes, with as much
        memory as the work needs, for the perturbation of that index.
        """
        machine = self._request.machine
        memory_mib = max(machine.memory_mib, work.memory_mib if work else 0)
        arch_machine(kernel.arch).board(machine.cpu).must_have(memory_mib)
        image = base_image(kernel.arch, self._progress.say)
        tree = device_tree(kernel, machine.cpu)
        guest = Guest(
            kernel_identity=kernel.identity,
            kernel_image=kernel.image,
            arch=kernel.arch,
            initrd=str(image.path),
            initrd_identity=image.identity,
            stop_address=image.stop_address,
            memory_mib=memory_mib,
            cpu=machine.cpu,
            append=machine.append,
            device_tree=tree,
            runs_as=machine.runs_as,
            loaded=machine.loaded,
            icount_shift=machine.icount_shift,
            parameters=kernel.parameters,
            boot=perturbation(index).boot,
        )
        must_fit(kernel, guest.command_line)
        return guest

    async def runs(self, kernels: Sequence[Kernel], works: Sequence[Work]) -> list[list[Done]]:
        """For each kernel, with its work, one run a perturbation, in that order."""
        with interruptible():
            indexes = range(self._request.perturbations)
            wanted = [
                [_Wanted(kernel, self.guest(kernel, work, index), work, index) for index in indexes]
                for kernel, work in zip(kernels, works, strict=True)
            ]
            self._tell_memory(works)
            build("plugin", self._progress.say)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._runs_of(one)) for one in wanted]
        return [task.result() for task in tasks]

    def _tell_memory(self, works: Sequence[Work]) -> None:
        for name, least in {work.name: work.memory_mib for work in works}.items():
            if least > self._request.machine.memory_mib:
                self._progress.say(f"{name} needs {least} MiB of memory: its guests have that")

    async def one(self, kernel: Kernel, work: Work, index: int) -> Done:
        """The run of that perturbation alone."""
        with interruptible():
            wanted = _Wanted(kernel, self.guest(kernel, work, index), work, index)
            build("plugin", self._progress.say)
        (done,) = await self._runs_of([wanted])
        return done

    def key(self, kernel: Kernel, work: Work, index: int) -> str:
        """What makes a run of that perturbation the same as another."""
        return _key(self.guest(kernel, work, index), work, index)

    async def _runs_of(self, wanted: Sequence[_Wanted]) -> list[Done]:
        """Runs of one kernel with one work."""
        known = {} if self._request.again else self._known(wanted)
        missing = [one for one in wanted if one.index not in known]
        boots = {one.guest.boot: one for one in missing}
        async with asyncio.TaskGroup() as group:
            starts = {
                boot: group.create_task(self._start(one.kernel, one.guest))
                for boot, one in boots.items()
            }
            tasks = {
                one.index: group.create_task(self._from(one, starts[one.guest.boot]))
                for one in missing
            }
        made = {index: task.result() for index, task in tasks.items()}
        return [known.get(one.index) or made[one.index] for one in wanted]

    async def _from(self, wanted: _Wanted, start: asyncio.Task[_Start]) -> Done:
        return await self._one(wanted, await start)

    def _known(self, wanted: Sequence[_Wanted]) -> dict[int, Done]:
        found = {}
        for one in wanted:
            stored = self._store.find_run(one.key)
            if stored and has_recorded(self._store, stored, self._recording):
                found[one.index] = Done(stored, self._store.counts(stored), stored=True)
        return found

    @property
    def _recording(self) -> Recording:
        trace: TraceMode = "on" if self._request.trace else "off"
        if self._request.data_lines:
            trace = "data"
        request = self._request
        return Recording(trace, request.trace_limit, request.simulate, request.calls)

    async def _start(self, kernel: Kernel, guest: Guest) -> _Start:
        """Where runs on that guest begin."""
        if not (self._request.snapshots and guest.board.snapshots):
            return None
        step = f"boot {kernel.title}" + (f" #{guest.boot}" if guest.boot else "")
        async with self._slots, _work_folder() as folder:
            self._progress.begin(step)
            found = await obtain_snapshot(guest, self._setting(folder, step, None))
            refused = isinstance(found, GuestOutcome)
            self._progress.end(step, "failed" if refused else "ready")
        if isinstance(found, Snapshot) and kernel.parameters:
            must_be_taken(kernel, await asyncio.to_thread(read_messages, found.boot))
        return found

    def _setting(self, folder: Path, step: str, work: Work | None) -> Setting:
        machine = self._request.machine
        return Setting(
            folder=folder,
            seconds=work.seconds_on(machine) if work else machine.timeout_seconds,
            say=lambda what: self._progress.doing(step, what),
            echo=echo_line,
            recording=self._recording,
        )

    async def _one(self, wanted: _Wanted, start: _Start) -> Done:
        step = f"run {wanted.kernel.title} {wanted.work.name} #{wanted.index}"
        # There is one, too, when it lacks what is now to be recorded.
        earlier = self._store.find_run(wanted.key)
        async with self._runs_at_once, _work_folder() as folder:
            run_id = self._store.start_run(_new_run(wanted))
            self._progress.begin(step)
            try:
                setting = self._setting(folder, step, wanted.work)
                counted, outcome = await self._executed(wanted, start, setting)
            except KdeltaError as error:
                is_lab = isinstance(error, LabError)
                self._store.finish_run(
                    run_id,
                    RunStatus.WORKLOAD_FAILED if is_lab else RunStatus.BOOT_FAILED,
                    detail=f"lab: {error}" if is_lab else error.message,
                    console=read_console(folder),
                )
                self._progress.end(step, "failed")
                raise
            kept: dict[str, str] = {}
            if earlier and counted and not self._request.again:
                counted, kept = self._with_recorded(earlier, counted)
            finished = self._store.finish_run(
                run_id,
                outcome.status,
                detail=outcome.detail + advice(outcome, wanted.kernel, wanted.work.binaries),
                counts=counted.counts if counted else None,
                console=outcome.console,
                seconds=outcome.seconds,
                attachments=_attachments(outcome, counted),
                kept=kept,
            )
            self._progress.end(step, outcome.status.value)
        if earlier and counted:
            _must_agree(self._store.counts(earlier), counted.counts, earlier, finished)
        return Done(finished, counted.counts if counted else None)

    async def _executed(
        self, wanted: _Wanted, start: _Start, setting: Setting
    ) -> tuple[KeptFiles | None, GuestOutcome]:
        """The run itself; of a guest that did not boot, how that ended."""
        if isinstance(start, GuestOutcome):
            return None, start
        ready = Ready(wanted.kernel, wanted.guest, wanted.work, wanted.index, start)
        return await execute(ready, setting, self._slots)

    def _with_recorded(self, earlier: Run, counted: KeptFiles) -> tuple[KeptFiles, dict[str, str]]:
        """What an earlier run of that key recorded is as good for this one, if it counted the same:
        blobs by the names of attachments; and the counts with what was reported of its traces.
        """
        before = self._store.counts(earlier)
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


@contextlib.contextmanager
def open_store() -> Iterator[Store]:
    """The user's store."""
    with Store.open(data_dir()) as store:
        yield store


@contextlib.asynccontextmanager
async def _work_folder() -> AsyncIterator[Path]:
    with work_folder() as folder:
        yield folder


def _key(guest: Guest, work: Work, index: int) -> str:
    """What makes two runs the same run. Snapshot or power-on is no part: the counts are equal."""
    return identity(
        {
            "guest": guest.snapshot_facts(),
            "job": work.identity,
            "perturbation": msgspec.to_builtins(perturbation(index)),
            "plugin": build("plugin").parent.name,
            "record": RECORD,
        }
    )


def _new_run(wanted: _Wanted) -> NewRun:
    facts = wanted.guest.snapshot_facts()
    return NewRun(
        key=wanted.key,
        kernel_identity=wanted.kernel.identity,
        kernel_spec=wanted.kernel.spec,
        kernel_release=wanted.kernel.release,
        machine={
            "name": "tcg",
            "qemu": str(facts["qemu"]),
            "cpu": str(facts["cpu"]),
            "memory_mib": wanted.guest.memory_mib,
            "append": wanted.guest.append,
            **_unusual(wanted),
        },
        workload=wanted.work.name,
        workload_identity=wanted.work.identity,
        perturbation=wanted.index,
    )


def _unusual(wanted: _Wanted) -> dict[str, str | int | float]:
    """What of the machine and the mode is not as usual."""
    usual = MachineOptions()
    facts: dict[str, tuple[str | int, str | int]] = {
        "as": (wanted.guest.runs_as, usual.runs_as),
        "loaded": (int(wanted.guest.loaded), int(usual.loaded)),
        "icount_shift": (wanted.guest.icount_shift, usual.icount_shift),
        "mode": (wanted.work.job.mode, MODES[0]),
    }
    return {name: value for name, (value, usually) in facts.items() if value != usually}


def _attachments(outcome: GuestOutcome, counted: KeptFiles | None) -> dict[str, bytes]:
    """What is kept with the run: facts, the workload's own output, and what was executed."""
    names = (*_FACTS_SHOWN, "stdout", "stderr", "note")
    kept = {name: outcome.messages[name] for name in names if outcome.messages.get(name)}
    return {**kept, **counted.attachments} if counted else kept


def mode_of(run: Run) -> Mode:
    """The mode that a run's programs were in."""
    name = run.machine.get("mode", "user")
    return next(mode for mode in MODES if mode == name)


def no_kernel_key(asked: str) -> str:
    """The key of the run that is kept in place of a kernel which could not be built."""
    return identity({"no-kernel": asked})


def _must_agree(earlier: RunCounts, counts: RunCounts, first: Run, second: Run) -> None:
    found = list(partings(earlier, counts))
    if found:
        raise LabError(
            f"runs {first.id} and {second.id} are the same and counted differently: {found[0]}"
            + (f" (and {len(found) - 1} more places)" if len(found) > 1 else ""),
            "exactness is broken; please report it with the output of kdelta doctor",
        )
