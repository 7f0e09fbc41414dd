# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report on two programs under one kernel is made of, whatever its form."""

import itertools
import shlex
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.infer.effects.effects import OperationEffect
from kdelta.infer.effects.gate import Decision, Judged
from kdelta.infer.profiles.system_calls import KernelCostChange
from kdelta.report.measured import MeasuredEffects
from kdelta.report.model import Facts, KernelRuns

_NAME_CHARACTERS = 40
"""Of words that a program is named by, besides its own."""


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
        return names_of(self.old.command, self.new.command)


def names_of(old: Sequence[str], new: Sequence[str]) -> tuple[str, str]:
    """Return short names of two commands by what differs in them: the programs, or else the words
    from the first to the last that is another one.
    """
    names = Path(old[0]).name, Path(new[0]).name
    if names[0] != names[1]:
        return names
    if old[0] != new[0]:
        return old[0], new[0]
    first = _alike(old, new)
    last = _alike(old[first:][::-1], new[first:][::-1])
    texts = [shlex.join(one[first : len(one) - last]) for one in (old, new)]
    if not any(texts):
        return f"old {names[0]}", f"new {names[1]}"
    return (
        f"{names[0]} {_shortened(texts[0])}".strip(),
        f"{names[1]} {_shortened(texts[1])}".strip(),
    )


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _shortened(text: str) -> str:
    return text if len(text) <= _NAME_CHARACTERS else f"{text[:_NAME_CHARACTERS]}..."
