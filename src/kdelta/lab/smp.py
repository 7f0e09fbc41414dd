# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of several CPUs: for what they are there, and whether a kernel uses them."""

import re
from collections.abc import Mapping

from kdelta.host.emulator import HostQemu
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.lab.request import LabRequest
from kdelta.machines.tcg import Guest
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions
from kdelta.workloads.catalog import Workload

_ARCH = "x86_64"
_OLDEST_API = 4
"""The plugin interface of QEMU 10.0, which reports a CPU in the thread that executes it."""

_PROCESSOR = re.compile(rb"^processor\s*:", re.MULTILINE)


def must_take_turns(asked: LabRequest, arch: str, qemu: HostQemu) -> None:
    """Raise UserError where runs on several CPUs are asked for and do not repeat on that QEMU, or
    where what is to be recorded is of one CPU.
    """
    if asked.machine.cpus == 1:
        return
    if arch != _ARCH:
        raise UserError(
            f"cannot give a guest {asked.machine.cpus} CPUs: --smp is for kernels for x86-64, and "
            f"this one is for {arch}",
            "leave out --smp",
        )
    if not target(_ARCH).is_host:
        raise UserError(
            f"cannot give a guest {asked.machine.cpus} CPUs: --smp works on x86-64 hosts alone",
            "leave out --smp",
        )
    if qemu.plugin_apis[1] < _OLDEST_API:
        raise UserError(
            f"cannot give a guest {asked.machine.cpus} CPUs: QEMU {qemu.version} is too old",
            "leave out --qemu, or name QEMU 10 or later by it",
        )
    if asked.trace or asked.data_lines:
        raise UserError(
            "cannot replay a guest of several CPUs: layouts and model cycles are for one CPU",
            "leave out --smp",
        )


def must_offer_cpus(workload: Workload, machine: MachineOptions) -> None:
    """Raise UserError for a workload that needs more CPUs than a guest is to have."""
    if machine.cpus < workload.cpus:
        raise UserError(
            f"cannot run {workload.name} on {machine.cpus} CPU: it needs {workload.cpus}",
            f"add --smp {workload.cpus}",
        )


def must_have_cpus(kernel: Kernel, guest: Guest, messages: Mapping[str, bytes]) -> None:
    """Raise UserError if the kernel of a guest that sent these messages does not use its CPUs."""
    used = cpus_used(messages)
    if used is not None and guest.cpus > 1 and used != guest.cpus:
        raise UserError(
            f"cannot give {kernel.release} {guest.cpus} CPUs: it uses {used}",
            "CONFIG_SMP and CONFIG_NR_CPUS in its config, and boot parameters such as maxcpus=, "
            f"limit them; --smp {used} is possible",
        )


def cpus_used(messages: Mapping[str, bytes]) -> int | None:
    """Return how many CPUs the kernel of a guest that sent these messages uses; None if it did not
    say.
    """
    found = messages.get("cpuinfo")
    return None if found is None else len(_PROCESSOR.findall(found))
