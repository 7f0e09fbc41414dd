# SPDX-License-Identifier: GPL-2.0-or-later
"""What trees grant to a spec's config, asked of their Kconfig files alone, in folders of their own:
of many trees of one source, or before a build that another one keeps waiting.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from kdelta.host.command import Log
from kdelta.host.files import make_folder, remove
from kdelta.host.lock import locked
from kdelta.kernels.config.kconfig import Config
from kdelta.kernels.kbuild.build import granted_in, held_by_another, new_request, refused_in
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.sources.git import GitStore
from kdelta.kernels.sources.source import Source
from kdelta.spec.kernel import SourceSpec

PURPOSE = "granted-"
"""Output folders in which nothing but the configuration of such trees is made."""

_FOLDER, _PICKED = "kconfig", "kconfig-picked"
_NEEDED = re.compile(
    rb"(?:.*/)?(?:Kconfig|Makefile|Kbuild)[^/]*|scripts/.*|.*/configs/.*|.*defconfig"
    rb"|tools/(?:build|scripts)/.*|include/linux/compiler-version\.h"
)
"""The files that make reads for a configuration target, of 6.12 with some to spare."""

Grants = Callable[[Source], Config | None]


def refused_first(spec: SourceSpec, log: Log, *, if_held: bool = False) -> NoKernel | None:
    """Return why a spec gets no kernel, as far as its patches and its config show; None if it is in
    the cache, or may be built. if_held: ask only if another build keeps this one waiting.
    """
    request = new_request(spec, log)
    if request is None or isinstance(request, NoKernel):
        return request
    source = request.source
    if if_held and not held_by_another(source):
        return None
    with _held(source.folder, log):
        store = GitStore(source.folder)
        picked = _Picked(store)
        asked = request.asks_config_of(picked.needed(source.tree))
        # Specs that differ in a patch mostly ask the same.
        if (known := store.git_dir / f"{PURPOSE}{asked}").exists():
            return None
        found = refused_in(request, picked.check_out(source), PURPOSE)
        if found is None:
            known.touch()
        return found


def _held(folder: Path, log: Log) -> AbstractContextManager[None]:
    return locked(f"kconfig-{folder.name}", f"asking what {folder.name} grants", log)


@contextmanager
def grants(spec: SourceSpec, folder: Path, log: Log) -> Iterator[Grants]:
    """For the body, a function from sources whose folder is this to what each grants the spec's
    config, or None where the configuration fails. Trees that differ elsewhere are one.
    """
    with _held(folder, log):
        yield _Grants(spec, GitStore(folder))


class _Picked:
    """A folder that has the files for configuring, now of one tree and now of another."""

    def __init__(self, store: GitStore) -> None:
        self._store = store

    def check_out(self, source: Source) -> Path:
        """The folder with those of that source, whose store this is."""
        place = make_folder(self._store.folder / _FOLDER)
        self._store.check_out(self.needed(source.tree), _FOLDER, place)
        return place

    def needed(self, tree: str) -> str:
        """The tree of those files of a tree that configuring needs."""
        listed = self._store.git("ls-tree", "-r", "-z", "--full-tree", tree).stdout
        rows = [row for row in listed.split(b"\0") if _NEEDED.fullmatch(row.partition(b"\t")[2])]
        remove(self._store.index(_PICKED))
        text = b"".join(row + b"\0" for row in rows)
        self._store.git("update-index", "-z", "--index-info", index=_PICKED, stdin=text)
        return self._store.git("write-tree", index=_PICKED).text


class _Grants:
    """What trees grant to a spec's config, each of them asked once."""

    def __init__(self, spec: SourceSpec, store: GitStore) -> None:
        self._spec = spec
        self._picked = _Picked(store)
        self._known: dict[str, Config | None] = {}

    def __call__(self, source: Source) -> Config | None:
        needed = self._picked.needed(source.tree)
        if needed not in self._known:
            place = self._picked.check_out(source)
            self._known[needed] = granted_in(self._spec, source, place, PURPOSE)
        return self._known[needed]
