# SPDX-License-Identifier: GPL-2.0-or-later
"""Hints name what helps on this host: no apt where there is none."""

from pathlib import Path

import pytest

from kdelta.host.command import find_program
from kdelta.host.target import targets
from kdelta.spec.errors import LabError


def hints() -> list[str]:
    found = []
    for program in ("apt-get", "dpkg-deb", "git", "ld.lld", "pahole"):
        with pytest.raises(LabError) as caught:
            find_program(program)
        found.append(caught.value.hint)
    for one in targets().values():
        with pytest.raises(LabError) as caught:
            one.find_emulator()
        found += [caught.value.hint, one.install_hint]
    return found


def test_hints_without_apt_name_no_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert all(hints())
    assert not [one for one in hints() if "apt" in one]


def test_hints_with_apt_are_its_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "apt-get").write_text("#!/bin/sh\n")
    (tmp_path / "apt-get").chmod(0o755)
    with pytest.raises(LabError) as caught:
        find_program("ld.lld")
    assert caught.value.hint == "on Debian or Ubuntu: sudo apt-get install lld"
    assert all("sudo apt-get install" in one.install_hint for one in targets().values())
