# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta compare` is made of."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.effects import Effects, OperationEffect
from kdelta.infer.effects.gains import PathGain
from kdelta.infer.effects.packets import PacketEffect, PhaseCost
from kdelta.report import words
from kdelta.report.groups import groups_text
from kdelta.report.measured import MeasuredEffects
from kdelta.report.model import (
    Facts,
    KernelRuns,
    Mismatch,
    ReportedCPU,
    ReportedOption,
    ReportedRun,
)
from kdelta.report.names import SideNames, side_names

_CONSTANT = "empty"
"""A region with nothing in it: what each region has, and no operation."""


class MoreRuns(msgspec.Struct, frozen=True):
    """The further runs of base and other that an operation's path is judged by, since of fewer
    chance could have made its verdict. They may be of other operations, too.
    """

    operation: str
    base: tuple[ReportedRun, ...]
    other: tuple[ReportedRun, ...]


Phases = dict[str, dict[str, tuple[PhaseCost, ...]]]
"""By side ("base", "other") and region: what each phase of it costs a packet, the rest last."""


class Compared(msgspec.Struct, frozen=True):
    """Another kernel, and its effects against the base. `config`: how their configs differ; None
    where one of them is not known. `mismatches`: what kernels did otherwise than on the CPU that
    was named, or on the default one. `gains`: what paths could add that QEMU cannot offer.
    `output`: how what a program printed under both differs. `measured`: by all measures besides
    the path.
    """

    side: KernelRuns
    effects: Effects
    more: tuple[MoreRuns, ...] = ()
    packets: tuple[PacketEffect, ...] = ()
    phases: Phases = {}
    config: tuple[ReportedOption, ...] | None = None
    mismatches: tuple[Mismatch, ...] = ()
    gains: tuple[PathGain, ...] = ()
    output: str = ""
    measured: tuple[MeasuredEffects, ...] = ()


class CompareReport(msgspec.Struct, frozen=True):
    """One base and its others, under one workload on one machine.

    `machine` are facts to be shown: name, memory_mib, qemu (its version), cpu (as asked for),
    cpu_model (as the guest names it), cpu_like (the title of the CPU file that it is like since the
    user named none), force (the features of the CPU that are forced in the kernel, with spaces
    between), and whatever else there is to be known. `bytes_worked_on`: how many bytes
    an iteration works on, for the operations where that is a fixed number. `cpu`: what the machine
    was made to look like; None where it is nothing in particular.
    """

    workload: str
    machine: Facts
    base: KernelRuns
    others: tuple[Compared, ...]
    warnings: tuple[str, ...] = ()
    bytes_worked_on: dict[str, int] = {}
    cpu: ReportedCPU | None = None

    @property
    def names(self) -> SideNames:
        """Return the names of the base and of the others, in this order."""
        return side_names([self.base, *(one.side for one in self.others)])


class ComparisonReport(msgspec.Struct, frozen=True):
    """The whole of `kdelta compare`: one machine for each CPU that was named, or a single one."""

    workload: str
    machines: tuple[CompareReport, ...]


def comparison(reports: Sequence[CompareReport]) -> ComparisonReport:
    """Return the comparisons of one workload as one, of a machine each."""
    return ComparisonReport(reports[0].workload, tuple(reports))


def report_groups(report: CompareReport) -> str:
    """Return how the groups of a comparison's kernels differ; empty where they are alike."""
    title = "other {}" if len(report.others) > 1 else "other"
    others = [
        (title.format(number), one.side.controllers) for number, one in enumerate(report.others, 1)
    ]
    return groups_text([("base", report.base.controllers), *others])


def operations_of(effects: Effects) -> list[OperationEffect]:
    """Return the effects on operations."""
    found = [one for one in effects.operations if one.name != _CONSTANT]
    return found or list(effects.operations)


def in_order(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    """Return the operations as all forms list them: by verdict, then by size."""
    return sorted(by_size(operations), key=lambda one: words.ORDER.index(one.verdict.word))


def by_size(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    """Return the operations, those that changed by the largest part first; of those that are the
    same or unresolved, those whose code costs more.
    """
    return sorted(operations, key=_size, reverse=True)


def _size(operation: OperationEffect) -> tuple[bool, bool, Fraction, Fraction]:
    """By per cent; a cost that was zero before is above all."""
    if operation.costs is None:
        return False, False, Fraction(0), Fraction(0)
    part, effect = operation.costs.insns.percent, operation.costs.insns.effect
    is_known = bool(by_code(operation))
    return is_known, part is None, abs(part or Fraction(0)), abs(effect.value)
