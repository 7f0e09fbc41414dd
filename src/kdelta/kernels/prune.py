# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cache holds, how much it may hold, and what goes first when it holds more."""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import PARTIAL, remove
from kdelta.host.lock import locked
from kdelta.kernels.built import PREFIX
from kdelta.spec.errors import UserError

Talk = Callable[[str], None]

GIB = 1 << 30
LIMIT_SETTING = "KDELTA_CACHE_GIB"
USUAL_LIMIT_GIB = 20

_KINDS = (("kernels", "kernel"), ("trees", "source tree"))


class Cached(msgspec.Struct, frozen=True):
    """Something in the cache that can be made again. `used`: seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.path.name


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
    """Built kernels and source trees, those used longest ago first. Kernels that were fetched ready
    are not among them: they are small, and may have left the mirror.
    """
    return sorted(_cached(), key=lambda one: one.used)


def _cached() -> Iterator[Cached]:
    for folder, kind in _KINDS:
        for path in cache_dir(folder).iterdir():
            if not path.is_dir() or path.name.endswith(PARTIAL):
                continue
            if folder == "kernels" and not path.name.startswith(PREFIX):
                continue
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

    What another process builds in is not touched.
    """
    removed = []
    entries = usage()
    total = sum(one.bytes for one in entries)
    for one in entries:
        if total <= limit:
            break
        if one.path in keep:
            continue
        if _remove(one, talk):
            removed.append(one)
            total -= one.bytes
    return removed


def _remove(one: Cached, talk: Talk) -> bool:
    talk(f"removing {one.kind} {one.name} ({one.bytes >> 20} MiB) from the cache")
    with locked(f"tree-{one.name}", f"removing {one.name}", talk):
        remove(one.path)
    return True


def make_room(talk: Talk, keep: Collection[Path]) -> None:
    """Prunes to the limit that the user set, but for what is in use right now."""
    prune(limit_bytes(), talk, keep)
