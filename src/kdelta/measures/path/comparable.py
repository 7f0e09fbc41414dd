# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts that a path decides which one kernel has lost in the guest: these are none."""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.lost_paths import (
    GuestFacts,
    OneSided,
    decided_path,
    lost_paths,
    one_sided,
)
from kdelta.infer.effects.effects import Effects, OperationEffect, Word, compare_runs
from kdelta.lab.lab import RunResult
from kdelta.lab.reports import attachment, controllers
from kdelta.report.groups import groups_text
from kdelta.store.store import Store

_NAMED = 3

Parts = Mapping[str, Sequence[OneSided]]
"""By operation, what of such paths only one of the kernels executes."""


def one_sided_parts(
    effects: Effects, cpu: CPU | None, guests: tuple[GuestFacts, GuestFacts]
) -> Parts:
    """Return what only one of two kernels executes of paths that the other has lost in the guest.

    guests: what the base's and the other's say of themselves.
    """
    paths = lost_paths(cpu, *guests)
    return {one.name: found for one in effects.operations if (found := one_sided(one, paths))}


def comparable(effects: Effects, cpu: CPU | None, guests: tuple[GuestFacts, GuestFacts]) -> Effects:
    """Return the effects with "not comparable" where a path decides that one of two kernels has not
    as it would on the CPU; where it decides nothing, with a note on it. guests: see
    `one_sided_parts`.
    """
    parts = one_sided_parts(effects, cpu, guests)
    if not parts:
        return effects
    judged = tuple(_on_path(one, parts.get(one.name, ())) for one in effects.operations)
    decided = [one.name for one in judged if one not in effects.operations]
    return msgspec.structs.replace(
        effects,
        operations=judged,
        warnings=(*effects.warnings, *notes_on_parts(parts, decided, "paths")),
    )


def end_notes(
    names: tuple[str, str],
    ends: tuple[Sequence[RunResult], Sequence[RunResult]],
    cpu: CPU | None,
    store: Store,
) -> tuple[str, ...]:
    """Return what is to be known of the two ends of a search before its effects are: paths that one
    of them has lost in the guest, with the regions where these decide, and groups that differ.

    names: what its report calls them.
    """
    groups = groups_text(
        [(name, controllers(done, store)) for name, done in zip(names, ends, strict=True)]
    )
    notes = [f"control groups: {groups}"] if groups else []
    for found in judged_ends(ends, cpu, store).values():
        notes += [f"{text} (base is {names[0]}, other {names[1]})" for text in found.notes]
        decided = ", ".join(found.decided)
        notes += [f"left out, since not comparable: {decided}"] if decided else []
    return tuple(dict.fromkeys(notes))


class JudgedEnds(msgspec.Struct, frozen=True):
    """What two kernels of a search have lost in the guest, in one workload: regions where such a
    path decides, with the reason; all regions with such a path; and notes for a report.
    """

    decided: dict[str, str]
    lost: frozenset[str]
    notes: tuple[str, ...]


def judged_ends(
    ends: tuple[Sequence[RunResult], Sequence[RunResult]], cpu: CPU | None, store: Store
) -> dict[str, JudgedEnds]:
    """Return by workload what the two ends of a search have lost in the guest."""
    guests = guest_of(ends[0], store), guest_of(ends[1], store)
    paths = lost_paths(cpu, *guests)
    judged: dict[str, JudgedEnds] = {}
    for workload in dict.fromkeys(one.run.workload for one in ends[0]):
        base, other = (
            [one.counts for one in done if one.counts and one.run.workload == workload]
            for done in ends
        )
        if base and other:
            plain = msgspec.structs.replace(compare_runs(base, other), warnings=())
            effects = comparable(plain, cpu, guests)
            both = [one for one in effects.operations if one.costs is not None]
            judged[workload] = JudgedEnds(
                {
                    one.name: one.verdict.reason
                    for one in both
                    if one.verdict.word is Word.NOT_COMPARABLE
                },
                frozenset(one.name for one in both if one_sided(one, paths)),
                effects.warnings,
            )
    return judged


def guest_of(runs: Sequence[RunResult], store: Store) -> GuestFacts:
    """Return what a kernel's guest says of itself, by the first run that went well."""
    done = next((one for one in runs if one.counts is not None), None)
    if done is None:
        return GuestFacts()
    return GuestFacts(
        *(attachment(done.run, name, store) for name in ("cpuinfo", "vulnerabilities"))
    )


def _on_path(operation: OperationEffect, parts: Sequence[OneSided]) -> OperationEffect:
    verdict = decided_path(operation, parts)
    return msgspec.structs.replace(operation, verdict=verdict) if verdict else operation


def notes_on_parts(parts: Parts, decided: Sequence[str], what: str) -> list[str]:
    """Return what only one of the kernels executes, and where that decides."""
    every = [(name, one) for name, found in parts.items() for one in found]
    notes = []
    for path, who in dict.fromkeys((one.path, one.who) for _, one in every):
        mine = [(name, one.names) for name, one in every if (one.path, one.who) == (path, who)]
        regions = [name for name, _ in mine]
        text = path.text(who, tuple(dict.fromkeys(one for _, names in mine for one in names)))
        its = [name for name in regions if name in decided]
        decides = f"the verdict on {what} of {_listed(its)}" if its else f"no verdict on {what}"
        notes.append(f"{text}; in {_listed(regions)}; it decides {decides}")
    return notes


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
