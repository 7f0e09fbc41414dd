# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate`: both ends, units, ruling out, the proof, the search, the switches."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.host.interrupt import interruptible
from kdelta.infer.estimate import Estimate
from kdelta.infer.reach import Kept
from kdelta.infer.search import (
    Answer,
    Flippable,
    Outcome,
    Search,
    choose,
    effects_between,
    is_nothing,
)
from kdelta.kernels.kconfig import Config, explain_diff, parse_config
from kdelta.kernels.units import Unit, find_units, flipped
from kdelta.kernels.workbench import workbench
from kdelta.report.ablation_model import AblationReport, Proof, SwitchShare
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.ablate.assemble import Findings, assemble, failed
from kdelta.studies.ablate.measure import Bench, Measured, config_file, end_config
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.rule_out import (
    Decision,
    Recompiler,
    by_execution,
    decided,
    kept_units,
    side_of,
)
from kdelta.studies.ablate.switch import switch_shares
from kdelta.studies.requests import Progress
from kdelta.workloads.catalog import find_workload


async def run_ablate(request: AblateRequest, store: Store, progress: Progress) -> AblationReport:
    """The ablation from one config to another; what of it is there already is not made again."""
    workloads = [find_workload(name) for name in request.workloads]
    paths = [
        end_config(Path(path), no_modules=request.no_modules)
        for path in (request.before, request.after)
    ]
    bench = Bench(request.tree, workloads, request.lab, store, progress)
    # B first: recompiling starts from A's objects.
    found = [bench.build(label, path) for label, path in zip("BA", reversed(paths), strict=True)]
    after, before = [
        await bench.measure(label, kernel) for label, kernel in zip("BA", found, strict=True)
    ]
    if before.failure or after.failure:
        return failed(request, bench, (before, after), store)
    study = _Study(request, bench, before, after, progress)
    return await study.run(store)


class _Study:
    """Two measured ends, and what is found out between them."""

    def __init__(
        self,
        request: AblateRequest,
        bench: Bench,
        before: Measured,
        after: Measured,
        progress: Progress,
    ) -> None:
        self._request = request
        self._bench = bench
        self._ends = before, after
        self._configs: tuple[Config, Config] = before.config(), after.config()
        self._progress = progress
        self._units: tuple[Unit, ...] = ()

    async def run(self, store: Store) -> AblationReport:
        with interruptible():
            decisions = self._decide()
        kept = kept_units(self._units, decisions)
        self._progress.say(
            f"{len(self._units)} units, {len(self._units) - len(kept)} of them ruled out"
        )
        proof, end = await self._prove(kept)
        if proof is not None and not proof.held:
            # The pruning was wrong: nothing stays ruled out.
            decisions = {
                name: msgspec.structs.replace(one, fate=None) for name, one in decisions.items()
            }
            kept, end = list(self._units), self._ends[1]
        floors = self._floors(end) if proof is not None and proof.held else {}
        answer, strategy = await self._search(kept, end, floors, decisions)
        shares = await self._switches(kept)
        return assemble(
            self._request,
            self._bench,
            self._ends,
            store,
            Findings(
                options=len(explain_diff(*self._configs)),
                units=self._units,
                decisions=decisions,
                answer=answer,
                strategy=strategy,
                proof=proof,
                switches=shares,
            ),
        )

    def _decide(self) -> dict[str, Decision]:
        """Units, and which of them need no kernel."""
        before = self._ends[0]
        with workbench(before.built, self._progress.say) as bench:
            step = "units"
            self._progress.begin(step)
            self._units = find_units(
                *self._configs,
                bench.normalize(),
                bench.kconfig(),
                lambda what: self._progress.doing(step, what),
            )
            self._progress.end(step, f"{len(self._units)}")
            if not self._request.rule_out:
                return {u.name: Decision(u.name, None, "", 0, 0) for u in self._units}
            sides = side_of(self._bench, before), side_of(self._bench, self._ends[1])
            reached = by_execution(sides, self._units, bench)
            recompiler = Recompiler(self._configs, self._units, sides[0], bench, self._progress)
            return {
                name: recompiler.decide(one)
                if self._request.recompile and isinstance(one, Kept)
                else decided(one)
                for name, one in reached.items()
            }

    async def _kernel(self, label: str, chosen: Collection[str]) -> Measured:
        """A with these units flipped, built and run."""
        with interruptible():
            with workbench(self._ends[0].built, self._progress.say) as bench:
                config = flipped(*self._configs, self._units, chosen, bench.normalize())
            found = self._bench.build(label, config_file("units", config))
        measured = await self._bench.measure(label, found)
        if measured.kernel is not None and not measured.failure:
            granted = parse_config(Path(measured.kernel.config or "").read_text())
            if explain_diff(config, granted):
                raise LabError(
                    f"{label}: the tree grants another config than it said",
                    "please report this with the two configs",
                )
        return measured

    async def _prove(self, kept: Sequence[Unit]) -> tuple[Proof | None, Measured]:
        """A with every kept unit flipped must have B's path; that kernel, and whether it has."""
        after = self._ends[1]
        if len(kept) == len(self._units):
            return None, after
        names = [unit.name for unit in kept]
        end = self._ends[0]
        if names:
            end = await self._kernel(f"proof: {len(names)} kept units flipped", names)
        if end.failure:
            return Proof(
                False, f"the kernel with all kept units flipped failed: {end.failure}"
            ), end
        differing = _differing(end, after)
        runs = self._request.lab.perturbations
        if differing and self._request.more_runs > runs:
            # The spread of a few runs is itself uncertain: more of them, before anything is said.
            runs = self._request.more_runs
            again = [
                await self._bench.measure(one.label, one.kernel, runs=runs)
                for one in (end, after)
                if one.kernel is not None
            ]
            differing = _differing(again[0], again[1])
        return _proof(after, len(names), runs, differing), end

    def _floors(self, end: Measured) -> dict[str, Fraction]:
        """By how much two kernels that execute the same code were seen to differ, by region."""
        effects = effects_between(end.code, self._ends[1].code)
        return {name: abs(effect.value) for name, effect in effects.items()}

    async def _search(
        self,
        kept: Sequence[Unit],
        end: Measured,
        floors: Mapping[str, Fraction],
        decisions: Mapping[str, Decision],
    ) -> tuple[Answer, str]:
        if not kept:
            return Answer((), ()), "nothing to search"
        units = [
            Flippable(unit.name, frozenset(unit.needs), decisions[unit.name].objects)
            for unit in kept
        ]
        strategy = self._request.strategy or choose(len(units))
        search = Search(units, self._ends[0].code, end.code, strategy, floors)
        built = 0
        while plan := search.next():
            if self._request.max_builds is not None and built >= self._request.max_builds:
                break
            measured = await self._kernel(plan.why, plan.flips)
            search.observe(plan.flips, Outcome(measured.code or None, measured.failure))
            built += 1
        return search.answer(), strategy.value

    async def _switches(self, kept: Sequence[Unit]) -> dict[str, SwitchShare]:
        if not self._request.switches:
            return {}
        return await switch_shares(self._bench, self._ends[0], kept, self._configs[0])


def _differing(end: Measured, after: Measured) -> dict[str, Estimate]:
    effects = effects_between(end.code, after.code)
    return {name: effect for name, effect in effects.items() if not is_nothing(effect)}


def _proof(after: Measured, kept: int, runs: int, differing: dict[str, Estimate]) -> Proof:
    regions = len(after.regions)
    what = f"A with {kept} kept units flipped" if kept else "A itself"
    if not differing:
        return Proof(
            True,
            f"{what} has B's path in all {regions} regions, exactly or within the spread of "
            f"{runs} perturbed runs",
        )
    worst = sorted(differing.items(), key=lambda row: -abs(row[1].value))[:3]
    named = ", ".join(f"{name} ({float(effect.value):+.2f})" for name, effect in worst)
    return Proof(
        False,
        f"{what} does not have B's path in {len(differing)} of {regions} regions, {named}: units "
        "were ruled out wrongly, so all of them were searched",
        differing,
    )
