# SPDX-License-Identifier: GPL-2.0-or-later
"""The measured tree: a branch with a commit a patch, each with its measured effect in trailers."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import Estimate, is_seen
from kdelta.infer.search.search_model import PatchOutcome
from kdelta.kernels.sources.measured_branch import (
    EFFECT,
    BranchPatch,
    parse_branch,
    write_branch,
)
from kdelta.lab.progress import Progress
from kdelta.spec.kernel import GitSpec, parse_kernel_spec
from kdelta.studies.search.model import AblatedRegion, means_of
from kdelta.studies.series.held import trailer_name
from kdelta.studies.series.model import KeptBranch, SeriesReport, SeriesRow
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.trees import Trees

MARK, BASE = "Kdelta-mark", "Kdelta-base"
_MOST = 4
"""Regions that a commit names: those in which the effect is the largest part."""


def keep_branch(
    request: SeriesRequest, trees: Trees, report: SeriesReport, progress: Progress
) -> SeriesReport:
    """Writes the branch; the report then says what is on it."""
    branch = parse_branch(request.keep)
    losers = [row.name for row in report.rows if is_slower(row.answer.effects, report)]
    dropped = _droppable(losers, trees) if request.drop else []
    marked = [name for name in losers if name not in dropped]
    rows = {row.name: row for row in report.rows if row.name not in dropped}
    kept = [
        BranchPatch(one, trailers(rows[one.name], report, trees, marked=one.name in marked))
        for one in trees.exact(rows)
    ]
    spec = parse_kernel_spec(request.tree)
    progress.log(f"writing {len(kept)} commits to {branch}")
    tip = write_branch(
        branch, trees.source, spec.revision if isinstance(spec, GitSpec) else "HEAD", kept
    )
    names = tuple(one.patch.name for one in kept)
    return msgspec.structs.replace(
        report, kept=KeptBranch(str(branch), tip, names, tuple(dropped), tuple(marked))
    )


def _droppable(losers: Sequence[str], trees: Trees) -> list[str]:
    """Those that nothing needs which is kept, the last one first."""
    gone: list[str] = []
    for name in reversed(trees.names):
        users = [one for one, needs in trees.needs.items() if any(n.patch == name for n in needs)]
        if name in losers and set(users) <= set(gone):
            gone.append(name)
    return [name for name in trees.names if name in gone]


def is_slower(effects: Mapping[str, Estimate], report: SeriesReport) -> bool:
    """Whether an effect makes regions slower in the mean, beyond how far that may be off."""
    mean = means_of(report).of(effects)
    return mean is not None and mean.low > 0


def trailers(
    row: SeriesRow, report: SeriesReport, trees: Trees, *, marked: bool
) -> tuple[tuple[str, str], ...]:
    """What the commit of a patch says of its effect: where it is the largest part, or that there is
    none, or why that is unknown.
    """
    rows = sorted(_lines(row.answer.effects, report.regions), key=lambda one: -abs(one[0]))
    found = [(EFFECT, text) for _, text in rows[:_MOST]]
    if len(rows) > _MOST:
        found.append((EFFECT, f"and {len(rows) - _MOST} regions more"))
    if not found:
        unknown = row.answer.outcome in (PatchOutcome.TOGETHER, PatchOutcome.UNRESOLVED)
        found = [(EFFECT, f"unresolved: {row.answer.text}" if unknown else "none")]
    if marked:
        found.append((MARK, "slower"))
    return (*found, (BASE, f"{trees.source.name}, tree {trees.source.tree[:12]}"))


def _lines(
    effects: Mapping[str, Estimate], regions: Sequence[AblatedRegion]
) -> list[tuple[Fraction, str]]:
    found = []
    for region in regions:
        effect = effects.get(region.name)
        if effect is None or region.rate or not is_seen(effect) or not region.before.value:
            continue
        part = 100 * effect.value / region.before.value
        spread = 100 * effect.half_width / region.before.value
        known = "exact" if effect.exact else f"+-{float(spread):.2f} %"
        found.append((part, f"{trailer_name(region)} {float(part):+.2f} % path ({known})"))
    return found
