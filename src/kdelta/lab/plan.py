# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is to do: a workload as jobs for guests, in a mode, with what it needs of them."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.guests.job import Job, JobFile, job_identity
from kdelta.guests.kernel_mode import CALL_CACHE, LIBRARY, direct_calls, direct_library
from kdelta.guests.kernel_tree import kernel_tree
from kdelta.guests.userland import pinned_userland, userland
from kdelta.host.command import quiet
from kdelta.host.emulator import find_compiler
from kdelta.host.files import lab_errors
from kdelta.host.gcc import Compiler
from kdelta.host.pin import source_part, userland_part
from kdelta.host.target import target
from kdelta.infer.profiles.profile import chosen_regions
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.mode_series import ARCH
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.run import CALLS, MachineOptions, Mode
from kdelta.workloads.catalog import NOTHING_MORE, LinkedIn, Workload

COMMAND_REGION = "command"
"""The region around a whole program, from exec to exit."""

COMMAND_PREFIX = "run "
"""Of what runs of programs are called in the store."""


class GuestPart(msgspec.Struct, frozen=True):
    """What one guest does. `jobs`: the usual one, then the same for longer and longer, for regions
    that are not steady in those before. `window`: the one that shows what a region leaves to other
    tasks.
    """

    name: str
    jobs: tuple[Job, ...]
    window: Job | None = None

    @property
    def windows(self) -> tuple[Job, ...]:
        """The window, if there is one."""
        return (self.window,) if self.window else ()


class RunPlan(msgspec.Struct, frozen=True):
    """What a run is to do. `binaries`: the programs whose code may run, name -> content.

    `name` and `identity` are the workload's, as the store keeps them. `job` says what all parts
    have in common; each part has a guest of its own. `warnings` go with what its runs count: what
    could not be prepared for them. Its guests have `memory_mib` at least, and a guest may take
    `host_seconds`, where the user does not say how long. Where its jobs have words for later, their
    program asks for them when it is about to execute the instruction at `asks_at`. `by` compiled
    its programs; None of a command, which has none of its own. `symbol_files`: name -> a file with
    symbols of that program. `idle`: the window of a guest that leaves nothing, at rest and
    busy; None where no part has a window. `regions`: those of a program that count; none: all.
    `record`: where the names of its files are kept.
    """

    name: str
    identity: str
    job: Job
    binaries: Mapping[str, bytes]
    warnings: tuple[str, ...] = ()
    memory_mib: int = 0
    host_seconds: float = 0.0
    parts: tuple[GuestPart, ...] = ()
    asks_at: int = 0
    by: Compiler | None = None
    symbol_files: Mapping[str, bytes] = {}
    idle: Job | None = None
    regions: tuple[str, ...] = ()
    record: Path | None = None

    def without_windows(self) -> "RunPlan":
        """Return the same without looking for what is left to other tasks: other work to the store,
        both halves of whose identity differ.
        """
        if self.idle is None:
            return self
        parts = tuple(msgspec.structs.replace(part, window=None) for part in self.parts)
        halves = self.identity[:_HALF], self.identity[_HALF:]
        key = "".join(identity({"without windows": half})[:_HALF] for half in halves)
        return msgspec.structs.replace(self, identity=key, parts=parts, idle=None)

    def counted(self, counts: RunCounts) -> RunCounts:
        """Return what a run of it counted, without the region around a program that marks its own:
        that one ends where an inner one begins, so it holds the start of the program only.
        UserError if it lacks a region that was asked for, or has one of kdelta's own name.
        """
        if wrong := self.wrong_marks(counts):
            raise UserError(wrong)  # of a run that an older kdelta stored
        inner = tuple(one for one in counts.regions if one.name != COMMAND_REGION)
        if self.regions:
            chosen_regions(merged_regions(counts), self.regions)
            inner = tuple(one for one in counts.regions if one.name in self.regions)
        if self.job.region != COMMAND_REGION or not inner:
            return counts
        return msgspec.structs.replace(counts, regions=inner)

    def wrong_marks(self, counts: RunCounts) -> str:
        """Return why a program's marks cannot be distinguished from kdelta's own, or ""."""
        named = sum(one.name == COMMAND_REGION for one in counts.regions)
        if self.job.region != COMMAND_REGION or named < 2:
            return ""
        return (
            f"{self.job.argv[0]} marks a region {COMMAND_REGION!r}, which is kdelta's own, around a"
            " whole program: give it another name in kdelta_begin()"
        )

    def seconds_on(self, machine: MachineOptions) -> float:
        """The longest that a guest of it may take here."""
        asked = machine.timeout_seconds
        usual = asked == MachineOptions().timeout_seconds
        return max(asked, self.host_seconds) if usual else asked


_HALF = 32


def same_program(one: str, other: str) -> bool:
    """Return whether works with these identities run one program, perhaps other operations of it:
    an operation that both have costs the same in each.
    """
    return one[:_HALF] == other[:_HALF]


class PlanFields(TypedDict, total=False):
    """Fields of a RunPlan that have a default."""

    memory_mib: int
    host_seconds: float
    parts: tuple[GuestPart, ...]
    asks_at: int
    by: Compiler | None
    symbol_files: Mapping[str, bytes]
    idle: Job | None
    record: Path | None


def work_of(
    name: str,
    job: Job,
    binaries: Mapping[str, bytes],
    warnings: tuple[str, ...] = (),
    **more: Unpack[PlanFields],
) -> RunPlan:
    """Return a job as the store knows it: by the hash of all that it carries. No parts: it is one.
    With parts, the first half of the hash is that of what they have in common: see `same_program`.
    """
    key, parts, idle = job_identity(job), more.get("parts", ()), more.get("idle")
    if parts:
        shared = msgspec.structs.replace(parts[0].jobs[0], later=idle.later if idle else ())
        shapes = [
            (part.name, [(*one.argv, *(one.later or ())) for one in (*part.jobs, *part.windows)])
            for part in parts
        ]
        key = job_identity(shared)[:_HALF] + identity(shapes)[:_HALF]
    if symbol_files := more.get("symbol_files"):  # functions have other names with them
        hashes = {of: hashlib.sha256(one).hexdigest() for of, one in symbol_files.items()}
        key = identity({"job": key, "symbols": hashes})
    more["parts"] = parts or (GuestPart(name, (job,)),)
    return RunPlan(name, key, job, binaries, warnings, **more)


def guest_compiler(
    arch: str,
    machine: MachineOptions,
    log: Callable[[str], None] = quiet,
    workload: Workload | None = None,
) -> Compiler:
    """What compiles programs for guests of that architecture on such a machine. If it is a pin's,
    what that workload brings into a guest is in the cache.
    """
    if machine.compile_guest:
        return Compiler(arch)
    parts = workload.pinned_parts(arch) if workload else ()
    return find_compiler(target(arch), machine.qemu, log, parts)


def in_mode(
    job: Job,
    mode: Mode,
    kernel: Kernel,
    machine: MachineOptions,
    log: Callable[[str], None] = quiet,
) -> Job:
    """The job in that mode on such a machine, with the library that makes calls direct where it
    needs one: dynamic programs load it. UserError for a kernel of an architecture without such
    modes.
    """
    if mode == "user":
        return job
    must_have_mode(mode, kernel)
    job = msgspec.structs.replace(job, mode=mode)
    if mode not in CALLS:
        return job
    by = guest_compiler(kernel.arch, machine, log)
    library = JobFile(direct_library(by, log), LIBRARY, 0o755)
    more = {"LD_PRELOAD": LIBRARY, "KDELTA_CALL": CALLS[mode], "KDELTA_CALL_CACHE": CALL_CACHE}
    return msgspec.structs.replace(job, env=(*job.env, *more.items()), files=(*job.files, library))


def library_of(job: Job) -> dict[str, bytes]:
    """The library that comes with a job in such a mode, by its name; nothing with others."""
    return {
        Path(file.guest).name: file.host.read_bytes() for file in job.files if file.guest == LIBRARY
    }


def linked_in(mode: Mode, kernel: Kernel) -> LinkedIn:
    """What a static program is linked with to call so. UserError as of `in_mode`."""
    if mode not in CALLS:
        return NOTHING_MORE
    must_have_mode(mode, kernel)
    return direct_calls()


def must_have_mode(mode: Mode, kernel: Kernel) -> None:
    """UserError if programs cannot run in that mode on a kernel of that architecture."""
    if mode != "user" and kernel.arch != ARCH:
        raise UserError(
            f"--mode {mode} on {kernel.spec}, a kernel for {kernel.arch}",
            "programs run in the kernel's mode on x86-64 only",
        )


def carried_files(
    workload: Workload, program: Path, by: Compiler, log: Callable[[str], None]
) -> list[JobFile]:
    """The files that a workload's programs need in a guest, besides its image: those of the
    distribution, a kernel's source that is compiled, and its own program, which that compiler made,
    if that is not part of the image. All are the pin's where the compiler is.
    """
    files = [JobFile(program, workload.program, 0o755)] if workload.image == "job" else []
    if workload.userland:
        if by.pin:
            part = userland_part(workload.plain_name, by.arch)
            programs = pinned_userland(workload.userland, by.pin, part, log)
        else:
            programs = userland(workload.userland, by.arch, log)
        files += programs.files
        if workload.kernel_tree:
            files += kernel_tree(
                workload.kernel_tree,
                workload.folder,
                programs,
                log,
                by=by,
                part=source_part(workload.plain_name),
            ).files
    return files


def check_needs(workload: Workload, kernel: Kernel) -> None:
    """That a kernel can run a workload, as far as its config shows: UserError with what it lacks.
    Of a kernel without a config the workload finds out itself, before it begins.
    """
    if workload.architectures and kernel.arch not in workload.architectures:
        raise UserError(
            f"the workload {workload.name} runs on {', '.join(workload.architectures)}, and "
            f"{kernel.spec} is a kernel for {kernel.arch}",
            "kdelta workloads lists the others",
        )
    if kernel.config is None:
        return
    with lab_errors("reading", Path(kernel.config)):
        config = parse_config(Path(kernel.config).read_text(errors="replace"))
    options = (f"CONFIG_{name}" for name in workload.needs)
    if lacking := [option for option in options if config.get(option) not in {"y", "m"}]:
        raise UserError(
            f"the workload {workload.name} needs {', '.join(lacking)}, which is off in "
            f"{kernel.spec}",
            f"build it with: {' '.join(f'+{option}=y' for option in lacking)}",
        )
