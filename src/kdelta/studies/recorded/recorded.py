# SPDX-License-Identifier: GPL-2.0-or-later
"""A stored run with all that was recorded of it; what was not is recorded by making it again.

The same run can be made again as long as all that decides its counts is as it was: the kernel, the
workload with its programs, the machine, and kdelta's own plugin and agent.
"""

import contextlib
import functools
import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kdelta.counts.model import KERNEL, RegionCounts, RunCounts, is_kernel, merged_regions
from kdelta.counts.profile import Profile
from kdelta.counts.source_lines import DebugFile, SourceLines, has_debug_info, read_source_lines
from kdelta.counts.symbols import Symbol
from kdelta.guests.modules import modules_for
from kdelta.host.files import lab_errors
from kdelta.host.lock import work_folder
from kdelta.infer.profiles.source import Text, no_text
from kdelta.kernels.kbuild.built import built_kernels, load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel, booted_identity
from kdelta.kernels.obtain import booted_as, obtain
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.kernels.packages.inspect import banner_of
from kdelta.kernels.sources.source import Source, source_file
from kdelta.lab.attachments import has_recorded, symbols_of
from kdelta.lab.lab import PROFILES, Lab, RunPlan, profiles_of
from kdelta.lab.plan import COMMAND_PREFIX, COMMAND_REGION
from kdelta.lab.request import LabRequest
from kdelta.lab.run_facts import machine_of, mode_of
from kdelta.lab.work import workload_work
from kdelta.machines.tcg import CallsMode, Recording, TraceMode
from kdelta.measures.cycles.placement import vmlinux_of
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.kernel import ImageSpec, parameters_of, parse_kernel_spec, without_parameters
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.workloads.catalog import find_workload

_MEMORY_MIB = MachineOptions().memory_mib


def own_regions(known: Mapping[str, RegionCounts]) -> dict[str, RegionCounts]:
    """Those that are shown unasked: around a command that marks its own regions there is one with
    what it did to start.
    """
    own = {name: region for name, region in known.items() if name != COMMAND_REGION}
    return own or dict(known)


def run_counts(run: Run, store: Store) -> RunCounts:
    """What a run counted; UserError for one that did not go well, LabError when it is gone."""
    if run.status is not RunStatus.OK:
        reason = f": {run.detail}" if run.detail else ""
        raise UserError(
            f"run {run.id} counted nothing, it ended with {run.word}{reason}",
            f"kdelta show {run.id} has all that is known of it",
        )
    counts = store.counts(run)
    if not counts.regions:
        raise UserError(
            f"run {run.id} has no region: its workload marked none",
            "kdelta.h says how a program marks its regions",
        )
    return counts


class Recorded(msgspec.Struct, frozen=True, eq=False):
    """A run with its profiles, one a region. kept: the same run, which has what was recorded.
    symbols: of its kernel and modules. kernel, work: as far as they are at hand, and are those of
    the run.
    """

    run: Run
    kept: Run
    counts: RunCounts
    profiles: tuple[Profile, ...]
    symbols: tuple[Symbol, ...]
    kernel: Kernel | None
    work: RunPlan | None = None


async def recorded_run(run: Run, lab: Lab) -> Recorded:
    """That run with its profiles, made again if they are not there, or its traces if the lab's
    request asks for them.

    UserError for a run that did not go well, and for one that cannot be made again since something
    differs: the message says what, and the hint which command makes a new one.
    """
    counts = run_counts(run, lab.store)
    if (kept := which_recorded(run, lab)) is not None:
        return _read(run, kept, lab.store, kernel_of(run, lab.progress.log), None)
    kernel, work, again = _remaking(run, counts, lab)
    done = await again.one(kernel, work, run.perturbation)
    if done.counts is None:
        raise UserError(
            f"run {run.id} went well, and now it ended with {done.run.word}: {done.run.detail}",
            f"kdelta show {done.run.id} has all that is known of it",
        )
    return _read(run, done.run, lab.store, kernel, work)


def _read(
    run: Run, kept: Run, store: Store, kernel: Kernel | None, work: RunPlan | None
) -> Recorded:
    """That run with what the same run has kept."""
    symbols = tuple(symbols_of(store, kept))
    counts = run_counts(run, store)
    return Recorded(run, kept, counts, profiles_of(store, kept), symbols, kernel, work)


def which_recorded(run: Run, lab: Lab) -> Run | None:
    """That run, or the same one made later, if it has all that is asked for, and still has it. If
    none has the calls of user code, one that has the kernel's will do: for what runs for long that
    is all that is recorded.
    """
    every: tuple[CallsMode, ...] = ("all", "kernel")
    store, asked = lab.store, lab.request
    same = [one for one in (run, store.find_run(run.key)) if one is not None]
    trace: TraceMode = "data" if asked.data_lines else "on" if asked.trace else "off"
    for calls, one in itertools.product(every, same):
        wanted = Recording(calls=calls, trace=trace)
        with contextlib.suppress(LabError):  # a blob that is gone or damaged: it is made again
            if has_recorded(store, one, wanted) and store.get(one.attachments[PROFILES]):
                return one
    return None


def work_of_run(run: Run, counts: RunCounts, kernel: Kernel, log: Callable[[str], None]) -> RunPlan:
    """What a run did; UserError if that cannot be had any more, or is not what it was."""
    if run.workload.startswith(COMMAND_PREFIX):
        raise _cannot(run, "of a command the store keeps the name alone, and its files may differ")
    try:
        workload = find_workload(run.workload)
        known = {operation.name for operation in workload.operations}
        # Which operations were asked for is not kept, and the regions show it.
        regions = tuple(name for name in merged_regions(counts) if name in known)
        asked = LabRequest(machine=machine_of(run), mode=mode_of(run))
        for names in ((), regions):
            work = workload_work(workload, names, kernel, log, asked)
            if work.identity == run.workload_identity:
                return work
    except KdeltaError as error:
        raise _cannot(run, error.message) from error
    raise _cannot(run, f"the workload {run.workload} is another one today")


def _remaking(run: Run, counts: RunCounts, lab: Lab) -> tuple[Kernel, RunPlan, Lab]:
    """What makes that run again, and who. UserError with what differs."""
    today = lab.request.machine
    machine = msgspec.structs.replace(
        machine_of(run), qemu=today.qemu, timeout_seconds=today.timeout_seconds
    )
    lab = lab.with_request(
        msgspec.structs.replace(lab.request, machine=machine, rerun=False, mode=mode_of(run))
    )
    kernel = _kernel(run, lab)
    work = work_of_run(run, counts, kernel, lab.progress.log)
    qemu = str(lab.guest(kernel).snapshot_facts()["qemu"])
    if qemu != run.machine.get("qemu"):
        raise _cannot(run, f"its QEMU was {run.machine.get('qemu')}, and today's is {qemu}")
    if lab.key(kernel, work, run.perturbation) != run.key:
        raise _cannot(run, "kdelta's own plugin, agent or machine has changed since it was made")
    return kernel, work, lab


def _kernel(run: Run, lab: Lab) -> Kernel:
    if found := kernel_of(run, lab.progress.log):
        return found
    try:
        kernel = lab.kernel(run.kernel_spec)
    except KdeltaError as error:
        raise _cannot(run, f"its kernel is not to be had: {error.message}") from error
    if isinstance(kernel, NoKernel):
        raise _cannot(run, f"its kernel is not to be had: {kernel.text}")
    if kernel.identity != run.kernel_identity:
        raise _cannot(run, f"{run.kernel_spec} is another kernel today")
    return kernel


def _cannot(run: Run, why: str) -> UserError:
    is_command = run.workload.startswith(COMMAND_PREFIX)
    how = "-- COMMAND" if is_command else f"-w {run.workload}"
    facts: Mapping[str, object] = run.machine
    append = f" --append {shlex.quote(str(facts['append']))}" if facts.get("append") else ""
    memory = facts.get("memory_mib", _MEMORY_MIB)
    if memory != _MEMORY_MIB:
        append += f" --memory {memory}"
    if "cpus" in facts:
        append += f" --smp {facts['cpus']}"
    if "as" in facts:
        append += f" --as {facts['as']}"
    if mode_of(run) != "user":
        append += f" --mode {mode_of(run)}"
    return UserError(
        f"run {run.id} kept plain counts, and it cannot be made again with more: {why}",
        f"a new one: kdelta profile {run.kernel_spec} {how}{append}",
    )


def kernel_of(run: Run, log: Callable[[str], None]) -> Kernel | None:
    """The kernel of a run, if it is still there as it was: nothing is fetched or built."""
    try:
        spec = parse_kernel_spec(run.kernel_spec)
    except KdeltaError:  # today's kdelta does not read it any more
        return None
    parameters, wanted = parameters_of(spec), run.kernel_identity
    plain = without_parameters(spec)
    for one in built_kernels():
        if booted_identity(one.identity, parameters) == wanted and (built := load_built(one.key)):
            return booted_as(built.kernel(str(plain)), spec)
    for cached in cached_kernels():
        if booted_identity(cached.identity, parameters) == wanted:
            return booted_as(cached.kernel(), spec)
    try:
        found = obtain(spec, log) if isinstance(spec, ImageSpec) else None
    except KdeltaError:
        return None
    return found if isinstance(found, Kernel) and found.identity == wanted else None


def read_lines(
    wanted: Mapping[str, set[int]],
    kernel: Kernel,
    work: RunPlan | None,
    symbols: Sequence[tuple[int, str, str, str]],
) -> SourceLines:
    """The source lines of addresses by origin, as far as debug info is at hand: of the kernel,
    modules and programs.
    """
    with _debug_files(list(wanted), kernel, work, symbols) as files:
        return read_source_lines(wanted, files, kernel.arch)


@contextmanager
def _debug_files(
    origins: Sequence[str],
    kernel: Kernel,
    work: RunPlan | None,
    symbols: Sequence[tuple[int, str, str, str]],
) -> Iterator[dict[str, DebugFile]]:
    """Where the debug info of each origin may be."""
    found: dict[str, DebugFile] = {}
    roots = _roots(kernel)
    with work_folder() as folder:
        for index, origin in enumerate(origins):
            if origin == KERNEL:
                path = _vmlinux(kernel)
                if path is not None:
                    found[origin] = DebugFile(path, roots)
            elif is_kernel(origin):
                path = _module(origin.strip("[]"), kernel, work)
                names = {name: at for at, _, name, of in symbols if of == origin}
                if path is not None and names:
                    found[origin] = DebugFile(path, roots, names)
            elif work is not None and origin in work.binaries:
                path = folder / str(index)
                with lab_errors("writing", path):
                    path.write_bytes(work.binaries[origin])
                found[origin] = DebugFile(path)
        yield found


def _vmlinux(kernel: Kernel) -> Path | None:
    """The vmlinux of a kernel: kept when it was built, the image itself, or in the build tree that
    the image is in, if that is of the same build.
    """
    if (kept := vmlinux_of(kernel)) is not None:
        return kept
    image = Path(kernel.image)
    if kernel.image_format == "vmlinux":
        return image
    for folder in image.parents[:4]:
        path = folder / "vmlinux"
        try:
            if path.is_file() and has_debug_info(path) and banner_of(path)[1] == kernel.banner:
                return path
        except KdeltaError:
            continue
    return None


def _module(name: str, kernel: Kernel, work: RunPlan | None) -> Path | None:
    """A module's file: one that came with the workload, or the kernel's own."""
    carried = (*work.job.modules, *work.job.optional_modules) if work else ()
    for file in carried:
        if Path(file.guest).stem.replace("-", "_") == name:
            return file.host
    try:
        return next(
            file.host
            for file in modules_for([name], kernel)
            if Path(file.guest).stem.replace("-", "_") == name
        )
    except (KdeltaError, StopIteration):
        return None


def _roots(kernel: Kernel) -> tuple[str, ...]:
    """The source tree that a kernel was made from, and where its build made further files."""
    built = load_built(kernel.built) if kernel.built else None
    if built is None:
        return ()
    folder = Path(built.folder)
    return (str(folder / "src"), *(str(out) for out in sorted(folder.glob("out-*"))))


def texts_of(kernel: Kernel | None) -> Text:
    """The source of a kernel that was built here, file by file; of others nothing is at hand."""
    built = load_built(kernel.built) if kernel and kernel.built else None
    if built is None:
        return no_text
    source = Source(Path(built.folder), built.tree, built.source)

    @functools.cache
    def read(file: str) -> Sequence[str] | None:
        try:
            text = None if file.startswith(("/", "..")) else source_file(source, file)
        except KdeltaError:
            return None
        return None if text is None else text.splitlines()

    def text(origin: str, file: str) -> Sequence[str] | None:
        return read(file) if is_kernel(origin) else None

    return text
