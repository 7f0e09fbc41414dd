# SPDX-License-Identifier: GPL-2.0-or-later
"""Any of a series' patches on one tree: which apply without which, and what tree they make.

A patch changes its own files and no others. So what it does is worked out in an index of these
alone, once for each content that they have: asking about hundreds of sets costs next to nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from kdelta.host.command import Log
from kdelta.host.files import remove
from kdelta.kernels.sources.diffs import read_diff
from kdelta.kernels.sources.git import GitStore
from kdelta.kernels.sources.patches import Patch, PatchFailure, apply_patch, fuzz_notes
from kdelta.kernels.sources.source import Source, store_of

_MANY = 500
_NONE = "0" * 40

Entry = str
"""Mode and hash of a file, as `git ls-files -s` has them; empty for no file."""


class Need(msgspec.Struct, frozen=True):
    """An earlier patch of the series without which another one does not apply, and why."""

    patch: str
    reason: str


class Stack:
    """The patches of a series on the tree of a source. Names of patches are unique. `notes`: which
    of their hunks were applied with fuzz so far, in a line each.
    """

    def __init__(self, source: Source, patches: Sequence[Patch], store: GitStore) -> None:
        self._source = source
        self._patches = {patch.name: patch for patch in patches}
        self._store = store
        self.files = {patch.name: read_diff(patch.content).files for patch in patches}
        every = dict.fromkeys(name for files in self.files.values() for name in files)
        self._base = _entries(store, source.tree, list(every))
        self.notes: dict[str, None] = {}
        self._known: dict[tuple[str, tuple[Entry, ...]], tuple[Entry, ...] | PatchFailure] = {}

    def failure(self, chosen: Iterable[str]) -> PatchFailure | None:
        """The first of these patches that does not apply, in the order of the series."""
        found = self._state(chosen)
        return found if isinstance(found, PatchFailure) else None

    def tree(self, chosen: Iterable[str]) -> str | PatchFailure:
        """Git's hash of the tree with these patches, which the store then has."""
        state = self._state(chosen)
        if isinstance(state, PatchFailure):
            return state
        changed = {name: entry for name, entry in state.items() if entry != self._base[name]}
        if not changed:
            return self._source.tree
        self._store.git("read-tree", self._source.tree, index="patch")
        self._enter(changed)
        try:
            return self._store.git("write-tree", index="patch").text
        finally:
            remove(self._store.index("patch"))

    def diff(self, tree: str, other: str) -> bytes:
        """What makes that other tree of a tree, as one patch."""
        words = ("diff-tree", "-p", "--binary", "--full-index", "--no-renames")
        return self._store.git(*words, tree, other).stdout

    def needs(self) -> dict[str, tuple[Need, ...]]:
        """For each patch, in order, the earlier ones without which it does not apply, and what
        these need in turn. A patch that does not apply on top of all earlier ones has none.
        """
        found: dict[str, tuple[Need, ...]] = {}
        order = list(self._patches)
        for place, name in enumerate(order):
            found[name] = tuple(self._needs_of(name, order[:place], found))
        return found

    def _needs_of(
        self, name: str, earlier: Sequence[str], known: dict[str, tuple[Need, ...]]
    ) -> Iterator[Need]:
        files = set(self.files[name])
        near = [one for one in earlier if not files.isdisjoint(self.files[one])]
        needed: set[str] = set()
        while (failure := self._alone(name, needed)) is not None:
            # Of those before it that touch its files: how many of the first does it take?
            low, high = 0, len(near)
            if self._alone(name, _closed({*near, *needed}, known)) is not None:
                return
            while high - low > 1:
                middle = (low + high) // 2
                tried = self._alone(name, _closed({*near[:middle], *needed}, known))
                low, high = (low, middle) if tried is None else (middle, high)
                failure = tried or failure
            added = _closed({near[high - 1]}, known) - needed
            if not added:
                return
            yield Need(near[high - 1], failure.detail)
            for more in (one for one in earlier if one in added and one != near[high - 1]):
                yield Need(more, f"{near[high - 1]} needs it")
            needed |= added
            near = near[: high - 1]

    def _alone(self, name: str, others: Iterable[str]) -> PatchFailure | None:
        """Why a patch does not apply on top of these, or one of these; None if all do."""
        state = self._state(others)
        if isinstance(state, PatchFailure):
            return state
        found = self._applied(name, state)
        return found if isinstance(found, PatchFailure) else None

    def _state(self, chosen: Iterable[str]) -> dict[str, Entry] | PatchFailure:
        wanted = frozenset(chosen)
        state = dict(self._base)
        for name in self._patches:
            if name in wanted:
                found = self._applied(name, state)
                if isinstance(found, PatchFailure):
                    return found
                state.update(zip(self.files[name], found, strict=True))
        return state

    def _applied(self, name: str, state: dict[str, Entry]) -> tuple[Entry, ...] | PatchFailure:
        """What a patch makes of its files."""
        files = self.files[name]
        key = name, tuple(state[file] for file in files)
        if key not in self._known:
            self._known[key] = self._apply(name, dict(zip(files, key[1], strict=True)))
        return self._known[key]

    def _apply(self, name: str, before: dict[str, Entry]) -> tuple[Entry, ...] | PatchFailure:
        remove(self._store.index("patch"))
        self._enter({file: entry for file, entry in before.items() if entry})
        try:
            applied = apply_patch(self._store, self._patches[name])
            if isinstance(applied, PatchFailure):
                return applied
            self.notes |= dict.fromkeys(fuzz_notes(self._patches[name], applied))
            listed = self._store.git("ls-files", "-s", "-z", index="patch")
        finally:
            remove(self._store.index("patch"))
        after = {name: f"{mode} {blob}" for name, (mode, blob, _) in _listed(listed.stdout)}
        return tuple(after.get(file, "") for file in before)

    def _enter(self, entries: dict[str, Entry]) -> None:
        rows = [f"{entry or f'0 {_NONE}'}\t{file}\0" for file, entry in entries.items()]
        text = "".join(rows).encode("utf-8", "surrogateescape")
        self._store.git("update-index", "-z", "--index-info", index="patch", stdin=text)


@contextmanager
def stacked(source: Source, patches: Sequence[Patch], log: Log) -> Iterator[Stack]:
    """The patches of a series on a source, whose store is this process's own for the body."""
    with store_of(source.folder, log) as store:
        yield Stack(source, patches, store)


def _closed(names: set[str], needs: dict[str, tuple[Need, ...]]) -> set[str]:
    return names.union(*({need.patch for need in needs[name]} for name in names if name in needs))


def _entries(store: GitStore, tree: str, files: Sequence[str]) -> dict[str, Entry]:
    """Files of a tree, those that it does not have with an empty entry."""
    found = dict.fromkeys(files, "")
    for start in range(0, len(files), _MANY):
        part = files[start : start + _MANY]
        listed = store.git("--literal-pathspecs", "ls-tree", "-r", "-z", tree, "--", *part)
        rows = _listed(listed.stdout)
        found |= {name: f"{mode} {blob}" for name, (mode, _, blob) in rows if name in found}
    return found


def _listed(text: bytes) -> Iterator[tuple[str, list[str]]]:
    """The files that git ls-files or ls-tree lists: their names, and what stands before those."""
    for row in text.split(b"\0")[:-1]:
        head, _, name = row.decode("utf-8", "surrogateescape").partition("\t")
        yield name, head.split()
