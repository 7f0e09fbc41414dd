# SPDX-License-Identifier: GPL-2.0-or-later
"""Blobs: what is missing or damaged is found."""

from pathlib import Path

import pytest

from kdelta.spec.errors import LabError
from kdelta.store.blobs import Blobs
from tests.store.blob_files import blob_path


def test_blobs(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    for content in (b"", b"x", bytes(range(256)) * 1000):
        name = blobs.put(content)
        assert blobs.put(content) == name
        assert blobs.get(name) == content
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3


def test_a_missing_blob(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    name = blobs.put(b"x")
    blob_path(tmp_path, name).unlink()
    with pytest.raises(LabError, match="has lost a blob") as caught:
        blobs.get(name)
    assert "--rerun" in caught.value.hint


@pytest.mark.parametrize("garbage", [b"", b"garbage", None])
def test_a_damaged_blob_is_found_and_replaced(tmp_path: Path, garbage: bytes | None) -> None:
    blobs = Blobs(tmp_path)
    name, another = blobs.put(b"x" * 1000), blobs.put(b"y" * 1000)
    path = blob_path(tmp_path, name)
    path.write_bytes(blob_path(tmp_path, another).read_bytes() if garbage is None else garbage)
    with pytest.raises(LabError, match="is damaged"):
        blobs.get(name)
    assert blobs.put(b"x" * 1000) == name
    assert blobs.get(name) == b"x" * 1000


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 63, "A" * 64])
def test_a_name_that_cannot_be_a_blobs(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match="cannot be one"):
        Blobs(tmp_path).get(name)
