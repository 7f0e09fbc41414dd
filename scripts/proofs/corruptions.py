#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages files of cache and store, one a trial, and looks whether `kdelta check` names each, and
is clean after --repair; and whether the store is read as before, or with an error that names it.

    scripts/proofs/corruptions.py --out build/corruptions --trials 2000

Each trial works on copies: of the store, or of two things of one kind in the cache. Its record is a
file of its own, so that an interrupted campaign continues where it stopped.
"""

import argparse
import collections
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import damages

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
    "built kernel",
    "kernel",
    "fetched kernel",
    "compiled part",
    "kernel part",
    "module",
    "package",
    "snapshot",
    "guest image",
    *_ANSWERS,
)

_OF_BOOT = {"console", "job", "rules", "stderr"}
"""Files of a snapshot that nothing reads once it is taken."""

Figures = dict[str, object]


def figures(folder: Path) -> Figures:
    """All that the store has, by what it is of."""
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


def store_trial(work: Path, chance: random.Random) -> dict[str, str]:
    """Damages a file of the store; what came of it."""
    folder = Path(shutil.copytree(data_dir(), work / "data"))
    before = figures(folder)
    blobs = sorted(folder.glob("blobs/*/*"))
    path = folder / "store.db" if chance.random() < 0.5 else chance.choice(blobs)
    kind = chance.choice(damages.KINDS)
    done = {"file": str(path.relative_to(folder)), "damage": kind}
    if not damages.damage(path, kind, chance.choice(blobs), chance):
        return {**done, "outcome": "no damage"}
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
    return {
        **done,
        "outcome": outcome,
        "clean": str(not left),
        "kept": f"{len(kept)} of {len(before)}",
        "added": str(len(changed)),
    }


def cache_trial(work: Path, chance: random.Random, things: list[Cached]) -> dict[str, str]:
    """Damages a file of something in the cache; what came of it."""
    kinds = collections.defaultdict(list)
    for one in things:
        kinds[one.kind].append(one)
    kind = chance.choice(sorted(name for name, found in kinds.items() if len(found) > 1))
    pair = chance.sample(kinds[kind], 2)
    root = cache_dir()
    os.environ["KDELTA_CACHE_DIR"] = str(work / "cache")
    try:
        copies = [_copy(one.path, work / "cache" / one.path.relative_to(root)) for one in pair]
        files = [_files(one) for one in copies]
        path, other = chance.choice(files[0]), chance.choice(files[1])
        how = chance.choice(damages.KINDS)
        done = {"file": str(path.relative_to(work / "cache")), "damage": how}
        if not damages.damage(path, how, other, chance):
            return {**done, "outcome": "no damage"}
        named = {one.path for one in check_cache() if one.is_damage}
        wanted = {copies[0], copies[1]} if how == "exchange" else {copies[0]}
        fixed: list[Finding] = list(check_cache(repair=True))
        return {
            **done,
            "outcome": "named" if named == wanted else "not named",
            "clean": str(all(one.fixed for one in fixed) and not list(check_cache())),
        }
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


def campaign(out: Path, trials: int, seed: int) -> bool:
    """Makes the trials that have no record yet; returns whether all were as they should be."""
    out.mkdir(parents=True, exist_ok=True)
    things = [one for one in usage() if one.kind in _KINDS and _has_hashes(one)]
    for number in range(trials):
        record = out / f"{seed}-{number:05}.json"
        if record.exists():
            continue
        chance = random.Random(f"{seed} {number}")
        with tempfile.TemporaryDirectory() as name:
            if chance.random() < 0.5:
                found = {"of": "store", **store_trial(Path(name), chance)}
            else:
                found = {"of": "cache", **cache_trial(Path(name), chance, things)}
        record.write_text(json.dumps(found, indent=1) + "\n")
    return _report(out)


def _report(out: Path) -> bool:
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    counted = collections.Counter(
        (one["of"], one["outcome"], f"clean: {one.get('clean', '-')}") for one in records
    )
    for words, count in sorted(counted.items()):
        print(f"{count:6} {'  '.join(words)}")
    good = {"named", "harmless", "no damage"}
    return all(one["outcome"] in good and one.get("clean", "True") == "True" for one in records)


def main() -> int:
    """The exit code is 0 if each damage was named or harmless, and each repair clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/corruptions"))
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    return 0 if campaign(given.out, given.trials, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
