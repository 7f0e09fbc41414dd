# SPDX-License-Identifier: GPL-2.0-or-later
"""Words that are no kernel specs: what they are taken for, by what is on this host."""

import subprocess
from pathlib import Path

import pytest

from kdelta.cli.meant import kernels_meant
from kdelta.host.target import host_target
from kdelta.kernels.packages.apt import Apt
from kdelta.spec.errors import LabError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(Apt, "best", classmethod(_without_apt))
    return tmp_path


def _without_apt(_: type[Apt]) -> Apt:
    raise LabError("no apt")


def test_versions_without_anything_here_are_commits_of_a_clone(here: Path) -> None:
    assert here.is_dir()
    found = kernels_meant(["6.1", "v6.12"])
    assert found
    assert found.instead == {"6.1": "git:linux@v6.1", "v6.12": "git:linux@v6.12"}
    assert "deb:linux-image-6.1-amd64" in found.advice


def test_a_version_that_is_a_folder_is_that_tree(here: Path) -> None:
    (here / "v6.1").mkdir()
    found = kernels_meant(["v6.1", "deb:linux-image-amd64"])
    assert found
    assert found.instead == {"v6.1": "./v6.1"}


def test_a_version_in_a_clone_that_has_its_tag_is_that_commit(here: Path) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["tag", "v6.1"]):
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *who, *words], cwd=here, check=True)
    found = kernels_meant(["6.1", "6.2"])
    assert found
    assert found.instead == {"6.1": "git:.@v6.1", "6.2": "git:linux@v6.2"}


def test_a_version_that_apt_has_is_that_package(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_target()
    assert here.is_dir()
    assert host
    names = [f"linux-image-6.1.0-9-{host.dpkg}", "linux-image-6.2-other"]
    monkeypatch.setattr(Apt, "best", classmethod(lambda cls: cls(None)))
    monkeypatch.setattr(Apt, "names", lambda _self, _start: names)
    found = kernels_meant(["6.1.y", "linux-6.2"])
    assert found
    assert found.instead == {"6.1.y": f"deb:{names[0]}", "linux-6.2": "git:linux@v6.2"}


@pytest.mark.parametrize("words", [["vs"], ["6.1", "versus"], ["deb:linux-image-amd64"], []])
def test_words_that_mean_nothing_certain_are_left_alone(words: list[str], here: Path) -> None:
    assert here.is_dir()
    assert kernels_meant(words) is None


def test_a_change_in_place_of_the_first_kernel_is_no_command(here: Path) -> None:
    assert here.is_dir()
    found = kernels_meant(["fix.patch", "./linux"])
    assert found
    assert found.instead == {}
    assert "+fix.patch" in found.advice
