# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series`: both ends, ruling out, the proof, the search, the smallest set, the branch."""

import filecmp
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.by_region import is_doubtful
from kdelta.infer.effects.estimate import Estimate, effect_between, is_seen
from kdelta.infer.reach.reach import Excluded, NotExcluded, Reach
from kdelta.infer.reach.touched import TouchedFiles
from kdelta.infer.search.additive import ObservedKernels, minus
from kdelta.infer.search.minimal import MinimalSearch, SetVerdict, Trial
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    Failed,
    FlipSet,
    Limits,
    Outcome,
    PatchAnswer,
    PatchNeed,
    PatchOutcome,
    PlannedBuild,
    SeriesAnswer,
    Step,
    builds_left,
)
from kdelta.infer.search.series import SeriesSearch, begin_series
from kdelta.infer.search.series_plan import TRIES
from kdelta.kernels.kbuild.built import VMLINUX
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.sources.measured_branch import effects_of, must_be_free, parse_branch
from kdelta.kernels.sources.patches import Patch, PatchFailure
from kdelta.kernels.sources.series import likely_needs
from kdelta.lab.found import in_rounds
from kdelta.lab.lab import Lab
from kdelta.lab.reports import facts_of_machine
from kdelta.lab.work import titles_of, works_of
from kdelta.measures.model import Measure, recording
from kdelta.measures.path.comparable import end_notes
from kdelta.measures.registry import measures_of
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.search.closer import reach_looked_closer
from kdelta.studies.search.measure import (
    Bench,
    Ends,
    measured_tree,
    nothing_to_compare,
    regions_between,
    source_spec,
    warnings_of,
)
from kdelta.studies.search.pairs import JudgedChanges, not_known
from kdelta.studies.search.study import SearchStudy
from kdelta.studies.series.keep import keep_branch
from kdelta.studies.series.model import Minimal, SeriesGroup, SeriesReport, SeriesRow
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.trees import Trees

NAMES = ("without", "with all")
_SMALLEST = "the smallest set"
_EQUAL = "equal images: with all patches the kernel is, byte for byte, what it is without them"


@in_rounds
async def run_series(request: SeriesRequest, lab: Lab) -> SeriesReport:
    """Return the effects of a series' patches; what of it is there already is not made again."""
    request.timed.check()
    machine = request.lab.machine
    works = works_of(
        request.workloads, program=request.program, specs=[request.tree], machine=machine
    )
    measures = measures_of(request, works)
    lab = lab.with_request(recording(request.lab, measures))
    for measure in measures:
        measure.check(lab, ())
    if request.keep:
        must_be_free(parse_branch(request.keep))  # before hours of building
    with interruptible():
        spec = source_spec(request.tree, "a series")
        trees = Trees(spec, request.patches, lab)
    bench = Bench(request.tree, works, lab, [one for one in measures if one.searched])
    study = _SeriesStudy(request, trees, bench, measures, lab)
    if not await study.measure_ends():
        report = _begin(request, trees, study.ends, lab.store)
        failure = nothing_to_compare(study.ends, [one.label for one in study.ends])
        return msgspec.structs.replace(report, failure=failure)
    return await study.run()


class _SeriesStudy(SearchStudy):
    """The kernels of a series' trees, and what is found out from them."""

    def __init__(
        self,
        request: SeriesRequest,
        trees: Trees,
        bench: Bench,
        measures: Sequence[Measure],
        lab: Lab,
    ) -> None:
        super().__init__(bench, last=frozenset(trees.names))
        self._measures = measures
        self._request = request
        self._trees = trees
        self._lab = lab

    async def measure_ends(self) -> bool:
        """Builds and runs both; whether both went well."""
        complete = self._request.rule_out
        self._bench.expect(2)
        await self._kernel("without the patches", NOTHING, complete=complete)
        await self._kernel("with all patches", self._last, complete=complete)
        if any(end.failure for end in self.ends):
            return False
        self.comparable()
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
        judged = await self._judged(search, minimal)
        report = self._assembled(search.answer(), reached, minimal, judged)
        if self._request.keep:
            with interruptible():
                report = keep_branch(self._request, self._trees, report, self._lab.progress)
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
        if chosen in (self._first, self._last) and not isinstance(found, NoKernel):
            for measure in self._measures:
                measure.check(self._lab, [found])
        measured = await self._bench.measure(label, found)
        if measured.failure and measured.kernel is not None:
            self._trees.builds.note(measured)
        self._measured[chosen] = measured
        return measured.outcome

    async def _obtain(self, build: PlannedBuild) -> tuple[Outcome, bool]:
        """Return what came of a planned build, and whether a kernel was built for it."""
        count = len(self._trees.builds.made)
        outcome = await self._kernel(f"{build.step.value}: {build.reason}", build.flips)
        return outcome, len(self._trees.builds.made) > count

    def _begin(self, patches: list[Candidate]) -> SeriesSearch:
        without, everything = (end.run for end in self.ends)
        limits = Limits(max_builds=self._request.max_builds, tries=TRIES)
        return begin_series(patches, without, everything, self._request.views, limits)

    async def _search(self, patches: list[Candidate]) -> SeriesSearch:
        search = await self.settled(self._begin(patches))
        while builds := search.next_builds():
            build = builds[0]
            self._bench.expect(len(builds))
            if self._request.minimal and build.step is not Step.PROOF:
                break
            outcome, built = await self._obtain(build)
            search = await self.settled(search.observe(build.flips, outcome, built=built))
        return search

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
            outcome, built = await self._obtain(build)
            if isinstance(outcome, Failed):
                reason = f"{outcome.status.value}: {outcome.detail}"
                minimal = minimal.observe(build.flips, SetVerdict.UNRESOLVED, reason, built=built)
            else:
                if any(self._parting(build.flips)):
                    await self.compared(build.flips, self._last)
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
            judged = after.judged.get(names, {}).get(region)
            gap = judged.effect if judged else effect_between(measured.code[region], whole)
            allowed = self._request.within * abs(whole.value - before.code[region].value)
            if min(abs(gap.low), abs(gap.high)) > allowed and is_seen(gap):
                runs = measured.runs.get(region), after.runs.get(region)
                open_yet = bool(runs[0] and runs[1] and is_doubtful(runs[0], runs[1]))
                yield not judged.firm if judged else open_yet

    def _effects(self, names: Collection[str]) -> dict[str, Estimate]:
        chosen = frozenset(names)
        held = [(one, self._measured[one].outcome) for one in (NOTHING, chosen)]
        return ObservedKernels(held).with_mean(minus(chosen, NOTHING))

    async def _judged(self, search: SeriesSearch, minimal: Minimal | None) -> JudgedChanges:
        """Return what further measures say of each patch or group that does something, or of the
        smallest set, and of all patches.
        """
        groups = search.answer().groups
        names = {one.patches: _group_name(at) for at, one in enumerate(groups)}
        changes = {
            names.get(patches, patches[0]): pair for patches, pair in search.kernels().items()
        }
        why = "no patch was found that does something"
        if self._request.minimal:
            members = frozenset(one.name for one in minimal.answer.members) if minimal else NOTHING
            changes = {_SMALLEST: (NOTHING, members)} if members in self._measured else {}
            why = "no smallest set was found" if minimal else why
        if not changes or NOTHING in [pair[1] for pair in changes.values()]:
            return JudgedChanges(notes=not_known(self._measures, why))
        changes[NAMES[1]] = NOTHING, self._last
        return await self.judged(self._lab, self._measures, changes)

    def _assembled(
        self,
        answer: SeriesAnswer,
        reached: Mapping[str, Reach],
        minimal: Minimal | None,
        judged: JudgedChanges,
    ) -> SeriesReport:
        """Return the report of a study that came to its end."""
        trees, store, (without, everything) = self._trees, self._lab.store, self.ends
        known = [
            PatchNeed(name, (need.patch,), need.reason)
            for name, needs in trees.needs.items()
            for need in needs
        ]
        patches = {patch.name: patch for patch in trees.patches}
        ended = end_notes(NAMES, (without.done, everything.done), None, store)
        return msgspec.structs.replace(
            _begin(self._request, trees, self.ends, store),
            rows=tuple(
                _row(patches[one.name], one, trees, reached, judged) for one in answer.patches
            ),
            regions=regions_between(self.ends, answer.sums),
            groups=tuple(
                SeriesGroup(
                    **msgspec.structs.asdict(one), measured=judged.measured(_group_name(at))
                )
                for at, one in enumerate(answer.groups)
            ),
            needs=(*known, *answer.needs),
            interactions=answer.interactions,
            proof=answer.proof,
            minimal=minimal
            and msgspec.structs.replace(minimal, measured=judged.measured(_SMALLEST)),
            notes=(*trees.series.notes, *answer.notes, *judged.notes, *ended),
            mean=answer.mean,
            measured=judged.measured(NAMES[1]),
        )


def _begin(request: SeriesRequest, trees: Trees, ends: Ends, store: Store) -> SeriesReport:
    return SeriesReport(
        tree=request.tree,
        words=request.patches,
        ends=(ends[0].side(NAMES[0], store), ends[1].side(NAMES[1], store)),
        workloads=titles_of(request.workloads, request.program),
        machine=facts_of_machine(ends[0].done or ends[1].done, store),
        views=request.views,
        rows=tuple(
            SeriesRow(PatchAnswer(patch.name, PatchOutcome.UNRESOLVED, "", {}), patch.subject)
            for patch in trees.patches
        ),
        builds=tuple(trees.builds.made),
        notes=trees.series.notes,
        warnings=warnings_of(ends),
    )


def _group_name(at: int) -> str:
    """Return what reports call a group, by its place."""
    return f"group {at + 1}"


def _row(
    patch: Patch,
    answer: PatchAnswer,
    trees: Trees,
    reached: Mapping[str, Reach],
    judged: JudgedChanges,
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
        measured=judged.measured(patch.name),
    )
