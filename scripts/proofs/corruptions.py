#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages files of cache and store, one a trial, and looks whether `kdelta check` names each, and
is clean after --repair; and whether the store is read as before, or with an error that names it.

    scripts/proofs/corruptions.py --trials 2000

Each trial works on copies: of the store, or of two things of one kind in the cache.
"""

import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import damages
import msgspec
from campaign import BUILD, Proof

from kdelta.host.cache import Cached, usage
from kdelta.host.dirs import cache_dir, data_dir
from kdelta.host.files import copy_sparse
from kdelta.host.finding import Finding
from kdelta.host.sealed import is_sealed
from kdelta.spec.errors import LabError
from kdelta.store.check import check_store
from kdelta.store.store import Store
from kdelta.studies.upkeep.check import check_cache

_ANSWERS = ("answer", "debug file")
_KINDS = (
    *("built kernel", "kernel", "fetched kernel", "compiled part", "kernel part", "module"),
    *("package", "snapshot", "guest image", *_ANSWERS),
)

_OF_BOOT = {"console", "job", "rules", "stderr"}
"""Files of a snapshot that nothing reads once it is taken."""

Figures = dict[str, object]


class Trial(msgspec.Struct, frozen=True):
    """What a damage to a file of the store or the cache came to: named, not named, harmless, wrong,
    lost without a word, or no damage.

    clean       after a repair nothing is named
    kept, added how many figures of the store are as before, and how many are new
    """

    name: str
    of: str
    file: str
    damage: str
    outcome: str
    clean: bool = True
    kept: str = ""
    added: int = 0


def figures(folder: Path) -> Figures:
    """Return all that the store has, by what it is of."""
    found: Figures = {}
    with Store.open(folder) as store:
        for run in store.runs():
            found[run.id] = (run, store.counts(run) if run.counts_blob else None)
            found[f"{run.id} console"] = store.console(run)
            for name, blob in run.attachments.items():
                found[f"{run.id} {name}"] = store.get(blob)
        for study in store.studies():
            found[study.id] = (study, store.get(study.report_blob))
    return found


def store_trial(name: str, work: Path, chance: random.Random) -> Trial:
    """Damage a file of the store."""
    folder = Path(shutil.copytree(data_dir(), work / "data"))
    before = figures(folder)
    blobs = sorted(folder.glob("blobs/*/*"))
    path = folder / "store.db" if chance.random() < 0.5 else chance.choice(blobs)
    kind = chance.choice(damages.KINDS)
    done = Trial(name, "store", str(path.relative_to(folder)), kind, "no damage")
    if not damages.damage(path, kind, chance.choice(blobs), chance):
        return done
    try:
        outcome = "harmless" if figures(folder) == before else "wrong"
    except LabError as error:
        outcome = "named" if str(folder) in error.message else "not named"
    if outcome == "wrong" and figures(folder).items() <= before.items():
        outcome = "lost without a word"
    list(check_store(folder, repair=True))
    left = list(check_store(folder))
    after = figures(folder)
    kept = {key: value for key, value in after.items() if before.get(key) == value}
    changed = [key for key in after.keys() - kept.keys() if key not in before]
    share = f"{len(kept)} of {len(before)}"
    return msgspec.structs.replace(
        done, outcome=outcome, clean=not left, kept=share, added=len(changed)
    )


def cache_trial(name: str, work: Path, chance: random.Random, things: list[Cached]) -> Trial:
    """Damage a file of something in the cache."""
    kinds = collections.defaultdict(list)
    for one in things:
        kinds[one.kind].append(one)
    kind = chance.choice(sorted(one for one, found in kinds.items() if len(found) > 1))
    pair = chance.sample(kinds[kind], 2)
    root = cache_dir()
    os.environ["KDELTA_CACHE_DIR"] = str(work / "cache")
    try:
        copies = [_copy(one.path, work / "cache" / one.path.relative_to(root)) for one in pair]
        files = [_files(one) for one in copies]
        path, other = chance.choice(files[0]), chance.choice(files[1])
        how = chance.choice(damages.KINDS)
        done = Trial(name, "cache", str(path.relative_to(work / "cache")), how, "no damage")
        if not damages.damage(path, how, other, chance):
            return done
        named = {one.path for one in check_cache() if one.is_damage}
        wanted = {copies[0], copies[1]} if how == "exchange" else {copies[0]}
        fixed: list[Finding] = list(check_cache(repair=True))
        clean = all(one.fixed for one in fixed) and not list(check_cache())
        outcome = "named" if named == wanted else "not named"
        return msgspec.structs.replace(done, outcome=outcome, clean=clean)
    finally:
        os.environ["KDELTA_CACHE_DIR"] = str(root)


def _copy(path: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, to, symlinks=True, copy_function=_copy_file)
    else:
        _copy_file(str(path), str(to))
    manifest = path.with_name(f"{path.name}.manifest")
    if manifest.exists():
        _copy_file(str(manifest), str(to.with_name(manifest.name)))
    return to


def _copy_file(path: str, to: str) -> None:
    """Copies a file with its holes, whose places count for a snapshot."""
    copy_sparse(Path(path), Path(to))
    shutil.copystat(path, to)


def _files(path: Path) -> list[Path]:
    inside = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    manifest = path.with_name(f"{path.name}.manifest")
    found = [*inside, *([manifest] if manifest.exists() else [])]
    return sorted(one for one in found if not one.is_symlink() and one.name not in _OF_BOOT)


def _has_hashes(one: Cached) -> bool:
    if one.kind in _ANSWERS:
        return is_sealed(one.path)
    manifest = one.path.with_name(f"{one.path.name}.manifest")
    return one.kind in ("snapshot", "guest image") or manifest.exists()


def made(names: Sequence[str], options: argparse.Namespace) -> Iterator[Trial]:
    """Damage a file each."""
    things = [one for one in usage() if one.kind in _KINDS and _has_hashes(one)]
    for name in names:
        chance = random.Random(f"{options.seed} {name}")
        with tempfile.TemporaryDirectory() as folder:
            if chance.random() < 0.5:
                yield store_trial(name, Path(folder), chance)
            else:
                yield cache_trial(name, Path(folder), chance, things)


def wrong(found: Sequence[Trial]) -> Iterator[str]:
    """Yield the damages that were not named and did harm, and repairs that left something."""
    for one in found:
        if one.outcome not in {"named", "harmless", "no damage"} or not one.clean:
            yield f"{one.name}: {one.file}, {one.damage}: {one.outcome}, clean: {one.clean}"


PROOF = Proof(
    record=Trial,
    file=BUILD / "corruptions/trials.jsonl",
    trials=lambda given: map(str, range(given.trials)),
    make=made,
    wrong=wrong,
    summary=lambda one: f"{one.of}, {one.damage}: {one.outcome}",
    answer=lambda found: str(collections.Counter((one.of, one.outcome) for one in found)),
    sizes={"trials": 2000, "seed": 1},
)


if __name__ == "__main__":
    sys.exit(PROOF.main())
