# SPDX-License-Identifier: GPL-2.0-or-later
"""A closer look at changes that the files which they touch do not rule out: the text of these
files, the config that they grant, and the objects that come of them.

Each change is looked at where it stands: between the tree just before and the one just after it.
That it has no effect elsewhere either, without the changes before it, is left to the proof build.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from kdelta.host.files import lab_errors
from kdelta.infer.reach.alive import BuiltSide
from kdelta.infer.reach.reach import (
    Excluded,
    NotExcluded,
    ObjectDifference,
    Reach,
    differences_that_matter,
    objects_to_recompile,
)
from kdelta.infer.reach.touched import TouchedFiles, Tree, reach_of_changes, touches_config
from kdelta.kernels.config.kconfig import OFF, Config, parse_config
from kdelta.kernels.kbuild.built import DIGEST, BuiltKernel, Memo
from kdelta.kernels.kbuild.granted import grants
from kdelta.kernels.kbuild.workbench import Workbench, workbench
from kdelta.kernels.objects.digest import Digest
from kdelta.kernels.objects.lines import READERS
from kdelta.kernels.sources.git import GitStore, batch_contents
from kdelta.kernels.sources.same_text import is_same
from kdelta.kernels.sources.source import Source
from kdelta.lab.progress import Progress
from kdelta.spec.identity import identity
from kdelta.spec.kernel import SourceSpec

IDENTICAL = "executed objects come out the same with it"
_IDENTICAL = "identical"
_FIRST_BATCH = 6
_GROWTH = 6

States = Callable[[str], tuple[Source, Source] | None]
"""For a change's name the source just before and just after it, in kdelta's store; None where
there is no such pair (a merge, say)."""


def reach_looked_closer(
    spec: SourceSpec,
    built: Sequence[BuiltKernel],
    ends: Sequence[Tree],
    changes: Sequence[TouchedFiles],
    *,
    states: States,
    progress: Progress,
    recompile: bool = True,
) -> dict[str, Reach]:
    """What changes can reach, by all that tells without a kernel of their own. `built` are the
    kernels of `ends`, the one before all changes first; `spec` gives the config of them all.
    """
    reached = reach_of_changes(ends, changes)
    if not any(isinstance(one, NotExcluded) for one in reached.values()):
        return reached
    texts = []
    for one in built:
        with lab_errors("reading", one.path):
            texts.append((one.path / one.config).read_text())
    closer = Closer(ends, [parse_config(text) for text in texts], states, progress)
    _, reached = closer.by_text(spec, changes, reached)
    return closer.by_compiling(built[0], texts[0], reached) if recompile else reached


def batches(targets: Sequence[str]) -> Iterator[Sequence[str]]:
    """The targets, a few first and then more and more: most changes that matter show it in any."""
    at, size = 0, _FIRST_BATCH
    while at < len(targets):
        yield targets[at : at + size]
        at, size = at + size, size * _GROWTH


def harmless_files(
    files: frozenset[str], states: tuple[Source, Source], configs: Sequence[Config]
) -> frozenset[str]:
    """Those files that a build with any of these configs cannot distinguish in the two states."""
    asked = [file for file in sorted(files) if "\n" not in file]
    texts = [_contents(state, asked) for state in states]
    return frozenset(
        file
        for file, before, after in zip(asked, *texts, strict=True)
        # Where the content is equal, its mode is not.
        if before is not None and after is not None and before != after
        if is_same(file, before, after, configs)
    )


def _contents(source: Source, files: Sequence[str]) -> Iterator[bytes | None]:
    """The files of a source's tree, None for those that it does not have."""
    words = "".join(f"{source.tree}:{file}\n" for file in files).encode("utf-8", "surrogateescape")
    return batch_contents(GitStore(source.folder).git("cat-file", "--batch", stdin=words).stdout)


def same_configs(
    spec: SourceSpec, changes: Sequence[TouchedFiles], states: States, progress: Progress
) -> frozenset[str]:
    """The changes before and after which the tree grants the spec's config alike, of those that
    touch what configs are made from.
    """
    asked = {change.name: states(change.name) for change in changes if touches_config(change)}
    pairs = {name: pair for name, pair in asked.items() if pair is not None}
    if not pairs:
        return frozenset()
    folder = next(iter(pairs.values()))[0].folder
    step = "configs"
    progress.begin(step)
    same = set()
    with grants(spec, folder, progress.log) as granted:
        for number, (name, pair) in enumerate(pairs.items(), start=1):
            progress.doing(step, f"{number} of {len(pairs)}: {name}")
            before, after = (granted(state) for state in pair)
            if before is not None and after is not None and _set_in(before) == _set_in(after):
                same.add(name)
    progress.end(step, f"{len(same)} of {len(pairs)} change no config")
    return frozenset(same)


def _set_in(config: Config) -> Config:
    """What code can see of a config: an option that is off is none."""
    return {option: value for option, value in config.items() if value != OFF}


def _ruled_out(kept: NotExcluded) -> Excluded:
    return Excluded(kept.unit, kept.objects, f"{len(kept.alive)} {IDENTICAL}")


def _rules(built: BuiltKernel) -> str:
    """By which objects are read: the first line of a kernel's digest."""
    path = built.path / DIGEST
    with lab_errors("reading", path), path.open("rb") as file:
        return file.readline().decode("ascii", "replace").strip()


class Closer:
    """Looks at changes between measured kernels that were granted these configs."""

    def __init__(
        self,
        ends: Sequence[Tree],
        configs: Sequence[Config],
        states: States,
        progress: Progress,
    ) -> None:
        self._ends = ends
        self._configs = configs
        self._states = states
        self._progress = progress
        self._executed = frozenset[str]().union(*(end.side.executed for end in ends))

    def by_text(
        self, spec: SourceSpec, changes: Sequence[TouchedFiles], reached: Mapping[str, Reach]
    ) -> tuple[list[TouchedFiles], dict[str, Reach]]:
        """The changes with what is harmless in them, and what they then reach; asks the tree's
        Kconfig files where it has to.
        """
        known = [
            self._with_harmless(change)
            if isinstance(reached.get(change.name), NotExcluded)
            else change
            for change in changes
        ]
        found = reach_of_changes(self._ends, known)
        doubtful = [change for change in known if isinstance(found[change.name], NotExcluded)]
        same = same_configs(spec, doubtful, self._states, self._progress)
        return known, reach_of_changes(self._ends, known, same) if same else found

    def _with_harmless(self, change: TouchedFiles) -> TouchedFiles:
        pair = self._states(change.name)
        if pair is None:
            return change
        parsed = frozenset[str]().union(*(end.parsed for end in self._ends))
        found = harmless_files(change.files - parsed, pair, self._configs)
        return msgspec.structs.replace(change, harmless=change.harmless | found)

    def by_compiling(
        self, built: BuiltKernel, config: str, reached: Mapping[str, Reach]
    ) -> dict[str, Reach]:
        """The same after the executed objects of each change were compiled before and after it,
        with that config, in the tree of a built kernel; no other one of it is built meanwhile.
        """
        found = dict(reached)
        kept = [one for one in reached.values() if isinstance(one, NotExcluded)]
        decidable = []
        for one in kept:
            known = self._memo(one, built, config).key() if self._targets(one) else None
            if known == _IDENTICAL:
                found[one.unit] = _ruled_out(one)
            elif known is None and self._targets(one):
                decidable.append(one)
        if not decidable:
            return found
        with workbench(built, self._progress.log) as bench:
            # What was built there may have been removed since, to make room.
            for one in decidable if bench.has_build else ():
                step = f"recompile {one.unit}"
                self._progress.begin(step)
                why = self._difference(one, bench, config)
                if why is None:
                    found[one.unit] = _ruled_out(one)
                self._memo(one, built, config).remember(" ".join((why or _IDENTICAL).split()))
                self._progress.end(step, why or _IDENTICAL)
        return found

    def _memo(self, kept: NotExcluded, built: BuiltKernel, config: str) -> Memo:
        """What came out when this was asked before, for the same ends."""
        pair = self._states(kept.unit) or ()
        question = {
            "rules": _rules(built),
            "kernel": built.key,
            "config": config,
            "states": [source.tree for source in pair],
            "targets": self._targets(kept),
            "generated": sorted(kept.generated),
            "ends": self._ends_identity,
        }
        return Memo(identity(question), "recompiled")

    @functools.cached_property
    def _ends_identity(self) -> list[str]:
        return [identity([end.side.digest, sorted(end.side.executed)]) for end in self._ends]

    def _targets(self, kept: NotExcluded) -> list[str]:
        """What to compile; nothing where that cannot tell."""
        if kept.unseen or self._states(kept.unit) is None:
            return []
        return objects_to_recompile(kept, self._ends[0].side.digest) or []

    def _difference(self, kept: NotExcluded, bench: Workbench, config: str) -> str | None:
        """What differs in what is executed; None if nothing does."""
        pair = self._states(kept.unit)
        assert pair is not None
        lines = not self._executed.isdisjoint(READERS)
        for batch in batches(self._targets(kept)):
            compiled: list[Digest] = []
            for state in pair:
                made = bench.compile_at(state, config, batch, lines=lines)
                if isinstance(made, str):
                    return f"does not compile: {made}"
                compiled.append(made)
            for one in self._matter(compiled[0], compiled[1], set(kept.generated)):
                return f"{one.what} {one.name} in {one.path} {one.how}"
        return None

    def _matter(
        self, before: Digest, after: Digest, remade: set[str]
    ) -> Iterator[ObjectDifference]:
        """The differences between two states that executed code of any end depends on."""
        paths = before.objects.keys() | after.objects.keys()
        for end in self._ends:
            held = end.side.digest
            around = Digest(
                {**held.objects, **before.objects}, {**held.generated, **before.generated}
            )
            # It is unknown what of it was executed in regions of other kernels.
            side = BuiltSide(around, self._executed)
            for one in differences_that_matter(side, after, paths):
                if one.matters and (one.what != "generated" or one.path in remade):
                    yield one
