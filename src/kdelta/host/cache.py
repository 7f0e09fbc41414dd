# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cache holds, how much it may hold, and what goes first when it holds more."""

import contextlib
import enum
import math
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from kdelta.host.command import Log, quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import GONE, PARTIAL, is_odd, matching, remove_left
from kdelta.host.in_use import unused
from kdelta.host.lock import locked_if_free
from kdelta.host.manifest import is_manifest, take_away
from kdelta.spec.errors import UserError

GIB = 1 << 30
LIMIT_SETTING = "KDELTA_CACHE_GIB"
USUAL_LIMIT_GIB = 10
SNAPSHOT_SHARE = 0.6
"""Of the limit, for snapshots: a boot makes one of up to a gibibyte."""
_WORTH_A_LINE_BYTES = 1 << 20

BUILT_PREFIX = "built-"
BUILT, OUT, TREE = "kernel", "folder of builds", "source tree"
SNAPSHOT, GUEST, IMAGE = "snapshot", "guest image", "unpacked image"
HASHED = (
    "unpacked archive",
    "compiled part",
    "kernel part",
    "module",
    "fetched kernel",
    "tree for guests",
    "headers",
    "package",
    "pin",
    BUILT,
)
"""Kinds with a manifest of hashes next to them."""
ANSWER, DEBUG = "answer", "debug file"
_GOES_FIRST = {SNAPSHOT: 0, BUILT: 2}
"""What is made again fastest goes first when the cache holds too much: a boot takes seconds, the
build of a kernel minutes. All other kinds are in between."""


class Goes(enum.Enum):
    """When something is removed."""

    LIMIT = "when the cache holds more than its limit, and by age"
    AGE = "by age alone: it is small, and asking again takes long"
    ASKED = "only if asked: a mirror may not have it any more"


class CacheKind(NamedTuple):
    """A kind of things in the cache, by where they are: the first that fits."""

    title: str
    pattern: str
    goes: Goes = Goes.LIMIT


KINDS = (
    CacheKind(BUILT, f"kernels/{BUILT_PREFIX}*"),
    CacheKind("fetched kernel", "kernels/*", Goes.ASKED),
    CacheKind(OUT, "trees/*/*-*"),  # out-x86 and the like; the tree's own are src and git
    CacheKind(TREE, "trees/*"),
    CacheKind(SNAPSHOT, "snapshots/*"),
    CacheKind(GUEST, "guests/*"),
    CacheKind(IMAGE, "images/*"),
    CacheKind("unpacked archive", "unpacked/*"),
    CacheKind("compiled part", "native/*"),
    CacheKind("kernel part", "kernel-parts/*"),
    CacheKind("module", "modules/*"),
    CacheKind("tree for guests", "kernel-trees/*"),
    CacheKind("headers", "headers/*", Goes.ASKED),
    CacheKind("package", "userland/*", Goes.ASKED),
    CacheKind("pin", "qemu/*/*", Goes.ASKED),
    CacheKind(DEBUG, "debuginfod/*", Goes.ASKED),
    CacheKind("package lists", "apt*/lists", Goes.ASKED),
    CacheKind("package lists", "apt*/cache", Goes.ASKED),
    CacheKind(ANSWER, "*-answers/*", Goes.AGE),
    CacheKind(ANSWER, "recompiled/*", Goes.AGE),
    CacheKind(ANSWER, "forcing/*", Goes.AGE),
    CacheKind("names of files", "found/*", Goes.AGE),
    CacheKind("calibration", "calibration/*", Goes.AGE),  # by versions that had the command
    CacheKind("config", "configs/*", Goes.AGE),
    CacheKind("patch", "series/*", Goes.AGE),
    CacheKind("damaged", "damaged/*"),
    CacheKind("log", "logs/*", Goes.AGE),
)
"""What the cache holds, besides ccache, which keeps within a limit of its own, and locks."""


class Cached(msgspec.Struct, frozen=True):
    """Something in the cache. `used`: seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float
    goes: Goes = Goes.LIMIT

    @property
    def name(self) -> str:
        """Its path in the cache."""
        return self.path.relative_to(cache_dir()).as_posix()


def limit_bytes() -> int:
    """How much the cache may hold; UserError for a setting that is no number.

    ccache keeps within a limit of its own, snapshots also within their share of this one.
    """
    text = os.environ.get(LIMIT_SETTING, "") or str(USUAL_LIMIT_GIB)
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        raise UserError(
            f"{LIMIT_SETTING} is no number: {text!r}", f"gibibytes, for example {USUAL_LIMIT_GIB}"
        )
    return int(float(text) * GIB)


def use_limit(gib: float) -> None:
    """Has the cache keep within that limit, unless the environment names one."""
    os.environ.setdefault(LIMIT_SETTING, f"{gib:.9f}")


def usage(only: str = "") -> list[Cached]:
    """Return what the cache holds, or that kind alone, what was used longest ago first. A tree
    comes after what was built in it, without whose bytes it counts.
    """
    found: dict[Path, Cached] = {}
    for kind in (one for one in KINDS if only in ("", one.title)):
        for path in matching(cache_dir(), kind.pattern):
            if path in found or path.name.endswith(PARTIAL) or is_manifest(path):
                continue
            with contextlib.suppress(OSError):
                is_file = not is_odd(path) or path.is_dir()
                used = (path.stat() if is_file else path.lstat()).st_mtime  # a loop has the latter
                found[path] = Cached(kind.title, path, disk_bytes(path), used, kind.goes)
    for tree in [one for one in found.values() if one.kind == TREE]:
        outs = [one for one in found.values() if one.kind == OUT and one.path.parent == tree.path]
        # A tree is used when it is built in, and goes after what was built in it.
        used = max([tree.used, *(one.used for one in outs)])
        count = tree.bytes - sum(one.bytes for one in outs)
        found[tree.path] = msgspec.structs.replace(tree, bytes=count, used=used)
    return sorted(found.values(), key=lambda one: one.used)


def disk_bytes(path: Path) -> int:
    """The disk space of a file, or of all files below a folder; those that vanish meanwhile have
    none.
    """
    total = 0
    inside = (f"{root}/{name}" for root, _, names in os.walk(path) for name in names)
    for one in inside if path.is_dir() else [str(path)]:
        with contextlib.suppress(OSError):
            total += os.lstat(one).st_blocks * 512
    return total


def megabytes(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e6:,.1f} MB" if count < 1e9 else f"{count / GIB:,.1f} GiB"


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be removed of the cache: what was used longest ago until no more than `limit`
    bytes are left, and all that was not used since the moment `before`; `fetched`: also what a
    mirror may not have any more. `keep`: folders that stay with all that is in them. `kind`: the
    only kind that is counted and removed; empty: all.
    """

    limit: float = math.inf
    before: float = -math.inf
    fetched: bool = False
    keep: Collection[Path] = ()
    kind: str = ""
    dry_run: bool = False


def prune_cache(wanted: Pruning, log: Log) -> list[Cached]:
    """Remove that, what is made again fastest first; return what was removed, or would be. What a
    process uses or builds in stays.
    """
    if not wanted.dry_run:
        remove_gone()
    removed = []
    entries = sorted(usage(wanted.kind), key=lambda one: _GOES_FIRST.get(one.kind, 1))
    total = sum(one.bytes for one in entries)
    for one in entries:
        if _is_wanted(one, wanted, total) and _remove(one, wanted, log):
            removed.append(one)
            total -= one.bytes
    return removed


def keep_limit() -> None:
    """Remove what is made again fastest until the cache is within its limit."""
    keep_snapshots()
    prune_cache(Pruning(limit=limit_bytes()), quiet)


def keep_snapshots() -> None:
    """Remove the snapshots that were used longest ago, beyond their share of the limit."""
    prune_cache(Pruning(limit=limit_bytes() * SNAPSHOT_SHARE, kind=SNAPSHOT), quiet)


def _is_wanted(one: Cached, wanted: Pruning, total: int) -> bool:
    if one.path in wanted.keep or one.path.parent in wanted.keep:
        return False
    if one.goes is Goes.ASKED and not wanted.fetched:
        return False
    return one.used < wanted.before or (total > wanted.limit and one.goes is not Goes.AGE)


def remove_gone() -> None:
    """Remove what a killed process left of what it removed."""
    for pattern in (f"*/*{GONE}", f"*/*/*{GONE}"):
        for path in own(pattern):
            remove_left(path)


def own(pattern: str) -> Iterator[Path]:
    """Yield the paths in the cache that match a pattern, but for those beyond a link: what lies
    there may be the user's.
    """
    root = cache_dir()
    for path in matching(root, pattern):
        between = [one for one in path.parents if root in one.parents]
        if not any(one.is_symlink() for one in between):
            yield path


@contextlib.contextmanager
def tree_free(one: Cached) -> Iterator[bool]:
    """Gives whether no process builds in the tree that it is or belongs to; none begins to during
    the body.
    """
    if one.kind not in (OUT, TREE):
        yield True
        return
    tree = one.path.parent if one.kind == OUT else one.path
    with (
        locked_if_free(f"tree-{tree.name}") as built,
        locked_if_free(f"source-{tree.name}") as read,
    ):
        yield built and read


def _remove(one: Cached, wanted: Pruning, log: Log) -> bool:
    with tree_free(one) as free:
        if free and wanted.dry_run:
            with unused(one.path) as unlocked:
                return unlocked
        removed = free and take_away(one.path)
    if not removed:
        log(f"{one.kind} {one.name} is in use and stays in the cache")
    elif one.bytes >= _WORTH_A_LINE_BYTES:
        log(f"removed {one.kind} {one.name} ({one.bytes >> 20} MiB) from the cache")
    return removed
