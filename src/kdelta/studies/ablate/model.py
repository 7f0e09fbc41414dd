# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta ablate` is made of, whatever its form.

A config is taken from A to B. Effects are what flipping costs: instructions an iteration of a
region (the measured tasks' own, lookups by address apart), or instructions a virtual second for
the rows of interrupts and other tasks.
"""

import enum

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.search_model import Proof, RegionSum
from kdelta.report.measured import MeasuredEffects
from kdelta.report.model import Facts, KernelRuns, Mismatch, ReportedCPU
from kdelta.studies.search.model import AblatedRegion, AblationBuild


class GroupOutcome(enum.StrEnum):
    """What became of an option group."""

    DEAD = "dead"
    """Ruled out: no executed code depends on it."""
    IDENTICAL = "identical"
    """Ruled out: the executed objects that it reaches came out the same when compiled with it."""
    MEASURED = "measured"
    CLEARED = "cleared"
    """A group that it belongs to has no effect."""
    UNRESOLVED = "unresolved"
    TOGETHER = "together"
    """Not an option group but several that could not be distinguished; each of them is listed as
    unresolved.
    """


class SwitchShare(msgspec.Struct, frozen=True):
    """What of an option group the kernel's command line can switch, and what that does, by region.

    whole: nothing but a default depends on the option group's options.
    """

    words: str
    whole: bool
    effects: dict[str, Estimate]


class AblatedGroup(msgspec.Struct, frozen=True):
    """An option group. `options` as "DEBUG_LIST y -> n"; `objects` are those that it reaches,
    `alive` those of them that executed code depends on (None: not looked at). `effects` by region,
    empty unless measured; `how` says by which kernels. `vmlinux_bytes`: what flipping it adds to
    the image. `measured`: by other measures, of two kernels that differ by it alone; `flipped`: the
    option groups that are flipped in both of these, none of them in A.
    """

    name: str
    options: tuple[str, ...]
    needs: tuple[str, ...]
    outcome: GroupOutcome
    why: str
    objects: int | None
    alive: int | None
    effects: dict[str, Estimate]
    how: str = ""
    vmlinux_bytes: int | None = None
    switch: SwitchShare | None = None
    measured: tuple[MeasuredEffects, ...] = ()
    flipped: tuple[str, ...] = ()


class Interaction(msgspec.Struct, frozen=True):
    """Option groups whose joint effect is not the sum of theirs: what is left over, by region."""

    option_groups: tuple[str, ...]
    effects: dict[str, Estimate]


class AblationReport(msgspec.Struct, frozen=True):
    """The whole. `names` are the two configs', for people. `cpu`: whose model cycles were judged,
    too; `mismatches`: what A or B did otherwise. `mean`: the account of the mean over regions, in
    per cent of A, where runs have it. `measured`: from A to B, by other measures.
    """

    tree: str
    names: tuple[str, str]
    ends: tuple[KernelRuns, KernelRuns]
    workloads: tuple[str, ...]
    machine: Facts
    options: int
    regions: tuple[AblatedRegion, ...]
    option_groups: tuple[AblatedGroup, ...]
    interactions: tuple[Interaction, ...]
    proof: Proof | None
    builds: tuple[AblationBuild, ...]
    strategy: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str = ""
    cpu: ReportedCPU | None = None
    mismatches: tuple[Mismatch, ...] = ()
    mean: RegionSum | None = None
    measured: tuple[MeasuredEffects, ...] = ()

    @property
    def vmlinux_bytes(self) -> tuple[int | None, int | None]:
        """The sizes of both ends' images."""
        by_label = {build.label: build.vmlinux_bytes for build in self.builds}
        return by_label.get("A"), by_label.get("B")
