# SPDX-License-Identifier: GPL-2.0-or-later
"""What an ablation found, as a report."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.search.search_model import GroupAnswer, How, SearchAnswer, UnitAnswer
from kdelta.kernels.config.option_groups import OptionGroup
from kdelta.lab.reports import machine_facts, reported_cpu
from kdelta.lab.work import titles_of
from kdelta.measures.cycles.placement import caches_of
from kdelta.measures.path.comparable import end_notes
from kdelta.report.model import ReportedCPU
from kdelta.store.store import Store
from kdelta.studies.ablate.model import (
    AblatedGroup,
    AblationReport,
    GroupOutcome,
    Interaction,
    SwitchShare,
)
from kdelta.studies.ablate.pairs import FoundPairs
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.rule_out import GroupDecision
from kdelta.studies.search.measure import (
    Bench,
    Ends,
    nothing_to_compare,
    regions_between,
    warnings_of,
)
from kdelta.studies.search.model import Proof

_NAMED = 2
"""Option groups of a group that are named in its title."""


class AblationFindings(msgspec.Struct, frozen=True):
    """All that was found out between the two ends. `sizes`: bytes of vmlinux by flipped option
    groups. `pairs`: what measures besides the path say, where any was asked for.
    """

    options: int
    units: tuple[OptionGroup, ...]
    decisions: Mapping[str, GroupDecision]
    answer: SearchAnswer
    switches: Mapping[str, SwitchShare]
    sizes: Mapping[frozenset[str], int]
    pairs: FoundPairs | None = None


_OUTCOMES = {
    How.ALONE: GroupOutcome.MEASURED,
    How.DIFFERENCE: GroupOutcome.MEASURED,
    How.DECODED: GroupOutcome.MEASURED,
    How.INFERRED: GroupOutcome.MEASURED,
    How.CLEARED: GroupOutcome.CLEARED,
    How.UNRESOLVED: GroupOutcome.UNRESOLVED,
}


def assemble(
    request: AblateRequest, bench: Bench, ends: Ends, store: Store, findings: AblationFindings
) -> AblationReport:
    """Return the report of an ablation that came to its end."""
    answer, pairs = findings.answer, findings.pairs
    found = {one.name: one for one in answer.units}
    return msgspec.structs.replace(
        _begin(request, bench, ends, store),
        options=findings.options,
        regions=regions_between(ends, answer.sums),
        option_groups=(
            *(_unit(unit, found[unit.name], findings) for unit in findings.units),
            *map(_group, answer.groups),
        ),
        interactions=tuple(Interaction(one.units, one.effects) for one in answer.interactions),
        proof=Proof(answer.proof.held, answer.proof.text, answer.proof.differing),
        strategy=answer.strategy,
        notes=(
            *answer.notes,
            *(pairs.notes if pairs else ()),
            *end_notes(("A", "B"), (ends[0].done, ends[1].done), request.cpu, store),
        ),
        cycles=pairs.whole.cycles if pairs else {},
        mismatches=pairs.mismatches if pairs else (),
        measured=pairs.whole.measured if pairs else (),
        mean=answer.mean,
    )


def failed(request: AblateRequest, bench: Bench, ends: Ends, store: Store) -> AblationReport:
    """The report of one of whose ends there is nothing to go by."""
    failure = nothing_to_compare(ends, [one.label for one in ends])
    return msgspec.structs.replace(_begin(request, bench, ends, store), failure=failure)


def _begin(request: AblateRequest, bench: Bench, ends: Ends, store: Store) -> AblationReport:
    names = Path(request.before).name, Path(request.after).name
    return AblationReport(
        tree=request.tree,
        names=names,
        ends=(ends[0].side(names[0], store), ends[1].side(names[1], store)),
        workloads=titles_of(request.workloads, request.program),
        machine=machine_facts(ends[0].done or ends[1].done, store),
        options=0,
        regions=(),
        option_groups=(),
        interactions=(),
        proof=None,
        builds=tuple(bench.builds),
        strategy="",
        warnings=warnings_of(ends),
        cpu=_cpu(request.cpu) if request.cpu else None,
    )


def _cpu(cpu: CPU) -> ReportedCPU:
    """Of what is not replayed, no price matters."""
    found = reported_cpu(cpu)
    guessed = tuple(kind for kind in found.without_measured_cost if kind in caches_of(cpu))
    return msgspec.structs.replace(found, without_measured_cost=guessed)


def _unit(unit: OptionGroup, found: UnitAnswer, findings: AblationFindings) -> AblatedGroup:
    decision = findings.decisions[unit.name]
    ruled_out = found.how is How.RULED_OUT and decision.outcome is not None
    return AblatedGroup(
        name=unit.name,
        options=tuple(str(flip) for flip in unit.options),
        needs=unit.needs,
        outcome=decision.outcome if ruled_out and decision.outcome else _OUTCOMES[found.how],
        why=decision.why if ruled_out else found.text,
        objects=decision.objects,
        alive=decision.alive,
        effects=found.effects,
        how=found.text,
        vmlinux_bytes=_grown(unit, findings.sizes),
        switch=findings.switches.get(unit.name),
        cycles=findings.pairs.cycles.get(unit.name) if findings.pairs else None,
        measured=findings.pairs.measured(unit.name) if findings.pairs else (),
    )


def _grown(unit: OptionGroup, sizes: Mapping[frozenset[str], int]) -> int | None:
    """What flipping an option group adds to vmlinux, where two kernels differ by it alone."""
    needs = frozenset(unit.needs)
    before, after = sizes.get(needs), sizes.get(needs | {unit.name})
    return None if before is None or after is None else after - before


def _group(group: GroupAnswer) -> AblatedGroup:
    """Option groups that could not be distinguished, as one."""
    few = len(group.units) <= _NAMED
    return AblatedGroup(
        name=" + ".join(group.units) if few else f"{len(group.units)} option groups together",
        options=(),
        needs=(),
        outcome=GroupOutcome.TOGETHER,
        why=f"{', '.join(group.units)}: {group.text}",
        objects=None,
        alive=None,
        effects=group.effects,
        how=group.text,
    )
