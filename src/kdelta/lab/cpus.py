# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that look like a CPU."""

import msgspec

from kdelta.cpus.catalog import list_cpus
from kdelta.cpus.model import CPU
from kdelta.host.target import targets
from kdelta.kernels.model import Kernel
from kdelta.lab.request import LabRequest
from kdelta.machines.arch import arch_machine
from kdelta.replay.hierarchy import check_levels
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions


def machine_like(machine: MachineOptions, cpu: CPU) -> MachineOptions:
    """That machine with what the emulator has for this CPU, and the words that make a kernel take
    its paths. UserError if there is no machine of its architecture.
    """
    arch_machine(cpu.arch).board(cpu.qemu.cpu)
    return msgspec.structs.replace(
        machine,
        cpu=cpu.qemu.cpu or machine.cpu,
        append=f"{cpu.qemu.append} {machine.append}".strip(),
        force=cpu.qemu.force,
    )


def machine_for(machine: MachineOptions, arch: str) -> MachineOptions:
    """That machine for a kernel of the architecture: where it names no CPU, it is like the default
    one, if the architecture has one.
    """
    cpu = None if machine.cpu else default_cpu(arch)
    return machine_like(machine, cpu) if cpu else machine


def default_cpu(arch: str) -> CPU | None:
    """The CPU that guests of an architecture are like where the user names none."""
    name = arch_machine(arch).default_cpu
    return list_cpus()[name] if name else None


def default_cpus() -> tuple[CPU, ...]:
    """Those of all architectures."""
    found = map(default_cpu, targets())
    return tuple(cpu for cpu in found if cpu)


def lab_like(asked: LabRequest, cpu: CPU | None) -> LabRequest:
    """The same request for runs on a machine that looks like the CPU, if there is one."""
    if cpu is None:
        return asked
    return msgspec.structs.replace(asked, machine=machine_like(asked.machine, cpu))


def must_fit(cpu: CPU, kernel: Kernel) -> None:
    """Raise UserError for a CPU of another architecture than the kernel's."""
    must_be_for(cpu, kernel.arch)


def must_be_for(cpu: CPU, arch: str) -> None:
    """Raise UserError for a CPU of another architecture than that."""
    if cpu.arch != arch:
        raise UserError(
            f"{cpu.name} is a CPU of {cpu.arch}, and the kernel is one for {arch}",
            "kdelta cpus lists the CPUs",
        )


def must_replay_data(cpu: CPU) -> None:
    """UserError for a CPU of which the L2 cannot be replayed, known before anything is run."""
    check_levels(cpu.l1i, cpu.l1d, cpu.l2, data_line_bytes=arch_machine(cpu.arch).data_line_bytes)
