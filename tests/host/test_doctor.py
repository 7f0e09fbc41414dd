# SPDX-License-Identifier: GPL-2.0-or-later
"""The doctor: what this host has, and what it would say of one that lacks something."""

from pathlib import Path

import pytest

from kdelta.host.doctor import Check, checks
from kdelta.host.emulator import why_lacking
from kdelta.host.pin import check_mirror
from tests.conftest import FakeProgram


def by_name() -> dict[str, Check]:
    return {check.name: check for check in checks()}


@pytest.mark.network
@pytest.mark.slow
def test_all_that_the_set_up_installs_is_there() -> None:
    assert [check for check in checks() if not check.ok] == []


@pytest.mark.usefixtures("own_cache")  # in which the pinned QEMU is not
@pytest.mark.slow
def test_every_lack_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = by_name()
    lacking = {name for name, check in found.items() if not check.ok}
    assert lacking >= {"C compiler", "static C library", "packages"}
    assert all(found[name].remedy for name in lacking)
    assert not found["packages"].required
    assert "image:PATH" in found["packages"].remedy


def test_what_building_lacks_is_told_by_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_program: FakeProgram
) -> None:
    fake_program("gcc", '#!/bin/sh\ncase "$*" in *gelf*) exit 1;; esac\nexit 0\n')
    for name in ("make", "git", "flex", "perl", "ld", "sh"):
        (tmp_path / "bin" / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    building = by_name()["building kernels"]
    assert building.detail.startswith("bison, bc, gelf.h missing: ")
    assert building.remedy.endswith("bc, bison, libelf-dev")
    assert not building.required
    ccache = by_name()["ccache"]
    assert (ccache.ok, ccache.required) == (False, False)
    lld = by_name()["relinking"]
    assert (lld.ok, lld.required) == (False, False)
    assert lld.remedy.endswith(" lld")


@pytest.mark.usefixtures("own_cache")
def test_host_without_a_compiler_is_told_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = by_name()
    assert found["C compiler"].detail == "gcc, ld missing"
    assert found["C compiler"].remedy.endswith("binutils, gcc")
    building = found["building kernels"]
    assert building.detail.startswith("gcc, ld, make, git, flex, bison, bc, perl, gelf.h, openssl")
    assert building.remedy.endswith(
        "bc, binutils, bison, flex, gcc, git, libelf-dev, libssl-dev, make, perl"
    )


def test_pin_that_cannot_be_fetched_is_not_promised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on Fedora: without apt no mirror of Debian is known."""

    def obtain(*_args: object) -> None:
        check_mirror()

    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("kdelta.host.emulator.obtain_part", obtain)
    why_lacking.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    found = by_name()
    for name in ("QEMU", "pin"):
        assert not found[name].ok
        assert found[name].detail.startswith("cannot fetch the pinned QEMU: this host has no apt")
        assert "KDELTA_PIN_URL" in found[name].remedy
    monkeypatch.setenv("KDELTA_PIN_URL", "http://example.org/debian")
    found = by_name()
    assert found["QEMU"].detail.endswith("it is fetched when it is needed")
    assert found["pin"].ok


@pytest.mark.network
@pytest.mark.slow
def test_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("U", (), {"free": 1 << 20}))
    disk = by_name()["disk"]
    assert not disk.ok
    assert "KDELTA_CACHE_DIR" in disk.remedy
