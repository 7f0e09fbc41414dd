# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile lists of packages: none is believed, and none ends as a fault of kdelta."""

import hashlib
from pathlib import Path

import pytest

from kdelta.kernels.packages.repository import compare_rpm_versions, resolve
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import RepositorySpec
from tests.kernels.packages.test_members import tar
from tests.kernels.samples import member


def repository(folder: Path, name: str = "kernel-core", epoch: str = "0") -> RepositorySpec:
    package = (
        f'<package type="rpm"><name>{name}</name><arch>x86_64</arch>'
        f'<version epoch="{epoch}" ver="6.1" rel="1"/><checksum type="sha256">0</checksum>'
        '<location href="kernel.rpm"/></package>'
    )
    primary = f"<metadata>{package}</metadata>".encode()
    (folder / "repodata").mkdir()
    (folder / "repodata/primary.xml").write_bytes(primary)
    (folder / "repodata/repomd.xml").write_text(
        '<repomd><data type="primary"><location href="repodata/primary.xml"/>'
        f'<checksum type="sha256">{hashlib.sha256(primary).hexdigest()}</checksum></data></repomd>'
    )
    return RepositorySpec("rpm", "kernel-core", str(folder))


@pytest.mark.parametrize("name", ["kernel/../../../outside", "kernel core", "kernel\\x"])
def test_names_of_packages_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    spec = repository(tmp_path, name)
    (tmp_path / "work").mkdir()
    with pytest.raises(LabError, match=r"cannot use the repository .* it has a package"):
        resolve(spec, tmp_path / "work")


@pytest.mark.parametrize("epoch", ["x", "-1", "9" * 5000])
def test_epochs_that_are_no_numbers_are_refused(tmp_path: Path, epoch: str) -> None:
    spec = repository(tmp_path, epoch=epoch)
    (tmp_path / "work").mkdir()
    with pytest.raises(LabError, match=r"cannot read the repository .* epoch"):
        resolve(spec, tmp_path / "work")


def test_versions_of_thousands_of_digits_are_compared() -> None:
    assert compare_rpm_versions("9" * 5000, "1" + "0" * 5000) < 0
    assert compare_rpm_versions("0010", "10") == 0
    assert compare_rpm_versions("10", "9") > 0


@pytest.mark.parametrize("encoding", ["UTG-8", "big5"])
def test_encodings_that_are_not_read_are_refused(tmp_path: Path, encoding: str) -> None:
    spec = repository(tmp_path)
    index = tmp_path / "repodata/repomd.xml"
    index.write_text(f'<?xml version="1.0" encoding="{encoding}"?>{index.read_text()}')
    (tmp_path / "work").mkdir()
    with pytest.raises(LabError, match=r"cannot read the repository .* its list is damaged"):
        resolve(spec, tmp_path / "work")


def test_database_that_is_cut_within_a_description_is_refused(tmp_path: Path) -> None:
    content = tar([member("linux-6.1-1/desc", bytes(600))])
    (tmp_path / "core.db").write_bytes(content[: 512 + 300])
    (tmp_path / "work").mkdir()
    spec = RepositorySpec("pkg", "linux", f"{tmp_path}/core.db")
    with pytest.raises(LabError, match=r"cannot read the repository .*: unexpected end of data"):
        resolve(spec, tmp_path / "work")
