# SPDX-License-Identifier: GPL-2.0-or-later
"""The real apt-get against a mirror of our own that is being renewed; no network, no root."""

import contextlib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.host.lock import locked
from kdelta.host.target import host_target
from kdelta.kernels.packages.apt import Apt, host_suite, sources_of
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram
from tests.kernels.packages.served import serving, use_apt
from tests.kernels.samples import deb, kernel_members

NAME = "linux-image-fake"


class Mirror:
    """A repository of one package. The first `renewed` requests for a list or a package get what
    its index does not promise.
    """

    def __init__(self, architecture: str) -> None:
        self.renewed = 0
        self.requests = 0
        self._architecture = architecture
        self._list = f"main/binary-{architecture}/Packages"
        self.offer("1")

    def offer(self, version: str) -> None:
        """Offers that version, and no other."""
        content = deb(kernel_members())
        record = (
            f"Package: {NAME}\nVersion: {version}\nArchitecture: {self._architecture}\n"
            f"Maintainer: x <x@example.org>\nDescription: x\nFilename: pool/{NAME}.deb\n"
            f"Size: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n\n"
        ).encode()
        index = (
            f"Suite: stable\nArchitectures: {self._architecture}\nComponents: main\n"
            f"Date: Sat, 0{version} Aug 2026 00:00:00 UTC\nSHA256:\n"
            f" {hashlib.sha256(record).hexdigest()} {len(record)} {self._list}\n"
        ).encode()
        self._changing = {f"/dists/stable/{self._list}": record, f"/pool/{NAME}.deb": content}
        self._files: dict[str, bytes | int] = {"/dists/stable/Release": index, **self._changing}

    def get(self, path: str) -> bytes | int:
        """The content at a path, or the code of an error."""
        content = self._files.get(path, 404)
        if isinstance(content, bytes) and path in self._changing:
            self.requests += 1
            if self.requests <= self.renewed:
                return content + b"\n"
        return content


@pytest.fixture
def mirror(
    tmp_path: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mirror]:
    """The only mirror that apt knows."""
    host = host_target()
    if host is None:
        pytest.skip("this host's architecture has no packages")
    found = Mirror(host.dpkg)
    with serving(found.get) as address:
        source = f"deb [trusted=yes] {address}/ stable main"
        use_apt(tmp_path, source, fake_program, monkeypatch)
        yield found


def test_renewed_mirror_is_asked_again(mirror: Mirror, pauses: list[float], tmp_path: Path) -> None:
    said: list[str] = []
    apt = Apt(tmp_path / "own")
    mirror.renewed = 2
    apt.update(said.append, NAME)
    assert (apt.usable(NAME), apt.versions(NAME)) == (True, ["1"])

    mirror.renewed = mirror.requests + 1
    folder = tmp_path / "download"
    folder.mkdir()
    package = apt.download(NAME, "1", folder, said.append)
    assert list(folder.iterdir()) == [package]
    assert package.read_bytes() == deb(kernel_members())

    assert pauses == [5, 15, 5]
    again = [line for line in said if "File has unexpected size" in line]
    assert len(again) == 2
    assert all(line.endswith("in progress?); trying again for 60 seconds") for line in again)


def test_older_list_is_kept(mirror: Mirror, pauses: list[float], tmp_path: Path) -> None:
    said: list[str] = []
    apt = Apt(tmp_path / "own")
    apt.update(said.append, NAME)
    stamp = apt.updated()
    mirror.offer("2")
    mirror.renewed = mirror.requests + 4
    apt.update(said.append, NAME)
    assert len(pauses) == 3
    assert "; using those of " in said[-1]
    assert (apt.updated(), apt.versions(NAME)) == (stamp, ["1"])
    apt.update(said.append, NAME)
    assert apt.versions(NAME) == ["2"]


def test_without_any_list(mirror: Mirror, pauses: list[float], tmp_path: Path) -> None:
    mirror.renewed = 4
    with pytest.raises(LabError, match="lists could not be loaded: File has unexpected size"):
        Apt(tmp_path / "own").update(lambda _: None, NAME)
    assert len(pauses) == 3


def test_lists_of_kernels_and_of_programs_are_loaded_by_one_at_a_time(
    mirror: Mirror, own_cache: Path
) -> None:
    """Both are in one folder on a host of the architecture that is asked for."""
    assert mirror.requests == 0
    assert own_cache.is_dir()
    host = host_target()
    assert host
    said: list[str] = []
    held = contextlib.ExitStack()

    def log(line: str) -> None:
        said.append(line)
        held.close()

    held.enter_context(locked("apt-lists", "a test", print))
    Apt.of(host.dpkg, own_lists=True).update(log, NAME)
    assert said[0].startswith("waiting for another kdelta")
    held.enter_context(locked("apt-lists", "a test", print))
    Apt.with_own_lists().update(log, NAME)
    assert sum(line.startswith("waiting for another kdelta") for line in said) == 2


@pytest.mark.usefixtures("mirror")
def test_another_release_is_sought_where_the_hosts_is(own_cache: Path) -> None:
    line = re.fullmatch(
        r"deb (?:\[signed-by=\S+\] )?(http://127\.0\.0\.1:\d+/?) other main\n", sources_of("other")
    )
    assert line
    apt = Apt.of(None, "other", own_lists=True)
    with pytest.raises(UserError, match="no release other"):
        apt.update(lambda _: None, NAME)
    assert (own_cache / "apt-other/sources.list").read_text() == line[0]


@pytest.mark.usefixtures("mirror")
def test_the_hosts_own_release_is_in_its_usual_lists(own_cache: Path) -> None:
    Apt.of(None, host_suite(), own_lists=True).update(lambda _: None, NAME)
    assert Apt.with_own_lists().versions(NAME) == ["1"]
    assert not (own_cache / f"apt-{host_suite()}").exists()
