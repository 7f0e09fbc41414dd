# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta crossing` is made of, whatever its form."""

import msgspec

from kdelta.infer.cycles.crossing import Crossing, VariantName
from kdelta.report.model import Facts, KernelRuns, Mismatch, ReportedCPU

VARIANT_NAMES: dict[VariantName, str] = {
    "stock": "stock",
    "mitigations-off": "mitigations=off",
    "kernel": "kernel mode",
    "kernel-direct": "direct call",
    "kernel-skip": "no entry work",
}
"""What a variant is called in a table."""

VARIANT_TEXTS: dict[VariantName, str] = {
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


class CrossingVariant(msgspec.Struct, frozen=True):
    """A variant: its kernel with its runs, and what that kernel said of the CPU's vulnerabilities:
    file -> words, empty without a run that went well.
    """

    name: VariantName
    side: KernelRuns
    chose: dict[str, str] = {}


class CrossingReport(msgspec.Struct, frozen=True):
    """The variants under one workload on one machine, and what was found. `cpu`: whose prices model
    cycles have, None without. `notes`: what is to be known of the figures.
    """

    workload: str
    machine: Facts
    variants: tuple[CrossingVariant, ...]
    found: Crossing
    cpu: ReportedCPU | None = None
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[tuple[str, KernelRuns], ...]:
        """Each variant's kernel and runs, by the variant's name for people."""
        return tuple((VARIANT_NAMES[variant.name], variant.side) for variant in self.variants)
