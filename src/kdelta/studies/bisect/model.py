# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta bisect` is made of, whatever its form.

Effects are what a commit costs: instructions an iteration of a region (the measured tasks' own,
lookups by address apart), or a virtual second for the rows of interrupts and other tasks, or model
cycles an iteration where a CPU was named.
"""

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.report.measured import MeasuredEffects
from kdelta.report.model import Facts, KernelRuns
from kdelta.studies.search.model import BisectBuild, BisectedRegion


class BisectedCommit(msgspec.Struct, frozen=True):
    """A commit as people know it. `name`: its whole hash."""

    name: str
    subject: str
    author: str
    date: str

    @property
    def short(self) -> str:
        """The hash as the kernel's mails have it."""
        return self.name[:12]

    @property
    def cited(self) -> str:
        """As the kernel's documentation has a commit cited (submitting-patches.rst)."""
        return f'{self.short} ("{self.subject}")'


class FoundCommit(msgspec.Struct, frozen=True):
    """A commit that has an effect, by region, and by region and function. `confirmed`: against its
    own parent; else `how` says against what. `moved`: only between functions. `measured`: by
    further measures, between the two kernels that show the effect.
    """

    commit: BisectedCommit
    effects: dict[str, Estimate]
    functions: dict[str, dict[str, Estimate]]
    confirmed: bool
    moved: bool
    how: str
    measured: tuple[MeasuredEffects, ...] = ()


class FoundGroup(msgspec.Struct, frozen=True):
    """Commits that have an effect together and were not distinguished; `why` says why not."""

    commits: tuple[BisectedCommit, ...]
    effects: dict[str, Estimate]
    why: str


class FoundPlacement(msgspec.Struct, frozen=True):
    """Two measured commits whose paths differ though they hold nothing different that was executed:
    where the linker put the code did it. `commits`: how many candidates are between them.
    """

    below: BisectedCommit
    above: BisectedCommit
    commits: int
    effects: dict[str, Estimate]


class RuledOutCommit(msgspec.Struct, frozen=True):
    """A commit that no executed code depends on, and why that is known."""

    commit: BisectedCommit
    why: str


class BisectReport(msgspec.Struct, frozen=True):
    """The whole. `names`: the ends as they were asked for; `commits`: how many are between them,
    `candidates`: how many of those were searched. `asked`: the regions on which effects were
    searched, none for all; `first`: only the largest was. `logs`: for each commit that was found
    what git's own log would be.
    """

    repository: str
    names: tuple[str, str]
    good: BisectedCommit
    bad: BisectedCommit
    ends: tuple[KernelRuns, KernelRuns]
    workloads: tuple[str, ...]
    machine: Facts
    commits: int
    candidates: int = 0
    regions: tuple[BisectedRegion, ...] = ()
    found: tuple[FoundCommit, ...] = ()
    groups: tuple[FoundGroup, ...] = ()
    placement: tuple[FoundPlacement, ...] = ()
    ruled_out: tuple[RuledOutCommit, ...] = ()
    builds: tuple[BisectBuild, ...] = ()
    logs: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str = ""
    asked: tuple[str, ...] = ()
    first: bool = False
