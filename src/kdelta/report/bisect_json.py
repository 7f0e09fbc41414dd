# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect` as JSON; the schema is kdelta.bisect/1."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from kdelta.infer.estimate import Estimate
from kdelta.report.bisect_model import (
    BisectedCommit,
    BisectedRegion,
    BisectReport,
    FoundCommit,
    FoundGroup,
    FoundPlacement,
)
from kdelta.report.estimate_json import JsonEstimate, json_estimate
from kdelta.report.json import JsonSide, document_text, json_side
from kdelta.report.model import Facts

JsonEffects = dict[str, JsonEstimate]
"""By region."""


class JsonCommit(msgspec.Struct, frozen=True):
    """A commit; of one before the range only the name is known."""

    name: str
    subject: str
    author: str
    date: str


class JsonFound(msgspec.Struct, frozen=True):
    """A commit that has an effect; `functions` by region and function where it is more than its
    spread. `confirmed`: against its own parent. `moved`: only between functions. `log`: what
    `git bisect replay` takes.
    """

    commit: JsonCommit
    effects: JsonEffects
    functions: dict[str, JsonEffects]
    confirmed: bool
    moved: bool
    how: str
    log: str


class JsonGroup(msgspec.Struct, frozen=True):
    """Commits that were not told apart."""

    commits: list[JsonCommit]
    effects: JsonEffects
    why: str


class JsonPlacement(msgspec.Struct, frozen=True):
    """Two commits whose paths differ by where code lies; `commits`: the candidates in between."""

    below: JsonCommit
    above: JsonCommit
    commits: int
    effects: JsonEffects


class JsonRuledOut(msgspec.Struct, frozen=True):
    """A commit that no executed code depends on."""

    commit: JsonCommit
    why: str


class JsonBisectedRegion(msgspec.Struct, frozen=True):
    """A region on both ends, in `unit` an iteration, or (rate) a virtual second. `remainder`: what
    of the whole is not explained; `sums`: "adds up" if its interval holds zero and is no wider than
    0.2 % of the region in the good end, "does not add up" if it excludes zero, else "cannot tell".
    `varies`: the cost in the kernel whose runs vary most; `steady`: they vary by no more than 1 %.
    """

    workload: str
    name: str
    rate: bool
    unit: str
    good: JsonEstimate
    bad: JsonEstimate
    whole: JsonEstimate
    explained: JsonEstimate
    remainder: JsonEstimate
    sums: str = ""
    varies: JsonEstimate | None = None
    steady: bool | None = None


class JsonBisectBuild(msgspec.Struct, frozen=True):
    """A kernel; `seconds` is null for one that failed, or that another commit has as well."""

    commit: str
    label: str
    status: str
    detail: str
    seconds: float | None
    identity: str
    subject: str


class JsonBisect(msgspec.Struct, frozen=True):
    """The whole of `kdelta bisect`. `asked`: the only regions on which effects were searched, none
    for all; `first`: only the largest effect was.
    """

    schema: Literal["kdelta.bisect/1"]
    kdelta: str
    repository: str
    names: list[str]
    good: JsonCommit
    bad: JsonCommit
    ends: list[JsonSide]
    workloads: list[str]
    machine: Facts
    commits: int
    candidates: int
    asked: list[str]
    first: bool
    found: list[JsonFound]
    groups: list[JsonGroup]
    placement: list[JsonPlacement]
    ruled_out: list[JsonRuledOut]
    regions: list[JsonBisectedRegion]
    builds: list[JsonBisectBuild]
    notes: list[str]
    warnings: list[str]
    failure: str


def bisect_json(report: BisectReport, version: str) -> str:
    """A bisection; `version` is kdelta's."""
    return document_text(
        JsonBisect(
            schema="kdelta.bisect/1",
            kdelta=version,
            repository=report.repository,
            names=list(report.names),
            good=_commit(report.good),
            bad=_commit(report.bad),
            ends=[json_side(side) for side in report.ends],
            workloads=list(report.workloads),
            machine=report.machine,
            commits=report.commits,
            candidates=report.candidates,
            asked=list(report.asked),
            first=report.first,
            found=[_found(one, report.logs) for one in report.found],
            groups=[_group(one) for one in report.groups],
            placement=[_placement(one) for one in report.placement],
            ruled_out=[JsonRuledOut(_commit(one.commit), one.why) for one in report.ruled_out],
            regions=[_region(one) for one in report.regions],
            builds=[JsonBisectBuild(**msgspec.structs.asdict(one)) for one in report.builds],
            notes=list(report.notes),
            warnings=list(report.warnings),
            failure=report.failure,
        )
    )


def _commit(one: BisectedCommit) -> JsonCommit:
    return JsonCommit(one.name, one.subject, one.author, one.date)


def _effects(effects: Mapping[str, Estimate]) -> JsonEffects:
    return {name: json_estimate(effect) for name, effect in effects.items()}


def _found(one: FoundCommit, logs: Mapping[str, str]) -> JsonFound:
    return JsonFound(
        commit=_commit(one.commit),
        effects=_effects(one.effects),
        functions={name: _effects(its) for name, its in one.functions.items()},
        confirmed=one.confirmed,
        moved=one.moved,
        how=one.how,
        log=logs.get(one.commit.name, ""),
    )


def _group(one: FoundGroup) -> JsonGroup:
    return JsonGroup([_commit(commit) for commit in one.commits], _effects(one.effects), one.why)


def _placement(one: FoundPlacement) -> JsonPlacement:
    return JsonPlacement(_commit(one.below), _commit(one.above), one.commits, _effects(one.effects))


def _region(one: BisectedRegion) -> JsonBisectedRegion:
    return JsonBisectedRegion(
        workload=one.workload,
        name=one.name,
        rate=one.rate,
        unit=one.unit,
        good=json_estimate(one.good),
        bad=json_estimate(one.bad),
        whole=json_estimate(one.whole),
        explained=json_estimate(one.explained),
        remainder=json_estimate(one.remainder),
        sums=one.adds.value,
        varies=json_estimate(one.varies),
        steady=one.steady,
    )
