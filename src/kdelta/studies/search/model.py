# SPDX-License-Identifier: GPL-2.0-or-later
"""What reports of searches share: regions on both ends, builds, and the proof."""

import msgspec

from kdelta.infer.effects.estimate import Adds, Estimate, adds, is_steady, widest


class AblatedRegion(msgspec.Struct, frozen=True):
    """A region on both ends. `lookups`: the part of the whole effect that functions have which
    search tables of addresses; it is in none of the other figures. `rate`: it is instructions a
    virtual second. `explained`: the units' effects and the interactions, added up; `remainder`:
    what of the whole they do not account for. `widest`: its cost in the kernel whose runs vary
    most, of all that were measured; None where only the ends are known.
    """

    workload: str
    name: str
    before: Estimate
    after: Estimate
    whole: Estimate
    explained: Estimate
    remainder: Estimate
    lookups: Estimate
    rate: bool = False
    widest: Estimate | None = None

    @property
    def adds(self) -> Adds:
        """Whether the parts add up to the whole."""
        return adds(self.remainder, self.before)

    @property
    def varies(self) -> Estimate:
        """The cost in the kernel whose runs vary most."""
        return widest([one for one in (self.widest, self.before, self.after) if one is not None])

    @property
    def steady(self) -> bool:
        """Whether runs of each kernel vary by so little that the region is in means."""
        return is_steady(self.varies)


class AblationBuild(msgspec.Struct, frozen=True):
    """A kernel that was built, or taken from the cache (`seconds` None)."""

    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    vmlinux_bytes: int | None


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


class BisectBuild(msgspec.Struct, frozen=True):
    """A commit's kernel, built or taken from the cache (`seconds` None)."""

    commit: str
    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    subject: str = ""
