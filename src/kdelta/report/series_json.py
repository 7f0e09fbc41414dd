# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series` as JSON; the schema is kdelta.series/1."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import MEAN
from kdelta.infer.series_model import PatchGroup, ViewAnswer
from kdelta.report.ablation_json import (
    JsonAblatedRegion,
    JsonBuild,
    JsonEffects,
    JsonMeans,
    JsonProof,
    json_mean,
    json_means,
    json_proof,
    json_region,
)
from kdelta.report.ablation_model import AblationBuild
from kdelta.report.estimate_json import JsonEstimate, json_estimate
from kdelta.report.json import JsonSide, document_text, json_side
from kdelta.report.means import Means
from kdelta.report.model import Facts
from kdelta.report.series_held import held
from kdelta.report.series_model import Minimal, SeriesReport, SeriesRow


class JsonView(msgspec.Struct, frozen=True):
    """A patch in another view than in order. `others`: what had to come or go with it; `text`:
    why, or why there are no effects.
    """

    effects: JsonEffects
    others: list[str]
    text: str


class JsonPatch(msgspec.Struct, frozen=True):
    """A patch; `effects` are what it adds to those before it, and empty unless it was measured or
    cleared. `alive` of the `objects` that it reaches are such that executed code depends on them.
    `earlier`: what the trailers of its commit say. `mean`: of its effects over regions, as
    JsonMeans has them; null unless it was measured or cleared. `seen`: the interval of that mean
    excludes zero.
    """

    name: str
    subject: str
    files: list[str]
    fate: str
    why: str
    objects: int | None
    alive: int | None
    effects: JsonEffects
    left_out: JsonView | None
    alone: JsonView | None
    earlier: list[str]
    mean: JsonEstimate | None = None
    seen: bool | None = None


class JsonGroup(msgspec.Struct, frozen=True):
    """Patches that were not taken apart, and why."""

    patches: list[str]
    effects: JsonEffects
    reason: str
    left_out: JsonView | None
    alone: JsonView | None


class JsonNeed(msgspec.Struct, frozen=True):
    """A patch that cannot be had without others, and what happens without them."""

    patch: str
    needs: list[str]
    reason: str


class JsonPatchInteraction(msgspec.Struct, frozen=True):
    """Patches that together do something else than each alone: what is left over; one alone where
    it is not known with which.
    """

    patches: list[str]
    effects: JsonEffects
    text: str


class JsonMember(msgspec.Struct, frozen=True):
    """A patch of the smallest set: a culprit, or needed by one."""

    name: str
    role: str
    text: str


class JsonMinimal(msgspec.Struct, frozen=True):
    """The smallest set. `within`: the part of the whole effect in a region by which its effect may
    differ; `confirmed`: that none of them can be left out was tried; `tests`: kernels tried for it.
    """

    patches: list[JsonMember]
    effects: JsonEffects
    within: float
    complete: bool
    confirmed: bool
    tests: int
    refused: int
    note: str


class JsonKept(msgspec.Struct, frozen=True):
    """The branch that was written."""

    branch: str
    tip: str
    patches: list[str]
    dropped: list[str]
    marked: list[str]


class JsonHeld(msgspec.Struct, frozen=True):
    """An effect that was measured before, in per cent, and what it is now."""

    patch: str
    region: str
    earlier: float
    now: float | None
    word: str


class JsonSeries(msgspec.Struct, frozen=True):
    """The whole of `kdelta series`. `means`: null without a steady region."""

    schema: Literal["kdelta.series/1"]
    kdelta: str
    tree: str
    words: list[str]
    before: JsonSide
    after: JsonSide
    workloads: list[str]
    machine: Facts
    views: list[str]
    patches: list[JsonPatch]
    groups: list[JsonGroup]
    needs: list[JsonNeed]
    interactions: list[JsonPatchInteraction]
    regions: list[JsonAblatedRegion]
    proof: JsonProof | None
    minimal: JsonMinimal | None
    kept: JsonKept | None
    held: list[JsonHeld]
    builds: list[JsonBuild]
    notes: list[str]
    warnings: list[str]
    failure: str
    means: JsonMeans | None = None


def series_json(report: SeriesReport, version: str) -> str:
    """A series; `version` is kdelta's."""
    kept = report.kept
    return document_text(
        JsonSeries(
            schema="kdelta.series/1",
            kdelta=version,
            tree=report.tree,
            words=list(report.words),
            before=json_side(report.ends[0]),
            after=json_side(report.ends[1]),
            workloads=list(report.workloads),
            machine=report.machine,
            views=[view.value for view in report.views],
            patches=[_patch(row, Means(report.regions, report.mean)) for row in report.rows],
            groups=[_group(group) for group in report.groups],
            needs=[JsonNeed(one.patch, list(one.needs), one.reason) for one in report.needs],
            interactions=[
                JsonPatchInteraction(list(one.units), _effects(one.effects), one.text)
                for one in report.interactions
            ],
            regions=[json_region(region) for region in report.regions],
            proof=None if report.proof is None else json_proof(report.proof),
            minimal=None if report.minimal is None else _minimal(report.minimal),
            kept=None
            if kept is None
            else JsonKept(
                kept.branch, kept.tip, list(kept.kept), list(kept.dropped), list(kept.marked)
            ),
            held=[
                JsonHeld(one.patch, one.region, one.earlier, one.now, one.word.value)
                for one in held(report)
            ],
            builds=[_build(build) for build in report.builds],
            notes=list(report.notes),
            warnings=list(report.warnings),
            failure=report.failure,
            means=json_means(Means(report.regions, report.mean)),
        )
    )


def _effects(effects: Mapping[str, Estimate]) -> JsonEffects:
    return {name: json_estimate(effect) for name, effect in effects.items() if name != MEAN}


def _view(view: ViewAnswer | None) -> JsonView | None:
    return None if view is None else JsonView(_effects(view.effects), list(view.others), view.text)


def _patch(row: SeriesRow, means: Means) -> JsonPatch:
    effects = row.answer.effects
    return JsonPatch(
        name=row.name,
        subject=row.subject,
        files=list(row.files),
        fate=row.answer.fate.value,
        why=row.why,
        objects=row.objects,
        alive=row.alive,
        effects=_effects(effects),
        left_out=_view(row.answer.left_out),
        alone=_view(row.answer.alone),
        earlier=list(row.earlier),
        mean=json_mean(effects, means),
        seen=means.sees(effects) if effects else None,
    )


def _group(group: PatchGroup) -> JsonGroup:
    return JsonGroup(
        list(group.patches),
        _effects(group.effects),
        group.reason,
        _view(group.left_out),
        _view(group.alone),
    )


def _minimal(minimal: Minimal) -> JsonMinimal:
    answer = minimal.answer
    return JsonMinimal(
        patches=[JsonMember(one.name, one.role.value, one.text) for one in answer.members],
        effects=_effects(minimal.effects),
        within=float(minimal.within),
        complete=answer.complete,
        confirmed=answer.confirmed,
        tests=answer.tests,
        refused=answer.refused,
        note=answer.note,
    )


def _build(build: AblationBuild) -> JsonBuild:
    return JsonBuild(
        build.label,
        build.status,
        build.detail,
        build.seconds,
        build.identity,
        build.vmlinux_bytes,
    )
