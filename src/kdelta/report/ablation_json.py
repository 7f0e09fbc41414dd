# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate` as JSON; the schema is kdelta.ablate/1."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from kdelta.infer.estimate import Estimate
from kdelta.infer.means import MEAN, Adds
from kdelta.infer.placement_model import PlacementEffect
from kdelta.report.ablation_model import AblatedRegion, AblatedUnit, AblationReport, Proof
from kdelta.report.cycles_json import (
    JsonCPU,
    JsonCycleEffect,
    JsonUnlike,
    json_cpu,
    json_cycle_effect,
    json_unlike,
)
from kdelta.report.estimate_json import JsonEstimate, json_estimate
from kdelta.report.json import JsonSide, document_text, json_side
from kdelta.report.means import Means, averaged
from kdelta.report.model import Facts

JsonEffects = dict[str, JsonEstimate]
"""By region."""


class JsonSwitch(msgspec.Struct, frozen=True):
    """What the command line switches of a unit; `whole`: nothing else hangs on it."""

    words: str
    whole: bool
    effects: JsonEffects


class JsonUnitCycles(msgspec.Struct, frozen=True):
    """What flipping a unit does to model cycles, from two kernels that differ by it alone; in both,
    `flipped` are.
    """

    flipped: list[str]
    effects: list[JsonCycleEffect]


class JsonUnit(msgspec.Struct, frozen=True):
    """A unit; no effects unless it was measured. `alive` of the `objects` that it reaches are such
    that executed code depends on them. `cycles` is null where no two kernels differ by it alone,
    and where no CPU was named. `mean`: of its effects over regions, as JsonMeans has them; null
    unless it was measured. `seen`: the interval of that mean excludes zero.
    """

    name: str
    options: list[str]
    needs: list[str]
    fate: str
    why: str
    how: str
    objects: int | None
    alive: int | None
    vmlinux_bytes: int | None
    effects: JsonEffects
    switch: JsonSwitch | None
    cycles: JsonUnitCycles | None = None
    mean: JsonEstimate | None = None
    seen: bool | None = None


class JsonAblatedRegion(msgspec.Struct, frozen=True):
    """A region: instructions an iteration, or (rate) a virtual second. `remainder`: what of the
    whole no unit accounts for; `sums`: "adds up" if its interval holds zero and is no wider than
    0.2 % of the region in A, "does not add up" if it excludes zero, else "cannot tell"; `adds_up`:
    the first of these. `lookups`: what functions differ by that search tables of addresses, which
    is placement and in no other figure. `varies`: the cost in the kernel whose runs vary most, null
    if that is not known; `steady`: they vary by no more than 1 %, else it is in no mean.
    """

    workload: str
    name: str
    rate: bool
    before: JsonEstimate
    after: JsonEstimate
    whole: JsonEstimate
    explained: JsonEstimate
    remainder: JsonEstimate
    adds_up: bool
    lookups: JsonEstimate
    sums: str = ""
    varies: JsonEstimate | None = None
    steady: bool | None = None


class JsonMeans(msgspec.Struct, frozen=True):
    """Means over all steady regions, in per cent of the region in the base, with intervals that
    reach as far as all regions' together. `regions`: how many; `sums`: as that of a region.
    """

    regions: int
    whole: JsonEstimate
    explained: JsonEstimate
    remainder: JsonEstimate
    sums: str


class JsonInteraction(msgspec.Struct, frozen=True):
    """Units that together do something else than each alone: what is left over."""

    units: list[str]
    effects: JsonEffects


class JsonProof(msgspec.Struct, frozen=True):
    """The kernel with all kept units flipped against B; `held` is null without one."""

    held: bool | None
    text: str
    differing: JsonEffects


class JsonBuild(msgspec.Struct, frozen=True):
    """A kernel; `seconds` is null for one that the cache had."""

    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    vmlinux_bytes: int | None


class JsonAblation(msgspec.Struct, frozen=True):
    """The whole of `kdelta ablate`. `cpu`: whose model cycles were judged, too, or null; `cycles`:
    their effects from A to B. `means`: null without a steady region. Documents from before there
    were such have neither these nor what regions and units have with a default.
    """

    schema: Literal["kdelta.ablate/1"]
    kdelta: str
    tree: str
    names: list[str]
    before: JsonSide
    after: JsonSide
    workloads: list[str]
    machine: Facts
    options: int
    strategy: str
    units: list[JsonUnit]
    interactions: list[JsonInteraction]
    proof: JsonProof | None
    regions: list[JsonAblatedRegion]
    builds: list[JsonBuild]
    notes: list[str]
    warnings: list[str]
    failure: str
    cpu: JsonCPU | None = None
    cycles: list[JsonCycleEffect] = []
    unlike: list[JsonUnlike] = []
    means: JsonMeans | None = None


def ablation_json(report: AblationReport, version: str) -> str:
    """An ablation; `version` is kdelta's."""
    return document_text(
        JsonAblation(
            schema="kdelta.ablate/1",
            kdelta=version,
            tree=report.tree,
            names=list(report.names),
            before=json_side(report.ends[0]),
            after=json_side(report.ends[1]),
            workloads=list(report.workloads),
            machine=report.machine,
            options=report.options,
            strategy=report.strategy,
            units=[_unit(unit, report) for unit in report.units],
            interactions=[
                JsonInteraction(list(one.units), _effects(one.effects))
                for one in report.interactions
            ],
            proof=None if report.proof is None else json_proof(report.proof),
            regions=[json_region(region) for region in report.regions],
            builds=[
                JsonBuild(
                    build.label,
                    build.status,
                    build.detail,
                    build.seconds,
                    build.identity,
                    build.vmlinux_bytes,
                )
                for build in report.builds
            ],
            notes=list(report.notes),
            warnings=list(report.warnings),
            failure=report.failure,
            cpu=json_cpu(report.cpu) if report.cpu else None,
            cycles=_cycles(report.cycles, report),
            unlike=json_unlike(report.unlike),
            means=json_means(Means(report.regions, report.mean)),
        )
    )


def json_means(means: Means) -> JsonMeans | None:
    """What means say of the whole, as JSON."""
    parts = means.whole(), means.explained(), means.remainder()
    adds = means.adds
    if parts[0] is None or parts[1] is None or parts[2] is None or adds is None:
        return None
    whole, explained, remainder = (json_estimate(one) for one in parts if one is not None)
    return JsonMeans(len(averaged(means.regions)), whole, explained, remainder, adds.value)


def json_mean(effects: Mapping[str, Estimate], means: Means) -> JsonEstimate | None:
    """The mean of an effect, as JSON; null for what was not measured."""
    mean = means.of(effects) if effects else None
    return None if mean is None else json_estimate(mean)


def _effects(effects: Mapping[str, Estimate]) -> JsonEffects:
    return {name: json_estimate(effect) for name, effect in effects.items() if name != MEAN}


def _cycles(
    effects: Mapping[str, PlacementEffect], report: AblationReport
) -> list[JsonCycleEffect]:
    return [json_cycle_effect(effect, report.unlike) for effect in effects.values()]


def _unit(unit: AblatedUnit, report: AblationReport) -> JsonUnit:
    means = Means(report.regions, report.mean)
    switch = None
    if unit.switch is not None:
        effects = _effects(unit.switch.effects)
        switch = JsonSwitch(unit.switch.words, unit.switch.whole, effects)
    return JsonUnit(
        name=unit.name,
        options=list(unit.options),
        needs=list(unit.needs),
        fate=unit.fate.value,
        why=unit.why,
        how=unit.how,
        objects=unit.objects,
        alive=unit.alive,
        vmlinux_bytes=unit.vmlinux_bytes,
        effects=_effects(unit.effects),
        switch=switch,
        cycles=None
        if unit.cycles is None
        else JsonUnitCycles(list(unit.cycles.flipped), _cycles(unit.cycles.effects, report)),
        mean=json_mean(unit.effects, means),
        seen=means.sees(unit.effects) if unit.effects else None,
    )


def json_proof(proof: Proof) -> JsonProof:
    """That what was left out does nothing, as JSON."""
    return JsonProof(proof.held, proof.text, _effects(proof.differing))


def json_region(region: AblatedRegion) -> JsonAblatedRegion:
    """A region between the two ends, as JSON."""
    return JsonAblatedRegion(
        workload=region.workload,
        name=region.name,
        rate=region.rate,
        before=json_estimate(region.before),
        after=json_estimate(region.after),
        whole=json_estimate(region.whole),
        explained=json_estimate(region.explained),
        remainder=json_estimate(region.remainder),
        adds_up=region.adds is Adds.ADDS_UP,
        lookups=json_estimate(region.lookups),
        sums=region.adds.value,
        varies=json_estimate(region.varies),
        steady=region.steady,
    )
