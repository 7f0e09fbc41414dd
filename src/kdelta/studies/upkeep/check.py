# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks whether what the cache has is as it was made, and sets aside what is not."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kdelta.host.cache import (
    ANSWER,
    DEBUG,
    GUEST,
    HASHED,
    IMAGE,
    SNAPSHOT,
    TREE,
    Cached,
    own,
    tree_free,
    usage,
)
from kdelta.host.files import PARTIAL, remove, remove_left, sha256_file
from kdelta.host.finding import Finding
from kdelta.host.in_use import unused
from kdelta.host.lock import work_left
from kdelta.host.manifest import damage, forget, has_manifest, manifests_left, set_aside
from kdelta.host.sealed import is_sealed, sealed_damage
from kdelta.kernels.sources.git import source_damage
from kdelta.machines.snapshots import snapshot_damage
from kdelta.spec.errors import LabError

_Damage = Callable[[Path], str | None]


def _by_name(path: Path) -> str | None:
    """What is wrong with a file whose name ends with the hash of its content."""
    named = path.stem.rpartition("-")[2]
    return None if sha256_file(path).startswith(named) else "it is not what was made"


def _sealed(path: Path) -> str | None:
    return sealed_damage(path) if is_sealed(path) else None


def _by_manifest(path: Path) -> str | None:
    """What is wrong with a folder; one that an older version left without hashes is taken for
    whole.
    """
    return damage(path) if has_manifest(path) else None


_COMPARED: Mapping[str, _Damage] = {
    SNAPSHOT: snapshot_damage,
    GUEST: _by_name,
    IMAGE: _by_name,
    TREE: source_damage,
    ANSWER: _sealed,
    DEBUG: _sealed,
    **dict.fromkeys(HASHED, _by_manifest),
}
"""How each kind of things in the cache is compared with what was made; others are not."""


def check_cache(*, repair: bool = False) -> Iterator[Finding]:
    """What is wrong with the cache.

    repair: what is damaged is moved to the folder `damaged` of the cache, unless a process uses it,
    and made again when it is asked for; what killed processes left is removed.
    """
    for one in usage():
        if compare := _COMPARED.get(one.kind):
            with tree_free(one) as free:  # a tree that is built in changes
                if free and (why := _compared(compare, one.path)):
                    yield Finding(path=one.path, what=why, fixed=_taken(one) if repair else "")
    yield from _left(repair=repair)


def _compared(compare: _Damage, path: Path) -> str | None:
    try:
        why = compare(path)
    except LabError as error:
        why = error.message
    return why if os.path.lexists(path) else None  # another process may have removed it meanwhile


def _taken(one: Cached) -> str:
    """Takes something damaged out of use; what was done, which is nothing where a process uses
    it.
    """
    with unused(one.path) as free:
        if not free:
            return ""
        forget(one.path)
        return f"set aside in {set_aside(one.path)}"


def _left(*, repair: bool) -> Iterator[Finding]:
    """What killed processes left."""
    depths = ("", "*/", "*/*/")
    partials = (path for depth in depths for path in own(f"{depth}*{PARTIAL}"))
    for path in sorted(partials):
        fixed = "removed" if repair and remove_left(path) else ""
        yield Finding(path=path, what="a killed process left it", is_left=True, fixed=fixed)
    for path in work_left(removed=repair):
        fixed = "removed" if repair else ""
        yield Finding(path=path, what="a killed process left it", is_left=True, fixed=fixed)
    for folder in sorted(path for path in own("*") if path.is_dir() and not path.is_symlink()):
        for path in manifests_left(folder):
            if repair:
                remove(path)
            fixed = "removed" if repair else ""
            yield Finding(path=path, what="its folder is gone", is_left=True, fixed=fixed)
