# SPDX-License-Identifier: GPL-2.0-or-later
"""What an ablation found, as a report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.infer.estimate import ZERO, Estimate, effect_between
from kdelta.infer.search import Answer, Found, total
from kdelta.kernels.units import Unit
from kdelta.report.ablation_model import (
    AblatedRegion,
    AblatedUnit,
    AblationReport,
    Fate,
    Interaction,
    Proof,
    SwitchShare,
)
from kdelta.store.store import Store
from kdelta.studies.ablate.measure import Bench, Measured
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.rule_out import Decision
from kdelta.studies.reports import machine_facts, reported_side

Ends = tuple[Measured, Measured]


class Findings(msgspec.Struct, frozen=True):
    """All that was found out between the two ends."""

    options: int
    units: tuple[Unit, ...]
    decisions: Mapping[str, Decision]
    answer: Answer
    strategy: str
    proof: Proof | None
    switches: Mapping[str, SwitchShare]


def assemble(
    request: AblateRequest, bench: Bench, ends: Ends, store: Store, findings: Findings
) -> AblationReport:
    """The report of an ablation that came to its end."""
    report = _begin(request, bench, ends, store)
    found = {one.name: one for one in findings.answer.units}
    units = tuple(
        _unit(
            unit,
            findings.decisions[unit.name],
            found.get(unit.name),
            findings.switches.get(unit.name),
        )
        for unit in findings.units
    )
    interactions = tuple(
        Interaction(one.units, one.effects) for one in findings.answer.interactions
    )
    effects = [unit.effects for unit in units] + [pair.effects for pair in interactions]
    open_text = findings.answer.open
    return msgspec.structs.replace(
        report,
        options=findings.options,
        regions=_regions(ends, effects),
        units=units,
        interactions=interactions,
        proof=findings.proof,
        strategy=findings.strategy,
        notes=(*report.notes, *([open_text] if open_text else [])),
    )


def failed(request: AblateRequest, bench: Bench, ends: Ends, store: Store) -> AblationReport:
    """The report of one of whose ends there is nothing to go by."""
    words = [f"{one.label}: {one.failure}" for one in ends if one.failure]
    report = _begin(request, bench, ends, store)
    return msgspec.structs.replace(report, failure="nothing to compare: " + "; ".join(words))


def _begin(request: AblateRequest, bench: Bench, ends: Ends, store: Store) -> AblationReport:
    names = Path(request.before).name, Path(request.after).name
    sides = [
        reported_side(name, end.kernel, end.done, end.failure, store)
        for name, end in zip(names, ends, strict=True)
    ]
    warnings = {
        warning: None
        for end in ends
        for done in end.done
        if done.counts is not None
        for warning in done.counts.warnings
    }
    return AblationReport(
        tree=request.tree,
        names=names,
        ends=(sides[0], sides[1]),
        workloads=request.workloads,
        machine=machine_facts(ends[0].done or ends[1].done, store),
        options=0,
        regions=(),
        units=(),
        interactions=(),
        proof=None,
        builds=tuple(bench.builds),
        strategy="",
        warnings=tuple(warnings),
    )


def _unit(
    unit: Unit, decision: Decision, found: Found | None, switch: SwitchShare | None
) -> AblatedUnit:
    fate, why, how, effects = decision.fate, decision.why, "", {}
    if found is not None:
        how = found.how
        effects = found.effects or {}
        fate = Fate.MEASURED
        if found.effects is None:
            fate, why = Fate.UNRESOLVED, found.how
        elif found.cleared_with:
            fate = Fate.CLEARED
    return AblatedUnit(
        name=unit.name,
        options=tuple(str(flip) for flip in unit.options),
        needs=unit.needs,
        fate=fate or Fate.UNRESOLVED,
        why=why,
        objects=decision.objects,
        alive=decision.alive,
        effects=effects,
        how=how,
        switch=switch,
    )


def _regions(ends: Ends, effects: Sequence[Mapping[str, Estimate]]) -> tuple[AblatedRegion, ...]:
    before, after = ends
    found = []
    for name, region in before.regions.items():
        if name not in after.regions:
            continue
        other = after.regions[name].path
        nothing = Estimate(ZERO, ZERO, ZERO, region.path.code.n)
        explained = total(one[name] for one in effects if name in one) or nothing
        found.append(
            AblatedRegion(
                workload=region.workload,
                name=name,
                before=region.path.code,
                after=other.code,
                whole=effect_between(region.path.code, other.code),
                explained=explained,
                lookups=effect_between(region.path.lookups, other.lookups),
                rate=region.rate,
            )
        )
    return tuple(found)
