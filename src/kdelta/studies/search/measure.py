# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of one tree: built, run, and what each of them holds and executes."""

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.executed import decode_executed
from kdelta.counts.model import RegionCounts, is_kernel
from kdelta.cpus.model import CPU
from kdelta.host.dirs import cache_dir
from kdelta.host.files import expanded, lab_errors, write_atomic
from kdelta.infer.effects.by_region import region_runs
from kdelta.infer.effects.estimate import ZERO, Estimate, effect_between
from kdelta.infer.effects.paths import RegionPath, background_rates, function_paths, region_paths
from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.touched import Tree, tree_of
from kdelta.infer.search.search_model import Failed, FlipSet, JudgedPath, Outcome, RegionSum
from kdelta.infer.search.search_model import Measured as Run
from kdelta.kernels.config.kconfig import (
    Config,
    parse_config,
    render_config,
    without_modules,
)
from kdelta.kernels.kbuild.built import DEPENDENCIES, DIGEST, BuiltKernel, forget_built, load_built
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.dependencies import load_dependencies
from kdelta.kernels.objects.digest_file import is_current, load_digest
from kdelta.kernels.sources.given import given_in
from kdelta.lab.found import with_all_files
from kdelta.lab.lab import EXECUTED, Lab, RunResult
from kdelta.lab.progress import Progress
from kdelta.lab.recorded import recorded_runs
from kdelta.lab.reports import reported_side
from kdelta.lab.steps import expect_runs
from kdelta.lab.work import Work
from kdelta.measures.model import Measure, RunSide
from kdelta.measures.path.comparable import judged_ends
from kdelta.report.model import KernelRuns
from kdelta.report.words import OTHERS
from kdelta.spec.change import BaseConfigChange
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec, with_changes
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.search.model import INSTRUCTIONS, AblatedRegion, AblationBuild
from kdelta.studies.search.pairs import PathOfPairs


class SearchedRegion(msgspec.Struct, frozen=True):
    """A region's path, or (rate) what interrupts or other tasks do a virtual second, or what a
    measure counts in that unit.
    """

    workload: str
    path: RegionPath
    rate: bool = False
    unit: str = INSTRUCTIONS


class MeasuredKernel(msgspec.Struct, frozen=True):
    """A kernel or why there is none, its runs, and what they executed by region, and by region and
    function; nothing if it failed, see `failure` and `status`. `runs`: the regions by
    the index of each run's perturbation, by which differences are judged. `judged`: see `Run`.
    """

    label: str
    found: Kernel | NoKernel
    done: tuple[RunResult, ...]
    regions: dict[str, SearchedRegion]
    failure: str = ""
    status: RunStatus = RunStatus.OK
    parts: dict[str, dict[str, Estimate]] = {}
    runs: dict[str, dict[int, RegionCounts]] = {}
    judged: dict[FlipSet, dict[str, JudgedPath]] = {}

    @property
    def kernel(self) -> Kernel | None:
        return None if isinstance(self.found, NoKernel) else self.found

    @property
    def code(self) -> dict[str, Estimate]:
        """The path of each region, without lookups by address."""
        return {name: region.path.code for name, region in self.regions.items()}

    @property
    def outcome(self) -> Outcome:
        """Return what a search is given of it."""
        return Failed(self.status, self.failure) if self.failure else self.run

    @property
    def run(self) -> Run:
        """Return what it executes."""
        version = self.kernel.version if self.kernel else ""
        return Run(self.code, self.parts, self.runs, version, self.judged)

    @property
    def built(self) -> BuiltKernel:
        """The record of its kernel; LabError when it was removed meanwhile."""
        found = load_built(self.kernel.built) if self.kernel and self.kernel.built else None
        if found is None:
            raise LabError(f"{self.label} is not in the cache any more", "run this again")
        return found

    def side(self, name: str, store: Store) -> KernelRuns:
        """What is reported of it, under that name."""
        return reported_side(name, self.kernel, self.done, self.failure, store)

    def sides(self) -> dict[str, RunSide]:
        """Return its runs that went well, by workload."""
        good = [one for one in self.done if one.counts is not None]
        return {
            name: RunSide(
                self.label, self.kernel, tuple(one for one in good if one.run.workload == name)
            )
            for name in dict.fromkeys(one.run.workload for one in good)
        }

    def without(self, names: Collection[str]) -> "MeasuredKernel":
        """The same without these regions."""
        regions, parts, runs = (
            {name: one for name, one in of.items() if name not in names}
            for of in (self.regions, self.parts, self.runs)
        )
        return msgspec.structs.replace(self, regions=regions, parts=parts, runs=runs)

    def config(self) -> Config:
        built = self.built
        with lab_errors("reading", built.path):
            return parse_config((built.path / built.config).read_text())


Ends = tuple[MeasuredKernel, MeasuredKernel]


def warnings_of(ends: Ends) -> tuple[str, ...]:
    """The warnings of what ran well in both, each once."""
    found = (one.counts.warnings for end in ends for one in end.done if one.counts)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))


def nothing_to_compare(ends: Ends, names: Sequence[str]) -> str:
    """Why there is nothing to go by, by what the ends are called."""
    words = [f"{who}: {end.failure}" for who, end in zip(names, ends, strict=True) if end.failure]
    return f"nothing to compare: {'; '.join(words)}"


def regions_between(ends: Ends, sums: Mapping[str, RegionSum]) -> tuple[AblatedRegion, ...]:
    """Return the regions of both ends whose parts were summed up."""
    before, after = ends
    return tuple(
        AblatedRegion(
            workload=region.workload,
            name=name,
            before=region.path.code,
            after=_with_value(after.regions[name].path.code, region.path.code, sums[name].whole),
            whole=sums[name].whole,
            explained=sums[name].explained,
            remainder=sums[name].remainder,
            lookups=effect_between(region.path.lookups, after.regions[name].path.lookups),
            rate=region.rate,
            unit=region.unit,
            widest=sums[name].widest,
        )
        for name, region in before.regions.items()
        if name in after.regions and name in sums
    )


def _with_value(after: Estimate, before: Estimate, whole: Estimate) -> Estimate:
    """Return the cost at an end as the whole effect has it, of which more runs were made."""
    more = before.value + whole.value - after.value
    moved = {name: getattr(after, name) + more for name in ("value", "low", "high")}
    return msgspec.structs.replace(after, **moved) if more else after


class Builds:
    """The kernels of a search in the order in which they were obtained."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.made: list[AblationBuild] = []

    def announce(self, label: str) -> None:
        """Log which kernel comes next."""
        self._progress.log(f"kernel {len(self.made) + 1}: {label}")

    def add(self, label: str, found: Kernel | NoKernel) -> None:
        """Enter a kernel; it took no time if it is in the list already."""
        if isinstance(found, NoKernel):
            entry = AblationBuild(
                label, found.status.value, found.detail, 0.0, found.identity, None
            )
        else:
            built = load_built(found.built) if found.built else None
            is_new = all(one.identity != found.identity for one in self.made)
            seconds = built.seconds if built and is_new else None
            size = built.image_bytes if built else None
            entry = AblationBuild(label, RunStatus.OK.value, "", seconds, found.identity, size)
        self.made.append(entry)

    def note(self, measured: "MeasuredKernel") -> None:
        """Enter how the kernel that was obtained last failed."""
        self.made[-1] = msgspec.structs.replace(
            self.made[-1], status=measured.status.value, detail=measured.failure
        )


class Bench:
    """Builds and measures, and keeps the list of kernels."""

    def __init__(
        self, tree: str, works: Sequence[Work], lab: Lab, measures: Sequence[Measure] = ()
    ) -> None:
        """measures: whose figures are further regions of kernels, by which they are searched."""
        self._measures = measures
        self._spec = source_spec(tree, "an ablation")
        self._works = works
        self._lab = lab
        self._settled = False
        self._paths: dict[str, PathOfPairs] = {}
        self.left_out: frozenset[str] = frozenset()
        self.builds = Builds(lab.progress)

    def build(self, label: str, config: Path, *, digest: bool = False) -> Kernel | NoKernel:
        """Return the kernel of a whole config in a file; built again if its digest is needed, and
        is one that an earlier kdelta made.
        """
        spec = with_changes(self._spec, [BaseConfigChange(str(config))])
        self.builds.announce(label)
        found = self._lab.kernel(str(spec))
        if digest and not isinstance(found, NoKernel):
            built = load_built(found.built or "")
            if built and not is_current(built.path / DIGEST):
                line = f"{label}: its digest was made by another kdelta: built again"
                self._lab.progress.log(line)
                forget_built(built)
                found = self._lab.kernel(str(spec))
        self.builds.add(label, found)
        return found

    def expect(self, kernels: int) -> None:
        """Reports that about so many more kernels will be built and run."""
        self._lab.progress.expect("build", kernels, rough=True)
        expect_runs(self._lab.progress, self._lab.request, kernels, len(self._works), rough=True)

    @property
    def runs(self) -> int:
        """Return how many runs of a kernel are asked for."""
        return self._lab.request.perturbations

    def log(self, text: str) -> None:
        """Log a line."""
        self._lab.progress.log(text)

    async def measure(
        self, label: str, kernel: Kernel | NoKernel, *, append: str = "", runs: int | None = None
    ) -> MeasuredKernel:
        """Runs all workloads under a kernel, with words added to its command line: then nothing is
        traced, even if the request says that one run is to be.
        """
        if isinstance(kernel, NoKernel):
            return MeasuredKernel(label, kernel, (), {}, kernel.text, kernel.status)
        # On the first kernel; for the others they are known.
        self._works = await with_all_files(self._works, [kernel], self._lab)
        works = [one.plan(kernel, self._lab.request) for one in self._works]
        kernels = [kernel] * len(works)
        if not self._settled:  # all kernels of a search are on the machine of its first
            self._lab = await self._lab.settled(kernels, works)
            self._settled = True
        request = self._lab.request
        if append:
            words = f"{request.machine.append} {append}".strip()
            machine = msgspec.structs.replace(request.machine, append=words)
            request = msgspec.structs.replace(
                request, machine=machine, trace=False, conflicts=False
            )
        if runs:
            request = msgspec.structs.replace(request, perturbations=runs)
        lab = self._lab.with_request(request)
        if request.trace:
            results = await recorded_runs(kernels, works, lab)
        else:
            results = await lab.runs(kernels, works)
        return self._measured(label, kernel, results)

    def _measured(
        self, label: str, kernel: Kernel, results: Sequence[list[RunResult]]
    ) -> MeasuredKernel:
        regions: dict[str, SearchedRegion] = {}
        parts: dict[str, dict[str, Estimate]] = {}
        runs: dict[str, dict[int, RegionCounts]] = {}
        failures, status = [], RunStatus.OK
        for work, done in zip(self._works, results, strict=True):
            counts = [one.counts for one in done if one.counts is not None]
            if not counts:
                run = done[0].run
                failures.append(f"{work.name}: {run.word}: {run.detail}")
                status = run.status or RunStatus.WORKLOAD_FAILED
                continue
            named = functools.partial(self._named, work=work)
            regions |= {
                named(name): SearchedRegion(work.name, path)
                for name, path in region_paths(counts).items()
            }
            parts |= {named(name): of for name, of in function_paths(counts).items()}
            runs |= {named(name): held for name, held in region_runs(counts).items()}
            for context, rate in background_rates(counts).items():
                name = f"{OTHERS[context]} ({work.name})"
                nothing = Estimate(ZERO, ZERO, ZERO, rate.n)
                regions[name] = SearchedRegion(
                    work.name, RegionPath(rate, rate, nothing), rate=True
                )
                parts[name] = {name: rate}
        every = tuple(one for done in results for one in done)
        if failures:
            return MeasuredKernel(label, kernel, every, {}, "; ".join(failures), status)
        found = MeasuredKernel(label, kernel, every, regions, parts=parts, runs=runs)
        return self._with_figures(found).without(self.left_out)

    def _with_figures(self, measured: MeasuredKernel) -> MeasuredKernel:
        """The kernel with the figures of measures, by a region's name and what follows it."""
        figures: dict[str, SearchedRegion] = {}
        for workload, side in measured.sides().items():
            for measure in self._measures:
                for region, value in measure.figures(self._lab, side).items():
                    nothing = Estimate(ZERO, ZERO, ZERO, value.n)
                    path = RegionPath(value, value, nothing)
                    shown = self.named(region, workload) + measure.where
                    figures[shown] = SearchedRegion(workload, path, unit=measure.unit)
        parts = {**measured.parts, **{name: {} for name in figures}}
        return msgspec.structs.replace(
            measured, regions={**measured.regions, **figures}, parts=parts
        )

    def comparable(
        self,
        ends: tuple[MeasuredKernel, MeasuredKernel],
        cpu: CPU | None,
        measures: Sequence[Measure] = (),
    ) -> tuple[MeasuredKernel, MeasuredKernel]:
        """Return both ends without the regions that a path decides which one of them has lost in
        the guest, and without these measures' figures of regions that have such a path at all;
        kernels that are measured later are without them, too. UserError if none is left.
        """
        decided: dict[str, str] = {}
        others: list[str] = []
        found = judged_ends((ends[0].done, ends[1].done), cpu, self._lab.store)
        for workload, judged in found.items():
            decided |= {self.named(name, workload): why for name, why in judged.decided.items()}
            lost = [self.named(name, workload) for name in judged.lost]
            others += [f"{name}{measure.where}" for measure in measures for name in lost]
        self.left_out = frozenset((*decided, *others))
        kept = ends[0].without(self.left_out), ends[1].without(self.left_out)
        if decided and all(region.rate for region in kept[0].regions.values()):
            raise UserError(
                f"the ends are not comparable: {next(iter(decided.values()))}",
                "name operations whose paths both ends have",
            )
        return kept

    async def compared(self, base: MeasuredKernel, other: MeasuredKernel) -> dict[str, JudgedPath]:
        """Return by region what compare says of two kernels, after as many runs as it makes."""
        ours, theirs = base.sides(), other.sides()
        found: dict[str, JudgedPath] = {}
        for work in self._works:
            if work.name in ours and work.name in theirs:
                path = self._paths.setdefault(work.name, PathOfPairs(work, self._lab))
                paths = await path.between(ours[work.name], theirs[work.name])
                found |= {self._named(name, work): one for name, one in paths.items()}
        return {name: one for name, one in found.items() if name in base.runs}

    def named(self, region: str, workload: str) -> str:
        """What a region of that workload is called here."""
        return self._named(region, next(one for one in self._works if one.name == workload))

    def _named(self, region: str, work: Work) -> str:
        owners = [one for one in self._works if one.has(region)]
        return f"{work.name}/{region}" if len(owners) > 1 else region


def source_spec(tree: str, who: str) -> SourceSpec:
    """Return the spec of a tree that kernels are built of. UserError for one that is built already.

    who: what builds them.
    """
    spec = parse_kernel_spec(tree)
    if not isinstance(spec, SourceSpec):
        raise UserError(
            f"not a source tree: {tree}",
            f"{who} builds kernels: name PATH, git:PATH@REV or deb-src:PACKAGE",
        )
    return spec


def config_file(config: Mapping[str, str]) -> Path:
    """A file with a whole config, in the cache; the same path for the same config."""
    text = render_config(config)
    path = cache_dir("configs") / f"units-{identity(text)[:12]}.config"
    write_atomic(path, text.encode())
    return path


def end_config(path: Path, *, no_modules: bool) -> Path:
    """Return a config that the user names, as a file; UserError if there is none. What it leaves
    out is as the tree has it by default, as in a defconfig.
    """
    given = given_in(BaseConfigChange(str(path)))
    if not no_modules or given is None:
        return expanded(path).absolute()
    text = render_config(without_modules(parse_config(given.text)))
    kept = cache_dir("configs") / f"{path.stem}-{identity(text)[:12]}.config"
    write_atomic(kept, text.encode())
    return kept


def is_complete(built: BuiltKernel) -> bool:
    """Whether a built kernel says what it holds and what it was made from; one that an earlier
    kdelta built may not.
    """
    return is_current(built.path / DIGEST) and (built.path / DEPENDENCIES).is_file()


def complete_kernel(spec: str, lab: Lab) -> Kernel | NoKernel:
    """The kernel of a spec that names a source, built again if it is not complete."""
    found = lab.kernel(spec)
    if isinstance(found, NoKernel):
        return found
    built = load_built(found.built or "")
    if built is None or is_complete(built):
        return found
    lab.progress.log("an earlier kdelta did not keep what this kernel was made from: built again")
    forget_built(built)
    return lab.kernel(spec)


def executed_names(done: Sequence[RunResult], store: Store) -> frozenset[str]:
    """The functions that runs executed since power-on, by name. LabError for a run that does not
    say.
    """
    names: frozenset[str] = frozenset()
    for one in done:
        if blob := one.run.attachments.get(EXECUTED):
            names |= decode_executed(store.get(blob)).names()
        elif one.counts is not None:
            raise LabError(
                f"run {one.run.id} does not say what was executed", "make it again: --rerun"
            )
    return names


def built_side(built: BuiltKernel, done: Sequence[RunResult], store: Store) -> BuiltSide:
    """A kernel's objects, and what its runs, of all workloads together, executed."""
    in_regions = {
        row.name
        for one in done
        if one.counts is not None
        for region in one.counts.regions
        for row in region.functions
        if is_kernel(row.origin)
    }
    return BuiltSide(
        digest=load_digest(built.path / DIGEST),
        executed=executed_names(done, store),
        measured=frozenset(in_regions),
    )


def measured_tree(built: BuiltKernel, done: Sequence[RunResult], store: Store) -> Tree:
    """A complete kernel with the same, and what it was made from."""
    return tree_of(built_side(built, done, store), load_dependencies(built.path / DEPENDENCIES))
