# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report on two programs under one kernel is made of, whatever its form."""

import shlex
from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.infer.effects.effects import OperationEffect
from kdelta.infer.effects.gate import Decision, Judged
from kdelta.infer.profiles.system_calls import KernelCostChange
from kdelta.measures.model import MeasuredEffects
from kdelta.report.model import Facts, KernelRuns


class ProgramSide(msgspec.Struct, frozen=True):
    """A program with its arguments, the kernel with its runs, and the most memory that one of its
    processes had resident, in KiB; None where the guest did not report it.
    """

    command: tuple[str, ...]
    side: KernelRuns
    peak_kib: int | None = None

    @property
    def line(self) -> str:
        """The command as for a shell."""
        return shlex.join(self.command)


class OutputChange(msgspec.Struct, frozen=True):
    """The first line in which the output of two programs differs; empty past the end of one."""

    stream: str
    line: int
    old: str
    new: str


class AgainstRegion(msgspec.Struct, frozen=True):
    """A region that either program has: the effect, where base is the old program and other the new
    one; and the kernel's work by system call, of the runs without perturbation.
    """

    effect: OperationEffect
    parts: tuple[KernelCostChange, ...] = ()


class AgainstReport(msgspec.Struct, frozen=True):
    """Two programs under one kernel. `margin`: by which part the new one may execute more and is
    not slower. `output`: how what they print differs.
    `times`: by the clock of this host, if they were timed.
    """

    machine: Facts
    old: ProgramSide
    new: ProgramSide
    margin: Fraction
    decision: Decision
    judged: tuple[Judged, ...]
    regions: tuple[AgainstRegion, ...]
    output: tuple[OutputChange, ...] = ()
    warnings: tuple[str, ...] = ()
    times: MeasuredEffects | None = None

    @property
    def names(self) -> tuple[str, str]:
        """Return short names of both that differ."""
        words = self.old.command[0], self.new.command[0]
        names = Path(words[0]).name, Path(words[1]).name
        if names[0] != names[1]:
            return names
        return words if words[0] != words[1] else (f"old {names[0]}", f"new {names[1]}")
