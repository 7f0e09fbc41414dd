# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta doctor`: what is there, what is missing, and what helps."""

import collections
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import msgspec

from kdelta.cli.codes import LAB
from kdelta.cli.commands import COMMANDS, load_command
from kdelta.cli.defaults import check_defaults, defaults_file, has_defaults
from kdelta.cli.named_cpu import host_text
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Verbose
from kdelta.cpus.catalog import host_cpu
from kdelta.host.cache import GIB, disk_bytes, limit_bytes, megabytes, usage
from kdelta.host.command import echo_commands
from kdelta.host.dirs import cache_dir, data_dir
from kdelta.host.doctor import Check, checks
from kdelta.host.target import target
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.machines.kvm import why_no_kvm
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.option import without
from kdelta.spec.run import MachineOptions
from kdelta.store.check import must_be_whole
from kdelta.store.store import Store

_NAME = 17
_KINDS = 5


class DoctorOptions(msgspec.Struct, frozen=True):
    """What is examined, and how much of it is shown."""

    machine: Annotated[
        MachineOptions,
        without(
            *("memory_mib", "cpus", "cpu", "append", "timeout_seconds", "runs_as", "compile_guest")
        ),
    ] = MachineOptions()
    verbose: Verbose = False


def doctor(asked: DoctorOptions) -> int:
    """Check this host for missing dependencies.

    Prints what is there, what is missing, and the command that installs it.
    """
    echo_commands(wanted=asked.verbose)
    healthy = True
    for check in _all_checks(asked.machine.qemu):
        healthy = healthy and (check.ok or not check.required)
        emit(check_text(check))
    emit("all that kdelta needs is there\n" if healthy else "kdelta cannot work yet: see above\n")
    return 0 if healthy else LAB


def check_text(check: Check) -> str:
    """A check's lines."""
    word = "ok" if check.ok else "MISSING" if check.required else "no"
    lines = f"{word:<8} {check.name:<{_NAME}} {check.detail}\n"
    return lines + (f"{'':<8} {'':<{_NAME}} -> {check.remedy}\n" if check.remedy else "")


def _all_checks(qemu: str = "") -> Iterator[Check]:
    # A guest that hangs under KVM takes seconds, in which the other checks are made.
    with ThreadPoolExecutor(max_workers=1) as aside:
        kvm = aside.submit(_kvm, qemu)
        yield from checks(qemu)
        yield _cpu()
        yield _defaults()
        yield _store()
        yield _sizes()
        yield kvm.result()


def _defaults() -> Check:
    """What the user's file of defaults sets."""
    path = defaults_file()
    if path is None or not has_defaults():
        detail = f"none: there is no {path}" if path else "none"
        return Check("defaults", True, detail, required=False)
    try:
        lines = check_defaults({name: load_command(name) for name in COMMANDS})
    except UserError as error:
        return Check("defaults", False, error.message, error.hint)
    return Check("defaults", True, f"{path}: {', '.join(lines) or 'nothing'}", required=False)


def _cpu() -> Check:
    """What --cpu host is here."""
    try:
        detail = host_text(host_cpu())
    except UserError as error:
        return Check("CPU", False, error.message, error.hint, required=False)
    return Check("CPU", True, detail, required=False)


def _store() -> Check:
    folder = data_dir()
    try:
        with Store.open(folder) as store:
            count = len(store.runs())
        must_be_whole(folder)
    except LabError as error:
        return Check("store", False, error.message, error.hint)
    return Check("store", True, f"{count} runs in {folder}, all whole")


def _sizes() -> Check:
    """Return how much cache and store hold, the largest kinds first, and the cache's limit."""
    kinds: collections.Counter[str] = collections.Counter()
    for one in usage():
        kinds[one.kind] += one.bytes
    kinds["ccache"] = disk_bytes(cache_dir("ccache"))
    largest = ", ".join(f"{kind} {megabytes(count)}" for kind, count in kinds.most_common(_KINDS))
    detail = (
        f"cache {megabytes(kinds.total())} ({largest}); store {megabytes(disk_bytes(data_dir()))}"
    )
    try:
        limit = limit_bytes() / GIB
    except UserError as error:
        return Check("sizes", False, error.message, error.hint)
    return Check("sizes", True, f"{detail}; limit of the cache {limit:g} GiB", required=False)


def _kvm(qemu: str) -> Check:
    later = "nothing needs it yet"
    kernels = [kernel for kernel in cached_kernels() if target(kernel.arch).is_host]
    if not kernels:
        return Check("KVM", False, f"not tried: no kernel is here yet ({later})", required=False)
    why = why_no_kvm(kernels[0].kernel(), qemu)
    detail = f"{why} ({later})" if why else f"boots {kernels[0].release}"
    return Check("KVM", not why, detail, required=False)
