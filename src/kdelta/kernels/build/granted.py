# SPDX-License-Identifier: GPL-2.0-or-later
"""What many trees of one source grant to a spec's config, asked of their Kconfig files alone."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kdelta.host.command import Log
from kdelta.host.files import make_folder, remove
from kdelta.host.lock import locked
from kdelta.kernels.build.build import granted_in
from kdelta.kernels.config.kconfig import Config
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


@contextmanager
def grants(spec: SourceSpec, folder: Path, log: Log) -> Iterator[Grants]:
    """For the body, a function from sources whose folder is this to what each grants the spec's
    config, or None where the configuration fails. Trees that differ elsewhere are one.
    """
    with locked(f"kconfig-{folder.name}", f"asking what {folder.name} grants", log):
        yield _Grants(spec, GitStore(folder))


class _Grants:
    """One place where the files for configuring stand, now of one tree and now of another."""

    def __init__(self, spec: SourceSpec, store: GitStore) -> None:
        self._spec = spec
        self._store = store
        self._known: dict[str, Config | None] = {}

    def __call__(self, source: Source) -> Config | None:
        needed = self._needed(source.tree)
        if needed not in self._known:
            place = make_folder(self._store.folder / _FOLDER)
            self._store.check_out(needed, _FOLDER, place)
            self._known[needed] = granted_in(self._spec, source, place, PURPOSE)
        return self._known[needed]

    def _needed(self, tree: str) -> str:
        """The tree of those files of a tree that configuring needs."""
        listed = self._store.git("ls-tree", "-r", "-z", "--full-tree", tree).stdout
        rows = [row for row in listed.split(b"\0") if _NEEDED.fullmatch(row.partition(b"\t")[2])]
        remove(self._store.index(_PICKED))
        text = b"".join(row + b"\0" for row in rows)
        self._store.git("update-index", "-z", "--index-info", index=_PICKED, stdin=text)
        return self._store.git("write-tree", index=_PICKED).text
