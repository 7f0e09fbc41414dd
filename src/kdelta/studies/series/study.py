# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series`: both ends, ruling out, the proof, the search, the smallest set, the branch."""

import filecmp
from collections.abc import Collection, Iterator

from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.chance import is_doubtful
from kdelta.infer.effects.estimate import Estimate, effect_between, is_seen
from kdelta.infer.reach.reach import Excluded, Reach
from kdelta.infer.reach.touched import TouchedFiles
from kdelta.infer.search.additive import ObservedKernels, difference
from kdelta.infer.search.minimal import MinimalSearch, SetVerdict, Trial
from kdelta.infer.search.search_model import (
    Candidate,
    Failed,
    FlipSet,
    Limits,
    Outcome,
    Step,
    builds_left,
)
from kdelta.infer.search.search_model import Measured as Run
from kdelta.infer.search.series import SeriesSearch, begin_series
from kdelta.infer.search.series_plan import TRIES
from kdelta.kernels.kbuild.built import VMLINUX
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.series import likely_needs
from kdelta.lab.lab import Lab
from kdelta.lab.work import works_of
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import RunStatus
from kdelta.studies.search.closer import reach_looked_closer
from kdelta.studies.search.measure import Bench, MeasuredKernel, measured_tree
from kdelta.studies.series.assemble import SeriesFindings, assemble, failed
from kdelta.studies.series.keep import check_branch, keep
from kdelta.studies.series.model import Minimal, SeriesReport
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.trees import Trees, spec_of

NOTHING: FlipSet = frozenset()
_EQUAL = "equal images: with all patches the kernel is, byte for byte, what it is without them"


async def run_series(request: SeriesRequest, lab: Lab) -> SeriesReport:
    """The effects of a series' patches; what of it is there already is not made again."""
    lab = lab.asked(request.lab)
    works = works_of(request.workloads, program=request.program, specs=[request.tree])
    if request.keep:
        check_branch(request.keep)
    with interruptible():
        spec = spec_of(request.tree, parse_kernel_spec(request.tree))
        trees = Trees(spec, request.patches, lab)
    bench = Bench(request.tree, works, lab)
    study = _SeriesStudy(request, trees, bench, lab)
    if not await study.measure_ends():
        return failed(request, trees, study.ends, lab.store)
    return await study.run()


class _SeriesStudy:
    """The kernels of a series' trees, and what is found out from them."""

    def __init__(
        self,
        request: SeriesRequest,
        trees: Trees,
        bench: Bench,
        lab: Lab,
    ) -> None:
        self._request = request
        self._trees = trees
        self._bench = bench
        self._lab = lab
        self._everything: FlipSet = frozenset(trees.names)
        self._measured: dict[FlipSet, MeasuredKernel] = {}
        self._rerun: set[FlipSet] = set()

    @property
    def ends(self) -> tuple[MeasuredKernel, MeasuredKernel]:
        """The tree without and with all patches."""
        return self._measured[NOTHING], self._measured[self._everything]

    async def measure_ends(self) -> bool:
        """Builds and runs both; whether both went well."""
        complete = self._request.rule_out
        self._bench.expect(2)
        await self._kernel("without the patches", NOTHING, complete=complete)
        await self._kernel("with all patches", self._everything, complete=complete)
        if any(end.failure for end in self.ends):
            return False
        ends = self._bench.comparable(self.ends, None)
        self._measured[NOTHING], self._measured[self._everything] = ends
        return True

    async def run(self) -> SeriesReport:
        """All that is asked."""
        with interruptible():
            reached = self._reach()
            suspects = likely_needs(self._trees.patches)
        pruned = {name for name, one in reached.items() if isinstance(one, Excluded)}
        self._lab.progress.log(f"{len(self._trees.names)} patches, {len(pruned)} of them ruled out")
        patches = [
            Candidate(
                name=name,
                needs=tuple(need.patch for need in self._trees.needs[name]),
                suspects=tuple(suspects[name]),
                pruned=name in pruned,
            )
            for name in self._trees.names
        ]
        search = await self._search(patches)
        minimal = await self._minimal(patches, search) if self._request.minimal else None
        findings = SeriesFindings(reached, search.answer(), minimal)
        report = assemble(self._request, self._trees, self.ends, self._lab.store, findings)
        if self._request.keep:
            with interruptible():
                report = keep(self._request, self._trees, report, self._lab.progress)
        return report

    def _reach(self) -> dict[str, Reach]:
        if not self._request.rule_out or not self._trees.names:
            return {}
        if self._is_equal():
            return {name: Excluded(name, 0, _EQUAL) for name in self._trees.names}
        built = [end.built for end in self.ends]
        files = self._trees.files
        return reach_looked_closer(
            self._trees.spec,
            built,
            [
                measured_tree(one, end.done, self._lab.store)
                for one, end in zip(built, self.ends, strict=True)
            ],
            [TouchedFiles(name, frozenset(files[name])) for name in self._trees.names],
            states=self._trees.around,
            progress=self._lab.progress,
            recompile=self._request.recompile,
        )

    def _is_equal(self) -> bool:
        """Whether both ends are one kernel, byte for byte, so that there is nothing to explain."""
        one, other = (end.built for end in self.ends)
        same = one.identity == other.identity
        return same and filecmp.cmp(one.path / VMLINUX, other.path / VMLINUX, shallow=False)

    async def _kernel(self, label: str, chosen: FlipSet, *, complete: bool = False) -> Outcome:
        """The tree with these patches, built and run."""
        with interruptible():
            found = self._trees.kernel(label, chosen, complete=complete)
        if isinstance(found, PatchFailure):
            return Failed(RunStatus.DOES_NOT_APPLY, f"{found.patch}: {found.detail}")
        measured = await self._bench.measure(label, found)
        if measured.failure and measured.kernel is not None:
            self._trees.note(measured.status, measured.failure)
        self._measured[chosen] = measured
        return measured.outcome

    async def _observed(self, search: SeriesSearch, chosen: FlipSet, label: str) -> SeriesSearch:
        count = len(self._trees.builds)
        outcome = await self._kernel(label, chosen)
        return search.observe(chosen, outcome, built=len(self._trees.builds) > count)

    def _begin(self, patches: list[Candidate]) -> SeriesSearch:
        without, everything = (Run(end.code, end.parts, end.runs) for end in self.ends)
        limits = Limits(max_builds=self._request.max_builds, tries=TRIES)
        return begin_series(patches, without, everything, self._request.views, limits)

    async def _search(self, patches: list[Candidate]) -> SeriesSearch:
        search = await self._sure(self._begin(patches))
        while builds := search.next_builds():
            build = builds[0]
            self._bench.expect(len(builds))
            if self._request.minimal and build.step is not Step.PROOF:
                break
            search = await self._observed(
                search, build.flips, f"{build.step.value}: {build.reason}"
            )
            if build.step is Step.PROOF and await self._more_runs(build.flips):
                search = self._begin(patches).observe(
                    build.flips, self._measured[build.flips].outcome
                )
            search = await self._sure(search)
        return search

    async def _sure(self, search: SeriesSearch) -> SeriesSearch:
        """The search with more runs of the kernels of which few leave differences to chance."""
        while doubted := sorted(search.doubted - self._rerun, key=sorted):
            again = await self._more(doubted[0])
            search = search.observe(doubted[0], again.outcome, built=False)
        return search

    async def _more(self, names: FlipSet) -> MeasuredKernel:
        self._rerun.add(names)
        self._measured[names] = await self._bench.more_runs(self._measured[names])
        return self._measured[names]

    async def _more_runs(self, chosen: FlipSet) -> bool:
        """Whether the proof's kernel parts from that with all patches, so that more runs were made
        of both: the spread of a few runs is itself uncertain.
        """
        runs = self._request.more_runs
        proof = self._measured.get(chosen)
        if proof is None or proof.failure or runs <= self._request.lab.perturbations:
            return False
        if not _are_parted(self.ends[1], proof):
            return False
        self._lab.progress.log(f"the proof does not hold with so few runs: {runs} of both ends")
        for names in (self._everything, chosen):
            before = self._measured[names]
            again = await self._bench.measure(before.label, before.found, runs=runs)
            if again.failure:
                return False
            self._measured[names] = again
        return True

    async def _minimal(self, patches: list[Candidate], search: SeriesSearch) -> Minimal | None:
        """The smallest set with the effect; None where there is none to speak of."""
        if self._verdict(NOTHING) is SetVerdict.HAS:
            return None
        proved = search.answer().proof.held is True
        needed = {need for one in patches if not one.pruned for need in one.needs}
        among = [one for one in patches if not (proved and one.pruned and one.name not in needed)]
        top = frozenset(one.name for one in among)
        known = [
            Trial(frozenset(names), self._verdict(names))
            for names in self._measured
            if names <= top
        ]
        if top not in self._measured:
            # The proof's kernel has the same path, with what its patches need and no others.
            known.append(Trial(top, SetVerdict.HAS))
        left = builds_left(self._request.max_builds, search.answer().builds)
        minimal = await self._minimized(MinimalSearch(tuple(among), tuple(known), left))
        answer = minimal.answer()
        names = frozenset(one.name for one in answer.members)
        effects = self._effects(names) if names in self._measured else {}
        return Minimal(answer, effects, self._request.within)

    async def _minimized(self, minimal: MinimalSearch) -> MinimalSearch:
        while builds := minimal.next_builds():
            build = builds[0]
            self._bench.expect(len(builds))
            count = len(self._trees.builds)
            outcome = await self._kernel(f"{build.step.value}: {build.reason}", build.flips)
            built = len(self._trees.builds) > count
            if isinstance(outcome, Failed):
                reason = f"{outcome.status.value}: {outcome.detail}"
                minimal = minimal.observe(build.flips, SetVerdict.UNRESOLVED, reason, built=built)
            else:
                if any(self._parting(build.flips)):
                    for names in sorted({build.flips, self._everything} - self._rerun, key=sorted):
                        await self._more(names)
                minimal = minimal.observe(build.flips, self._verdict(build.flips), built=built)
        return minimal

    def _verdict(self, names: FlipSet) -> SetVerdict:
        """Whether a measured tree has the effect of all patches: in every region, within the spread
        and that part of the whole effect.
        """
        if self._measured[names].failure:
            return SetVerdict.UNRESOLVED
        return SetVerdict.HAS if all(self._parting(names)) else SetVerdict.LACKS

    def _parting(self, names: FlipSet) -> Iterator[bool]:
        """For each region in which a tree lacks the effect of all patches: whether chance may have
        made it.
        """
        measured, (before, after) = self._measured[names], self.ends
        for region, whole in after.code.items():
            if region not in before.code or region not in measured.code:
                continue
            gap = effect_between(measured.code[region], whole)
            allowed = self._request.within * abs(whole.value - before.code[region].value)
            if min(abs(gap.low), abs(gap.high)) > allowed and is_seen(gap):
                runs = measured.runs.get(region), after.runs.get(region)
                yield bool(runs[0] and runs[1] and is_doubtful(runs[0], runs[1]))

    def _effects(self, names: Collection[str]) -> dict[str, Estimate]:
        chosen = frozenset(names)
        held = [(one, self._measured[one].outcome) for one in (NOTHING, chosen)]
        return ObservedKernels(held).with_mean(difference(chosen, NOTHING))


def _are_parted(end: MeasuredKernel, other: MeasuredKernel) -> bool:
    """Whether two kernels part in any region."""
    common = end.code.keys() & other.code.keys()
    return any(is_seen(effect_between(end.code[name], other.code[name])) for name in common)
