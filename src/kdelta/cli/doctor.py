# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta doctor`: what is there, what is missing, and what helps."""

from collections.abc import Iterator

from kdelta.cli.guard import LAB
from kdelta.cli.options import Verbose
from kdelta.cli.output import echo_commands, emit
from kdelta.host.dirs import data_dir
from kdelta.host.doctor import Check, checks
from kdelta.host.target import target
from kdelta.kernels.packages.deb import cached_kernels
from kdelta.machines.kvm import why_no_kvm
from kdelta.spec.errors import LabError
from kdelta.store.store import Store

_NAME = 17


def doctor(verbose: Verbose = False) -> int:
    """Say what is missing here.

    Prints what is there, what is missing, and the command that installs it.
    """
    echo_commands(wanted=verbose)
    healthy = True
    for check in _all_checks():
        healthy = healthy and (check.ok or not check.required)
        emit(check_text(check))
    emit("all that kdelta needs is there\n" if healthy else "kdelta cannot work yet: see above\n")
    return 0 if healthy else LAB


def check_text(check: Check) -> str:
    """A check's lines."""
    word = "ok" if check.ok else "MISSING" if check.required else "no"
    lines = f"{word:<8} {check.name:<{_NAME}} {check.detail}\n"
    return lines + (f"{'':<8} {'':<{_NAME}} -> {check.remedy}\n" if check.remedy else "")


def _all_checks() -> Iterator[Check]:
    yield from checks()
    yield _store()
    yield _kvm()


def _store() -> Check:
    folder = data_dir()
    try:
        with Store.open(folder) as store:
            store.check()
            count = len(store.runs())
    except LabError as error:
        return Check("store", False, error.message, error.hint)
    return Check("store", True, f"{count} runs in {folder}, all whole")


def _kvm() -> Check:
    later = "nothing needs it yet"
    kernels = [kernel for kernel in cached_kernels() if target(kernel.arch).is_host]
    if not kernels:
        return Check("KVM", False, f"not tried: no kernel is here yet ({later})", required=False)
    why = why_no_kvm(kernels[0].kernel())
    if why:
        return Check("KVM", False, f"{why} ({later})", required=False)
    return Check("KVM", True, f"boots {kernels[0].release}", required=False)
