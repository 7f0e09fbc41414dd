# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta crossing` is made of, whatever its form."""

import msgspec

from kdelta.infer.cycles.crossing import ArmName, Crossing
from kdelta.report.model import Facts, ReportedCPU, Side, Unlike

ARM_NAMES: dict[ArmName, str] = {
    "stock": "stock",
    "mitigations-off": "mitigations=off",
    "kernel": "kernel mode",
    "kernel-direct": "direct call",
    "kernel-skip": "no entry work",
}
"""What an arm is called in a table."""

ARM_TEXTS: dict[ArmName, str] = {
    "stock": "the kernel as it is, programs in user mode",
    "mitigations-off": "the same kernel, with mitigations=off",
    "kernel": (
        "the kernel with kernel mode, programs in ring 0, by the same instruction; "
        "mitigations=off, since what runs in ring 0 makes them meaningless"
    ),
    "kernel-direct": "likewise, calls are jumps to the kernel's own entry",
    "kernel-skip": "likewise, to an entry without what only a change of privilege needs",
}

NOT_AFFECTED = "Not affected"
"""What the kernel says of a vulnerability that the CPU has not."""


class CrossingArm(msgspec.Struct, frozen=True):
    """An arm: its kernel with its runs, and what that kernel said of the CPU's vulnerabilities:
    file -> words, empty without a run that went well.
    """

    name: ArmName
    side: Side
    chose: dict[str, str] = {}


class CrossingReport(msgspec.Struct, frozen=True):
    """The arms under one workload on one machine, and what was found. `cpu`: whose prices model
    cycles have, None without. `notes`: what is to be known of the figures.
    """

    workload: str
    machine: Facts
    arms: tuple[CrossingArm, ...]
    found: Crossing
    cpu: ReportedCPU | None = None
    unlike: tuple[Unlike, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[tuple[str, Side], ...]:
        """Each arm's kernel and runs, by the arm's name for people."""
        return tuple((ARM_NAMES[arm.name], arm.side) for arm in self.arms)
