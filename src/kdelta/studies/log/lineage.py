# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the store's runs can be compared, and in which order their kernels stand."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kdelta.host.files import expanded
from kdelta.kernels.sources.git import read_repository
from kdelta.report.names import side_names
from kdelta.spec.errors import KdeltaError
from kdelta.spec.identity import canonical_json, short_id
from kdelta.spec.kernel import DebSpec, GitSpec, KernelSpec, parse_kernel_spec
from kdelta.spec.versions import version_key
from kdelta.store.model import Run


class Lineage(msgspec.Struct, frozen=True):
    """Where a kernel stands: its version, its commit with its place among the others of its
    repository, and when it was first run.
    """

    identity: str
    spec: str
    release: str
    version: str
    started: float
    commit: str = ""
    place: int = -1
    committed: float | None = None
    subject: str = ""

    @property
    def date(self) -> float:
        """Its commit's date, else when it was first run."""
        return self.started if self.committed is None else self.committed

    @property
    def dated(self) -> Literal["commit", "run"]:
        """Which of the two it is."""
        return "run" if self.committed is None else "commit"


class _Commit(msgspec.Struct, frozen=True):
    name: str
    place: int
    seconds: float
    subject: str


Regions = frozenset[str]


def lineages(runs: Iterable[Run]) -> list[Lineage]:
    """The kernels of these runs, in order. A repository that is gone orders nothing."""
    first: dict[str, Run] = {}
    for run in sorted(runs, key=lambda one: one.started):
        first.setdefault(run.kernel_identity, run)
    found = [_lineage(run) for run in first.values()]
    return sorted(
        _with_commits(found),
        key=lambda one: (version_key(one.version), one.place < 0, one.place, one.started),
    )


def ordered_by(kernels: Sequence[Lineage]) -> str:
    """By what these are ordered, in words."""
    words = ["version"]
    if any(one.place >= 0 for one in kernels):
        words.append("commit")
    versions = {one.version for one in kernels if one.place < 0}
    if len(versions) < sum(one.place < 0 for one in kernels):
        words.append("when they were first run")
    return ", then ".join(words)


def distinct_names(kernels: Sequence[Lineage]) -> list[str]:
    """Return names of kernels as all reports have them; of equal ones with their identities."""
    names = side_names(kernels).names
    return [
        name if names.count(name) == 1 else f"{name} ({short_id(one.identity)})"
        for name, one in zip(names, kernels, strict=True)
    ]


def parsed_spec(text: str) -> KernelSpec | None:
    """A spec that was stored; None if today's kdelta reads it no more."""
    try:
        return parse_kernel_spec(text)
    except KdeltaError:
        return None


def _lineage(run: Run) -> Lineage:
    spec = parsed_spec(run.kernel_spec)
    version = spec.version if isinstance(spec, DebSpec) and spec.version else run.kernel_release
    return Lineage(
        run.kernel_identity, run.kernel_spec, run.kernel_release, version or "", run.started
    )


def _with_commits(kernels: Sequence[Lineage]) -> list[Lineage]:
    wanted: dict[str, list[str]] = {}
    revisions: dict[str, tuple[str, str]] = {}
    for one in kernels:
        spec = parsed_spec(one.spec)
        if isinstance(spec, GitSpec):
            wanted.setdefault(spec.path, []).append(spec.revision)
            revisions[one.identity] = spec.path, spec.revision
    known = {path: _commits(expanded(path), names) for path, names in wanted.items()}
    return [_with_commit(one, known, revisions.get(one.identity)) for one in kernels]


def _with_commit(
    one: Lineage, known: Mapping[str, Mapping[str, _Commit]], revision: tuple[str, str] | None
) -> Lineage:
    found = known[revision[0]].get(revision[1]) if revision else None
    if found is None:
        return one
    return msgspec.structs.replace(
        one,
        commit=found.name,
        place=found.place,
        committed=found.seconds,
        subject=found.subject,
    )


def _commits(repository: Path, revisions: Sequence[str]) -> dict[str, _Commit]:
    """What a repository knows of these revisions, with their place in an order in which each comes
    after its parents; nothing if it is not there.
    """
    if not repository.is_dir():
        return {}
    found: dict[str, tuple[str, float, str]] = {}
    try:
        for revision in dict.fromkeys(one for one in revisions if not one.startswith("-")):
            # Of a tag, the commit; of a revision that is gone, nothing.
            said = read_repository(
                repository, "log", "-1", "--format=%H%x00%ct%x00%s", f"{revision}^{{commit}}", "--"
            )
            if said.ok and said.text.count("\0") == 2:
                name, seconds, subject = said.text.split("\0")
                found[revision] = name, float(seconds), subject
        places = _places(repository, {name: seconds for name, seconds, _ in found.values()})
    except KdeltaError:
        return {}
    return {
        revision: _Commit(name, places[name], seconds, subject)
        for revision, (name, seconds, subject) in found.items()
    }


def _places(repository: Path, seconds: Mapping[str, float]) -> dict[str, int]:
    """The commits' places: as git orders what lies between them, else by their dates."""
    names = sorted(seconds, key=lambda name: (seconds[name], name))
    if len(names) > 1:
        base = read_repository(repository, "merge-base", "--octopus", *names)
        if base.ok:
            listed = read_repository(
                repository, "rev-list", "--topo-order", "--reverse", *names, f"^{base.text}"
            )
            between = {name: place for place, name in enumerate(listed.text.splitlines(), start=1)}
            between[base.text] = 0
            if listed.ok and all(name in between for name in names):
                return {name: between[name] for name in names}
    return {name: place for place, name in enumerate(names)}


class RunGroup(msgspec.Struct, frozen=True):
    """Runs that did the same on the same machine: of these regions. `own_files`: each kernel ran
    the workload with files of its own, such as modules that are built for it.
    """

    machine: dict[str, str | int | float]
    regions: Regions
    runs: tuple[Run, ...]
    own_files: bool = False

    @property
    def kernels(self) -> frozenset[str]:
        """The identities of its kernels."""
        return frozenset(run.kernel_identity for run in self.runs)


def groups_of(runs: Iterable[Run], regions: Callable[[Run], Regions]) -> list[RunGroup]:
    """The runs in groups, those with more kernels first. `regions` tells which ones a run counted;
    it is asked once for each form of the workload.
    """
    forms: dict[tuple[bytes, str], list[Run]] = {}
    for run in runs:
        forms.setdefault((canonical_json(run.machine), run.workload_identity), []).append(run)
    shapes: dict[str, Regions] = {}
    groups: list[RunGroup] = []
    lone: dict[tuple[bytes, Regions], list[Run]] = {}
    for (machine, form), found in forms.items():
        shape = shapes.setdefault(form, regions(found[0])) if form not in shapes else shapes[form]
        if len({run.kernel_identity for run in found}) > 1:
            groups.append(RunGroup(found[0].machine, shape, tuple(found)))
        else:
            lone.setdefault((machine, shape), []).extend(found)
    groups += [
        RunGroup(found[0].machine, shape, tuple(found), own_files=True)
        for (_, shape), found in lone.items()
    ]
    return sorted(groups, key=lambda one: (-len(one.kernels), -len(one.regions)))


def worth_showing(groups: Sequence[RunGroup], operations: Sequence[str]) -> list[RunGroup]:
    """Those that have the operations, without such as another one has all kernels and regions of:
    runs of an operation alone are for its verdicts.
    """
    having = [one for one in groups if one.regions.issuperset(operations)]
    return [one for one in having if not any(_holds(other, one) for other in having)]


def _holds(other: RunGroup, one: RunGroup) -> bool:
    return (
        other is not one
        and other.machine == one.machine
        and other.regions > one.regions
        and other.kernels >= one.kernels
    )
