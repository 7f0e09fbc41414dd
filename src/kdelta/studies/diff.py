# SPDX-License-Identifier: GPL-2.0-or-later
"""Two stored runs of one workload held against each other, function by function."""

from collections.abc import Mapping, Sequence

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.infer.diff import diff_lines, figures_of, unlike_iterations
from kdelta.infer.effects import warnings_of
from kdelta.infer.profile import Selection, Sort, nearest, region_profile
from kdelta.report.diff_model import DiffReport
from kdelta.report.model import ReportedRun
from kdelta.spec.errors import UserError
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.profile import own_regions, run_counts

_MACHINE = {"name": "machine", "cpu": "CPU", "memory_mib": "memory in MiB", "qemu": "QEMU"}
"""The facts of a machine that two runs must share, and what they are called."""


def run_diff(
    a: Run,
    b: Run,
    store: Store,
    regions: Sequence[str] = (),
    selection: Selection | None = None,
    *,
    by: Sort = Sort.INSNS,
    each: bool = False,
) -> DiffReport:
    """What B's functions did more or less than A's in the regions that both have.

    each: in one pass of each region instead of in whole regions; so it is, too, where they went
    through different numbers of passes. UserError for runs that cannot be compared, and for a
    region that not both have.
    """
    selection = selection or Selection()
    counts = run_counts(a, store), run_counts(b, store)
    must_be_comparable(a, b)
    sides = merged_regions(counts[0]), merged_regions(counts[1])
    names = _common(sides, regions)
    ours, theirs = ([region_profile(side[name]) for name in names] for side in sides)
    unlike = unlike_iterations(ours, theirs)
    each = each or bool(unlike)
    figures = [figures_of(side, selection, by, each=each) for side in (ours, theirs)]
    return DiffReport(
        a=ReportedRun(a, from_store=True),
        b=ReportedRun(b, from_store=True),
        a_regions=tuple(ours),
        b_regions=tuple(theirs),
        lines=diff_lines(*figures),
        selection=selection,
        by=by,
        each=each,
        left_out=tuple(name for name in {**sides[0], **sides[1]} if name not in names),
        notes=_notes(a, b, sides, unlike),
        warnings=warnings_of([counts[0]], [counts[1]]),
    )


def must_be_comparable(a: Run, b: Run) -> None:
    """UserError, with all that differs, for runs of different workloads or on unlike machines."""
    found = []
    if a.workload != b.workload:
        found.append(f"workload {a.workload} and {b.workload}")
    for fact, name in _MACHINE.items():
        ours, theirs = a.machine.get(fact, "none"), b.machine.get(fact, "none")
        if ours != theirs:
            found.append(f"{name} {ours} and {theirs}")
    if found:
        raise UserError(
            f"runs {a.id} and {b.id} cannot be held against each other: {'; '.join(found)}",
            "kdelta runs lists them; compare runs that differ in their kernels alone",
        )


def _common(
    sides: tuple[Mapping[str, RegionCounts], Mapping[str, RegionCounts]], asked: Sequence[str]
) -> list[str]:
    """The regions that both have: those that are asked for, or all."""
    common = [name for name in own_regions(sides[0]) if name in sides[1]]
    for name in asked:
        for who, side in zip("AB", sides, strict=True):
            if name not in side:
                raise UserError(f"{who} has no region {name!r}", f"it has: {nearest(name, side)}")
    if not common and not asked:
        raise UserError(
            "the runs have no region in common",
            f"A has: {nearest('', sides[0])}; B has: {nearest('', sides[1])}",
        )
    return list(dict.fromkeys(asked)) or common


def _notes(
    a: Run,
    b: Run,
    sides: tuple[Mapping[str, RegionCounts], Mapping[str, RegionCounts]],
    unlike: Mapping[str, tuple[int, int]],
) -> tuple[str, ...]:
    """In what the runs differ beside their kernels."""
    notes = []
    appended = [str(run.machine.get("append", "")) for run in (a, b)]
    if appended[0] != appended[1]:
        notes.append(f"The kernels' command lines differ: {appended[0]!r} and {appended[1]!r}.")
    if a.perturbation != b.perturbation:
        notes.append(
            f"The runs were perturbed differently, {a.perturbation} and {b.perturbation}: a part "
            "of what differs may be that."
        )
    for name, (ours, theirs) in unlike.items():
        notes.append(
            f"{name} went through {ours} iterations in A and {theirs} in B, so figures are those "
            "of one pass."
        )
    for who, side, other in (("A", *sides), ("B", *sides[::-1])):
        alone = [name for name in side if name not in other]
        if alone:
            notes.append(f"Only {who} has the regions {nearest('', alone)}.")
    return tuple(notes)
