# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cache holds, how much it may hold, and what goes first when it holds more."""

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from kdelta.host.command import Talk
from kdelta.host.dirs import cache_dir
from kdelta.host.files import PARTIAL, lab_errors, remove
from kdelta.host.lock import locked_if_free
from kdelta.kernels.build.built import PREFIX, unused
from kdelta.spec.errors import UserError

GIB = 1 << 30
LIMIT_SETTING = "KDELTA_CACHE_GIB"
USUAL_LIMIT_GIB = 20

BUILT, OUT, TREE = "kernel", "folder of builds", "source tree"
_GONE = f".gone{PARTIAL}"


class Cached(msgspec.Struct, frozen=True):
    """Something in the cache that can be made again. `used`: seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float

    @property
    def name(self) -> str:
        """Its folder's name, and that of the tree that it belongs to."""
        return "/".join(self.path.parts[-2:]) if self.kind == OUT else self.path.name


def limit_bytes() -> int:
    """How much built kernels and source trees may take; UserError for a setting that is no number.

    ccache keeps within a limit of its own, snapshots within a number of them.
    """
    text = os.environ.get(LIMIT_SETTING, "") or str(USUAL_LIMIT_GIB)
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise UserError(
            f"{LIMIT_SETTING} is no number: {text!r}", f"gibibytes, for example {USUAL_LIMIT_GIB}"
        )
    return int(float(text) * GIB)


def usage() -> list[Cached]:
    """Built kernels, folders of builds and source trees, those used longest ago first. Kernels that
    were fetched ready are not among them: they are small, and may have left the mirror.
    """
    found = [*_folders("kernels", BUILT, f"{PREFIX}*")]
    for tree in _folders("trees", TREE, "*"):
        # out-x86, configs-x86 and the like; the tree's own are src and git.
        outs = [*_folders(f"trees/{tree.name}", OUT, "*-*")]
        found += outs
        # A tree is used when it is built in, and goes after what was built in it.
        used = max([tree.used, *(one.used for one in outs)])
        count = tree.bytes - sum(one.bytes for one in outs)
        found.append(msgspec.structs.replace(tree, bytes=count, used=used))
    return sorted(found, key=lambda one: one.used)


def _folders(below: str, kind: str, pattern: str) -> Iterator[Cached]:
    for path in sorted(cache_dir(*below.split("/")).glob(pattern)):
        if path.is_dir() and not path.name.endswith(PARTIAL):
            with contextlib.suppress(OSError):
                yield Cached(kind, path, folder_bytes(path), path.stat().st_mtime)


def folder_bytes(folder: Path) -> int:
    """The disk space of all files below a folder; those that vanish meanwhile have none."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{root}/{name}").st_blocks * 512
    return total


def prune(limit: int, talk: Talk, keep: Collection[Path] = ()) -> list[Cached]:
    """Removes what was used longest ago until no more than `limit` bytes are left; what it removed.

    What a process uses or builds in stays, and so do the folders `keep` with all that is in them.
    """
    # A killed process may have left a part of what it removed.
    for pattern in (f"kernels/*{_GONE}", f"trees/*{_GONE}", f"trees/*/*{_GONE}"):
        for path in cache_dir().glob(pattern):
            remove(path)
    removed = []
    entries = usage()
    total = sum(one.bytes for one in entries)
    for one in entries:
        if total <= limit:
            break
        is_kept = one.path in keep or one.path.parent in keep
        if not is_kept and _remove(one, talk):
            removed.append(one)
            total -= one.bytes
    return removed


def _remove(one: Cached, talk: Talk) -> bool:
    with _free(one) as free:
        if not free:
            talk(f"{one.kind} {one.name} is in use and stays in the cache")
            return False
        talk(f"removing {one.kind} {one.name} ({one.bytes >> 20} MiB) from the cache")
        # By another name first: what is half removed is never taken for whole.
        gone = one.path.with_name(one.path.name + _GONE)
        with lab_errors("removing", one.path):
            one.path.rename(gone)
        remove(gone)
    return True


@contextlib.contextmanager
def _free(one: Cached) -> Iterator[bool]:
    """Gives whether it is unused; no process begins to use it during the body."""
    if one.kind == BUILT:
        with unused(one.path) as free:
            yield free
        return
    tree = one.path.parent if one.kind == OUT else one.path
    with (
        locked_if_free(f"tree-{tree.name}") as built,
        locked_if_free(f"source-{tree.name}") as read,
    ):
        yield built and read
