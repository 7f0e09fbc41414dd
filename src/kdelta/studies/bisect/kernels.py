# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels of commits: built, run, and what each of them executes and holds; which failed."""

from collections.abc import Sequence

import msgspec

from kdelta.cpus.forced import FORCED_ON
from kdelta.host.dirs import data_dir
from kdelta.host.sealed import read_record, write_record
from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.reach import differences_that_matter
from kdelta.infer.reach.touched import Tree, tree_of
from kdelta.infer.search.search_model import BisectAnswer
from kdelta.infer.search.stretches import kernel
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.kbuild.built import DEPENDENCIES
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.dependencies import load_dependencies
from kdelta.kernels.sources.given import announce, given_in
from kdelta.kernels.sources.history import CommitRange
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import Source, source_of
from kdelta.lab.cpus import lab_like, machine_for
from kdelta.lab.lab import Lab
from kdelta.lab.work import works_of
from kdelta.measures.model import recording
from kdelta.measures.registry import measures_of
from kdelta.report import words
from kdelta.spec.change import parse_change
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import GitSpec, require_relinkable
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.search.measure import (
    Bench,
    MeasuredKernel,
    built_side,
    complete_kernel,
)
from kdelta.studies.search.pairs import JudgedChanges, not_known
from kdelta.studies.search.study import SearchStudy

FORMAT = 1


class FailedCommit(msgspec.Struct, frozen=True):
    """A commit whose kernel was refused, or failed to build, to boot or to run."""

    commit: str
    status: RunStatus
    detail: str
    identity: str


class _KeptSearch(msgspec.Struct, frozen=True):
    repository: str
    good: str
    bad: str
    failures: tuple[FailedCommit, ...] = ()
    format: int = FORMAT


class Journal:
    """The failures of one search, in a file of the data folder: the cache and the store keep the
    other kernels, and a search that was interrupted asks for the same commits again.
    """

    def __init__(
        self, commits: CommitRange, asked: Sequence[object], changes: Sequence[str]
    ) -> None:
        repository = str(commits.repository.resolve())
        facts = [repository, commits.good.name, commits.bad.name, list(asked)]
        key = identity({"facts": facts, "changes": [_content(one) for one in changes]})
        self.path = data_dir("bisect") / f"{key[:32]}.json"
        self._kept = _KeptSearch(repository, commits.good.name, commits.bad.name)
        found = read_record(self.path, _KeptSearch)
        self._kept = found if found and found.format == FORMAT else self._kept

    def failure(self, commit: str) -> FailedCommit | None:
        return next((one for one in self._kept.failures if one.commit == commit), None)

    def add(self, failure: FailedCommit) -> None:
        """Remembers a failure; it is on disk when this returns."""
        others = tuple(one for one in self._kept.failures if one.commit != failure.commit)
        self._kept = msgspec.structs.replace(self._kept, failures=(*others, failure))
        write_record(self.path, self._kept)

    def forget(self) -> None:
        """All failures are to be tried again."""
        self._kept = msgspec.structs.replace(self._kept, failures=())


def _content(change: str) -> str:
    """A change, and what its file holds."""
    given = given_in(parse_change(change))
    return f"{change} {identity(msgspec.to_builtins(given))}" if given else change


class Commits(SearchStudy):
    """Builds and measures commits, each once, and keeps the list of kernels.

    measures  by which kernels are searched, besides the path
    judges    what is asked of the kernels of those commits alone that were found
    """

    def __init__(self, request: BisectRequest, commits: CommitRange, lab: Lab) -> None:
        self.request, self.range = request, commits
        asked = lab_like(request.lab, request.cpu)
        self.measures = measures_of(request, (), request.cpu, timed=False)
        works = works_of(
            request.workloads, request.operations, request.program, machine=asked.machine
        )
        self.judges = measures_of(request, works)
        self._lab = lab.with_request(recording(asked, [*self.measures, *self.judges]))
        self._changes = tuple(parse_change(word) for word in request.changes)
        announce(self._changes, lab.progress.log)
        self._repository = str(commits.repository)
        ends = (kernel(commits.good.name), kernel(commits.bad.name))
        bench = Bench(str(self.spec(commits.good.name)), works, self._lab, self.measures)
        super().__init__(bench, first=ends[0], last=ends[1])
        # A failure holds for the default CPU that there was: x86-64 alone has one.
        machine = machine_for(asked.machine, FORCED_ON)
        facts = [request.workloads, request.operations, msgspec.to_builtins(machine)]
        facts += [msgspec.to_builtins(request.program)] if request.program else []
        self._journal = Journal(commits, facts, request.changes)
        if request.lab.rerun:
            self._journal.forget()
        self._sides: dict[str, BuiltSide] = {}
        self._alike: dict[tuple[str, str], bool] = {}
        self.builds = bench.builds

    def spec(self, commit: str) -> GitSpec:
        return GitSpec(self._repository, commit, self._changes)

    def source(self, commit: str) -> Source | None:
        """The files of a commit, patched as all are; None if there is no kernel in it, or a patch
        does not apply.
        """
        try:
            found = source_of(self.spec(commit), self._lab.progress.log)
        except UserError:
            return None
        return None if isinstance(found, PatchFailure) else found

    async def measure(self, commit: str, label: str) -> MeasuredKernel:
        """Return the kernel of a commit, run."""
        if kernel(commit) not in self._measured:
            self._measured[kernel(commit)] = await self._made(commit, label)
        return self[commit]

    def __getitem__(self, commit: str) -> MeasuredKernel:
        """Return the kernel of a commit that was measured."""
        return self._measured[kernel(commit)]

    @property
    def store(self) -> Store:
        """Return the lab's."""
        return self._lab.store

    @property
    def commits(self) -> list[str]:
        """Return those that were measured, in that order."""
        return [name for flips in self._measured for name in flips]

    async def _made(self, commit: str, label: str) -> MeasuredKernel:
        if known := self._journal.failure(commit):
            kept = NoKernel(str(self.spec(commit)), known.status, known.identity, known.detail)
            self.builds.add(label, kept)
            return MeasuredKernel(label, kept, (), {}, known.detail, known.status)
        self.builds.announce(f"{commit[:12]}: {label}")
        found = self._kernel(commit)
        self.builds.add(label, found)
        if kernel(commit) in (self._first, self._last) and not isinstance(found, NoKernel):
            self.check_judges([found])
        measured = await self._bench.measure(label, found)
        if measured.failure:
            self._journal.add(
                FailedCommit(commit, measured.status, measured.failure, found.identity)
            )
            self.builds.note(measured)
        return measured

    def check_judges(self, kernels: Sequence[Kernel] = ()) -> None:
        """Raise UserError where commits that are found could not be judged here."""
        if self.request.timed.links:
            require_relinkable(str(self.spec(self.range.good.name)), "--links")
        for judge in self.judges:
            judge.check(self._lab, kernels)

    async def judge(self, found: BisectAnswer) -> JudgedChanges:
        """Return what the judges find of the commits that were found, each between the two kernels
        that show it.
        """
        pairs = {
            one.commit[:12]: (kernel(one.between[0]), kernel(one.between[1]))
            for one in found.culprits
            if one.between
        }
        judged = await self.judged(self._lab, self.judges, pairs, self.measures)
        notes = [*judged.notes]
        if not found.culprits and not found.groups:
            notes += not_known(self.judges, "no commit was found")
        if found.groups:
            groups = words.counted(len(found.groups), "group of commits", "groups of commits")
            notes += not_known(self.judges, "these were not distinguished", [groups])
        if without := [one.commit[:12] for one in found.culprits if not one.between]:
            notes += not_known(self.judges, "more than two kernels show the effect", without)
        return msgspec.structs.replace(judged, notes=tuple(notes))

    def expect(self, kernels: int) -> None:
        """Reports that about so many more commits will be measured."""
        self._bench.expect(kernels)

    def _kernel(self, commit: str) -> Kernel | NoKernel:
        """Of an end that there is no kernel tree is the user's slip; commits between the ends may
        be of what had a history of its own before it was merged.
        """
        spec = str(self.spec(commit))
        try:
            return complete_kernel(spec, self._lab)
        except UserError as error:
            if kernel(commit) in (self._first, self._last):
                raise
            return NoKernel(spec, RunStatus.BUILD_FAILED, identity(spec), error.message)

    def side(self, commit: str) -> BuiltSide:
        """Return what a measured commit's kernel holds, and what it executed."""
        if commit not in self._sides:
            measured = self[commit]
            self._sides[commit] = built_side(measured.built, measured.done, self._lab.store)
        return self._sides[commit]

    def tree(self, commit: str) -> Tree:
        """Return the same, and what it was made from."""
        path = self[commit].built.path / DEPENDENCIES
        return tree_of(self.side(commit), load_dependencies(path))

    def config(self, commit: str) -> Config:
        """Return the config that a measured commit's kernel was granted."""
        return self[commit].config()

    def alike(self, below: str, above: str) -> bool:
        """Return whether two measured kernels hold nothing different that was executed."""
        if (below, above) not in self._alike:
            first, second = self.side(below), self.side(above).digest
            paths = first.digest.objects.keys() | second.objects.keys()
            found = differences_that_matter(first, second, paths)
            self._alike[below, above] = not any(one.matters for one in found)
        return self._alike[below, above]
