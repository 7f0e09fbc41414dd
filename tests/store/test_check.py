# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores that are damaged: nothing wrong is read, and a repair keeps what is whole."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import damages
import pytest

from kdelta.counts.model import RunCounts
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from kdelta.store.backup import back_up
from kdelta.store.check import DAMAGED, check_store
from kdelta.store.database import DATABASE
from kdelta.store.model import Run, Study
from kdelta.store.store import Store
from tests.store.blob_files import blob_path
from tests.store.test_store import new, study
from tests.synthetic import own, region, run

RUNS = 40

Content = tuple[dict[str, tuple[Run, RunCounts]], dict[str, tuple[Study, bytes]]]


def counts(number: int) -> RunCounts:
    return run(region("getppid", {own("sys_getppid"): 33700 + number}))


def fill(folder: Path) -> None:
    with Store.open(folder) as store:
        for number in range(RUNS):
            store.finish_run(
                store.start_run(new(f"{number:064x}")),
                RunStatus.OK,
                counts=counts(number),
                console=f"console {number}",
                attachments={"x": b"x%d" % number},
            )
            store.keep_study(study(f"{number}?", store.put(b"report %d" % number)))


def read(folder: Path) -> Content:
    with Store.open(folder) as store:
        runs = {one.id: (one, store.counts(one)) for one in store.runs()}
        return runs, {one.id: (one, store.get(one.report_blob)) for one in store.studies()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    fill(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "data"))


def is_part(found: Content, of: Content) -> bool:
    return found[0].items() <= of[0].items() and found[1].items() <= of[1].items()


@contextmanager
def error_of(folder: Path) -> Iterator[None]:
    """An error of the body names that store."""
    try:
        yield
    except LabError as error:
        if str(folder) not in error.message:
            raise AssertionError(error.message) from error
        raise


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["bit", "cut", "empty"])
@pytest.mark.slow
def test_damaged_database_is_named_or_as_it_was(folder: Path, kind: str, seed: int) -> None:
    before = read(folder)
    path = folder / DATABASE
    assert damages.damage(path, kind, None, random.Random(f"{kind} {seed}"))
    with suppress(LabError), error_of(folder):
        assert is_part(read(folder), before)
    found = list(check_store(folder, repair=True))
    assert not any(one.is_damage for one in found)
    assert list(check_store(folder)) == []
    after = read(folder)
    assert is_part(after, before)
    if kind == "bit":  # in one page of many
        assert len(after[0]) + len(after[1]) >= RUNS


def test_damaged_counts_take_their_run_out_of_use(folder: Path) -> None:
    before = read(folder)
    one = next(iter(before[0].values()))[0]
    path = blob_path(folder / "blobs", one.counts_blob or "")
    path.write_bytes(path.read_bytes()[:-3])
    (found,) = check_store(folder)
    assert found.path == path
    assert found.what == f"counts of run {one.id}: its content is not what was stored"
    (found,) = (one for one in check_store(folder, repair=True) if not one.is_left)
    assert str(folder / DAMAGED) in found.fixed
    assert one.id in (folder / DAMAGED / "runs.jsonl").read_text()
    assert list(check_store(folder)) == []
    assert read(folder) == ({k: v for k, v in before[0].items() if k != one.id}, before[1])


def test_damaged_console_leaves_the_run(folder: Path) -> None:
    before = read(folder)
    one = next(iter(before[0].values()))[0]
    blob_path(folder / "blobs", one.console_blob or "").unlink()
    blob_path(folder / "blobs", one.attachments["x"]).write_bytes(b"")
    assert {found.what for found in check_store(folder, repair=True)} == {
        f"console of run {one.id}: it is missing",
        f"x of run {one.id}: its content is not what was stored",
    }
    assert list(check_store(folder)) == []
    with Store.open(folder) as store:
        after = store.run(one.id)
        assert (after.console_blob, after.attachments) == (None, {})
        assert store.counts(after) == before[0][one.id][1]
    assert len(read(folder)[0]) == RUNS


def test_exchanged_blobs_and_rows_are_named(folder: Path) -> None:
    (first, _), (second, _) = list(read(folder)[0].values())[:2]
    paths = [blob_path(folder / "blobs", one.counts_blob or "") for one in (first, second)]
    assert damages.damage(paths[0], "exchange", paths[1], random.Random(0))
    assert {one.path for one in check_store(folder)} == set(paths)


def test_orphans_and_leftovers_are_removed(folder: Path) -> None:
    before = read(folder)
    with Store.open(folder) as store:
        orphan = store.put(b"nothing names it")
    left = folder / "blobs" / orphan[:2] / "x.01234567.partial"
    left.write_bytes(b"")
    paths = {blob_path(folder / "blobs", orphan), left}
    found = list(check_store(folder))
    assert {one.path for one in found} == paths
    assert not any(one.is_damage for one in found)
    assert {one.path for one in check_store(folder, repair=True) if one.fixed} == paths
    assert list(check_store(folder)) == []
    assert read(folder) == before


def test_run_that_goes_on_is_whole(folder: Path) -> None:
    with Store.open(folder) as store:
        store.start_run(new("k"))
        assert list(check_store(folder, repair=True)) == []
        assert store.runs(1)[0].word == "started"


def test_database_that_is_missing_loses_no_blob(folder: Path) -> None:
    blobs = {path.name for path in folder.glob("blobs/*/*")}
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    (found,) = check_store(folder)
    assert found.what == "it is missing, and its runs are lost"
    list(check_store(folder, repair=True))
    assert {path.name[2:] for path in (folder / DAMAGED / "blobs").iterdir()} == blobs
    assert list(check_store(folder)) == []


def test_folder_without_a_store_is_whole(tmp_path: Path) -> None:
    assert list(check_store(tmp_path, repair=True)) == []
    assert not (tmp_path / DATABASE).exists()


def test_backup_is_equal_while_another_writes(folder: Path, tmp_path: Path) -> None:
    before = read(folder)
    with Store.open(folder) as store:
        store.start_run(new("k"))  # and does not end
        assert back_up(folder, tmp_path / "copy") == 2 * RUNS + 1
    found = read_ended(tmp_path / "copy")
    assert found == before
    assert list(check_store(tmp_path / "copy")) == []


def read_ended(folder: Path) -> Content:
    with Store.open(folder) as store:
        runs = {one.id: (one, store.counts(one)) for one in store.runs() if one.counts_blob}
        return runs, {one.id: (one, store.get(one.report_blob)) for one in store.studies()}


def test_backup_of_a_damaged_store_is_refused(folder: Path, tmp_path: Path) -> None:
    next(folder.glob("blobs/*/*")).unlink()
    with pytest.raises(LabError, match="the store is damaged"):
        back_up(folder, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.partial").exists()
