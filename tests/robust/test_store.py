# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores and caches that were damaged, and what --rerun makes of them."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import RunCounts, decode_counts, encode_counts
from kdelta.host.dirs import data_dir
from kdelta.store.bound import bound_of
from kdelta.store.model import Run
from kdelta.store.store import Store
from tests.robust.lab import kdelta, run_words, shared_cache, snapshots, stored

pytestmark = [pytest.mark.guest, pytest.mark.slow]
Programs = Callable[[str], Path]


def _blob(run: Run) -> Path:
    assert run.counts_blob
    return data_dir() / "blobs" / run.counts_blob[:2] / run.counts_blob[2:]


def test_again_runs_again_and_finds_the_same(program: Programs) -> None:
    words = run_words(program("good"))
    first = kdelta(*words)
    stored_answer = kdelta(*words)
    assert (first.code, stored_answer.code) == (0, 0)
    assert len(stored()) == 1
    assert kdelta(words[0], "--rerun", *words[1:]).code == 0
    second, earlier = stored()
    assert second.id != earlier.id
    assert second.counts_blob == earlier.counts_blob


def _tampered(counts: RunCounts) -> RunCounts:
    """With one load more in one function."""
    region = counts.regions[0]
    function = region.functions[0]
    cost = msgspec.structs.replace(function.cost, loads=function.cost.loads + 1)
    functions = (msgspec.structs.replace(function, cost=cost), *region.functions[1:])
    changed = msgspec.structs.replace(region, functions=functions)
    return msgspec.structs.replace(counts, regions=(changed, *counts.regions[1:]))


def test_again_says_where_counts_part(program: Programs) -> None:
    words = run_words(program("good"), "--rerun")
    assert kdelta(*words).code == 0
    (run,) = stored()
    with Store.open(data_dir()) as store:
        counts = decode_counts(store.get(run.counts_blob or ""))
        blob = store.put(encode_counts(_tampered(counts)))
    function = counts.regions[0].functions[0]
    with sqlite3.connect(data_dir() / "store.db") as database:
        bound = bound_of({**msgspec.structs.asdict(run), "counts_blob": blob})
        database.execute("UPDATE runs SET counts_blob = ?, bound = ?", (blob, bound))
    database.close()
    ended = kdelta(*words)
    assert ended.code == 3
    assert "are the same and counted differently: command: " in ended.err
    assert f"{function.name} ({function.origin}, {function.context}): loads " in ended.err
    second, earlier = stored()
    assert run.id == earlier.id
    assert second.id in ended.err
    assert earlier.id in ended.err
    assert second.word == "ok"


def test_a_damaged_blob_is_told_and_fixed_by_again(program: Programs) -> None:
    words = run_words(program("good"))
    assert kdelta(*words).code == 0
    (run,) = stored()
    path = _blob(run)
    whole = path.read_bytes()
    for damage in (b"garbage", whole[:-10], None):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
        ended = kdelta("show")
        assert ended.code == 3
        assert str(path) in ended.err
        assert "--rerun" in ended.err
    ended = kdelta(*words)
    assert (ended.code, ended.out) == (3, "")
    assert str(path) in ended.err
    assert kdelta(words[0], "--rerun", *words[1:]).code == 0
    assert path.read_bytes() == whole
    assert kdelta("show", run.id).code == 0


def test_a_store_of_a_newer_version(program: Programs) -> None:
    assert kdelta("runs").code == 0
    with sqlite3.connect(data_dir() / "store.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    before = (data_dir() / "store.db").read_bytes()
    for words in (["runs"], run_words(program("good"))):
        ended = kdelta(*words)
        assert ended.code == 3
        assert "was written by a newer kdelta (its schema is 9999" in ended.err
        assert "KDELTA_DATA_DIR" in ended.err
    assert (data_dir() / "store.db").read_bytes() == before


def test_a_damaged_store(program: Programs) -> None:
    assert kdelta(*run_words(program("good"))).code == 0
    database = data_dir() / "store.db"
    content = database.read_bytes()
    for damage in (b"garbage" * 1000, content[:5000], content[:4096] + bytes(len(content) - 4096)):
        for path in data_dir().glob("store.db*"):
            path.unlink()
        database.write_bytes(damage)
        ended = kdelta("runs")
        assert ended.code == 3
        assert f"the store in {data_dir()} is damaged" in ended.err
        assert "hint: kdelta check --repair" in ended.err
    # What the hint says helps.
    assert kdelta(*run_words(program("good"))).code == 3
    assert kdelta("check", "--repair").code == 0
    assert kdelta(*run_words(program("good"))).code == 0


def test_a_damaged_snapshot_is_taken_again(
    user_cache: Path, own_cache: Path, program: Programs
) -> None:
    shared_cache(own_cache, user_cache, "kernels", "native", "guests", "apt", "apt-answers")
    words = run_words(program("good"), "--rerun")
    assert kdelta(*words).code == 0
    (folder,) = snapshots()
    state = folder / "state"
    whole = state.stat().st_size
    # One bit of the guest's memory, which QEMU would take and run with.
    content = bytearray(state.read_bytes())
    content[whole // 2] ^= 1
    state.write_bytes(content)
    again = kdelta(*words)  # --rerun: the counts are compared
    assert again.code == 0, again.err
    assert state.read_bytes() != content

    state.write_bytes(state.read_bytes()[: whole // 2])
    assert kdelta(*words).code == 0
    assert state.stat().st_size > whole // 2
    assert [run.word for run in stored()] == ["ok"] * 3
