# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages and indices of repositories with random cuts and changed bytes, by a fixed seed: each is
read or refused with an error that names it, in bounded time, and nothing is written elsewhere.
"""

import gzip
import hashlib
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdelta.kernels.packages.cached import record_of
from kdelta.kernels.packages.repository import resolve
from kdelta.kernels.packages.unpack import unpack_kernel
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import RepositorySpec
from tests.kernels.packages.test_files import ARCH, ARCH_PACKAGE, DEFAULT, RPMS
from tests.kernels.packages.test_members import cpio, rpm, tar, zstd
from tests.kernels.samples import deb, kernel_members, tree

ROUNDS = int(os.environ.get("DAMAGES", "30"))
"""How many damages of each sample; name more to search longer."""
MOST_SECONDS = 20

_FILES = [(info.name, content, 0o100644) for info, content in kernel_members() if content]

SAMPLES: dict[str, Callable[[], bytes]] = {
    "deb": lambda: deb(kernel_members()),
    "rpm": (RPMS / DEFAULT).read_bytes,
    "rpm-without-hashes": lambda: rpm(cpio(_FILES)),
    "rpm-packed": lambda: rpm(zstd(cpio(_FILES))),
    "pkg": (ARCH / ARCH_PACKAGE).read_bytes,
    "pkg-not-packed": lambda: tar(kernel_members()),
}


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content cut off, with changed bytes, or with a part that is lost, doubled or overwritten
    by the largest or smallest numbers.
    """
    made = bytearray(content)
    # The beginning has the headers.
    at = chance.randrange(len(made) if chance.random() < 0.5 else min(len(made), 600))
    count = chance.choice((1, 1, 2, 4, 8, 64))
    match chance.randrange(6):
        case 0:
            del made[at:]
        case 1:
            made[at] ^= 1 << chance.randrange(8)
        case 2:
            made[at : at + count] = chance.randbytes(count)
        case 3:
            made[at : at + count] = chance.choice((b"\xff", b"\0", b"f", b"0", b"9")) * count
        case 4:
            del made[at : at + count]
        case _:
            made[at:at] = made[at : at + count]
    return bytes(made)


@pytest.fixture
def limited() -> Iterator[None]:
    """Ends what takes too long."""

    def late(*_: object) -> None:
        pytest.fail(f"took more than {MOST_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.slow
def test_damaged_packages(name: str, tmp_path: Path) -> None:
    chance, content = random.Random(name), SAMPLES[name]()
    package, inside = tmp_path / f"package-{name}", tmp_path / "inside"
    refused = 0
    for number in range(ROUNDS):
        package.write_bytes(damaged(content, chance))
        inside.mkdir()
        signal.alarm(MOST_SECONDS)
        try:
            unpack_kernel(package, inside)
            record_of(inside, package.name, "1", "")
        except (LabError, UserError):
            refused += 1
        assert {path.name for path in tmp_path.iterdir()} == {package.name, "inside"}, number
        assert all(one.split("/")[0] in ("boot", "lib") for one in tree(inside)), number
        shutil.rmtree(inside)
    assert refused > ROUNDS / 10


def _rpm_repository(folder: Path, primary: bytes) -> RepositorySpec:
    """Whose index has the hash that the list has."""
    (folder / "repodata").mkdir(exist_ok=True)
    (folder / "repodata/primary.xml").write_bytes(primary)
    (folder / "repodata/repomd.xml").write_text(
        '<repomd><data type="primary"><location href="repodata/primary.xml"/>'
        f'<checksum type="sha256">{hashlib.sha256(primary).hexdigest()}</checksum></data></repomd>'
    )
    return RepositorySpec("rpm", "kernel", str(folder))


def _rpm_index(folder: Path, index: bytes) -> RepositorySpec:
    shutil.copytree(RPMS / "repodata", folder / "repodata", dirs_exist_ok=True)
    (folder / "repodata/repomd.xml").write_bytes(index)
    return RepositorySpec("rpm", "kernel", str(folder))


def _database(folder: Path, content: bytes) -> RepositorySpec:
    (folder / "core.db").write_bytes(content)
    return RepositorySpec("pkg", "linux", f"{folder}/core.db")


Repository = Callable[[Path, bytes], RepositorySpec]
INDICES: dict[str, tuple[Repository, Callable[[], bytes]]] = {
    "primary": (
        _rpm_repository,
        lambda: gzip.decompress((RPMS / "repodata/primary.xml.gz").read_bytes()),
    ),
    "repomd": (_rpm_index, (RPMS / "repodata/repomd.xml").read_bytes),
    "database": (_database, lambda: gzip.decompress((ARCH / "core.db").read_bytes())),
    "database-packed": (_database, (ARCH / "core.db").read_bytes),
}


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("name", INDICES)
def test_damaged_indices(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    repository, sample = INDICES[name]
    content, folder = sample(), tmp_path / "repository"
    folder.mkdir()
    refused = 0
    for number in range(ROUNDS):
        spec, work = repository(folder, damaged(content, chance)), tmp_path / "work"
        work.mkdir()
        signal.alarm(MOST_SECONDS)
        try:
            packages = resolve(spec, work)
            assert all("/" not in one.name for one in packages), number
        except (LabError, UserError):
            refused += 1
        assert {path.name for path in tmp_path.iterdir()} == {"repository", "work"}, number
        shutil.rmtree(work)
    assert refused > ROUNDS / 10
