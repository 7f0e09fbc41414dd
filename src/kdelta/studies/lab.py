# SPDX-License-Identifier: GPL-2.0-or-later
"""What every study needs: kernels obtained, guests booted once, runs made side by side and kept."""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.executed import encode_executed, read_executed
from kdelta.counts.model import RunCounts
from kdelta.counts.packets import with_packets
from kdelta.counts.reader import Sources, read_counts
from kdelta.counts.symbols import kallsyms_file, parse_kallsyms
from kdelta.guests.image import base_image
from kdelta.guests.job import Job, job_archive, job_identity
from kdelta.host.command import echo_command
from kdelta.host.dirs import data_dir
from kdelta.host.interrupt import interruptible
from kdelta.host.native import build
from kdelta.host.work import work_folder
from kdelta.infer.same import partings
from kdelta.kernels.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.machines.arch import arch_machine
from kdelta.machines.device_tree import device_tree
from kdelta.machines.outcome import Outcome, read_console
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Guest, Recording, Setting, Snapshot, TraceMode, run
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MODES, MachineOptions, Mode, RunStatus, perturbation
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from kdelta.studies.attachments import (
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
    recorded,
    symbols_of,
    traces_of,
)
from kdelta.studies.explain import advice
from kdelta.studies.requests import LabRequest, Progress

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

_FACTS_SHOWN = ("hello", "cpuinfo", "vulnerabilities")
RECORD = 2
"""What is kept of a run; a run of which less was kept is made again."""

_NEVER_QUIET = "the guest never became quiet after boot: background work may be in the counts"


class Work(msgspec.Struct, frozen=True):
    """What a guest is to do. `binaries`: the programs whose code may run, name -> content.

    `name` and `identity` are the workload's, as the store keeps them. `warnings` go with what its
    runs count: what could not be prepared for them. Its guests have `memory_mib` at least, and a
    run of it `host_seconds`, where the user does not say how long it may take.
    """

    name: str
    identity: str
    job: Job
    binaries: Mapping[str, bytes]
    warnings: tuple[str, ...] = ()
    memory_mib: int = 0
    host_seconds: float = 0.0

    def seconds_on(self, machine: MachineOptions) -> float:
        """The longest that a run of it may take here."""
        asked = machine.timeout_seconds
        usual = asked == MachineOptions().timeout_seconds
        return max(asked, self.host_seconds) if usual else asked


class Done(msgspec.Struct, frozen=True):
    """A run and what it counted (None unless it went well); `stored`: it was in the store."""

    run: Run
    counts: RunCounts | None
    stored: bool = False


class _Counted(msgspec.Struct, frozen=True):
    """What is read from the files of a run that went well; they are gone after it."""

    counts: RunCounts
    attachments: dict[str, bytes]


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


class _Refused(msgspec.Struct, frozen=True):
    """A guest that did not boot, told to all runs that wanted it."""

    outcome: Outcome


class Lab:
    """The shared steps of studies, for one request.

    `runs` makes all runs of several kernels, as many at a time as the request allows.
    """

    def __init__(self, request: LabRequest, store: Store, progress: Progress) -> None:
        self._request = request
        self._store = store
        self._progress = progress
        self._slots = asyncio.Semaphore(max(1, request.jobs))

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

    def guest(self, kernel: Kernel, work: Work | None = None) -> Guest:
        """That kernel with the base image, on the machine that the request describes, with as much
        memory as the work needs.
        """
        machine = self._request.machine
        memory_mib = max(machine.memory_mib, work.memory_mib if work else 0)
        arch_machine(kernel.arch).board(machine.cpu).must_have(memory_mib)
        image = base_image(kernel.arch, self._progress.say)
        tree = device_tree(kernel, machine.cpu)
        return Guest(
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
        )

    async def runs(self, kernels: Sequence[Kernel], works: Sequence[Work]) -> list[list[Done]]:
        """For each kernel, with its work, one run a perturbation, in that order."""
        with interruptible():
            guests = [self.guest(*both) for both in zip(kernels, works, strict=True)]
            self._tell_memory(works)
            build("plugin", self._progress.say)
        indexes = range(self._request.perturbations)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._runs_of(kernel, guest, work, indexes))
                for kernel, guest, work in zip(kernels, guests, works, strict=True)
            ]
        return [task.result() for task in tasks]

    def _tell_memory(self, works: Sequence[Work]) -> None:
        for name, least in {work.name: work.memory_mib for work in works}.items():
            if least > self._request.machine.memory_mib:
                self._progress.say(f"{name} needs {least} MiB of memory: its guests have that")

    async def one(self, kernel: Kernel, work: Work, index: int) -> Done:
        """The run of that perturbation alone."""
        with interruptible():
            guest = self.guest(kernel, work)
            build("plugin", self._progress.say)
        (done,) = await self._runs_of(kernel, guest, work, [index])
        return done

    def key(self, kernel: Kernel, work: Work, index: int) -> str:
        """What makes a run of that perturbation the same as another."""
        return _key(self.guest(kernel, work), work, index)

    async def _runs_of(
        self, kernel: Kernel, guest: Guest, work: Work, indexes: Sequence[int]
    ) -> list[Done]:
        known = {} if self._request.again else self._known(guest, work, indexes)
        missing = [index for index in indexes if index not in known]
        start = await self._start(kernel, guest) if missing else None
        async with asyncio.TaskGroup() as group:
            tasks = {
                index: group.create_task(self._one(_Wanted(kernel, guest, work, index), start))
                for index in missing
            }
        made = {index: task.result() for index, task in tasks.items()}
        return [known.get(index) or made[index] for index in indexes]

    def _known(self, guest: Guest, work: Work, indexes: Sequence[int]) -> dict[int, Done]:
        found = {}
        for index in indexes:
            stored = self._store.find_run(_key(guest, work, index))
            if stored and has_recorded(self._store, stored, self._recording):
                found[index] = Done(stored, self._store.counts(stored), stored=True)
        return found

    @property
    def _recording(self) -> Recording:
        trace: TraceMode = "on" if self._request.trace else "off"
        if self._request.data_lines:
            trace = "data"
        request = self._request
        return Recording(trace, request.trace_limit, request.simulate, request.calls)

    async def _start(self, kernel: Kernel, guest: Guest) -> Snapshot | _Refused | None:
        """The guest's snapshot; None when runs are to begin at power-on."""
        if not (self._request.snapshots and guest.board.snapshots):
            return None
        step = f"boot {kernel.release}"
        async with self._slots, _work_folder() as folder:
            self._progress.begin(step)
            found = await obtain_snapshot(guest, self._setting(folder, step, None))
            refused = isinstance(found, Outcome)
            self._progress.end(step, "failed" if refused else "ready")
        return _Refused(found) if isinstance(found, Outcome) else found

    def _setting(self, folder: Path, step: str, work: Work | None) -> Setting:
        machine = self._request.machine
        return Setting(
            folder=folder,
            seconds=work.seconds_on(machine) if work else machine.timeout_seconds,
            say=lambda what: self._progress.doing(step, what),
            echo=_echo,
            recording=self._recording,
        )

    async def _one(self, wanted: _Wanted, start: Snapshot | _Refused | None) -> Done:
        step = f"run {wanted.kernel.release} {wanted.work.name} #{wanted.index}"
        # There is one, too, when it lacks what is now to be recorded.
        earlier = self._store.find_run(wanted.key)
        async with self._slots, _work_folder() as folder:
            run_id = self._store.start_run(_new_run(wanted))
            self._progress.begin(step)
            try:
                setting = self._setting(folder, step, wanted.work)
                counted, outcome = await _execute(wanted, start, setting)
            except LabError as error:
                self._store.finish_run(
                    run_id,
                    RunStatus.WORKLOAD_FAILED,
                    detail=f"lab: {error}",
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

    def _with_recorded(self, earlier: Run, counted: _Counted) -> tuple[_Counted, dict[str, str]]:
        """What an earlier run of that key recorded is as good for this one, if it counted the same:
        blobs by the names of attachments; and the counts with what was said of its traces.
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


async def _execute(
    wanted: _Wanted, start: Snapshot | _Refused | None, setting: Setting
) -> tuple[_Counted | None, Outcome]:
    """The run itself, and what it counted if it went well."""
    if isinstance(start, _Refused):
        return None, start.outcome
    job = msgspec.structs.replace(wanted.work.job, perturbation=perturbation(wanted.index))
    outcome = await run(wanted.guest, job_archive(job), setting, start)
    if outcome.status is not RunStatus.OK or not outcome.counts or not outcome.symbols:
        return None, outcome
    sources = Sources(
        symbols=outcome.symbols,
        modules=outcome.messages.get("modules", b"") + arch_machine(wanted.guest.arch).unnamed(),
        binaries=wanted.work.binaries,
        vdso=outcome.messages.get("vdso", b""),
    )
    # In a thread, so that the other guests are not kept waiting.
    counts = await asyncio.to_thread(read_counts, outcome.counts, sources, _clock_ticks(outcome))
    told = outcome.messages.get("warning", b"").decode("utf-8", "replace").splitlines()
    warnings = (*counts.warnings, *wanted.work.warnings, *told)
    if b"\nquiet no\n" in outcome.messages.get("hello", b""):
        warnings = (*warnings, _NEVER_QUIET)
    regions = with_packets(counts.regions, outcome.messages.get("packets", b""))
    counts = msgspec.structs.replace(counts, regions=regions, warnings=warnings)
    files = [start.boot, outcome.counts] if start else [outcome.counts]
    executed = await asyncio.to_thread(_executed, files, sources, wanted.guest)
    kept = await asyncio.to_thread(recorded, outcome.counts, sources, setting.recording)
    return _Counted(counts, {EXECUTED: executed, **kept}), outcome


def _executed(files: list[Path], sources: Sources, guest: Guest) -> bytes:
    symbols = (*kallsyms_file(sources.symbols), *parse_kallsyms(sources.modules))
    image = arch_machine(guest.arch).image
    return encode_executed(read_executed(files, symbols, image, guest.board.image))


def _echo(line: str) -> None:
    echo_command(shlex.split(line))


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
            **({} if wanted.work.job.mode == "user" else {"mode": wanted.work.job.mode}),
        },
        workload=wanted.work.name,
        workload_identity=wanted.work.identity,
        perturbation=wanted.index,
    )


def _attachments(outcome: Outcome, counted: _Counted | None) -> dict[str, bytes]:
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


def _clock_ticks(outcome: Outcome) -> dict[str, int]:
    lines = outcome.messages.get("region-clock", b"").decode("utf-8", "replace").splitlines()
    rows = [line.rsplit(None, 2) for line in lines]
    return {row[0]: int(row[1]) - int(row[2]) for row in rows if len(row) == 3}


def _must_agree(earlier: RunCounts, counts: RunCounts, first: Run, second: Run) -> None:
    found = list(partings(earlier, counts))
    if found:
        raise LabError(
            f"runs {first.id} and {second.id} are the same and counted differently: {found[0]}"
            + (f" (and {len(found) - 1} more places)" if len(found) > 1 else ""),
            "exactness is broken; please report it with the output of kdelta doctor",
        )


def work_of(
    name: str,
    job: Job,
    binaries: Mapping[str, bytes],
    warnings: tuple[str, ...] = (),
    *,
    memory_mib: int = 0,
    host_seconds: float = 0.0,
) -> Work:
    """A job as the store knows it: by the hash of all that it carries."""
    return Work(name, job_identity(job), job, binaries, warnings, memory_mib, host_seconds)
