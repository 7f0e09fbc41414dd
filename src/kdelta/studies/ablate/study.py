# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate`: both ends, option groups, ruling out, the proof, the search, the switches."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.reach.reach import NotExcluded
from kdelta.infer.search.additive import ObservedKernels, minus
from kdelta.infer.search.search import Search, begin
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    FlipSet,
    GroupAnswer,
    How,
    Limits,
    SearchAnswer,
    UnitAnswer,
)
from kdelta.kernels.config.kconfig import Config, explain_diff, parse_config
from kdelta.kernels.config.option_groups import OptionGroup, find_units, flipped, flipped_units
from kdelta.kernels.config.switches import boot_switch
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.kbuild.workbench import workbench
from kdelta.lab.found import in_rounds
from kdelta.lab.lab import Lab
from kdelta.lab.reports import facts_of_machine, merged_unlike, reported_cpu, unlike
from kdelta.lab.work import titles_of, works_of
from kdelta.measures.cycles.placement import caches_of
from kdelta.measures.model import Measure, recording
from kdelta.measures.path.comparable import end_notes
from kdelta.measures.registry import measures_of
from kdelta.report.model import Mismatch, ReportedCPU
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.ablate.model import (
    AblatedGroup,
    AblationReport,
    GroupOutcome,
    Interaction,
    SwitchShare,
)
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.rule_out import GroupDecision, Recompiler, by_execution, decided
from kdelta.studies.search.measure import (
    Bench,
    Ends,
    MeasuredKernel,
    built_side,
    config_file,
    end_config,
    nothing_to_compare,
    regions_between,
    warnings_of,
)
from kdelta.studies.search.pairs import JudgedChanges, kernels_below
from kdelta.studies.search.study import SearchStudy

_NAMED = 2
WHOLE = "A to B"
"""Option groups of a group that are named in its title."""


_OUTCOMES = {
    How.ALONE: GroupOutcome.MEASURED,
    How.DIFFERENCE: GroupOutcome.MEASURED,
    How.DECODED: GroupOutcome.MEASURED,
    How.INFERRED: GroupOutcome.MEASURED,
    How.CLEARED: GroupOutcome.CLEARED,
    How.UNRESOLVED: GroupOutcome.UNRESOLVED,
}


@in_rounds
async def run_ablate(request: AblateRequest, lab: Lab) -> AblationReport:
    """Measure what turns one config into another; what of it is there already is not made again."""
    works = works_of(
        request.workloads,
        program=request.program,
        specs=[request.tree],
        machine=request.lab.machine,
    )
    lab = lab.with_request(request.lab)
    measures = measures_of(request, works, request.cpu)
    recorded = lab.with_request(recording(request.lab, measures))
    bench = Bench(request.tree, works, recorded, [one for one in measures if one.searched])
    request.timed.check()
    for measure in measures:
        measure.check(lab, ())
    bench.expect(2)
    paths = [
        end_config(Path(path), no_modules=request.no_modules)
        for path in (request.before, request.after)
    ]
    # B first: recompiling starts from A's objects.
    found = [
        bench.build(label, path, digest=request.rule_out)
        for label, path in zip("BA", reversed(paths), strict=True)
    ]
    for measure in measures:
        measure.check(lab, [one for one in found if not isinstance(one, NoKernel)])
    after, before = [
        await bench.measure(label, kernel) for label, kernel in zip("BA", found, strict=True)
    ]
    if before.failure or after.failure:
        report = _begin(request, bench, (before, after), lab.store)
        return msgspec.structs.replace(report, failure=nothing_to_compare((before, after), "AB"))
    ends = bench.comparable((before, after), request.cpu, measures)
    return await _AblateStudy(request, bench, ends, measures, lab).run(ends)


class _AblateStudy(SearchStudy):
    """Two measured ends, and what is found out between them."""

    def __init__(
        self,
        request: AblateRequest,
        bench: Bench,
        ends: Ends,
        measures: Sequence[Measure],
        lab: Lab,
    ) -> None:
        super().__init__(bench)
        self._request = request
        self._measures = measures
        self._configs: tuple[Config, Config] = ends[0].config(), ends[1].config()
        self._lab = lab
        self._units: tuple[OptionGroup, ...] = ()
        self._decisions: dict[str, GroupDecision] = {}
        self._sizes: dict[frozenset[str], int] = {NOTHING: ends[0].built.image_bytes}

    async def run(self, ends: Ends) -> AblationReport:
        """Find out what is asked between the ends."""
        with interruptible():
            self._decisions = self._decide(ends)
        pruned = sum(one.outcome is not None for one in self._decisions.values())
        self._lab.progress.log(f"{len(self._units)} option groups, {pruned} of them ruled out")
        answer = await self._search()
        kept = [unit for unit in self._units if self._decisions[unit.name].outcome is None]
        shares: dict[str, SwitchShare] = {}
        if self._request.switches:
            shares = await switch_shares(self._bench, self.ends[0], kept, self._configs[0])
        changes = self._changes() if self._measures else {}
        judged = await self.judged(self._lab, self._measures, changes)
        return self._assembled(answer, shares, changes, judged)

    def _decide(self, ends: Ends) -> dict[str, GroupDecision]:
        """Return the option groups, and which of them need no kernel."""
        with workbench(ends[0].built, self._lab.progress.log) as bench:
            step = "units"
            self._lab.progress.begin(step)
            self._units = find_units(
                *self._configs,
                bench.normalize(),
                bench.kconfig(),
                lambda what: self._lab.progress.doing(step, what),
            )
            self._lab.progress.end(step, f"{len(self._units)}")
            self._last = frozenset(unit.name for unit in self._units)
            self._measured |= zip((NOTHING, self._last), ends, strict=True)
            if not self._request.rule_out:
                return {u.name: GroupDecision(u.name, None, "", 0, 0) for u in self._units}
            before, after = (built_side(end.built, end.done, self._lab.store) for end in ends)
            sides = before, after
            reached = by_execution(sides, self._units, bench)
            recompiler = Recompiler(self._configs, self._units, sides, bench, self._lab.progress)
            return {
                name: recompiler.decide(one)
                if self._request.recompile and isinstance(one, NotExcluded)
                else decided(one, sides)
                for name, one in reached.items()
            }

    async def _kernel(self, label: str, chosen: Collection[str]) -> MeasuredKernel:
        """A with these option groups flipped, built and run."""
        with interruptible():
            with workbench(self.ends[0].built, self._lab.progress.log) as bench:
                config = flipped(*self._configs, self._units, chosen, bench.normalize())
            found = self._bench.build(label, config_file(config))
        measured = await self._bench.measure(label, found)
        if measured.kernel is not None and measured.failure:
            self._bench.builds.note(measured)
        elif measured.kernel is not None:
            granted = parse_config(Path(measured.kernel.config or "").read_text())
            if explain_diff(config, granted):
                raise LabError(
                    f"{label}: the tree grants another config than it said",
                    "please report this with the two configs",
                )
        return measured

    async def _search(self) -> SearchAnswer:
        units = [
            Candidate(
                name=unit.name,
                needs=unit.needs,
                prior=self._decisions[unit.name].chance,
                pruned=self._decisions[unit.name].outcome is not None,
            )
            for unit in self._units
        ]

        def distance(one: FlipSet, other: FlipSet) -> float:
            """What building one after the other costs: the objects that what differs reaches."""
            return float(sum(self._decisions[name].objects for name in one ^ other))

        search = self._begin(units)
        alone = [one for one in units if not one.pruned] if self._request.one_by_one else []
        self._bench.expect(len(alone))
        for flips in (frozenset({one.name, *one.needs}) for one in alone):
            measured = await self._kernel(f"{', '.join(sorted(flips))} from A", flips)
            search = search.observe(flips, measured.outcome, self._built(measured))
        search = await self.settled(search)
        while plans := search.next_builds(distance):
            plan = plans[0]
            self._bench.expect(len(plans))
            measured = await self._kernel(f"{plan.step.value}: {plan.reason}", plan.flips)
            search = search.observe(plan.flips, measured.outcome, self._built(measured))
            search = await self.settled(search)
        return search.answer()

    def _built(self, measured: MeasuredKernel) -> frozenset[str] | None:
        """The option groups that are flipped in a kernel; None where there is none."""
        if measured.kernel is None:
            return None
        flips = flipped_units(self._configs[0], self._units, measured.config())
        self._sizes[flips] = measured.built.image_bytes
        if not measured.failure:
            self._measured.setdefault(flips, measured)
        return flips

    def _changes(self) -> dict[str, tuple[FlipSet, FlipSet]]:
        """Return the pairs of kernels that differ by all option groups, and by each of those that
        two kernels differ by alone: an option group whose effect was inferred from kernels with
        others flipped as well has a path effect only. Those on top of A come first.
        """
        alone = {unit.name: kernels_below(unit.name, self._measured) for unit in self._units}
        known = [(flips, name) for name, flips in alone.items() if flips is not None]
        known.sort(key=lambda one: (len(one[0]), sorted(one[0])))
        whole = {WHOLE: (NOTHING, self._last)}
        return whole | {name: (flips, flips | {name}) for flips, name in known}

    def _unlike(self, cpu: CPU) -> tuple[Mismatch, ...]:
        """Return what A or B did otherwise than on the CPU; what both did, once."""
        return merged_unlike(
            msgspec.structs.replace(
                one, regions=tuple(self._bench.named(region, workload) for region in one.regions)
            )
            for who, end in zip("AB", self.ends, strict=True)
            for workload, side in end.sides().items()
            for one in unlike(cpu, side.done[0], self._lab.store, who)
        )

    def _begin(self, units: Sequence[Candidate]) -> Search:
        before, after = (end.run for end in self.ends)
        return begin(units, before, after, Limits(max_builds=self._request.max_builds))

    def _assembled(
        self,
        answer: SearchAnswer,
        shares: Mapping[str, SwitchShare],
        changes: Mapping[str, tuple[FlipSet, FlipSet]],
        judged: JudgedChanges,
    ) -> AblationReport:
        """Return the report of an ablation that came to its end."""
        store, (before, after) = self._lab.store, self.ends
        found = {one.name: one for one in answer.units}
        ended = end_notes(("A", "B"), (before.done, after.done), self._request.cpu, store)
        return msgspec.structs.replace(
            _begin(self._request, self._bench, self.ends, store),
            options=len(explain_diff(*self._configs)),
            regions=regions_between(self.ends, answer.sums),
            option_groups=(
                *(
                    msgspec.structs.replace(
                        self._group(one, found[one.name], shares),
                        measured=judged.measured(one.name),
                        flipped=tuple(sorted(changes.get(one.name, (NOTHING,))[0])),
                    )
                    for one in self._units
                ),
                *map(_together, answer.groups),
            ),
            interactions=tuple(Interaction(one.units, one.effects) for one in answer.interactions),
            proof=answer.proof,
            strategy=answer.strategy,
            notes=(*answer.notes, *judged.notes, *ended),
            mismatches=self._unlike(self._request.cpu) if self._request.cpu else (),
            measured=judged.measured(WHOLE),
            mean=answer.mean,
        )

    def _group(
        self, unit: OptionGroup, found: UnitAnswer, shares: Mapping[str, SwitchShare]
    ) -> AblatedGroup:
        decision = self._decisions[unit.name]
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
            vmlinux_bytes=self._grown(unit),
            switch=shares.get(unit.name),
        )

    def _grown(self, unit: OptionGroup) -> int | None:
        """Return what flipping an option group adds to vmlinux, where two kernels differ by it
        alone.
        """
        needs = frozenset(unit.needs)
        before, after = self._sizes.get(needs), self._sizes.get(needs | {unit.name})
        return None if before is None or after is None else after - before


async def switch_shares(
    bench: Bench, before: MeasuredKernel, units: Sequence[OptionGroup], config: Config
) -> dict[str, SwitchShare]:
    """For each option group that A can switch at boot, what A does with it switched."""
    found: dict[str, SwitchShare] = {}
    for unit in units:
        switch = boot_switch([(flip.option, flip.after) for flip in unit.options], config)
        if switch is None or before.kernel is None:
            continue
        switched = await bench.measure(f"A with {switch.words}", before.kernel, append=switch.words)
        if switched.failure:
            continue
        found[unit.name] = SwitchShare(
            words=switch.words,
            whole=switch.share == "default",
            effects=_effects(before, switched),
        )
    return found


def _effects(before: MeasuredKernel, switched: MeasuredKernel) -> dict[str, Estimate]:
    """What the words do, by region and in the mean, by the rules for option groups."""
    plain, with_words = FlipSet(), FlipSet({"switched"})
    kernels = ObservedKernels([(plain, before.outcome), (with_words, switched.outcome)])
    return kernels.with_mean(minus(with_words, plain))


def _begin(request: AblateRequest, bench: Bench, ends: Ends, store: Store) -> AblationReport:
    names = Path(request.before).name, Path(request.after).name
    return AblationReport(
        tree=request.tree,
        names=names,
        ends=(ends[0].side(names[0], store), ends[1].side(names[1], store)),
        workloads=titles_of(request.workloads, request.program),
        machine=facts_of_machine(ends[0].done or ends[1].done, store),
        options=0,
        regions=(),
        option_groups=(),
        interactions=(),
        proof=None,
        builds=tuple(bench.builds.made),
        strategy="",
        warnings=warnings_of(ends),
        cpu=_cpu(request.cpu) if request.cpu else None,
    )


def _cpu(cpu: CPU) -> ReportedCPU:
    """Of what is not replayed, no price matters."""
    found = reported_cpu(cpu)
    guessed = tuple(kind for kind in found.without_measured_cost if kind in caches_of(cpu))
    return msgspec.structs.replace(found, without_measured_cost=guessed)


def _together(group: GroupAnswer) -> AblatedGroup:
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
