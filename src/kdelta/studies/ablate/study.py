# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate`: both ends, option groups, ruling out, the proof, the search, the switches."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.estimate import Estimate, effect_between
from kdelta.infer.reach.reach import NotExcluded
from kdelta.infer.search.additive import ObservedKernels, difference
from kdelta.infer.search.search import Search, begin
from kdelta.infer.search.search_model import FlipSet, Limits, SearchAnswer, SearchUnit, Step
from kdelta.infer.search.search_model import Measured as Run
from kdelta.kernels.config.kconfig import Config, explain_diff, parse_config
from kdelta.kernels.config.option_groups import OptionGroup, find_units, flipped, flipped_units
from kdelta.kernels.config.switches import boot_switch
from kdelta.kernels.kbuild.workbench import workbench
from kdelta.lab.lab import Lab
from kdelta.lab.work import works_of
from kdelta.measures.model import Measure, MeasureRequest, recording
from kdelta.measures.registry import measures_of
from kdelta.spec.errors import LabError
from kdelta.studies.ablate.assemble import AblationFindings, assemble, failed
from kdelta.studies.ablate.model import AblationReport, SwitchShare
from kdelta.studies.ablate.pairs import FoundPairs, PairStudy
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.rule_out import GroupDecision, Recompiler, by_execution, decided
from kdelta.studies.search.measure import (
    Bench,
    Ends,
    MeasuredKernel,
    built_side,
    config_file,
    end_config,
)


async def run_ablate(request: AblateRequest, lab: Lab) -> AblationReport:
    """Measure what turns one config into another; what of it is there already is not made again."""
    works = works_of(request.workloads, program=request.program, specs=[request.tree])
    measures = measures_of(MeasureRequest(request.cpu, request.layouts, request.margin))
    bench = Bench(request.tree, works, lab.asked(recording(request.lab, measures)))
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
    after, before = [
        await bench.measure(label, kernel) for label, kernel in zip("BA", found, strict=True)
    ]
    if before.failure or after.failure:
        return failed(request, bench, (before, after), lab.store)
    before, after = bench.comparable((before, after), request.cpu, measures)
    return await _AblateStudy(request, bench, (before, after), measures, lab).run()


class _AblateStudy:
    """Two measured ends, and what is found out between them."""

    def __init__(
        self,
        request: AblateRequest,
        bench: Bench,
        ends: Ends,
        measures: Sequence[Measure],
        lab: Lab,
    ) -> None:
        self._request = request
        self._bench = bench
        self._ends = before, after = ends
        self._measures = measures
        self._configs: tuple[Config, Config] = before.config(), after.config()
        self._lab = lab
        self._units: tuple[OptionGroup, ...] = ()
        self._kernels: dict[FlipSet, MeasuredKernel] = {}
        self._rerun: set[FlipSet] = set()
        self._sizes: dict[frozenset[str], int] = {frozenset(): before.built.image_bytes}

    async def run(self) -> AblationReport:
        with interruptible():
            decisions = self._decide()
        pruned = sum(one.outcome is not None for one in decisions.values())
        self._lab.progress.log(f"{len(self._units)} option groups, {pruned} of them ruled out")
        answer = await self._search(decisions)
        kept = [unit for unit in self._units if decisions[unit.name].outcome is None]
        shares: dict[str, SwitchShare] = {}
        if self._request.switches:
            shares = await switch_shares(self._bench, self._ends[0], kept, self._configs[0])
        findings = AblationFindings(
            options=len(explain_diff(*self._configs)),
            units=self._units,
            decisions=decisions,
            answer=answer,
            switches=shares,
            sizes=self._sizes,
            pairs=await self._pairs(),
        )
        return assemble(self._request, self._bench, self._ends, self._lab.store, findings)

    def _decide(self) -> dict[str, GroupDecision]:
        """Option groups, and which of them need no kernel."""
        with workbench(self._ends[0].built, self._lab.progress.log) as bench:
            step = "units"
            self._lab.progress.begin(step)
            self._units = find_units(
                *self._configs,
                bench.normalize(),
                bench.kconfig(),
                lambda what: self._lab.progress.doing(step, what),
            )
            self._lab.progress.end(step, f"{len(self._units)}")
            if not self._request.rule_out:
                return {u.name: GroupDecision(u.name, None, "", 0, 0) for u in self._units}
            before, after = (built_side(end.built, end.done, self._lab.store) for end in self._ends)
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
            with workbench(self._ends[0].built, self._lab.progress.log) as bench:
                config = flipped(*self._configs, self._units, chosen, bench.normalize())
            found = self._bench.build(label, config_file(config))
        measured = await self._bench.measure(label, found)
        self._bench.note(measured)
        if measured.kernel is not None and not measured.failure:
            granted = parse_config(Path(measured.kernel.config or "").read_text())
            if explain_diff(config, granted):
                raise LabError(
                    f"{label}: the tree grants another config than it said",
                    "please report this with the two configs",
                )
        return measured

    async def _search(self, decisions: Mapping[str, GroupDecision]) -> SearchAnswer:
        units = [
            SearchUnit(
                name=unit.name,
                needs=unit.needs,
                prior=decisions[unit.name].chance,
                pruned=decisions[unit.name].outcome is not None,
            )
            for unit in self._units
        ]

        def distance(one: FlipSet, other: FlipSet) -> float:
            """What building one after the other costs: the objects that what differs reaches."""
            return float(sum(decisions[name].objects for name in one ^ other))

        search = self._begin(units)
        alone = [one for one in units if not one.pruned] if self._request.one_by_one else []
        self._bench.expect(len(alone))
        for flips in (frozenset({one.name, *one.needs}) for one in alone):
            measured = await self._kernel(f"{', '.join(sorted(flips))} from A", flips)
            search = search.observe(flips, measured.outcome, self._built(measured))
        search = await self._sure(search)
        while plans := search.next_builds(distance):
            plan = plans[0]
            self._bench.expect(len(plans))
            measured = await self._kernel(f"{plan.step.value}: {plan.reason}", plan.flips)
            if plan.step is Step.PROOF and await self._more_runs(measured):
                # B has more runs now: what was known before is told again.
                measured = await self._bench.measure(
                    measured.label, measured.found, runs=self._request.more_runs
                )
                search = self._again(search, units)
            search = search.observe(plan.flips, measured.outcome, self._built(measured))
            search = await self._sure(search)
        return search.answer()

    async def _sure(self, search: Search) -> Search:
        """The search with more runs of the kernels of which few leave differences to chance."""
        while doubted := sorted(search.doubted - self._rerun, key=sorted):
            flips = doubted[0]
            self._rerun.add(flips)
            before, after = self._ends
            everything = frozenset(unit.name for unit in self._units)
            known = {**self._kernels, everything: after, frozenset(): before}
            again = await self._bench.more_runs(known[flips])
            if flips in self._kernels:
                self._kernels[flips] = again
            if flips in (frozenset(), everything):
                self._ends = (before, again) if flips else (again, after)
            search = search.observe(flips, again.outcome)
        return search

    def _built(self, measured: MeasuredKernel) -> frozenset[str] | None:
        """The option groups that are flipped in a kernel; None where there is none."""
        if measured.kernel is None:
            return None
        flips = flipped_units(self._configs[0], self._units, measured.config())
        self._sizes[flips] = measured.built.image_bytes
        if not measured.failure:
            self._kernels[flips] = measured
        return flips

    async def _pairs(self) -> FoundPairs | None:
        """Return what measures besides the path say, where any is asked for."""
        if not self._measures:
            return None
        names = [unit.name for unit in self._units]
        before, after = self._ends
        kernels = {**self._kernels, frozenset(): before, frozenset(names): after}
        study = PairStudy(self._measures, self._bench, self._lab)
        return await study.find(kernels, names, self._request.cpu)

    def _begin(self, units: Sequence[SearchUnit]) -> Search:
        before, after = (Run(end.code, end.parts, end.runs) for end in self._ends)
        return begin(units, before, after, Limits(max_builds=self._request.max_builds))

    def _again(self, search: Search, units: Sequence[SearchUnit]) -> Search:
        fresh = self._begin(units)
        known = {one.flips for one in fresh.observed}
        for one in search.observed:
            if one.flips not in known:
                fresh = fresh.observe(one.flips, one.outcome)
        return fresh

    async def _more_runs(self, end: MeasuredKernel) -> bool:
        """Whether the proof's kernel parts from B, so that more runs were made of B: the spread of
        a few runs is itself uncertain.
        """
        before, after = self._ends
        if end.failure or self._request.more_runs <= self._request.lab.perturbations:
            return False
        common = after.code.keys() & end.code.keys()
        effects = [effect_between(end.code[name], after.code[name]) for name in common]
        if all(effect.low <= 0 <= effect.high for effect in effects):
            return False
        runs = self._request.more_runs
        self._ends = before, await self._bench.measure(after.label, after.found, runs=runs)
        return True


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
    return kernels.with_mean(difference(with_words, plain))
