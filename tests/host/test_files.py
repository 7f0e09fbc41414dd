# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders and files: where they are, that they are whole, what a full disk says."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from kdelta.host.dirs import cache_dir, data_dir
from kdelta.host.files import (
    copy_sparse,
    has_made_folders,
    move,
    new_folder,
    os_failure,
    read_json,
    remove,
    sha256_file,
    write_atomic,
)
from kdelta.spec.errors import LabError


def test_own_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_dir("kernels") == tmp_path / "mine" / "kernels"
    assert (tmp_path / "mine" / "kernels").is_dir()


def test_xdg_variable_names_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KDELTA_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_dir() == tmp_path / "kdelta"


def test_relative_xdg_variable_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KDELTA_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_dir() == tmp_path / ".local/share/kdelta"


def test_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(LabError, match="creating the folder"):
        cache_dir()


def test_write_replaces_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record"
    write_atomic(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LabError, match="No space left") as raised:
            write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert "KDELTA_CACHE_DIR" in raised.value.hint
    assert "MiB free" in raised.value.hint
    assert [file.name for file in tmp_path.iterdir()] == ["record"]


def test_disk_without_inodes_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "inodes" not in os_failure(error, "writing", tmp_path / "record").hint
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:5], 30, 0, 0, *real[8:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    hint = os_failure(error, "writing", tmp_path / "record").hint
    assert hint.startswith("the disk has no inodes left, so remove files; ")


def test_write_sets_the_mode(tmp_path: Path) -> None:
    write_atomic(tmp_path / "record", b"")
    assert (tmp_path / "record").stat().st_mode & 0o777 == 0o644


def test_new_folder_appears_at_the_end(tmp_path: Path) -> None:
    final = tmp_path / "kernel"
    with new_folder(final) as partial:
        (partial / "image").write_text("content")
        assert not final.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["kernel"]
    assert (final / "image").read_text() == "content"


def test_made_folders_are_those_since_the_last_call(tmp_path: Path) -> None:
    has_made_folders()
    for name in ("kernel", "image"):
        with new_folder(tmp_path / name):
            assert not has_made_folders()
        assert has_made_folders()
    assert not has_made_folders()


def test_new_folder_leaves_nothing_after_a_failure(tmp_path: Path) -> None:
    def fill() -> None:
        with new_folder(tmp_path / "kernel") as partial:
            (partial / "image").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_new_folder_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    left = tmp_path / "kernel.partial"
    left.mkdir()
    (left / "stale").write_text("")
    with new_folder(tmp_path / "kernel") as partial:
        assert list(partial.iterdir()) == []


@pytest.mark.slow
def test_remove_nested_too_deeply_for_calls_and_paths(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deep", dir_fd=here)
        os.close(os.open("deep/file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        inner = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        remove(tmp_path / "deep")
        assert list(tmp_path.iterdir()) == []
    finally:  # pytest could not remove it
        subprocess.run(["rm", "-rf", *tmp_path.iterdir()], check=True)


def test_new_folder_is_synced_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path.name, (tmp_path / "kernel").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with new_folder(tmp_path / "kernel") as partial:
        (partial / "image").write_text("content")
    assert sorted(synced[:2]) == [("image", False), ("kernel.partial", False)]
    assert synced[2:] == [(tmp_path.name, True)]


def test_a_file_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path == tmp_path, (tmp_path / "record").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "record", b"content")
    assert synced == [(False, False), (True, True)]


def test_a_folder_that_cannot_be_renamed_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of a lower layer of an overlay."""

    def cross_device(_self: object, _to: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    (tmp_path / "old").mkdir()
    (tmp_path / "old/file").write_text("content")
    (tmp_path / "old/link").symlink_to("file")
    monkeypatch.setattr(Path, "rename", cross_device)
    monkeypatch.setattr(os, "rename", cross_device)
    move(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "new/link").readlink() == Path("file")
    assert (tmp_path / "new/file").read_text() == "content"


def test_read_json_nested_too_deeply_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[" * 100_000)
    assert read_json(tmp_path / "a.json", list) is None


def test_remove_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove(tmp_path / "link")
    assert (tmp_path / "kept" / "file").exists()
    assert not (tmp_path / "link").is_symlink()


def test_sha256_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    # FIPS 180-4's example.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_file(tmp_path / "file") == expected
    with pytest.raises(LabError, match="reading"):
        sha256_file(tmp_path / "none")


def _other_file_system(*_: object, **__: object) -> int:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@pytest.mark.parametrize("copy_range", [os.copy_file_range, _other_file_system])
def test_copy_keeps_holes_and_data(
    copy_range: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for place in (1 << 20, 5 << 20):
            file.seek(place)
            file.write(b"data" * 2048)
        file.truncate(9 << 20)
    monkeypatch.setattr(os, "copy_file_range", copy_range)
    copy_sparse(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_blocks <= source.stat().st_blocks < (1 << 20) // 512
    with pytest.raises(LabError):  # it replaces nothing
        copy_sparse(source, target)


def test_copy_source_became_shorter_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source").write_bytes(b"data")
    monkeypatch.setattr(os, "copy_file_range", lambda *_, **__: 0)
    with pytest.raises(LabError, match="shorter"):
        copy_sparse(tmp_path / "source", tmp_path / "target")
