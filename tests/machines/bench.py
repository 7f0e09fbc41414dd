# SPDX-License-Identifier: GPL-2.0-or-later
"""A real kernel on the real machine, for tests: obtained and booted once, run often."""

import asyncio
import atexit
import contextlib
import functools
import os
import tempfile
from pathlib import Path

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.counts.reader import Sources, read_counts
from kdelta.cpus import load_cpu
from kdelta.guests.image import base_image
from kdelta.guests.job import Job, job_archive
from kdelta.host.emulator import find_compiler
from kdelta.host.gcc import Compiler
from kdelta.host.lock import work_folder
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.machines.device_tree import device_tree
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_forcing, obtain_snapshot
from kdelta.machines.tcg import NOTHING_MORE, Guest, Recording, Setting, Snapshot, run_guest
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import perturbation
from kdelta.workloads.catalog import build_workload, find_workload

OLD = "deb:linux-image-cloud-amd64@bookworm"
NEW = "deb:linux-image-6.12-cloud-amd64@bookworm"
ARM = "deb:linux-image-armmp:armhf"
ARM64 = "deb:linux-image-cloud-arm64:arm64@bookworm"
SECONDS = 1800.0
QEMU = "KDELTA_TEST_QEMU"
"""The variable that names another QEMU than the pinned one, as --qemu does."""


def _quiet(_: str) -> None:
    pass


@functools.cache
def kernel(spec: str = OLD) -> Kernel:
    """A Debian cloud kernel from the mirror or the cache."""
    found = obtain(parse_kernel_spec(spec), _quiet)
    assert isinstance(found, Kernel)
    return found


def compiler(arch: str) -> Compiler:
    return find_compiler(target(arch), os.environ.get(QEMU, ""))


def guest_program(arch: str = "x86_64") -> Path:
    """The program of `syscalls` that guests of that architecture have."""
    return build_workload(find_workload("syscalls"), by=compiler(arch))


def guest(
    spec: str = OLD,
    append: str = "",
    memory_mib: int = 1024,
    initrd: Path | None = None,
    cpu: str = "",
    *,
    cpus: int = 1,
) -> Guest:
    """A guest of that kernel with the base image, or with another initramfs."""
    found = kernel(spec)
    image = base_image(compiler(found.arch), cpus=cpus)
    return Guest(
        kernel_identity=found.identity,
        kernel_image=found.image,
        arch=found.arch,
        initrd=str(initrd or image.path),
        initrd_identity=f"test {initrd}" if initrd else image.identity,
        stop_address=image.stop_address,
        memory_mib=memory_mib,
        cpu=cpu,
        cpus=cpus,
        append=append,
        device_tree=device_tree(found, cpu),
        qemu=os.environ.get(QEMU, ""),
    )


def made_as(name: str, spec: str) -> Guest:
    """A guest of that kernel as that CPU, with how its features are forced."""
    qemu = load_cpu(name).qemu
    bare = guest(spec, append=qemu.append, cpu=qemu.cpu)
    if not qemu.force:
        return bare
    found = asyncio.run(
        obtain_forcing(msgspec.structs.replace(bare, force=qemu.force), new_setting())
    )
    assert isinstance(found, Guest)
    assert found.forcing is not None
    return found


def new_setting(seconds: float = SECONDS) -> Setting:
    """A fresh folder below the cache, and the time that a run may take."""
    return Setting(Path(tempfile.mkdtemp(dir=process_folder())), seconds)


@functools.cache
def process_folder() -> Path:
    """Where this process's runs leave their files until it ends. If it is killed, the next kdelta
    removes them.
    """
    held = contextlib.ExitStack()
    atexit.register(held.close)
    return held.enter_context(work_folder())


def syscalls_job(*words: str, index: int = 0, seconds: int = 120) -> Job:
    """The workload `syscalls` with these words."""
    return Job(
        argv=("/workloads/syscalls", *words), seconds=seconds, perturbation=perturbation(index)
    )


def run_job(
    job: Job,
    where: Guest | None = None,
    *,
    power_on: bool = False,
    seconds: float = SECONDS,
    recording: Recording = NOTHING_MORE,
    booted: Guest | None = None,
) -> GuestOutcome:
    """Run it from the snapshot of the guest, or of the one that was `booted`; or from power-on."""
    where = where or guest()

    async def go() -> GuestOutcome:
        snapshot: Snapshot | None = None
        if not power_on and where.board.snapshots:
            found = await obtain_snapshot(booted or where, new_setting(seconds))
            if isinstance(found, GuestOutcome):
                return found
            snapshot = found
        setting = msgspec.structs.replace(new_setting(seconds), recording=recording)
        return await run_guest(where, job_archive(job), setting, snapshot)

    return asyncio.run(go())


def clock_ticks(outcome: GuestOutcome) -> dict[str, int]:
    """By region how far the guest's clock went, from the workload's own reading of it."""
    rows = (
        line.split() for line in outcome.messages.get("region-clock", b"").decode().splitlines()
    )
    return {name: int(ticks) - int(overhead) for name, ticks, overhead in rows}


def counts_of(
    outcome: GuestOutcome, binaries: dict[str, bytes] | None = None, arch: str = "x86_64"
) -> RunCounts:
    """The counts of a run of `syscalls` (or of programs that are given) that went well."""
    assert outcome.status == "ok", (outcome.status, outcome.detail, outcome.console[-2000:])
    assert outcome.counts
    assert outcome.symbols
    program = guest_program(arch).read_bytes()
    sources = Sources(
        outcome.symbols,
        outcome.messages.get("modules", b""),
        binaries or {"syscalls": program},
        outcome.messages.get("vdso", b""),
    )
    return read_counts(outcome.counts, sources, clock_ticks(outcome))


def regions_of(
    *words: str, where: Guest | None = None, power_on: bool = False
) -> dict[str, RegionCounts]:
    """The regions of one run of `syscalls --clock` with these operations, by name."""
    where = where or guest()
    outcome = run_job(syscalls_job("--clock", *words), where, power_on=power_on)
    return merged_regions(counts_of(outcome, arch=where.arch))
