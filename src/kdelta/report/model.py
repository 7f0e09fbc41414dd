# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report is made of, whatever its form; studies fill it."""

from collections.abc import Iterable

import msgspec

from kdelta.spec.note import SpecNote
from kdelta.spec.run import RunStatus
from kdelta.store import model as store_model
from kdelta.store.model import Run, Study

Facts = store_model.Facts

Controllers = tuple[str, ...] | None
"""The controllers of the control group that a kernel's programs ran in; None where that is not
known.
"""


class ReportedRun(msgspec.Struct, frozen=True):
    """A run, whether the store answered for it, and for a failed one how its console ended."""

    run: Run
    from_store: bool = False
    console_tail: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it has counts."""
        return self.run.status is RunStatus.OK


class KernelRuns(msgspec.Struct, frozen=True):
    """One kernel of a comparison and its runs. `failure` says why there is no kernel at all.
    `controllers`: of the group that its programs ran in. `notes`: what came of the spec's changes
    otherwise than may be expected.
    """

    spec: str
    identity: str
    release: str
    runs: tuple[ReportedRun, ...]
    failure: str = ""
    controllers: Controllers = None
    notes: tuple[SpecNote, ...] = ()

    @property
    def failed(self) -> tuple[ReportedRun, ...]:
        """The runs that have no counts."""
        return tuple(run for run in self.runs if not run.ok)


class ReportedCPU(msgspec.Struct, frozen=True):
    """The CPU whose prices model cycles have. `kinds` are the misses that have a price,
    `without_measured_cost` those of them whose price was not measured. `clock_mhz`: at which it
    runs, where its file says so.
    """

    name: str
    title: str
    kinds: tuple[str, ...] = ()
    without_measured_cost: tuple[str, ...] = ()
    clock_mhz: float | None = None


class Mismatch(msgspec.Struct, frozen=True):
    """What kernels ("base", "other") did otherwise than on the CPU: the name of a path, what they
    did in words, and the regions whose work depends on it.
    """

    name: str
    text: str
    kernels: tuple[str, ...]
    regions: tuple[str, ...]


class ReportedOption(msgspec.Struct, frozen=True, array_like=True):
    """An option that has another value in each of two kernels; "n" where it is not set."""

    option: str
    base: str
    other: str


class RunList(msgspec.Struct, frozen=True):
    """The runs that `kdelta runs` lists."""

    runs: tuple[ReportedRun, ...]


def run_list(runs: Iterable[Run]) -> RunList:
    """Return the list of runs that the store has."""
    return RunList(tuple(ReportedRun(run, from_store=True) for run in runs))


class StudyList(msgspec.Struct, frozen=True):
    """The studies that `kdelta report --list` lists."""

    studies: tuple[Study, ...]
