# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything in the cache that is damaged is named, and out of use after a repair."""

import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import damages
import pytest

from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import partial_folder, write_atomic, write_json
from kdelta.host.in_use import release, use
from kdelta.host.lock import fill_once, work_folder
from kdelta.host.manifest import published_folder, take_away
from kdelta.host.sealed import write_sealed
from kdelta.kernels.sources.source import Source, checked_out, source_of
from kdelta.machines import snapshots
from kdelta.machines.tcg import Snapshot
from kdelta.spec.kernel import TreeSpec
from kdelta.studies.upkeep import check
from kdelta.studies.upkeep.check import check_cache
from tests.kernels.trees import fake_tree
from tests.odd_files import ODD


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, without the pin, which takes long to look through."""
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "cache"))


def content(name: str) -> bytes:
    return name.encode() * 300


def folder(name: str) -> Callable[[str], Path]:
    """Something with a manifest of hashes next to it."""

    def made(which: str) -> Path:
        def fill(partial: Path) -> None:
            (partial / "lib").mkdir()
            (partial / "program").write_bytes(content(which))
            (partial / "lib/part").write_bytes(content(which + "part"))

        path = fill_once(cache_dir(name) / which, "making", quiet, fill)
        release(path)
        return path

    return made


def kernel(prefix: str) -> Callable[[str], Path]:
    def made(which: str) -> Path:
        with published_folder(cache_dir("kernels") / f"{prefix}{which}", quiet) as partial:
            (partial / "vmlinuz").write_bytes(content(which))
        return cache_dir("kernels") / f"{prefix}{which}"

    return made


def named(name: str, before: str, after: str) -> Callable[[str], Path]:
    """A file whose name has the hash of its content."""

    def made(which: str) -> Path:
        digest = hashlib.sha256(content(which)).hexdigest()[:32]
        path = cache_dir(name) / f"{before}{digest}{after}"
        write_atomic(path, content(which))
        return path

    return made


def answer(name: str) -> Callable[[str], Path]:
    def made(which: str) -> Path:
        write_sealed(cache_dir(name) / which, content(which))
        return cache_dir(name) / f"{which}.sealed"

    return made


def snapshot(which: str) -> Path:
    path = cache_dir("snapshots", which)
    kept = Snapshot(path)
    for file in (kept.ram, kept.state, kept.boot, kept.symbols):
        file.write_bytes(content(which + file.name))
    write_json(path / snapshots.RECORD, snapshots._Record(which, snapshots._checksums(path)))
    return path


KINDS: dict[str, Callable[[str], Path]] = {
    "compiled part": folder("native"),
    "kernel part": folder("kernel-parts"),
    "module": folder("modules"),
    "archive": folder("unpacked"),
    "headers": folder("headers"),
    "tree for guests": folder("kernel-trees"),
    "package": folder("userland"),
    "fetched kernel": kernel("linux="),
    "built kernel": kernel("built-"),
    "guest": named("guests", "base-x86_64-", ".cpio"),
    "image": named("images", "", ""),
    "snapshot": snapshot,
    "answer": answer("apt-answers"),
    "forcing": answer("forcing"),
    "debug file": answer("debuginfod"),
}


def files_of(path: Path) -> list[Path]:
    """The files that something in the cache consists of, its manifest among them."""
    inside = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    manifest = path.with_name(f"{path.name}.manifest")
    return sorted([*inside, *([manifest] if manifest.exists() else [])])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", damages.KINDS)
@pytest.mark.slow
def test_damaged_file_is_named_and_taken_out_of_use(kind: str, damage: str) -> None:
    chance = random.Random(f"{kind} {damage}")
    one, other = KINDS[kind]("a"), KINDS[kind]("b")
    assert list(check_cache()) == []
    pair = chance.choice(list(zip(files_of(one), files_of(other), strict=True)))
    assert damages.damage(pair[0], damage, pair[1], chance)
    found = {finding.path for finding in check_cache() if finding.is_damage}
    assert found == ({one, other} if damage == "exchange" else {one})
    assert one.exists()
    repaired = list(check_cache(repair=True))
    assert all("set aside" in finding.fixed for finding in repaired)
    assert not one.exists()
    assert list(check_cache()) == []
    assert other.exists() == (damage != "exchange")


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_pipe_or_device_is_damage(kind: str, odd: str) -> None:
    one = KINDS[kind]("a")
    for path in files_of(one):
        path.unlink()
        ODD[odd](path)
        assert {finding.path for finding in check_cache() if finding.is_damage} == {one}, path
        assert all("set aside" in finding.fixed for finding in check_cache(repair=True))
        assert list(check_cache()) == []
        assert KINDS[kind]("a") == one
        assert list(check_cache()) == []


@pytest.mark.parametrize("odd", ["pipe", "socket"])
def test_pipe_that_was_added_is_damage(odd: str) -> None:
    one = KINDS["module"]("a")
    ODD[odd](one / "lib/added")
    (found,) = check_cache()
    assert (found.path, found.what) == (one, "lib/added was added")


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_process_takes_away_meanwhile_is_no_damage(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = KINDS[kind]("a")

    def late(compare: check._Damage) -> check._Damage:
        def compared(path: Path) -> str | None:
            assert take_away(path)
            return compare(path)

        return compared

    compared = {name: late(compare) for name, compare in check._COMPARED.items()}
    monkeypatch.setattr(check, "_COMPARED", compared)
    assert list(check_cache()) == []
    assert not path.exists()


def test_damaged_thing_in_use_stays_and_is_named() -> None:
    path = KINDS["compiled part"]("a")
    (path / "program").write_bytes(b"")
    assert use(path)
    (found,) = check_cache(repair=True)
    assert (found.path, found.is_damage) == (path, True)
    release(path)
    assert next(check_cache(repair=True)).fixed
    assert not path.exists()


@pytest.mark.build
@pytest.mark.parametrize("place", ["git", "src"])
def test_damaged_source_tree_is_named(tmp_path: Path, place: str) -> None:
    source = source_of(TreeSpec(str(fake_tree(tmp_path))), quiet)
    assert isinstance(source, Source)
    checked_out(source, quiet)
    tree = source.folder
    assert list(check_cache()) == []
    path = tree / "src/Makefile"
    if place == "git":
        path = max((tree / "git").rglob("*.pack"), default=None) or next(
            one for one in (tree / "git/objects").rglob("*") if one.is_file()
        )
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"#")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    (found,) = check_cache()
    assert found.path == tree
    assert next(check_cache(repair=True)).fixed
    assert list(check_cache()) == []


def test_what_killed_processes_left_is_removed() -> None:
    KINDS["compiled part"]("a")
    root = cache_dir()
    left = [root / "guests/base.cpio.01234567.partial", root / "native/c.manifest"]
    cache_dir("guests")
    for path in left:
        path.write_bytes(b"")
    left += [cache_dir("snapshots", "b.partial"), cache_dir("work", "run-x")]
    found = list(check_cache())
    assert {one.path for one in found} == set(left)
    assert not any(one.is_damage for one in found)
    assert all(path.exists() for path in left)
    assert {one.fixed for one in check_cache(repair=True)} == {"removed"}
    assert not any(path.exists() for path in left)
    assert list(check_cache()) == []


def test_what_is_being_written_stays() -> None:
    with (
        partial_folder(cache_dir("snapshots") / "b.partial") as partial,
        work_folder() as work,
    ):
        assert [(one.path, one.fixed) for one in check_cache(repair=True)] == [(partial, "")]
        assert partial.exists()
        assert work.exists()
