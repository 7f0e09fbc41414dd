# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta check`, `kdelta prune` and `kdelta backup`: looking after cache and store."""

import math
import time
from collections.abc import Iterable
from typing import Annotated

import msgspec

from kdelta.cli.codes import LAB
from kdelta.cli.output import emit
from kdelta.host.cache import GIB, Pruning, disk_bytes, limit_bytes, megabytes, prune_cache, usage
from kdelta.host.command import log_to_stderr
from kdelta.host.dirs import data_dir
from kdelta.host.files import expanded
from kdelta.host.finding import Finding
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.spec.visible import visible_line
from kdelta.store.backup import back_up
from kdelta.store.check import check_store
from kdelta.store.database import has_database
from kdelta.store.model import Run, Study
from kdelta.store.store import Store
from kdelta.studies.upkeep.check import check_cache
from kdelta.studies.upkeep.prune import chosen

_DAY_SECONDS = 86400


class CheckOptions(msgspec.Struct, frozen=True):
    """What is done about what is found."""

    repair: Annotated[
        bool, option("--repair", help="Set aside what is damaged, remove what is left over.")
    ] = False


def check(asked: CheckOptions) -> int:
    """Compare all of cache and store with their hashes.

    Names each file that is not as it was made, what nothing refers to, and what killed processes
    left. The exit code is 3 if something is damaged. With --repair what is whole stays, and what
    was damaged is made again when it is asked for.
    """
    findings = []
    for one in (*check_cache(repair=asked.repair), *check_store(data_dir(), repair=asked.repair)):
        emit(finding_text(one))
        findings.append(one)
    emit(_summary(findings))
    return LAB if any(one.is_damage for one in findings) else 0


def finding_text(found: Finding) -> str:
    """Return a line for something that is not as it should be."""
    word = "left over" if found.is_left else "damaged"
    fixed = f" ({found.fixed})" if found.fixed else ""
    return visible_line(f"{word:<10} {found.path}: {found.what}{fixed}") + "\n"


def _summary(findings: Iterable[Finding]) -> str:
    found = list(findings)
    damaged = [one for one in found if one.is_damage]
    if damaged and any(one.fixed for one in found):
        return f"{len(damaged)} damaged: a process uses them; end it and try again\n"
    if damaged:
        return f"{len(damaged)} damaged: kdelta check --repair takes them out of use\n"
    if any(not one.fixed for one in found):
        return "all is whole; kdelta check --repair removes what is left over\n"
    return "all is whole\n"


class PruneOptions(msgspec.Struct, frozen=True):
    """What is removed."""

    older: Annotated[
        float | None,
        option("--older", metavar="DAYS", least=0, help="Remove what was not used for DAYS."),
    ] = None
    cache: Annotated[
        float | None,
        option("--cache", metavar="GIB", least=0, most=1e9, help="Keep the cache within GIB."),
    ] = None
    runs: Annotated[bool, option("--runs", help="Remove runs that no study refers to.")] = False
    studies: Annotated[
        bool, option("--studies", help="Remove studies that are older than --older.")
    ] = False
    fetched: Annotated[
        bool, option("--fetched", help="Remove fetched kernels and packages, too.")
    ] = False
    dry_run: Annotated[
        bool, option("--dry-run", help="Print what would be removed, and remove nothing.")
    ] = False


def prune(asked: PruneOptions) -> None:
    """Remove what is no longer needed from cache and store.

    Of the cache that is what was used longest ago, until it is within its limit, or within --cache;
    and what was not used for --older days. What a running kdelta uses stays. Of the store it is
    what no run and no study refers to. Runs and studies stay unless --runs or --studies is given.
    """
    older, cache = asked.older, asked.cache
    if asked.studies and older is None:
        raise UserError(
            "cannot remove all studies", "name an age: kdelta prune --studies --older 90"
        )
    for name, value in (("--older", older), ("--cache", cache)):
        if value is not None and not math.isfinite(value):
            raise UserError(f"cannot use {name} {value:g}: it is no number", f"{name} 20")
    before = time.time() - older * _DAY_SECONDS if older is not None else math.inf
    emit(_pruned_store(before, asked))
    limit = limit_bytes() if cache is None else int(cache * GIB)
    wanted = Pruning(
        limit=limit,
        before=before if older is not None else -math.inf,
        fetched=asked.fetched,
        dry_run=asked.dry_run,
    )
    emit(pruned_text(wanted))


def pruned_text(wanted: Pruning) -> str:
    """Prunes the cache; a line on what was removed, or would be, what is left, and the limit."""
    removed = prune_cache(wanted, log_to_stderr)
    freed = sum(one.bytes for one in removed)
    left = sum(one.bytes for one in usage())
    if wanted.dry_run:
        lines = [visible_line(f"{one.kind} {one.name} ({megabytes(one.bytes)})") for one in removed]
        head = f"would remove {len(removed)} things of the cache ({megabytes(freed)}):"
        return "".join(f"{line}\n" for line in [head, *(f"    {line}" for line in lines)])
    return (
        f"removed {len(removed)} things of the cache ({megabytes(freed)}); {megabytes(left)} are "
        f"left; the limit is {limit_bytes() / GIB:g} GiB (KDELTA_CACHE_GIB)\n"
    )


def _pruned_store(before: float, asked: PruneOptions) -> str:
    folder = data_dir()
    if not has_database(folder):
        return ""
    with Store.open(folder) as store:
        found = chosen(store, before, runs=asked.runs, studies=asked.studies)
        if asked.dry_run:
            return "".join(f"would remove {_named(one)}\n" for one in found)
        removed, freed = store.remove_all(found)
        orphans, more = store.remove_orphans()
    return (
        f"removed {removed} runs and studies, and {orphans} blobs that nothing refers to "
        f"({megabytes(freed + more)}); {megabytes(disk_bytes(folder))} are left in the store\n"
    )


def _named(one: Run | Study) -> str:
    what = f"study {one.id}, {one.kind}" if isinstance(one, Study) else f"run {one.id}"
    return f"{what} of {one.started_text} UTC"


def backup(
    folder: Annotated[
        str, Argument(metavar="FOLDER", help="A new folder for the copy.", values="FILE")
    ],
) -> None:
    """Copy the store, also while others write it.

    The copy is compared with its hashes. With KDELTA_DATA_DIR=FOLDER every command reads it; to
    restore it, copy the folder to where the store was.
    """
    count = back_up(data_dir(), expanded(folder).absolute())
    emit(f"{count} runs and studies are in {folder}, all whole\n")
