# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta bisect` is made of, whatever its form.

Effects are what a commit costs: instructions an iteration of a region (the measured tasks' own,
lookups by address apart), or a virtual second for the rows of interrupts and other tasks, or model
cycles an iteration where a CPU was named.
"""

import msgspec

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import Adds, adds, is_steady, widest
from kdelta.report.model import Facts, Side


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


class BisectedRegion(msgspec.Struct, frozen=True):
    """A region on both ends. `rate`: it is instructions a virtual second. `explained`: the effects
    of what was found, added up; `remainder`: what of the whole they do not account for. `unit`: of
    its figures. `widest`: its cost in the kernel whose runs vary most, of all that were measured;
    None where only the ends are known.
    """

    workload: str
    name: str
    good: Estimate
    bad: Estimate
    whole: Estimate
    explained: Estimate
    remainder: Estimate
    rate: bool = False
    unit: str = "instructions"
    widest: Estimate | None = None

    @property
    def adds(self) -> Adds:
        """Whether what was found adds up to the whole."""
        return adds(self.remainder, self.good)

    @property
    def varies(self) -> Estimate:
        """The cost in the kernel whose runs vary most."""
        return widest([one for one in (self.widest, self.good, self.bad) if one is not None])

    @property
    def steady(self) -> bool:
        """Whether runs of each kernel agree to 1 %."""
        return is_steady(self.varies)


class FoundCommit(msgspec.Struct, frozen=True):
    """A commit that has an effect, by region, and by region and function. `confirmed`: against its
    own parent; else `how` says against what. `moved`: only between functions.
    """

    commit: BisectedCommit
    effects: dict[str, Estimate]
    functions: dict[str, dict[str, Estimate]]
    confirmed: bool
    moved: bool
    how: str


class FoundGroup(msgspec.Struct, frozen=True):
    """Commits that have an effect together and were not told apart; `why` says why not."""

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


class BisectBuild(msgspec.Struct, frozen=True):
    """A commit's kernel, built or taken from the cache (`seconds` None)."""

    commit: str
    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    subject: str = ""


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
    ends: tuple[Side, Side]
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
