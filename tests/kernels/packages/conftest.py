# SPDX-License-Identifier: GPL-2.0-or-later
"""The distribution's packages, with an apt of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.spec.kernel import parse_kernel_spec
from tests.conftest import FakeProgram
from tests.kernels import fake_apt
from tests.kernels.samples import RELEASE, deb, kernel_members

IMAGE = f"linux-image-{RELEASE}"
META = "linux-image-fake-amd64"


class Lab:
    """The faked apt, and what kdelta says to its user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.state: dict[str, Any] = {
            "packages": {
                IMAGE: {
                    "1-1": {"deb": self.package("old", "6.1.0-99-old-amd64")},
                    "1-2": {"deb": self.package("new", RELEASE), "depends": "kmod, initramfs | x"},
                },
                META: {"2": {"depends": f"{IMAGE} (= 1-2)"}},
                "linux-image-other-amd64": {"1": {}},
                f"{IMAGE}-dbg": {"1-2": {}},
            },
            "network": True,
            "calls": str(folder / "calls"),
            "own_lists": {},
        }
        self.save()

    def package(self, name: str, release: str) -> str:
        path = self.folder / f"{name}.deb"
        path.write_bytes(deb(kernel_members(release)))
        return str(path)

    def save(self) -> None:
        (self.folder / "apt.json").write_text(json.dumps(self.state))

    def change(self, **values: object) -> None:
        self.state.update(values)
        self.save()

    def obtain(self, text: str) -> Kernel:
        self.said.clear()
        found = obtain(parse_kernel_spec(text), self.said.append)
        assert isinstance(found, Kernel)
        return found

    def downloads(self) -> list[str]:
        calls = Path(self.state["calls"])
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def lab(
    tmp_path: Path, own_cache: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> Lab:
    assert own_cache
    monkeypatch.setattr("kdelta.kernels.packages.apt.SYSTEM_LISTS", tmp_path)
    for name in ("apt-get", "apt-cache"):
        fake_program(name, fake_apt.script(name, tmp_path / "apt.json"))
    return Lab(tmp_path)
