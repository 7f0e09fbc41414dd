# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line asks of any study: how runs are made, and of what program."""

import msgspec

from kdelta.cpus.model import Cache
from kdelta.machines.tcg import CallsMode, Recording
from kdelta.spec.run import MachineOptions, Mode


class LabRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are made, whatever the study.

    perturbations: runs a kernel. jobs: guests at a time. again: run what the store has, and see
    that it counts the same. snapshots: start from a snapshot of the booted guest, taken once.
    trace: keep the sequence of executed blocks, too; data_lines: and of accesses to data;
    trace_limit: see Recording. simulate: count the misses of that instruction cache while the guest
    runs. calls: follow calls, for profiles. mode: in which programs run and call.
    """

    machine: MachineOptions = MachineOptions()
    perturbations: int = 4
    jobs: int = 2
    again: bool = False
    snapshots: bool = True
    trace: bool = False
    data_lines: bool = False
    trace_limit: int = Recording().trace_limit
    simulate: Cache | None = None
    calls: CallsMode = "off"
    mode: Mode = "user"


USUAL_LAB = LabRequest()


DEFAULT_WORKLOAD = "syscalls"


class Program(msgspec.Struct, frozen=True):
    """A program of the host, in place of a workload.

    command  its words, as for a shell
    files    what is carried along, each as HOST[:GUEST]
    seconds  the longest it may run, in the guest's own time
    find     whether files of the host that it asks for are carried along, too
    names    those that it asked for (guests/host_files.py); None before they were looked for
    """

    command: tuple[str, ...]
    files: tuple[str, ...] = ()
    seconds: int = 600
    find: bool = True
    names: tuple[str, ...] | None = None
