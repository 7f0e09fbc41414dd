# SPDX-License-Identifier: GPL-2.0-or-later
"""What a study of a series found, as a report."""

from collections.abc import Mapping

import msgspec

from kdelta.infer.reach.reach import Excluded, NotExcluded, Reach
from kdelta.infer.search.series_model import PatchAnswer, PatchNeed, PatchOutcome, SeriesAnswer
from kdelta.kernels.sources.measured_branch import effects_of
from kdelta.kernels.sources.patches import Patch
from kdelta.lab.reports import machine_facts
from kdelta.lab.work import titles_of
from kdelta.measures.path.comparable import end_notes
from kdelta.store.store import Store
from kdelta.studies.search.measure import Ends, nothing_to_compare, regions_between, warnings_of
from kdelta.studies.search.model import Proof
from kdelta.studies.series.model import Minimal, SeriesReport, SeriesRow
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.trees import Trees

NAMES = ("without", "with all")


class SeriesFindings(msgspec.Struct, frozen=True):
    """All that was found out between the two ends."""

    reached: Mapping[str, Reach]
    answer: SeriesAnswer
    minimal: Minimal | None = None


def assemble(
    request: SeriesRequest, trees: Trees, ends: Ends, store: Store, findings: SeriesFindings
) -> SeriesReport:
    """The report of a study that came to its end."""
    answer = findings.answer
    known = [
        PatchNeed(name, (need.patch,), need.reason)
        for name, needs in trees.needs.items()
        for need in needs
    ]
    patches = {patch.name: patch for patch in trees.patches}
    return msgspec.structs.replace(
        _begin(request, trees, ends, store),
        rows=tuple(_row(patches[one.name], one, trees, findings.reached) for one in answer.patches),
        regions=regions_between(ends, answer.sums),
        groups=answer.groups,
        needs=(*known, *answer.needs),
        interactions=answer.interactions,
        proof=Proof(answer.proof.held, answer.proof.text, answer.proof.differing),
        minimal=findings.minimal,
        notes=(
            *trees.series.notes,
            *answer.notes,
            *end_notes(NAMES, (ends[0].done, ends[1].done), None, store),
        ),
        mean=answer.mean,
    )


def failed(request: SeriesRequest, trees: Trees, ends: Ends, store: Store) -> SeriesReport:
    """The report of one of whose ends there is nothing to go by."""
    failure = nothing_to_compare(ends, [one.label for one in ends])
    return msgspec.structs.replace(_begin(request, trees, ends, store), failure=failure)


def _begin(request: SeriesRequest, trees: Trees, ends: Ends, store: Store) -> SeriesReport:
    return SeriesReport(
        tree=request.tree,
        words=request.patches,
        ends=(ends[0].side(NAMES[0], store), ends[1].side(NAMES[1], store)),
        workloads=titles_of(request.workloads, request.program),
        machine=machine_facts(ends[0].done or ends[1].done, store),
        views=request.views,
        rows=tuple(
            SeriesRow(PatchAnswer(patch.name, PatchOutcome.UNRESOLVED, "", {}), patch.subject)
            for patch in trees.patches
        ),
        builds=tuple(trees.builds),
        notes=trees.series.notes,
        warnings=warnings_of(ends),
    )


def _row(
    patch: Patch, answer: PatchAnswer, trees: Trees, reached: Mapping[str, Reach]
) -> SeriesRow:
    found = reached.get(patch.name)
    excluded = found.why if isinstance(found, Excluded) else ""
    return SeriesRow(
        answer=answer,
        subject=patch.subject,
        files=trees.files[patch.name],
        why=excluded if answer.outcome is PatchOutcome.RULED_OUT else answer.text,
        objects=None if found is None else found.objects,
        alive=len(found.alive) if isinstance(found, NotExcluded) else None if found is None else 0,
        earlier=effects_of(patch.message),
    )
