# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line asks of a study, and whom the study tells how far it is."""

from typing import Protocol

import msgspec

from kdelta.cpus.model import Cache
from kdelta.spec.run import MachineOptions


class LabRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are made, whatever the study.

    perturbations: runs a kernel. jobs: guests at a time. again: run what the store has, and see
    that it counts the same. snapshots: start from a snapshot of the booted guest, taken once.
    trace: keep the sequence of executed blocks, too; data_lines: and of accesses to data.
    simulate: count the misses of that instruction cache while the guest runs.
    """

    machine: MachineOptions = MachineOptions()
    perturbations: int = 3
    jobs: int = 2
    again: bool = False
    snapshots: bool = True
    trace: bool = False
    data_lines: bool = False
    simulate: Cache | None = None


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Kernel specs as text: a base and others. No operations means all of the workload."""

    base: str
    others: tuple[str, ...]
    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    lab: LabRequest = LabRequest()


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command of the host for a kernel; `files` are carried along, each as HOST[:GUEST]."""

    kernel: str
    command: tuple[str, ...]
    files: tuple[str, ...] = ()
    seconds: int = 600
    lab: LabRequest = LabRequest(perturbations=1)


class Progress(Protocol):
    """Whom a study tells how far it is. A step is a short name, unique in the study."""

    def say(self, line: str) -> None:
        """Something worth a line of its own."""

    def begin(self, step: str, seconds: float | None = None) -> None:
        """A step starts; `seconds` is how long it will take, where that is known."""

    def doing(self, step: str, what: str) -> None:
        """What a step is at."""

    def end(self, step: str, result: str) -> None:
        """A step has ended, and how."""


class Silent:
    """Tells nobody."""

    def say(self, line: str) -> None:
        """Nothing."""

    def begin(self, step: str, seconds: float | None = None) -> None:
        """Nothing."""

    def doing(self, step: str, what: str) -> None:
        """Nothing."""

    def end(self, step: str, result: str) -> None:
        """Nothing."""
